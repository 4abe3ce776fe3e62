"""Names the pass at which two exports of one cell diverge, or one export departs from the trace of its golden."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import PARTITIONING, STAGE, PassRun
from executorch_goldens.diff.changes import Change
from executorch_goldens.zoo.variations import Omission


class How(enum.StrEnum):
    """What is known of a `Divergence`."""

    #: Two exports: the results of a pass differ; they differ in names only; a partitioner tags other nodes; the two do
    #: not run the same pass, or only one of them runs one.
    RESULTS = enum.auto()
    NAMES = enum.auto()
    NODES = enum.auto()
    PASSES = enum.auto()
    #: An export and the trace of its golden: the result of a pass differs; the pass changed nothing in the golden; it
    #: changes nothing any more; it no longer runs; all results are the same until the export fails.
    DIFFERS = enum.auto()
    ADDED = enum.auto()
    IDLE = enum.auto()
    GONE = enum.auto()
    FAILS = enum.auto()
    #: No two traces: what changed the model that it was given; weights of another model.
    WRITER = enum.auto()
    WEIGHTS = enum.auto()


@dataclass(frozen=True)
class Divergence:
    """The first pass, partitioner or stage whose result is not the same in two exports of one cell.

    Attributes
    ----------
    runs
        What each side runs, once where both run the same pass; None for a side that runs nothing.
    number, total
        Place among the runs of the first export, from 1, and their number.
    omission
        The omission that shows whether it is the cause; None where it cannot be left out.
    tags
        A partitioner's tags on both sides, where they differ.
    change
        The first difference of the payload that it made; None where that is not known.
    weights
        Names of the weights that differ.
    """

    name: str
    how: How
    runs: tuple[PassRun | None, ...] = ()
    number: int = 0
    total: int = 0
    omission: Omission | None = None
    tags: tuple[str, str] | None = None
    change: Change | None = None
    weights: tuple[str, ...] = ()


def divergence(
    one: Sequence[PassRun], other: Sequence[PassRun], recorded: Sequence[PassRun] = ()
) -> Divergence | None:
    """Return where two variations of one cell diverge; None if no result differs.

    Results of passes are compared without names. Where only serialization diverges, names show which pass gave them.

    Parameters
    ----------
    recorded
        The golden's trace: a partitioner that diverges is to follow its order.
    """
    pairs = enumerate(itertools.zip_longest(one, other), 1)
    differing = ((number, *pair) for number, pair in pairs if not _is_same(*pair))
    number, left, right = next(differing, (0, None, None))
    if number == 0:
        return None
    if left is not None and left == right:
        renamed = _renamed(left, number, len(one))
        if left.pipeline == PARTITIONING:
            return renamed
        number, left, right = next((each for each in differing if each[1] != each[2]), (0, None, None))
        if number == 0 or (left is not None and left.pipeline == STAGE):
            return renamed
    if left is None or right is None or _place(left) != _place(right):
        return _unlike(number, left, right)
    orders = (_omission(left, run) for run in (*recorded, left) if _place(run) == _place(left))
    return Divergence(
        *(left.name, How.RESULTS, (left,), number, len(one)),
        omission=next(filter(None, orders), None),
        tags=_tags(left, right),
    )


def _unlike(number: int, one: PassRun | None, other: PassRun | None) -> Divergence:
    """Return the divergence where two exports do not run the same pass, or only one of them runs one."""
    names = [run.name for run in (one, other) if run is not None]
    return Divergence(names[0], How.PASSES, (one, other), number)


def _is_same(one: PassRun | None, other: PassRun | None) -> bool:
    """Return whether two runs have the same results, names included."""
    return one == other and (one is None or other is None or one.beyond == other.beyond)


def _renamed(run: PassRun, number: int, total: int) -> Divergence:
    """Return the divergence of two runs with equal results but different names or tagged nodes."""
    is_partitioner = run.pipeline == PARTITIONING
    omission = None if is_partitioner else _omission(run)
    how = How.NODES if is_partitioner else How.NAMES
    return Divergence(run.name, how, (run,), number, total, omission=omission)


def _tags(one: PassRun, other: PassRun) -> tuple[str, str] | None:
    """Return the tags of two partitioners; None for passes."""
    return (one.fingerprint, other.fingerprint) if one.pipeline == PARTITIONING else None


def divergence_from_golden(
    recorded: Sequence[PassRun], runs: Sequence[PassRun], end: str | None = None
) -> Divergence | None:
    """Return the first pass whose result is not the one in a golden's trace; None if all are.

    Parameters
    ----------
    end
        Pass or function in which the export at hand failed; None if it did not.
    """
    effective = [run for run in runs if run.changed]
    pairs = itertools.zip_longest(recorded, effective)
    was, now = next(((was, now) for was, now in pairs if was != now), (None, None))
    if was is None and now is None:
        return None
    if now is None and end is not None:
        return Divergence(end, How.FAILS)
    if was is not None and now is not None and _place(was) == _place(now):
        return Divergence(was.name, How.DIFFERS, (was,), omission=_omission(now, was), tags=_tags(was, now))
    if now is not None and (was is None or _put_in(was, now, recorded, effective, end)):
        return Divergence(now.name, How.ADDED, (now,), omission=_omission(now))
    assert was is not None
    idle = any(_place(run) == _place(was) and not run.changed for run in runs)
    return Divergence(was.name, How.IDLE if idle else How.GONE, (was,))


def _put_in(
    was: PassRun, now: PassRun, recorded: Sequence[PassRun], runs: Sequence[PassRun], end: str | None
) -> bool:
    """Return whether the current run is extra: the recorded one comes later or is no longer reached."""
    after = itertools.dropwhile(lambda run: run is not now, runs)
    to_come = end is not None or any(_place(run) == _place(was) for run in after)
    return to_come and sum(_place(run) == _place(now) for run in runs) > sum(
        _place(run) == _place(now) for run in recorded
    )


def _omission(run: PassRun, wanted: PassRun | None = None) -> Omission | None:
    """Return an omission of the run of a pass, or one that gives a partitioner's tags the order of the run `wanted`."""
    if run.start == 0 or run.pipeline == STAGE:
        return None
    if run.pipeline != PARTITIONING:
        return Omission(run.start)
    if wanted is None or sorted(run.fingerprint.split()) != sorted(wanted.fingerprint.split()):
        return None
    return Omission(run.start, tuple(wanted.fingerprint.split()))


def _place(run: PassRun) -> tuple[str, str]:
    return run.name, run.pipeline
