"""The commit message for the changes of a review."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence

from executorch_goldens.files.wording import count
from executorch_goldens.review.decisions import THREAD, TRACKER
from executorch_goldens.review.groups import Group

#: File beside the results that holds it, for ``git commit -F``.
FILE = "commit.txt"
#: Columns of its text.
WIDTH = 72


def message(groups: Sequence[Group], recorded: Collection[str], rejected: Mapping[str, str]) -> str:
    """Return the message: accepted causes with their cells, and rejected ones with the reason.

    Parameters
    ----------
    recorded
        Names of the proposals whose goldens were written.
    rejected
        Reasons, by `Group.cause`.
    """
    by_group = [
        (group, [each.proposal.name for each in group.members if each.proposal.name in recorded])
        for group in groups
    ]
    accepted = [(group, names) for group, names in by_group if names]
    cells = sum(len(names) for _, names in accepted)
    lines = [f"Goldens: {count(cells, 'cell')} of {count(len(accepted), 'cause')}"]
    for group, names in accepted:
        lines += ["", *_wrapped(f"{group.head}: {len(names)} accepted")]
        lines += [f"- {name}" for name in names]
    for group in groups:
        if reason := rejected.get(group.cause):
            lines += ["", *_wrapped(f"Rejected: {group.head}: {reason}")]
    threads = dict.fromkeys(number for reason in rejected.values() for number in THREAD.findall(reason))
    if threads:
        lines += ["", *(f"{TRACKER}/{number}" for number in threads)]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
