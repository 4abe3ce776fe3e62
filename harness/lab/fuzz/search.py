"""Exports drawn models and judges them; makes those that fail smaller, one for each cause, and writes scripts."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.judging.verdict import DISAGREEING
from executorch_goldens.settings.exports import Settings, worker_environment
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.toolchains.handing import MAIN
from executorch_goldens.zoo.variations import Variation
from lab.fuzz import FOLDER, names
from lab.fuzz.cause import Cause, judge
from lab.fuzz.kept import Judged, Lines, Minimal
from lab.fuzz.model import Model
from lab.fuzz.reduction import reduce

#: Models of one sweep: enough that the seconds in which its templates start do not count.
BATCH = 100
#: Seconds between two looks at the clock while an export is waited for.
LOOK = 1.0

#: Line that ``repro`` prints before the script's output.
SAID = "the script by itself: "

#: The zoo of a folder of drawn models.
ZOO = "lab.fuzz.zoo"


@dataclass(frozen=True)
class Search:
    """Drawn models on the targets of one release.

    Attributes
    ----------
    folder
        For results; see `models`.
    """

    release: Release
    settings: Settings
    variations: Sequence[Variation]
    targets: tuple[str, ...]
    folder: Path

    @property
    def models(self) -> Path:
        """The folder of the models as they were drawn, each as Python."""
        return self.folder / "models"

    @property
    def judged(self) -> Lines[Judged]:
        return Lines(results_of(self.folder.parent, self.release.version), Judged, self._head())

    @property
    def minimal(self) -> Lines[Minimal]:
        return Lines(self.folder / "minimal.jsonl", Minimal, self._head())

    def _head(self) -> dict[str, object]:
        return {
            "release": self.release.version,
            "drawing": names.digest(),
            "patches": list(self.settings.patches),
        }

    # Exporting

    def export(self, wanted: Iterable[str], deadline: float) -> Iterator[Judged]:
        """Yield and keep the results of the named models on each target; known ones are not made again.

        Parameters
        ----------
        deadline
            By `time.monotonic`, after which no result is waited for.
        """
        kept = self.judged
        done = {row.key for row in kept.open()}
        waiting = iter(wanted)
        while of_batch := tuple(itertools.islice(waiting, BATCH)):
            cells = [
                Cell(target, name)
                for name in of_batch
                for target in self.targets
                if (name, target) not in done
            ]
            for row in self._batch(cells, deadline) if cells else ():
                kept.add(row)
                yield row
            if time.monotonic() > deadline:
                return

    def _batch(self, cells: Sequence[Cell], deadline: float) -> Iterator[Judged]:
        os.environ[FOLDER] = str(self.models)
        for name in dict.fromkeys(cell.case for cell in cells):
            write(self.models, name, names.drawn(name))
        with Sweep(cells, self.variations, self.settings) as sweep:
            for cell in cells:
                while not sweep.ready(cell, LOOK):
                    if time.monotonic() > deadline:
                        return
                outcomes = sweep.outcomes(cell)
                cause, reason = judge(cell, outcomes, self.release)
                seconds = sum(outcome.core_seconds for outcome in outcomes)
                yield Judged(cell.case, cell.target, cause, reason, round(seconds, 2))

    # Making smaller

    def shrink(self, rows: Sequence[Judged], deadline: float) -> Iterator[Minimal]:
        """Yield the smallest model found for each cause of `rows` on each target, and keep it with its script.

        Parameters
        ----------
        deadline
            By `time.monotonic`, after which no further cause is looked into.
        """
        kept = self.minimal
        done = {(row.target, row.cause) for row in kept.open()}
        for row in representatives(rows):
            if (row.target, row.cause) not in done and time.monotonic() < deadline:
                minimal = self._minimal(row)
                kept.add(minimal)
                yield minimal

    def _minimal(self, row: Judged) -> Minimal:
        folder = self.folder / "minimal" / row.target
        os.environ[FOLDER] = str(folder)
        write(folder, row.model, names.drawn(row.model))
        cell = Cell(row.target, row.model)
        # Where all agree on the defect, one export shows it.
        needed = self.variations if row.cause.verdict in DISAGREEING else self.variations[:1]
        with Sweep([cell], needed, self.settings, lasting=True) as sweep:
            sweep.outcomes(cell)

            def shows(smaller: Model) -> bool:
                write(folder, row.model, smaller)
                return judge(cell, sweep.again(cell, needed), self.release)[0] == row.cause

            model, tried = reduce(names.drawn(row.model), shows)
        write(folder, row.model, model)
        said, why_not = self._script(cell, self.folder / "scripts" / row.target)
        return Minimal(
            row.model, row.target, row.cause, model.source(), model.operators, tried, said, why_not
        )

    def _script(self, cell: Cell, folder: Path) -> tuple[str, str]:
        """Have ``repro`` write a script for the minimal model; return the script's output, or why there is none."""
        folder.mkdir(parents=True, exist_ok=True)
        output = folder / f"{cell.case}.py"
        output.unlink(missing_ok=True)
        interpreter = self.settings.interpreter
        command = [*with_harness(interpreter, MAIN), "repro", self.release.version, str(cell), "--minimize"]
        command += ["--models", ZOO, "--output", str(output), "--jobs", "1"]
        command += ["--variations", ",".join(str(each.hash_seed) for each in self.variations)]
        ended = subprocess.run(
            command, env=worker_environment(interpreter, 0), capture_output=True, text=True, check=False
        )
        lines = [line for line in ended.stderr.splitlines() if line.strip()] or [
            f"exit code {ended.returncode}"
        ]
        if ended.returncode:
            return "", lines[-1].removeprefix("goldens: ")
        said = [line for line in lines if line.startswith(SAID)]
        return said[-1].removeprefix(SAID), ""


def results_of(folder: Path, release: str) -> Path:
    """Return the file of results on a release, in the folder that ``--results`` names."""
    return folder / release / "results.jsonl"


def write(folder: Path, name: str, model: Model) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(model.source(), encoding="utf-8")


def representatives(rows: Sequence[Judged]) -> Iterator[Judged]:
    """Yield the row with the fewest steps for each cause on each target that is wrong."""
    groups: dict[tuple[str, Cause], list[Judged]] = {}
    for row in rows:
        if row.wrong:
            groups.setdefault((row.target, row.cause), []).append(row)
    for members in groups.values():
        yield min(members, key=lambda row: (len(names.drawn(row.model).steps), row.model))
