"""One cell on its way from a verdict to a script; runs in the environment of the release."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.artifact import Cell
from executorch_goldens.running.zoo import load_zoo
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import Machine, Settings
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo import variations
from executorch_goldens.zoo.registry import Case
from executorch_goldens_plugins.repro import alone, candidate
from executorch_goldens_plugins.repro.defect import Defect, NotShownError, find, signature
from executorch_goldens_plugins.repro.edited import EditedPackage
from executorch_goldens_plugins.repro.issue import Script
from executorch_goldens_plugins.repro.script import quantization, script

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Example
    from executorch_goldens_plugins.repro.program import GraphProgram

#: Seconds that a finished script may take: two processes that import, and export once, several times over.
SCRIPT_LIMIT = 600.0
#: Number of runs: a use of freed memory shows in about half of them.
RUNS = 5
#: Limits of a run after the first: seconds, and a multiple of the run before.
LATER, TIMES = 60.0, 5.0


@dataclass(frozen=True)
class TrialSettings:
    """Settings for trying programs; see `executorch_goldens.settings.exports.Settings`.

    Attributes
    ----------
    variations
        Variations as ``--variations`` names them.
    """

    variations: str
    models: tuple[str, ...]
    jobs: int
    export_timeout: float


def say(line: str) -> None:
    """Report progress; standard output is the script's."""
    print(line, file=sys.stderr, flush=True)


class Repro:
    """One cell on its way from a verdict to a script.

    Parameters
    ----------
    folder
        Folder for the program under trial.
    edited
        See `executorch_goldens_plugins.repro.script.script`.
    """

    def __init__(
        self,
        cell: Cell,
        release: releases.Release,
        interpreter: Path,
        options: TrialSettings,
        folder: Path,
        edited: EditedPackage | None = None,
    ) -> None:
        self.cell = cell
        self.release = release
        self.edited = edited
        sources = f" with the sources of {edited.source}" if edited is not None else ""
        self.name = f"{cell} on ExecuTorch {release.version}{sources}"
        self.tried = 0
        self.case = load_zoo(options.models)[cell.case]
        self.settings = quantization(cell.target, self.case.quantization)
        self.file = folder / "candidate.py"
        # The heap is left as it is: a script cannot lay it out.
        seeds = variations.named(options.variations)
        self.variations = [variations.Variation(seed, 0) for seed in seeds]
        environment = {
            candidate.FILE: str(self.file),
            candidate.ORIGIN: cell.case,
            candidate.ZOOS: ",".join(options.models),
            candidate.QUANTIZATION: self.settings,
        }
        settings = Settings(
            interpreter=interpreter,
            models=(*(options.models), candidate.__name__),
            patches=(),
            jobs=options.jobs,
            limit=options.export_timeout,
            machine=Machine(environment=environment),
        )
        self.sweep = Sweep([cell], self.variations[:1], settings, lasting=True)

    def script(self, minimize: bool) -> Script:
        """Return the script and its defect; raise `NotShownError`."""
        from executorch_goldens_plugins.repro.program import NoProgramError

        try:
            with self.sweep:
                return self._script(self.judge(), minimize)
        except NoProgramError as error:
            raise NotShownError(f"{self.name} cannot be written as a script: {error}") from error
        except NotShownError as error:
            raise NotShownError(f"{self.name} {error}") from error

    def _script(self, defect: Defect, minimize: bool) -> Script:
        from executorch_goldens_plugins.repro.shrink import shrink

        say(f"{defect.verdict}: {self.name}: {defect.reason}")
        program = program_of(self.case, self.cell.target, defect.sample)
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
        subject = f"The exported graph of {self.cell}, {program.nodes} nodes."
        if minimize:
            whole = program.nodes
            program = shrink(program, lambda tried: self.shows(tried, defect))
            shown = self.shown(program, defect.seeds)
            say(f"minimized from {whole} nodes to {program.nodes}, {self.tried} programs tried")
            subject = f"Minimized from {self.cell}: {whole} nodes to {program.nodes}."
        text = script(program, shown, self.release, self.cell.target, self.settings, subject, self.edited)
        return Script(text, shown, subject, self.edited.source if self.edited is not None else "")

    def judge(self) -> Defect:
        """Return the defect of the cell under the first hash seed, or else under all of them."""
        try:
            return find(self.cell, self.sweep.outcomes(self.cell))
        except NotShownError:
            # Only now: each further seed takes an interpreter of its own.
            return find(self.cell, self.sweep.again(self.cell, self.variations))

    def shown(self, program: GraphProgram, seeds: Sequence[int]) -> Defect:
        """Export a program under some hash seeds and return its defect; raise `NotShownError`."""
        self.tried += 1
        self.file.write_text(program.file(), encoding="utf-8")
        cell = dataclasses.replace(self.cell, case=candidate.NAME)
        tried = [variation for variation in self.variations if variation.hash_seed in seeds]
        return find(cell, self.sweep.again(cell, tried))

    def shows(self, program: GraphProgram, defect: Defect) -> bool:
        """Return whether a program shows the same defect as the cell."""
        try:
            return self.shown(program, defect.seeds).is_like(defect)
        except NotShownError:
            return False


def program_of(case: Case, target: str, sample: str) -> GraphProgram:
    """Return the program of a case's exported graph, on the inputs of a sample; raise `NoProgramError`."""
    from executorch_goldens.exporting import compat
    from executorch_goldens.exporting.data import example_of
    from executorch_goldens.exporting.numerics.quantizing import export_program
    from executorch_goldens.exporting.numerics.samples import samples_of
    from executorch_goldens.exporting.targets import Lowering
    from executorch_goldens_plugins.repro.program import GraphProgram, NoProgramError

    # A script calls its model with tensors: what is no tensor is in its graph.
    lowering = Lowering.named(target)
    example = taking_tensors(lowering.cast(example_of(case)))
    if lowering.quantizer is not None and (example.quantizer or example.train):
        raise NoProgramError("it is quantized by functions of its case, which a script has not")
    module = compat.graph_module(export_program(example.module, example))
    # A script runs one step: the last, if it is wrong without those before.
    inputs = samples_of(case, example, remembers=True)[sample][-1]
    return GraphProgram.from_module(
        module, inputs, example.call.shapes(example.module, example.dynamic_shapes)
    )


def taking_tensors(example: Example) -> Example:
    """Return the example of a module that takes the tensors alone, one after the other."""
    call = example.call
    if call.is_plain:
        return example
    shapes = tuple(call.shapes(example.module, example.dynamic_shapes))
    return dataclasses.replace(
        example,
        module=call.flat(example.module),
        inputs=example.tensors,
        kwargs={},
        # The module takes any number of positional arguments.
        dynamic_shapes=(shapes,) if any(shapes) else None,
    )


def confirm(text: str, interpreter: Path) -> str:
    """Run a script as its reader will, `RUNS` times; return its output.

    Raises
    ------
    NotShownError
        If it does not show the same each time, or nothing.
    """
    seen: list[str] = []
    limit = SCRIPT_LIMIT
    while len(seen) < RUNS:
        before = f" after it showed the defect {len(seen)} times" if seen else ""
        started = time.monotonic()
        try:
            ended = alone.run(text, interpreter, limit)
        except alone.ScriptTimeoutError as error:
            raise NotShownError(f"the script by itself does not finish{before}: {error}") from error
        if ended.code != 1 or not ended.printed:
            raise NotShownError(
                f"the exported graph shows the defect, but the script by itself ends with {ended.code} "
                f"and says{before}: {ended.last}"
            )
        if seen and signature(ended.last) != signature(seen[0]):
            raise NotShownError(f"the script by itself says different things: {seen[0]} | {ended.last}")
        seen.append(ended.last)
        limit = min(SCRIPT_LIMIT, LATER + TIMES * (time.monotonic() - started))
    return seen[0]
