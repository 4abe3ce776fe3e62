"""Reasons against accepting part of a cause: the same cause makes other cells wrong."""

from __future__ import annotations

from executorch_goldens.files.wording import count
from executorch_goldens.review.groups import PENDING, UNDECIDED, Group

#: Option with which a person accepts the rest of a cause all the same.
ALTHOUGH = "--although-corrupt-elsewhere"
#: Cells that are named.
SHOWN_CELLS = 3


def doubt(group: Group) -> str:
    """Return which cells a cause makes wrong, beside those of it that could be recorded; empty where it makes none.

    A change that is harmless on the samples of one cell may be the one that is wrong in the next.
    """
    if not group.wrong or group.state not in (PENDING, UNDECIDED):
        return ""
    names = [f"{member.proposal.cell} ({member.proposal.verdict})" for member in group.wrong[:SHOWN_CELLS]]
    more = f" and {len(group.wrong) - SHOWN_CELLS} more" if len(group.wrong) > SHOWN_CELLS else ""
    return f"the same cause makes {count(len(group.wrong), 'cell')} wrong: {', '.join(names)}{more}"
