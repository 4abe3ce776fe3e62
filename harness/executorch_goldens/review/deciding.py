"""Decisions that a review writes: expected goldens, known defects and rejected causes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from executorch_goldens.errors import UsageError
from executorch_goldens.goldens.decisions import KNOWN, REJECTED, Decision, expected, kind
from executorch_goldens.review.groups import BARRED, Group, Member


def rejected(stated: Iterable[Decision]) -> dict[str, str]:
    """Return why causes are rejected, by `executorch_goldens.review.groups.Group.cause`."""
    return {each.cause: each.why for each in stated if each.what == REJECTED}


def with_rejected(stated: Iterable[Decision], reasons: Mapping[str, str]) -> list[Decision]:
    """Return decisions with these rejections in place of theirs."""
    others = [each for each in stated if each.what != REJECTED]
    return [*others, *(Decision(REJECTED, cause=cause, why=why) for cause, why in reasons.items())]


def defects(groups: Sequence[Group], reasons: Mapping[str, str]) -> list[Decision]:
    """Return the cells of rejected groups as known defects; raise UsageError for a group whose artifact is right.

    Parameters
    ----------
    reasons
        By `executorch_goldens.review.groups.Group.cause`.
    """
    found = []
    for group in groups:
        barred = [member.proposal for member in group.members if member.state == BARRED]
        if not barred:
            raise UsageError(
                f"{group.name} is no known defect: its cells are right, and differ from their goldens. Accept or "
                "reject it without --known"
            )
        why = " ".join(reasons[group.cause].split())
        found += [
            Decision(KNOWN, each.verdict, each.cause, None, (), why, (each.release,), (str(each.cell),))
            for each in barred
        ]
    return found


def narrowed(stated: Iterable[Decision], rows: Iterable[Mapping[str, Any]]) -> Iterator[Decision]:
    """Yield decisions, with the cause of each known defect that names none and that a run has found.

    Parameters
    ----------
    rows
        Results of runs.
    """
    found = {
        (f"{row['target']}/{row['case']}", row["release"], row["verdict"]): row.get("cause", "")
        for row in rows
        if row["known"]
    }
    for each in stated:
        if each.what != KNOWN or each.cause:
            yield each
            continue
        for name, on in itertools.product(each.cells, each.releases):
            cause = found.get((name, on, each.verdict), "")
            yield msgspec.structs.replace(each, cause=cause, releases=(on,), cells=(name,))


def nameless(stated: Iterable[Decision]) -> int:
    """Return the number of known defects, a cell on a release each, that name no cause."""
    wide = [each for each in stated if each.what == KNOWN and not each.cause]
    return sum(len(each.cells) * len(each.releases) for each in wide)


def expectations(members: Iterable[Member], why: str) -> list[Decision]:
    """Return the decisions that expect the goldens of some members, with a person's comment."""
    return [
        expected(member.proposal.cell, member.proposal.release, member.proposed, why)
        for member in members
        if member.proposed is not None and kind(member.proposed)
    ]
