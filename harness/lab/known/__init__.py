"""Zoos without goldens: a cell is right, or it is wrong, and that is known or new.

What is known of a zoo is a list beside this file, ``<zoo>/decisions.toml``: known defects (docs/goldens.md) by the key
of what was found, and what nothing checks. ``tried.tsv`` has how many cells the last whole run of each exported, and
how many were right.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Failure, Killed, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.decisions import KNOWN, Decision, Decisions
from executorch_goldens.goldens.findings import Fault, NewFailure, NewProgram, NotFinished, NowFails, RightNow
from executorch_goldens.judging import comparison
from executorch_goldens.judging.exports import Exports
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.judging.verdict import Verdict, as_known, own_failure
from executorch_goldens.running.options import FULL
from executorch_goldens.running.plan import Plan
from executorch_goldens.settings import config
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.sweep import Sweep
from lab import tables

FOLDER = Path(__file__).parent
TRIED, COLUMNS = "tried.tsv", ("zoo", "release", "tier", "cells", "right")
#: What a cell is, where it has not the name of its verdict: that of one which shows nothing of the release.
RIGHT, UNJUDGED, AS_KNOWN = "right", "not judged", "known"
NEW, OTHERWISE, BETTER = "newly wrong", "wrong in another way", "better"
#: What is as the list has it, and what an update brings into the list.
ACCEPTED, LISTED = (RIGHT, UNJUDGED, AS_KNOWN), (NEW, OTHERWISE, BETTER)
#: Verdicts that the next run may not find.
PASSING = ("timed-out", "out-of-memory")
#: Signals from outside that end a process: the system that lacks memory, or a person.
FROM_OUTSIDE = ("SIGKILL",)


@dataclass(frozen=True)
class Zoo:
    """A zoo without goldens.

    Attributes
    ----------
    module
        The module that registers its cases.
    core
        The cases of its core on a release.
    """

    name: str
    module: str
    core: Callable[[str], frozenset[str]]

    @property
    def folder(self) -> Path:
        """The folder of its list."""
        return FOLDER / self.name


@dataclass(frozen=True)
class Found:
    """What a run finds of a cell: one of the words above, or its verdict."""

    verdict: Verdict
    label: str


def run(zoo: Zoo, planned: Plan, tier: str) -> Iterator[Found]:
    """Export the cells of a tier, or all that were asked for, and yield what is found; raise `SweepError`."""
    core = zoo.core(planned.release.version)
    whole = tier == FULL or bool(planned.options.cells)
    cells = [cell for cell in planned.cells if whole or cell.case in core]
    own = OwnFiles.in_repository(config.load().root, planned.listed.files)
    with Sweep(cells, planned.variations, planned.settings) as sweep:
        for cell in cells:
            yield judged(sweep.outcomes(cell), planned.release, planned.decided, own)


def judged(outcomes: Sequence[Outcome], release: Release, decided: Decisions, own: OwnFiles) -> Found:
    """Judge the exports of a cell, and compare that with what is known of it."""
    cell = outcomes[0].cell
    try:
        found = comparison.compare(cell, outcomes, None, release, accepted=decided.unchecked(cell)).verdict
    except DecodeError as error:
        found = comparison.undecodable(cell, error)
    match found.findings:
        case (NewProgram() as program,):
            return _right(found, program.not_run, decided)
        case (NewFailure() as new,):
            found = _failing(found, new, Exports(outcomes), own)
    found = as_known(decided, found)
    if found.known:
        return Found(found, AS_KNOWN)
    if not is_defect(found):
        return Found(found, found.name)
    return Found(found, NEW if found.otherwise is None else OTHERWISE)


def _right(found: Verdict, not_run: str, decided: Decisions) -> Found:
    known = decided.about(KNOWN, found.cell)
    if not_run or not known:
        # Nothing says of a program that was not run that it is right.
        return Found(found, AS_KNOWN if known else UNJUDGED if not_run else RIGHT)
    right = RightNow(str(decided.root / decisions.FILE), known[0].verdict, known[0].reason)
    return Found(dataclasses.replace(found, findings=(right,)), BETTER)


def _failing(found: Verdict, new: NewFailure, exports: Exports, own: OwnFiles) -> Verdict:
    """Return the verdict about lowering that fails: that of a cell that lowered before, or a file of our own."""
    failure = exports.agreed.result
    assert isinstance(failure, Failure)
    if (place := own.place(failure.traceback, found.cell.target)) is not None:
        return own_failure(found.cell, failure, place)
    return Verdict(found.cell, "failed", (NowFails(new.fails, new.text),))


def is_defect(found: Verdict) -> bool:
    """Return whether a verdict is the release's, and that of the next run as well."""
    ended = [each.ended for each in found.findings if isinstance(each, NotFinished)]
    from_outside = any(isinstance(each, Killed) and each.signal in FROM_OUTSIDE for each in ended)
    return not from_outside and found.name not in PASSING and found.fault in (Fault.TOOLCHAIN, Fault.NONE)


def update(zoo: Zoo, release: str, every: Iterable[Found]) -> None:
    """Bring the list of a zoo to what a run found on a release; raise `UnwritableError`."""
    decisions.write(zoo.folder, settled(decisions.read(zoo.folder), release, every))


def settled(stated: Iterable[Decision], release: str, every: Iterable[Found]) -> Iterator[Decision]:
    """Yield known defects with what a run found on a release: one that is still the same keeps what a person said."""
    changed = {str(each.verdict.cell): each for each in every if each.label in LISTED}
    for each in stated:
        if each.what != KNOWN:
            yield each
            continue
        for on, cell in itertools.product(each.releases, each.cells):
            if on != release or cell not in changed:
                yield msgspec.structs.replace(each, releases=(on,), cells=(cell,))
    for cell, found in changed.items():
        if found.label != BETTER:
            key = found.verdict.findings[0].key()
            yield Decision(KNOWN, found.verdict.name, finding=key, releases=(release,), cells=(cell,))


def tried(folder: Path | None = None) -> dict[tuple[str, str], dict[str, str]]:
    """Return what whole runs exported, by zoo and release."""
    return {(row["zoo"], row["release"]): row for row in tables.read((folder or FOLDER) / TRIED, COLUMNS)}


def count(zoo: Zoo, release: str, tier: str, every: Sequence[Found]) -> None:
    """Write how many cells a whole run exported, and how many are right."""
    right = sum(each.label in (RIGHT, UNJUDGED, BETTER) for each in every)
    values = (zoo.name, release, tier, str(len(every)), str(right))
    rows = tried() | {(zoo.name, release): dict(zip(COLUMNS, values, strict=True))}
    tables.write(FOLDER / TRIED, COLUMNS, rows.values())
