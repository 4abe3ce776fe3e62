"""Reasons why cells are wrong, without parts that differ between cells: one cause in many of them."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Characters of a message that are shown.
SHOWN_MESSAGE = 110
#: Names of nodes and constants: one defect names different ones in every model.
NAMES = re.compile(r"(?<=name )\w+|\(\w+\)|\b\w*_\d+\w*\b")
#: What of a reason is one cell's own: variations, samples and tolerances; what brackets hold; names with numbers, and
#: those after words that a name follows; numbers that are no part of a dtype.
OWN = (
    (re.compile(r"^seed\d+-heap\d+: | \((tolerance |within )?[a-z0-9][-a-z0-9.+ ]*\)"), ""),
    (re.compile(r"\[(?:[^\]]*[\d,][^\]]*)?\]|(?<=outputs are )\[\w*\]"), "[…]"),
    (re.compile(r"(?<=writes )\w+|\b[a-z]\w*_\w*\d\w*\b|\b[a-z]+_\d+\b"), "…"),
    (re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?!x)"), "…"),
)


def general(reason: str) -> str:
    """Return a reason without parts of a single cell; dtypes stay.

    >>> general("output 4 (drawn): is float32[2, 3], expected int64[2, 3]")
    'output …: is float32[…], expected int64[…]'
    >>> general("seed0-heap0: output 0 float16[6]: 2 of 6 values differ, max 0.5, mean 1e-05 (tolerance 0.01 to 0.03)")
    'output … float16[…]: … of … values differ, max …, mean …'
    >>> general("delegate 0: outputs are [given, tosa_mul_default]: no operator writes given, which is an input")
    'delegate …: outputs are […]: no operator writes …, which is an input'
    """
    text = reason.strip()
    for what, instead in OWN:
        text = what.sub(instead, text)
    return text


class Cause(NamedTuple):
    """The reason why lowering fails, without parts that differ between cells."""

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
