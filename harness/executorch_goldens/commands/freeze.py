"""``goldens freeze DIR``: keep the programs of chosen cells, with what they take and give."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError, UsageError
from executorch_goldens.programs import freezing
from executorch_goldens.programs.format import EXECUTORCH, REFERENCE_MODEL
from executorch_goldens.programs.running import Runtime
from executorch_goldens.programs.writing import Writer, require_new
from executorch_goldens.running import options
from executorch_goldens.running.run import Run
from executorch_goldens.running.selection import FEWEST_TO_RECORD
from executorch_goldens.targets import RUNTIME, find

#: The options of a run that choose cells and say how they are exported.
TAKEN = (
    *(
        "--release",
        "--cell",
        "--family",
        "--tier",
        "--models",
        "--variations",
        "--goldens",
        "--patches",
    ),
    *("--jobs", "--export-timeout", "--interpreter", "--reuse", "--store"),
)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "freeze",
        description="Export cells of the installed release, and write those whose variations agree and that are right "
        "to a new folder: programs, inputs, outputs and tolerances. thaw runs them in another environment.",
        epilog="exit code: 0 every cell is frozen, 1 some are refused, 2 error",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="must not exist: a corpus is never changed")
    options.add_to(_only(parser, TAKEN))
    parser.set_defaults(run=run)


def _only(parser: argparse.ArgumentParser, names: Sequence[str]) -> Callable[..., None]:
    """Return what adds the options named to `parser`, and of the others no more than their defaults."""

    def add(name: str, **described: Any) -> None:
        if name in names:
            parser.add_argument(name, **described)
            return
        unsaid = False if described.get("action") == "store_true" else None
        parser.set_defaults(**{name.strip("-").replace("-", "_"): described.get("default", unsaid)})

    return add


def run(arguments: argparse.Namespace) -> int:
    """Export, judge, write; print a line per cell."""
    require_new(arguments.folder)
    asked = argparse.Namespace(**vars(arguments), update_snapshots=False, update_new_snapshots_only=False)
    chosen = Run(options.read(asked, ()))
    if len(chosen.variations) < FEWEST_TO_RECORD:
        raise UsageError(
            f"--variations {arguments.variations}: a corpus takes what at least {FEWEST_TO_RECORD} variations agree "
            "on; say --variations quick"
        )
    cells = [cell for cell in chosen.known if cell in chosen.selected]
    in_runtime = {find(cell.target).runs == RUNTIME for cell in cells}
    engines = [
        engine for engine, is_run in ((EXECUTORCH, True), (REFERENCE_MODEL, False)) if is_run in in_runtime
    ]
    if chosen.reuse is not None:
        chosen.reuse.open()
    refused = 0
    with Writer(arguments.folder) as writer, Runtime(chosen.settings.interpreter, engines) as runtime:
        for cell, exports in freezing.exported(cells, chosen.variations, chosen.settings):
            try:
                programs = freezing.programs(cell, exports, runtime)
                writer.add(cell, [outcome.variation for outcome in exports.outcomes], programs)
            except ValueError as error:
                refused += 1
                print(f"refused: {cell}: {error}", flush=True)
                continue
            names = ", ".join(f"{program.name} ({len(program.samples)} samples)" for program in programs)
            print(f"frozen: {cell}: {names}", flush=True)
        if not writer.cells:
            raise CommandError(f"{arguments.folder} was not written: no cell could be frozen")
        writer.finish(chosen.release.stack(), chosen.patches)
    if chosen.reuse is not None:
        chosen.reuse.close()
    print(f"{len(writer.cells)} cells frozen, {refused} refused: {arguments.folder}")
    return DIFFERENT if refused else SAME
