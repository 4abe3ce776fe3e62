"""Runs over zoos with compact goldens: cells are exported, judged and, where that was asked for, recorded."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.artifact import Cell, Failure, Outcome
from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import JudgedCell
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.running.options import FULL
from executorch_goldens.running.plan import Plan
from executorch_goldens.settings import config
from executorch_goldens.sweep.sweep import Sweep
from lab.compact import goldens, judging, known

#: What a cell may be beside its verdict.
KNOWN, RECORDED, UNEXPECTED = "known defect", "recorded", "unexpected"
#: Verdicts of cells that pass.
ACCEPTED = ("stable", KNOWN, RECORDED)


@dataclass(frozen=True)
class Compact:
    """A zoo whose goldens are compact.

    Attributes
    ----------
    module
        The module that registers its cases.
    folder
        Its folder among goldens and results, relative to the root.
    core
        The cases of its core on a release.
    export_timeout
        Seconds that one export may take where nothing is said of it; None for as long as any.
    layered
        Whether its models need what only the layer of a release has: see `lab.guests.layer`.
    """

    name: str
    module: str
    folder: Path
    core: Callable[[str], frozenset[str]]
    export_timeout: float | None = None
    layered: bool = False


@dataclass(frozen=True)
class Found:
    """What a run says of a cell: its verdict, or one of `KNOWN`, `RECORDED` and `UNEXPECTED`."""

    verdict: Verdict
    label: str

    @property
    def accepted(self) -> bool:
        return self.label in ACCEPTED


@dataclass
class Run:
    """A run over the cells of a zoo on one release.

    Attributes
    ----------
    updating
        Whether what is right is recorded, and what is wrong becomes known.
    """

    zoo: Compact
    planned: Plan
    updating: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.version = self.planned.release.version
        self.judged: dict[str, Verdict] = {}
        self.own = OwnFiles.in_repository(config.load().root, self.planned.listed.files)
        self.changed: dict[Cell, Record | None] = {}

    def cells(self, tier: str) -> list[Cell]:
        """Return the cells of a tier; with patterns, all that match."""
        core = self.zoo.core(self.version)
        whole = tier == FULL or bool(self.planned.options.cells)
        return [cell for cell in self.planned.cells if whole or cell.case in core]

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Found]:
        """Yield what is found of each cell; record it in the end; raise `GoldenError`, `SweepError`."""
        try:
            with Sweep(cells, self.planned.variations, self.planned.settings) as sweep:
                for cell in cells:
                    found = self._found(cell, sweep.outcomes(cell))
                    self.counts[found.label] += 1
                    yield found
        finally:
            goldens.write(self.planned.root, self.changed)
            if self.judged:
                root = self.planned.root.parent
                decisions.write(root, known.settled(decisions.read(root), self.version, self.judged))

    def _found(self, cell: Cell, outcomes: Sequence[Outcome]) -> Found:
        reviewed = goldens.read(self.planned.root, cell)
        made = self._judged(cell, outcomes, reviewed)
        judged = made.verdict
        missing = made.record is not None and self.planned.decided.missing(cell, made.record)
        if missing:
            return Found(dataclasses.replace(judged, name=UNEXPECTED, refusal=missing), UNEXPECTED)
        if self.updating:
            self.judged[str(cell)] = judged
            if known.is_defect(judged):
                # A golden from when it was right is deleted.
                self.changed |= {cell: None} if reviewed is not None else {}
                return Found(judged, KNOWN)
            if made.record is not None and judged.name != "stable":
                self.changed[cell] = made.record
                return Found(judged, RECORDED)
        return Found(judged, KNOWN if judged.known else judged.name)

    def _judged(self, cell: Cell, outcomes: Sequence[Outcome], reviewed: Record | None) -> JudgedCell:
        decided = self.planned.decided
        if self.updating:
            # What an update finds is known from then on, whatever was.
            left = tuple(each for each in decided.stated if each.what != decisions.KNOWN)
            decided = dataclasses.replace(decided, stated=left)
        made = judging.compare(cell, outcomes, reviewed, self.planned.release, decided)
        failure = Exports(outcomes).agreed.result if made.record is not None else None
        if isinstance(failure, Failure) and (place := self.own.place(failure.traceback, cell.target)):
            return JudgedCell(verdict.own_failure(cell, failure, place))
        return made

    def stale(self) -> list[Cell]:
        """Return the cells that have a golden, and are not of the zoo and the release."""
        there = set(self.planned.zoo)
        return [cell for cell in goldens.recorded(self.planned.root) if cell not in there]
