"""``goldens thaw DIR``: run frozen programs in a different environment, or read a device's outputs, and compare."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.running.selection import select
from executorch_goldens.settings.arguments import Forms, positive_float, positive_int, share
from executorch_goldens_plugins.field.comparing import Result, compare, kept
from executorch_goldens_plugins.field.format import DEVICE, ProgramEntry
from executorch_goldens_plugins.field.reading import Corpus, cell_of
from executorch_goldens_plugins.field.replay import is_listed
from executorch_goldens_plugins.field.returned import JudgedSample, judge
from executorch_goldens_plugins.field.running import ProgramLimits, Runtime

#: The forms of the command, and the options of each.
RUNTIME, OUTPUTS = "--runtime", "--outputs"
OPTIONS = {RUNTIME: (RUNTIME, "--program-timeout", "--program-memory"), OUTPUTS: (OUTPUTS,)}

#: A program of a corpus: its cell, and what the manifest says of it.
Chosen = tuple[Cell, ProgramEntry]


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "thaw",
        description="Run the programs of a corpus in the environment of a Python, which needs ExecuTorch and nothing "
        "of this project, and compare the results with the frozen ones. With --outputs, run nothing: compare the "
        "results of a device.",
        epilog="exit code: 0 every program gives the frozen results, 1 some do not, 2 the corpus is damaged, or "
        "another error",
    )
    limits = ProgramLimits()
    parser.add_argument("folder", type=Path, metavar="DIR", help="corpus that freeze wrote")
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument(RUNTIME, type=Path, metavar="PYTHON", help="of the environment that runs the programs")
    form.add_argument(
        OUTPUTS, type=Path, metavar="FOLDER", help="results of a device, named as in replay.txt of the corpus"
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
        help="address space per program, on top of its process's own (default: %(default)s)",
    )
    parser.set_defaults(run=run, forms=Forms(OPTIONS, form_of))


def form_of(arguments: argparse.Namespace) -> str:
    """Return which of `OPTIONS` it is."""
    return RUNTIME if arguments.outputs is None else OUTPUTS


def run(arguments: argparse.Namespace) -> int:
    """Check the corpus, run the chosen programs or take a device's results, print."""
    corpus = Corpus.load(arguments.folder)
    corpus.check()
    chosen = programs(corpus, arguments.cell)
    if form_of(arguments) == OUTPUTS:
        return take(corpus, chosen, arguments.outputs, arguments.json)
    engines = {entry.engine for _, entry in chosen} - {DEVICE}
    if not engines:
        raise CommandError("of the programs chosen none can be run but on the device that it is for")
    limits = ProgramLimits(arguments.program_timeout, arguments.program_memory)
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
        print(counted(result.word for _, _, result in found))
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
    """Run programs one after the other, and yield the result of each."""
    for cell, entry in chosen:
        program = corpus.program(entry)
        result = kept(program) if program.engine == DEVICE else compare(program, runtime.run(program))
        yield cell, entry, result


def take(corpus: Corpus, chosen: Sequence[Chosen], folder: Path, as_data: bool) -> int:
    """Compare a device's results, and print each sample's; raise CommandError if there are none."""
    if not folder.is_dir():
        raise CommandError(
            f"there is no folder {folder}: --outputs names the folder with the device's results"
        )
    if not any(is_listed(entry) for _, entry in chosen):
        raise CommandError("of the programs chosen none is for a device")
    found: list[JudgedSample] = []
    for judged in judgements(corpus, chosen, folder):
        found.append(judged)
        if not as_data:
            print(line(judged), flush=True)
    if as_data:
        rows = [{**vars(judged), "cell": str(judged.cell)} for judged in found]
        print(json.dumps({"made_with": corpus.manifest.made_with, "samples": rows}, indent=1))
    else:
        print(counted(judged.result for judged in found))
    return SAME if all(judged.is_right for judged in found) else DIFFERENT


def judgements(corpus: Corpus, chosen: Sequence[Chosen], folder: Path) -> Iterator[JudgedSample]:
    """Yield the result of each sample on a device."""
    for cell, entry in chosen:
        if is_listed(entry):
            for sample in corpus.program(entry).samples:
                yield judge(cell, entry.name, sample, folder)


def counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())


def line(judged: JudgedSample) -> str:
    """Return the line for a sample."""
    reason = f": {judged.reason}" if judged.reason else ""
    return f"{judged.result}: {judged.cell} {judged.program}, sample {judged.sample}{reason}"


def listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def as_json(
    corpus: Corpus, versions: Mapping[str, str], found: Sequence[tuple[Cell, ProgramEntry, Result]]
) -> dict[str, Any]:
    """Return the data for ``--json``."""
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
