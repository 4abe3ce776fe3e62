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
from executorch_goldens_plugins.field.comparing import RIGHT, compare, kept
from executorch_goldens_plugins.field.format import DEVICE, ProgramEntry
from executorch_goldens_plugins.field.reading import Corpus, cell_of
from executorch_goldens_plugins.field.replay import is_listed
from executorch_goldens_plugins.field.returned import judge
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
    with Runtime(arguments.runtime, engines, limits) as runtime:
        made_with, run_with = corpus.manifest.made_with, dict(runtime.versions)
        if not arguments.json:
            print(f"frozen with {listed(made_with)}; run with {listed(run_with)}")
        rows = results(corpus, chosen, runtime)
        return show(rows, arguments.json, {"made_with": made_with, "run_with": run_with}, "programs")


def programs(corpus: Corpus, patterns: Sequence[str] | None) -> list[Chosen]:
    """Return the programs of the cells that match some pattern; raise UsageError."""
    cells = {cell_of(entry): entry for entry in corpus.manifest.cells}
    selected = select(tuple(cells), patterns)
    return [
        (cell, program) for cell, entry in cells.items() if cell in selected for program in entry.programs
    ]


def results(corpus: Corpus, chosen: Sequence[Chosen], runtime: Runtime) -> Iterator[dict[str, Any]]:
    """Run programs one after the other, and yield the result of each."""
    for cell, entry in chosen:
        program = corpus.program(entry)
        result = kept(program) if program.engine == DEVICE else compare(program, runtime.run(program))
        yield {
            "cell": str(cell),
            "program": entry.name,
            "result": result.word,
            "reason": result.reason,
            "samples": dict(result.samples),
            "seconds": round(result.seconds, 3),
        }


def take(corpus: Corpus, chosen: Sequence[Chosen], folder: Path, as_data: bool) -> int:
    """Compare a device's results, and print each sample's; raise CommandError if there are none."""
    if not folder.is_dir():
        raise CommandError(
            f"there is no folder {folder}: --outputs names the folder with the device's results"
        )
    if not any(is_listed(entry) for _, entry in chosen):
        raise CommandError("of the programs chosen none is for a device")
    rows = judgements(corpus, chosen, folder)
    return show(rows, as_data, {"made_with": corpus.manifest.made_with}, "samples")


def judgements(corpus: Corpus, chosen: Sequence[Chosen], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the result of each sample on a device."""
    for cell, entry in chosen:
        if is_listed(entry):
            for sample in corpus.program(entry).samples:
                yield {**vars(judge(cell, entry.name, sample, folder)), "cell": str(cell)}


def show(rows: Iterable[Mapping[str, Any]], as_data: bool, head: Mapping[str, Any], name: str) -> int:
    """Print results as they come, then how many of each there are, or all as JSON; return the exit code."""
    found = []
    for row in rows:
        found.append(row)
        if not as_data:
            print(line(row), flush=True)
    counts = Counter(row["result"] for row in found)
    if as_data:
        print(json.dumps({**head, name: found}, indent=1))
    else:
        print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return SAME if counts.keys() <= RIGHT else DIFFERENT


def line(row: Mapping[str, Any]) -> str:
    """Return the line for a result of a program or a sample."""
    sample = f", sample {row['sample']}" if "sample" in row else ""
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{row['result']}: {row['cell']} {row['program']}{sample}{reason}"


def listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
