"""Why lowering fails, as a golden's ``failure.txt`` states it: the same cause in many cells."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Characters of a message that are shown.
SHOWN_MESSAGE = 110
#: Names of nodes and constants: one defect names different ones in every model.
NAMES = re.compile(r"(?<=name )\w+|\(\w+\)|\b\w*_\d+\w*\b")


class Cause(NamedTuple):
    """Why lowering fails, without what differs from cell to cell."""

    where: str
    error: str


def cause(text: str) -> Cause:
    """Return the cause that the text of a failure.txt states."""
    fields = dict(
        line.split(": ", 1) for line in text.splitlines() if not line.startswith(" ") and ": " in line
    )
    where = fields["stage"] if fields["pass"] == "-" else f"{fields['stage']}, {fields['pass']}"
    message = NAMES.sub("…", fields.get("message", ""))
    kind = fields["type"].rpartition(".")[2]
    shown = message if len(message) <= SHOWN_MESSAGE else message[: SHOWN_MESSAGE - 1] + "…"
    return Cause(where, f"{kind}: {shown}".replace("|", "\\|"))
