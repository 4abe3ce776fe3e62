"""Names the pass at which two exports of one cell diverge, or one export departs from the trace of its golden."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import PARTITIONING, STAGE, Omission, PassRun
from executorch_goldens.goldens.labels import OF_RUN, Labels

#: Beginning of the lines about two exports.
DIVERGES = "first pass that diverges"


@dataclass(frozen=True)
class Divergence:
    """The first pass, partitioner or stage whose result is not the same in two exports of one cell.

    Attributes
    ----------
    numbers
        Where it is in each export, from 1; None where only one of them has it.
    omission
        The omission that shows whether it is the cause; None where it cannot be left out.
    """

    line: str
    name: str
    numbers: tuple[int, int] | None = None
    omission: Omission | None = None


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
        renamed = _renamed(left, f"number {number} of {len(one)}")
        if left.pipeline == PARTITIONING:
            return renamed
        number, left, right = next((each for each in differing if each[1] != each[2]), (0, None, None))
        if number == 0 or (left is not None and left.pipeline == STAGE):
            return renamed
    if left is None or right is None or _place(left) != _place(right):
        return _unlike(number, left, right)
    line = f"{DIVERGES}: {_place(left)}, number {number} of {len(one)}{_tags(left, right)}"
    orders = (_omission(left, run) for run in (*recorded, left) if _place(run) == _place(left))
    return Divergence(line, left.name, (number, number), next(filter(None, orders), None))


def _unlike(number: int, one: PassRun | None, other: PassRun | None) -> Divergence:
    """Return the divergence where two exports do not run the same pass, or only one of them runs one."""
    names = [run.name for run in (one, other) if run is not None]
    shown = " | ".join("nothing" if run is None else _place(run) for run in (one, other))
    return Divergence(f"{DIVERGES}: number {number} is {shown}", names[0])


def _is_same(one: PassRun | None, other: PassRun | None) -> bool:
    """Return whether two runs have the same results, names included."""
    return one == other and (one is None or other is None or one.beyond == other.beyond)


def _renamed(run: PassRun, number: str) -> Divergence:
    """Return the divergence of two runs with equal results but different names or tagged nodes."""
    line = f"{DIVERGES}: {_place(run)}, {number}, "
    if run.pipeline == PARTITIONING:
        return Divergence(f"{line}with the same tags on different nodes", run.name)
    return Divergence(f"{line}in names only", run.name, omission=_omission(run))


def _tags(one: PassRun, other: PassRun) -> str:
    """Return the tags of two partitioners, to be shown after their name; empty for passes."""
    return f": {one.fingerprint} | {other.fingerprint}" if one.pipeline == PARTITIONING else ""


def divergence_from_golden(
    recorded: Sequence[PassRun], runs: Sequence[PassRun], end: str | None = None, labels: Labels = OF_RUN
) -> Divergence | None:
    """Return the first pass whose result is not the one in a golden's trace; None if all are.

    Parameters
    ----------
    end
        Pass or function in which the export at hand failed; None if it did not.
    """
    differs = f"first pass whose result differs from the {labels.old}'s"
    effective = [run for run in runs if run.changed]
    pairs = itertools.zip_longest(recorded, effective)
    was, now = next(((was, now) for was, now in pairs if was != now), (None, None))
    if was is None and now is None:
        return None
    if now is None and end is not None:
        return Divergence(f"all passes give the {labels.old}'s results, until the export fails in {end}", end)
    if was is not None and now is not None and _place(was) == _place(now):
        line = f"{differs}: {_place(was)}{_tags(was, now)}"
        return Divergence(line, was.name, omission=_omission(now, was))
    if now is not None and (was is None or _put_in(was, now, recorded, effective, end)):
        line = f"{differs}: {_place(now)}, which changed nothing in the {labels.old}"
        return Divergence(line, now.name, omission=_omission(now))
    assert was is not None
    return _gone(was, runs, differs)


def _gone(was: PassRun, runs: Sequence[PassRun], differs: str) -> Divergence:
    """Return the divergence of a recorded run that none of `runs` is."""
    idle = any(_place(run) == _place(was) and not run.changed for run in runs)
    why = "which no longer changes the graph" if idle else "which no longer runs"
    return Divergence(f"{differs}: {_place(was)}, {why}", was.name)


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


def _place(run: PassRun) -> str:
    return f"{run.name} ({run.pipeline})"
