"""``goldens thaw DIR --runtime PYTHON``: run frozen programs in another environment, and compare."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.programs.comparing import Result, compare, kept
from executorch_goldens.programs.format import DEVICE, ProgramEntry
from executorch_goldens.programs.reading import Corpus, cell_of
from executorch_goldens.programs.running import Limits, Runtime
from executorch_goldens.running.selection import select
from executorch_goldens.settings.arguments import positive_float, positive_int, share

#: A program of a corpus: its cell, and what the manifest says of it.
Chosen = tuple[Cell, ProgramEntry]


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "thaw",
        description="Run the programs of a corpus in the environment of a Python, which needs ExecuTorch and nothing "
        "of this project, and compare what they give with what they gave.",
        epilog="exit code: 0 every program is as it should be, 1 some are not, 2 the corpus is damaged, or another "
        "error",
    )
    limits = Limits()
    parser.add_argument("folder", type=Path, metavar="DIR", help="what freeze has written")
    parser.add_argument(
        "--runtime",
        type=Path,
        required=True,
        metavar="PYTHON",
        help="of the environment that runs the programs",
    )
    share(parser.add_argument, "--cell")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--program-timeout",
        type=positive_float,
        default=limits.seconds,
        metavar="SECONDS",
        help="limit per program, of processor time, all samples together (default: %(default)g)",
    )
    parser.add_argument(
        "--program-memory",
        type=positive_int,
        default=limits.megabytes,
        metavar="MIB",
        help="address space per program, beyond what its process begins with (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check the corpus, run what is chosen, print."""
    corpus = Corpus.read(arguments.folder)
    corpus.check()
    chosen = programs(corpus, arguments.cell)
    engines = {entry.engine for _, entry in chosen} - {DEVICE}
    if not engines:
        raise CommandError("of the programs chosen none can be run but on the device that it is for")
    limits = Limits(arguments.program_timeout, arguments.program_memory)
    found: list[tuple[Cell, ProgramEntry, Result]] = []
    with Runtime(arguments.runtime, engines, limits) as runtime:
        if not arguments.json:
            print(f"frozen with {listed(corpus.manifest.made_with)}; run with {listed(runtime.versions)}")
        for cell, entry, result in results(corpus, chosen, runtime):
            found.append((cell, entry, result))
            if not arguments.json:
                reason = f": {result.reason}" if result.reason else ""
                print(f"{result.word}: {cell} {entry.name}{reason}", flush=True)
        if arguments.json:
            print(json.dumps(as_json(corpus, runtime.versions, found), indent=1))
    if not arguments.json:
        counts = Counter(result.word for _, _, result in found)
        print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return SAME if all(result.is_right for _, _, result in found) else DIFFERENT


def programs(corpus: Corpus, patterns: Sequence[str] | None) -> list[Chosen]:
    """Return the programs of the cells that match some pattern; raise UsageError."""
    cells = {cell_of(entry): entry for entry in corpus.manifest.cells}
    selected = select(tuple(cells), patterns)
    return [
        (cell, program) for cell, entry in cells.items() if cell in selected for program in entry.programs
    ]


def results(
    corpus: Corpus, chosen: Sequence[Chosen], runtime: Runtime
) -> Iterator[tuple[Cell, ProgramEntry, Result]]:
    """Run programs one after the other, and yield what came of each."""
    for cell, entry in chosen:
        program = corpus.program(entry)
        result = kept(program) if program.engine == DEVICE else compare(program, runtime.run(program))
        yield cell, entry, result


def listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def as_json(
    corpus: Corpus, versions: Mapping[str, str], found: Sequence[tuple[Cell, ProgramEntry, Result]]
) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    return {
        "made_with": corpus.manifest.made_with,
        "run_with": dict(versions),
        "programs": [
            {
                "cell": str(cell),
                "program": entry.name,
                "result": result.word,
                "reason": result.reason,
                "samples": dict(result.samples),
                "seconds": round(result.seconds, 3),
            }
            for cell, entry, result in found
        ],
    }
