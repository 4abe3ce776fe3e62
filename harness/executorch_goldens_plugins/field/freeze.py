"""``goldens freeze DIR``: keep the programs of chosen cells, with their inputs and outputs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError, UsageError
from executorch_goldens.files.wording import count
from executorch_goldens.running import options
from executorch_goldens.running.plan import plan
from executorch_goldens.running.selection import FEWEST_TO_RECORD
from executorch_goldens.settings.arguments import with_short
from executorch_goldens.toolchains import handing
from executorch_goldens_plugins.field import freezing
from executorch_goldens_plugins.field.running import Runtime
from executorch_goldens_plugins.field.writing import Writer, require_new

#: The options of a run that choose cells and say how they are exported.
TAKEN = (
    *("--models", "--cell", "--tier", "--goldens", "--variations", "--patches"),
    *("--jobs", "--toolchain", "--cache"),
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
    options.add_to(dict.fromkeys(options.GROUPS, with_short(parser.add_argument)), names=TAKEN)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Export, judge, write; print a line per cell."""
    require_new(arguments.folder)
    handing.over_if_needed(arguments, ["freeze", *arguments.forwarded])
    chosen = plan(options.read(arguments, ()))
    if len(chosen.variations) < FEWEST_TO_RECORD:
        raise UsageError(
            f"--variations {arguments.variations}: a corpus needs at least {FEWEST_TO_RECORD} variations that agree"
            "; pass --variations quick"
        )
    cells, reuse = chosen.cells, chosen.reuse()
    engines = freezing.engines_of(cells)
    if reuse is not None:
        reuse.open()
    refused = 0
    with Writer(arguments.folder) as writer, Runtime(chosen.settings.interpreter, engines) as runtime:
        for cell, exports in freezing.exported(cells, chosen.variations, chosen.settings, reuse):
            try:
                programs = freezing.programs(cell, exports, runtime)
                writer.add(cell, [outcome.variation for outcome in exports.outcomes], programs)
            except ValueError as error:
                refused += 1
                print(f"refused: {cell}: {error}", flush=True)
                continue
            names = ", ".join(
                f"{program.name} ({count(len(program.samples), 'sample')})" for program in programs
            )
            print(f"frozen: {cell}: {names}", flush=True)
        if not writer.cells:
            raise CommandError(f"{arguments.folder} was not written: no cell could be frozen")
        writer.finish(chosen.release.stack(), chosen.settings.patches)
    if reuse is not None:
        reuse.close()
    print(f"{count(len(writer.cells), 'cell')} frozen, {refused} refused: {arguments.folder}")
    return DIFFERENT if refused else SAME
