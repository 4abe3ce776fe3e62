"""Finds the cells of the whole zoo that see each reverted fix, without exporting every cell once for each.

A cell is exported with all fixes of its release taken back at once. If it is still as its golden says, it sees none of
them. If not, the fixes are halved, and so on, until one alone makes the difference. What was found is kept, a line for
each cell; a session that was stopped goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import NONE
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging.comparison import JudgedCell, compare, undecodable
from executorch_goldens.running.plan import Plan
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.targets import find
from lab.compact import form, goldens, judging
from lab.compact.runs import Compact
from lab.mutants.history.cause import of_verdict
from lab.mutants.history.fix import Fix
from lab.mutants.mutant import Mutated
from lab.mutants.table import named

#: A fix that so many cells have seen is not tried on others.
ENOUGH = 10

#: The same for sheets, which are many, and for cells without goldens, which take two exports each.
ENOUGH_SHEETS = 3
ENOUGH_FURTHER = 1

#: Cells go in an order that nobody chose: those that a stopped session has tried are a sample of all.
SHUFFLE = 17

#: The first word of targets that a backend's code is run for; code of no backend is run for all.
TARGETS = {"arm": "tosa", "xnnpack": "xnnpack"}

STABLE = "stable"


@dataclass(frozen=True)
class Seen:
    """The verdict of a cell with one fix reverted.

    Attributes
    ----------
    verdict
        Its name; `STABLE` for one that is known as well.
    named
        The pass or stage that it names; `NONE` for none.
    """

    verdict: str
    named: str


@dataclass(frozen=True)
class Tried:
    """The results of one cell.

    Attributes
    ----------
    cell
        Its name.
    fixes
        Keys of the fixes that were tried on it.
    seen
        The seen fixes, by key.
    control
        Verdict without any fix taken back, where some was seen; empty where none was. A cell that is not stable by
        itself sees nothing.
    core_seconds
        Processor time of all exports that this took; 0 where it was not noted, before 2026-11-26.
    cause
        Where `control` comes from: the place, then what is wrong there, without names of the model. Empty where the
        cell is stable by itself, and in older results: a session looks into these again.
    """

    cell: str
    fixes: tuple[str, ...]
    seen: Mapping[str, Seen]
    control: str = ""
    core_seconds: float = 0.0
    cause: str = ""

    @property
    def is_red(self) -> bool:
        """Whether the cell is not stable by itself."""
        return self.control not in ("", STABLE)


def key(fix: Fix) -> str:
    """Return the key of `fix` in the file: its number, and a digest of its edits."""
    return f"{fix.number}@{hashlib.sha256(repr(fix.edits).encode()).hexdigest()[:8]}"


def reviewed_of(folder: Path, cell: Cell) -> Record | None:
    """Return the golden of a cell, whole or compact; None where there is none."""
    return golden.read(golden.file_of(folder, cell)) or goldens.read(folder, cell)


def reaches(fix: Fix, cell: Cell) -> bool:
    """Return whether code that `fix` edits is of the backend that `cell` is exported for, or of none.

    >>> from lab.mutants.mutant import Edit
    >>> arm = Fix("1-x", 1, "1.3.1", "crash", "", (Edit("executorch.backends.arm._passes.x:call", "", ""),))
    >>> reaches(arm, Cell("tosa-fp", "add")), reaches(arm, Cell("xnnpack-fp32", "add"))
    (True, False)
    """
    backends = [edit.function.split(".")[2] for edit in fix.edits]
    return any(TARGETS.get(backend, "") in ("", cell.target.partition("-")[0]) for backend in backends)


def numbers(guards: str) -> frozenset[int]:
    """Return the pull requests named in the `guards` of a case.

    >>> sorted(numbers("an int16 convolution keeps its bias and its scale (#17155, #21910)"))
    [17155, 21910]
    """
    return frozenset(map(int, re.findall(r"#([0-9]+)", guards)))


class Kept:
    """The results of earlier sessions in one release; those with another golden are not read.

    Parameters
    ----------
    models
        Texts of the cases, by name, where they have no goldens: in the place of these they must stay the same.
    """

    def __init__(self, file: Path, goldens: Path, models: Mapping[str, str] | None = None) -> None:
        self.file = file
        self.goldens = goldens
        self.models = models

    def golden(self, cell: str) -> str:
        """Return the digest of a cell's golden; empty where there is none."""
        if self.models is not None:
            model = self.models.get(cell.partition("/")[2], "")
            return hashlib.sha256(model.encode()).hexdigest()[:12] if model else "none"
        record = reviewed_of(self.goldens, Cell(*cell.split("/")))
        if record is None:
            return ""
        return (form.digest(record) if form.is_compact(record) else record.digest)[:12]

    def read(self) -> list[Tried]:
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        return [
            Tried(
                line["cell"],
                tuple(line["fixes"]),
                {fix: Seen(**seen) for fix, seen in line["seen"].items()},
                line["control"],
                line.get("core_seconds", 0.0),
                line.get("cause", ""),
            )
            for line in map(json.loads, lines)
            if line["golden"] == self.golden(line["cell"])
        ]

    def add(self, tried: Tried) -> None:
        seen = {fix: vars(seen) for fix, seen in tried.seen.items()}
        line = {
            "cell": tried.cell,
            "golden": self.golden(tried.cell),
            "control": tried.control,
            **({"cause": tried.cause} if tried.cause else {}),
            "core_seconds": round(tried.core_seconds, 1),
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "seen": seen, "fixes": tried.fixes}) + "\n")


@dataclass(frozen=True)
class Result:
    """The zoo's result for a reverted fix.

    Attributes
    ----------
    tried
        Number of cells that met it.
    seen
        The verdicts, by the name of the cell.
    """

    fix: Fix
    tried: int
    seen: Mapping[str, Seen]


@dataclass(frozen=True)
class Met:
    """All results for a reverted fix.

    Attributes
    ----------
    found
        The result of each source, by its name.
    taught
        Names of the sources that were made for fixes, or came with them.
    """

    fix: Fix
    found: Mapping[str, Result]
    taught: frozenset[str] = frozenset()

    def is_seen(self, *sources: str) -> bool:
        """Return whether some cell of some of these sources has seen it."""
        return any(self.found[name].seen for name in sources)

    def tried(self, *sources: str) -> int:
        """Return how many cells of these sources have met it."""
        return sum(self.found[name].tried for name in sources)

    @property
    def untaught(self) -> tuple[str, ...]:
        """Names of the sources that nobody made for a fix."""
        return tuple(name for name in self.found if name not in self.taught)

    @property
    def seen(self) -> list[Seen]:
        """The results of all cells."""
        return [seen for result in self.found.values() for seen in result.seen.values()]


def results(fixes: Sequence[Fix], tried: Sequence[Tried]) -> list[Result]:
    """Return the results of each of `fixes`; a cell that is unstable by itself does not count."""
    sound = [each for each in tried if not each.is_red]
    found = []
    for fix in fixes:
        of_it = [each for each in sound if key(fix) in each.fixes]
        seen = {each.cell: each.seen[key(fix)] for each in of_it if key(fix) in each.seen}
        found.append(Result(fix, len({each.cell for each in of_it}), seen))
    return found


def latest(tried: Sequence[Tried]) -> dict[str, Tried]:
    """Return the last result of each cell, by its name, with the cause that an earlier one of this verdict has."""
    found: dict[str, Tried] = {}
    for each in tried:
        before = found.get(each.cell, each)
        same = before.control == each.control
        found[each.cell] = replace(each, cause=each.cause or before.cause) if same else each
    return found


def joined(fix: Fix, found: Sequence[Result]) -> Result:
    """Return the joined results of several zoos for `fix`."""
    seen = {f"{number} {cell}": said for number, each in enumerate(found) for cell, said in each.seen.items()}
    return Result(fix, sum(each.tried for each in found), seen)


class Search:
    """The exports of one session.

    Parameters
    ----------
    planned
        Over the release, under one variation.
    fixes
        Of this release.
    minutes
        After so many, no further export is begun.
    guarded
        Numbers of the fixes that are tried on each case; None tries all on all.
    says
        Gets a line for each export.
    enough
        A fix that so many cells have seen is not tried on others.
    unedited
        Whether cells have no goldens: an export without any edit, of this session, is in the place of one. Those that
        are not right then say nothing.
    """

    def __init__(
        self,
        planned: Plan,
        fixes: Sequence[Fix],
        kept: Kept,
        minutes: float,
        guarded: Mapping[str, Collection[int]] | None = None,
        says: Callable[[str], None] = lambda line: None,
        enough: int = ENOUGH,
        unedited: bool = False,
        compact: Compact | None = None,
    ) -> None:
        self.planned = planned
        self.compact = compact
        self.unedited = unedited
        self.kept = kept
        self.guarded = guarded
        self.end = time.monotonic() + 60 * minutes
        self.lock = threading.Lock()
        self.known = kept.read()
        self.by_key = {key(fix): fix for fix in fixes}
        self.installed: dict[Cell, Sequence[str]] = {}
        self.enough = enough
        self.exports = 0
        self.core_seconds: dict[str, float] = {}
        self.recorded: dict[Cell, JudgedCell] = {}
        self.says: Callable[[str], None] = says

    def cells(self) -> list[Cell]:
        """Return the cells that were asked for and are accepted, in an order of chance that is the same each time.

        They have a golden, or it is known what is wrong with them: then another verdict is seen.
        """
        cells = [cell for cell in self.planned.zoo if cell in self.planned.asked]
        if not self.unedited:
            root = self.planned.root
            recorded = goldens.recorded(root) if self.compact is not None else golden.recorded(root)
            accepted = {*self.planned.decided.defects, *map(str, recorded)}
            cells = [cell for cell in cells if str(cell) in accepted]
        random.Random(SHUFFLE).shuffle(cells)
        return cells

    def __call__(self) -> Iterator[Tried]:
        """Yield the result of each cell that some fix is still to be tried on."""
        cells = self.cells()
        # Of targets that load the same, one is exported before others: each takes as long as a cell.
        warmed = {
            (find(name).backend, find(name).is_quantized): name
            for name in sorted({cell.target for cell in cells})
        }
        run = self.planned
        sweep = Sweep((), run.variations, run.settings, True, self.installed, sorted(warmed.values()))
        with (
            sweep as self.sweep,
            ThreadPoolExecutor(self.planned.settings.jobs) as threads,
        ):
            try:
                for tried in threads.map(self._try, cells):
                    if tried is not None:
                        yield tried
            finally:
                self.end = 0.0

    def _wanted(self, cell: Cell) -> list[Fix]:
        """Return the fixes to try on `cell`, those first that most cells have seen."""
        with self.lock:
            before = {fix for each in self.known if each.cell == str(cell) for fix in each.fixes}
            seen = {each.fix: len(each.seen) for each in results(list(self.by_key.values()), self.known)}
        wanted = [
            fix
            for name, fix in self.by_key.items()
            if name not in before and seen[fix] < self.enough and reaches(fix, cell)
            if self.guarded is None or fix.number in self.guarded[cell.case]
        ]
        return sorted(wanted, key=lambda fix: -seen[fix])

    def _try(self, cell: Cell) -> Tried | None:
        """Try the remaining fixes on `cell`, or find why it is red; None for neither, or if the session ends before."""
        wanted = self._wanted(cell)
        if not (wanted or self._lacks_cause(cell)) or time.monotonic() > self.end:
            return None
        control, cause = self._record(cell) if self.unedited else ("", "")
        seen = self._split(cell, wanted) if wanted and not control else {}
        if seen is None:
            return None
        if seen:
            control = self._judge(cell, []).verdict
        self.recorded.pop(cell, None)
        tried = Tried(
            str(cell),
            tuple(map(key, wanted)),
            {key(fix): one for fix, one in seen.items()},
            control,
            self.core_seconds.get(str(cell), 0.0),
            cause,
        )
        with self.lock:
            self.known.append(tried)
            self.kept.add(tried)
        return tried

    def _lacks_cause(self, cell: Cell) -> bool:
        """Return whether `cell`, which has no golden, was red without a cause when it was last exported."""
        with self.lock:
            last = latest(self.known).get(str(cell))
        return self.unedited and last is not None and last.is_red and not last.cause

    def _split(self, cell: Cell, fixes: Sequence[Fix]) -> dict[Fix, Seen] | None:
        """Return which of `fixes` `cell` sees; None where the session ends before that is known."""
        if time.monotonic() > self.end:
            return None
        found = self._judge(cell, fixes)
        if found.verdict == STABLE:
            return {}
        if len(fixes) == 1:
            return {fixes[0]: found}
        middle = len(fixes) // 2
        first, second = self._split(cell, fixes[:middle]), self._split(cell, fixes[middle:])
        return None if first is None or second is None else {**first, **second}

    def _record(self, cell: Cell) -> tuple[str, str]:
        """Export `cell` without any edit, for others to be compared with; return verdict and cause if it is red."""
        made, outcomes = self._compare(cell, [], None)
        self.recorded[cell] = made
        if made.record is not None:
            return "", ""
        return made.verdict.name, ": ".join(of_verdict(made.verdict, outcomes)).removeprefix(": ")

    def _judge(self, cell: Cell, fixes: Sequence[Fix]) -> Seen:
        """Export `cell` with `fixes` reverted; return the verdict."""
        if cell in self.recorded:
            reviewed = self.recorded[cell].record
        else:
            reviewed = reviewed_of(self.planned.root, cell)
        verdict = self._compare(cell, fixes, reviewed)[0].verdict
        return Seen(STABLE if verdict.known else verdict.name, named(verdict))

    def _compare(
        self, cell: Cell, fixes: Sequence[Fix], reviewed: Record | None
    ) -> tuple[JudgedCell, Sequence[Outcome]]:
        """Export `cell` with `fixes` taken back, and compare it with a golden; return the exports as well."""
        mutated = Mutated(cell.target, cell.case, " ".join(fix.name for fix in fixes) or "nothing")
        self.installed[mutated] = tuple(fix.name for fix in fixes)
        self.exports += 1
        release = self.planned.release
        outcomes = self.sweep.again(mutated, self.planned.variations)
        # One thread tries a cell, from the first export to the last.
        spent = sum(outcome.core_seconds for outcome in outcomes)
        self.core_seconds[str(cell)] = self.core_seconds.get(str(cell), 0.0) + spent
        try:
            if self.unedited:
                # Known defects of the zoo do not apply to one of these.
                made = compare(cell, outcomes, reviewed, release)
            elif self.compact is not None:
                of_cell = self.compact.parts(cell.case, release.version)
                made = judging.compare(cell, outcomes, reviewed, release, self.planned.decided, of_cell)
            else:
                made = compare(cell, outcomes, reviewed, release, self.planned.decided)
        except DecodeError as error:
            made = JudgedCell(undecodable(cell, error, NONE if self.unedited else self.planned.decided))
        self.says(f"  {made.verdict.name}: {mutated}")
        return made, outcomes
