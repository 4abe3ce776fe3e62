"""``python -m harness repro RELEASE TARGET/CASE``: one script that shows what is wrong with a cell, by itself."""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import releases, variations
from harness.artifact import Cell
from harness.cli import SAME, CommandError
from harness.decode.schemas import ENVIRONMENT_VARIABLE
from harness.repro import alone, candidate
from harness.repro.defect import Defect, NotShownError, find
from harness.selection import (
    EXPORT_TIMEOUT,
    Installed,
    UsageError,
    find_release,
    load_cells,
    require_flatc,
    select,
)
from harness.sweep import Machine, Settings, Sweep, SweepError, default_interpreter, worker_environment

if TYPE_CHECKING:
    from harness.repro.program import Program

#: One seed for each order of report #19045.
HASH_SEEDS = "0,4"
#: Seconds that a finished script may take: two processes that import, and export once, several times over.
SCRIPT_LIMIT = 600.0
#: What the user can put right: each says in one line what is wrong and the way out.
REFUSALS = (UsageError, SweepError, NotShownError, releases.UnknownReleaseError, variations.HashSeedError)
#: Options with one value.
OPTIONS = ("output", "hash_seeds", "interpreter", "jobs", "export_timeout")
ROOT = Path(__file__).resolve().parent.parent.parent


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "repro",
        help="write a script that shows what is wrong with a cell, without the harness",
        description="Export a cell as the release was published and write one script that shows by itself what is "
        "wrong with it. There is one for a cell that is order-only, unstable, corrupt or crashed, or that fails to "
        "lower; none for changed, new and timed-out.",
    )
    parser.add_argument("release", metavar="RELEASE", help="an ExecuTorch version of releases.toml")
    parser.add_argument("cell", metavar="TARGET/CASE")
    parser.add_argument("--minimize", action="store_true", help="shrink the model first")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    parser.add_argument("--hash-seeds", default=HASH_SEEDS, help="default: %(default)s")
    parser.add_argument("--models", action="append", metavar="MODULE", help="default: models")
    parser.add_argument(
        "--interpreter",
        type=Path,
        metavar="PYTHON",
        help="of an environment of RELEASE (default: this one, else the one that nox made)",
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="exports at a time")
    parser.add_argument("--export-timeout", type=float, default=EXPORT_TIMEOUT, metavar="SECONDS")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the script; everything the user can put right is one `CommandError`."""
    try:
        wanted = releases.load().release(arguments.release).version
        interpreter = (arguments.interpreter or _interpreter_of(wanted)).absolute()
        installed = Installed.probe(interpreter)
        release = find_release(installed, wanted)
        if installed.site_packages != Path(sysconfig.get_path("purelib")):
            return _elsewhere(interpreter, arguments)
        os.environ.setdefault(ENVIRONMENT_VARIABLE, str(installed.site_packages))
        cell = _cell(arguments.cell, load_cells(arguments.models or ["models"], release))
        output = arguments.output
        if output is not None and output.exists():
            raise UsageError(f"{output} exists: delete it, or name another file")
        if output is not None and not os.access(output.parent, os.W_OK):
            raise UsageError(
                f"{output} cannot be written: {output.parent} is no folder that can be written to"
            )
        require_flatc(interpreter)
        with tempfile.TemporaryDirectory(prefix="goldens-repro-") as folder:
            text = Repro(cell, release, interpreter, arguments, Path(folder)).text(arguments.minimize)
            told = confirm(text, interpreter)
        _say(f"the script by itself: {told}")
        if output is None:
            print(text, end="")
        else:
            _write(text, output)
    except REFUSALS as error:
        raise CommandError(str(error)) from error
    return SAME


def _say(line: str) -> None:
    """Tell how it goes; standard output is the script's."""
    print(line, file=sys.stderr, flush=True)


def _interpreter_of(release: str) -> Path:
    """Return this Python, or where it has another release the one of the environment that nox made, if it did."""
    made = ROOT / ".nox" / f"goldens-{release.replace('.', '-')}" / "bin" / "python"
    here = default_interpreter()
    if made.exists() and Installed.probe(here).versions.get("executorch") != release:
        return made
    return here


def _elsewhere(interpreter: Path, arguments: argparse.Namespace) -> int:
    """Run the command in the environment of the release: graphs are changed by the torch that exported them."""
    given = {**vars(arguments), "interpreter": interpreter}
    words = [f"--{name.replace('_', '-')}={given[name]}" for name in OPTIONS if given[name] is not None]
    words += [f"--models={module}" for module in arguments.models or ()]
    words += ["--minimize"] if arguments.minimize else []
    command = [interpreter, "-m", "harness", "repro", arguments.release, arguments.cell, *words]
    return subprocess.run(command, env=worker_environment(interpreter, 0)).returncode


def _cell(name: str, cells: Sequence[Cell]) -> Cell:
    try:
        chosen = select(cells, [name])
    except UsageError as error:
        raise UsageError(str(error).removeprefix("--cell ")) from error
    if len(chosen) > 1:
        raise UsageError(f"{name!r} is {len(chosen)} cells; name one, e.g. {min(chosen)}")
    (cell,) = chosen
    return cell


class Repro:
    """One cell on its way from a verdict to a script.

    Parameters
    ----------
    folder
        For the program under trial.
    """

    def __init__(
        self,
        cell: Cell,
        release: releases.Release,
        interpreter: Path,
        arguments: argparse.Namespace,
        folder: Path,
    ) -> None:
        from harness.repro.script import quantization
        from models.registry import CASES

        self.cell = cell
        self.release = release
        self.name = f"{cell} on ExecuTorch {release.version}"
        self.tried = 0
        self.case = CASES[cell.case]
        self.settings = quantization(cell.target, self.case.quantization)
        self.file = folder / "candidate.py"
        # The heap is left as it is: a script cannot lay it out.
        seeds = variations.parse_hash_seeds(arguments.hash_seeds)
        self.variations = [variations.Variation(seed, 0) for seed in seeds]
        environment = {
            candidate.FILE: str(self.file),
            candidate.ORIGIN: cell.case,
            candidate.QUANTIZATION: self.settings,
        }
        settings = Settings(
            interpreter=interpreter,
            models=(*(arguments.models or ["models"]), candidate.__name__),
            patches=(),
            jobs=arguments.jobs,
            limit=arguments.export_timeout,
            machine=Machine(environment=environment),
        )
        self.sweep = Sweep([cell], self.variations[:1], settings, lasting=True)

    def text(self, minimize: bool) -> str:
        """Return the script."""
        from harness.repro.program import NoProgramError

        try:
            with self.sweep:
                return self._text(self.judge(), minimize)
        except NoProgramError as error:
            raise NotShownError(f"{self.name} cannot be written as a script: {error}") from error
        except NotShownError as error:
            raise NotShownError(f"{self.name} {error}") from error

    def _text(self, defect: Defect, minimize: bool) -> str:
        from harness.repro.script import script
        from harness.repro.shrink import shrink

        _say(f"{defect.verdict}: {self.name}: {defect.reason}")
        program = self.program(defect.sample)
        seen = ""
        try:
            shown = self.shown(program, defect.seeds)
            seen = "" if shown.is_like(defect) else f"is {shown.verdict} ({shown.reason})"
        except NotShownError as error:
            seen = str(error)
        if seen:
            raise NotShownError(
                f"is {defect.verdict} ({defect.reason}), but its exported graph, with the release's own observers, "
                f"{seen}: there is no script"
            )
        origin = f"The exported graph of {self.cell}, {program.nodes} nodes."
        if minimize:
            whole = program.nodes
            program = shrink(program, lambda tried: self.shows(tried, defect))
            shown = self.shown(program, defect.seeds)
            _say(f"minimized from {whole} nodes to {program.nodes}, {self.tried} programs tried")
            origin = f"Minimized from {self.cell}: {whole} nodes to {program.nodes}."
        return script(program, shown, self.release, self.cell.target, self.settings, origin)

    def judge(self) -> Defect:
        """Return what is wrong with the cell under the first hash seed, or else under all of them."""
        try:
            return find(self.cell, self.sweep.outcomes(self.cell))
        except NotShownError:
            # Only now: each further seed takes an interpreter of its own.
            return find(self.cell, self.sweep.again(self.cell, self.variations))

    def program(self, sample: str) -> Program:
        """Return the program of the case's exported graph, on the inputs that show the defect."""
        from harness import compat
        from harness.export import export_program
        from harness.repro.program import Program
        from harness.targets import TARGETS

        example = TARGETS[self.cell.target].cast(self.case.example())
        module = compat.graph_module(export_program(example.module, example))
        return Program.of(module, self.case.samples(example)[sample], example.dynamic_shapes)

    def shown(self, program: Program, seeds: Sequence[int]) -> Defect:
        """Export a program under some hash seeds and return what is wrong with it; raise `NotShownError`."""
        self.tried += 1
        self.file.write_text(program.file(), encoding="utf-8")
        cell = dataclasses.replace(self.cell, case=candidate.NAME)
        tried = [variation for variation in self.variations if variation.hash_seed in seeds]
        return find(cell, self.sweep.again(cell, tried))

    def shows(self, program: Program, defect: Defect) -> bool:
        """Whether a program shows the same as the cell."""
        try:
            return self.shown(program, defect.seeds).is_like(defect)
        except NotShownError:
            return False


def confirm(text: str, interpreter: Path) -> str:
    """Run a script as its reader will; return what it says.

    Raises
    ------
    NotShownError
        If it does not show anything there.
    """
    try:
        ended = alone.run(text, interpreter, SCRIPT_LIMIT)
    except alone.EndlessError as error:
        raise NotShownError(f"the script by itself comes to no end: {error}") from error
    if ended.code != 1 or not ended.printed:
        raise NotShownError(
            f"the exported graph shows the defect, but the script by itself ends with {ended.code} "
            f"and says: {ended.last}"
        )
    return ended.last


def _write(text: str, output: Path) -> None:
    """Write the script, whole or not at all."""
    aside = output.with_name(f".{output.name}.partial")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.rename(output)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise UsageError(f"{output} cannot be written: {error}") from error
    _say(f"wrote {output}")
