"""Reasons why cells are wrong or fail, without parts that differ between cells, variations or versions of Python."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Characters of a message that are shown.
SHOWN_MESSAGE = 110
#: Names of nodes and constants: one defect names different ones in every model.
NAMES = re.compile(r"(?<=name )\w+|\(\w+\)|\b\w*_\d+\w*\b")
#: Parts of a reason that are one cell's own: variations, samples and tolerances; what brackets hold; names with
#: numbers, and those after words that a name follows; numbers that are no part of a dtype.
OWN = (
    (re.compile(r"^seed\d+-heap\d+: | \((tolerance |within )?[a-z0-9][-a-z0-9.+ ]*\)"), ""),
    (re.compile(r"\[(?:[^\]]*[\d,][^\]]*)?\]|(?<=outputs are )\[\w*\]"), "[…]"),
    (re.compile(r"(?<=writes )\w+|\b[a-z]\w*_\w*\d\w*\b|\b[a-z]+_\d+\b"), "…"),
    (re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?!x)"), "…"),
)

#: A line of a printed traceback. Below it are source lines, and from Python 3.11 on marks, whose columns differ by
#: version. ``exir.print_program.pretty_print_stacktraces`` indents its frames by four and no source line.
FRAME = re.compile(r'( *)File "[^"\n]*", line \S+')
PRETTY = 4
#: Begins what torch.fx and exir append to a message: the node at which it was raised, its graph and its traceback.
PLACE = re.compile(
    r"^(?:While executing |Original traceback:|Here is the (?:failing )?node in the graph module|graph\(\):"
    r"|Traceback \(most recent call last\):|\s*-- NODE DEBUG INFO)",
    re.MULTILINE,
)
#: Names of nodes, values and delegates; torch numbers them in the order in which it makes them.
IDENTIFIER = re.compile(r"%?\b\w*[A-Za-z]\w*")


def without_sources(message: str) -> str:
    r"""Return a message without the source lines and marks of the tracebacks that it prints; functions stay.

    >>> without_sources('  File "…/a.py", line …, in forward\n    return x + y\n           ~~^~~\n\nIt fails')
    '  File "…/a.py", line …, in forward\n\nIt fails'
    """
    kept, frame, below = [], -1, 0
    for line in message.split("\n"):
        indent = len(line) - len(line.lstrip())
        if found := FRAME.match(line):
            frame, below = len(found[1]), 0
        elif not line.strip():
            frame = -1
        elif frame >= 0:
            below += 1
            if indent > frame or (frame == PRETTY and not indent and below == 1):
                continue
            frame = -1
        kept.append(line)
    return "\n".join(kept)


def unnumbered(text: str) -> str:
    """Return a text with the numbers taken off generated names.

    >>> unnumbered("%aten_add_tensor_2 of lowered_module_1 is tag0, _lifted_tensor_constant3 is int8")
    '%aten_add_tensor of lowered_module is tag, _lifted_tensor_constant is int8'
    """
    return IDENTIFIER.sub(lambda found: _unnumbered(found[0]), text)


def _unnumbered(name: str) -> str:
    bare = re.sub(r"(?:_\d+)+$", "", name)
    return bare.rstrip("0123456789") if bare.startswith(("%", "_", "tag")) else bare


def essence(message: str) -> str:
    r"""Return what failures of one kind share: a message without generated numbers and the place that it names.

    >>> essence("expected 2, got node_3\n\nWhile executing %node_3 : [num_users=1]")
    'expected 2, got node'
    """
    message = without_sources(message)
    place = PLACE.search(message)
    return unnumbered(message[: place.start()] if place is not None and place.start() else message).strip()


def comparable(text: str, other: str) -> str:
    """Return what of a failure's text is compared with `other`: its fields, and the functions that it names.

    Variations that fail alike in different places leave a failure without them: then these are not compared.
    """
    head, _, message = text.partition(MESSAGE)
    fields = [*head.splitlines(), f"{MESSAGE.lstrip()}{essence(_lines(message))}"]
    if NOWHERE in f"{text}{other}":
        fields = [line for line in fields if not line.startswith("function: ")]
    functions = [line.strip() for line in text.splitlines() if FRAME.match(line)]
    return "\n".join((*fields, *(functions if FRAME.search(_lines(other)) else ()))) + "\n"


#: Begins the last field of the text of a failure.
MESSAGE = "\nmessage: "
#: The field of the text of a failure that names no function.
NOWHERE = "\nfunction: -\n"


def _lines(message: str) -> str:
    """Return a message of the text of a failure as it was raised: its further lines are indented there."""
    return "\n".join(line.removeprefix("  ") for line in message.splitlines())


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
    r"""Return the cause that the text of a failure states.

    >>> text = "stage: lower\ntype: torch.SpecError\npass: {}\nmessage: name _lifted_tensor_constant2 is not b"
    >>> cause(text.format("SomePass"))
    Cause(where='lower, SomePass', error='SpecError: name … is not b')
    >>> cause(text.format("-")).where
    'lower'
    """
    fields = dict(
        line.split(": ", 1) for line in text.splitlines() if not line.startswith(" ") and ": " in line
    )
    where = fields["stage"] if fields["pass"] == "-" else f"{fields['stage']}, {fields['pass']}"
    message = NAMES.sub("…", fields.get("message", ""))
    kind = fields["type"].rpartition(".")[2]
    shown = message if len(message) <= SHOWN_MESSAGE else message[: SHOWN_MESSAGE - 1] + "…"
    return Cause(where, f"{kind}: {shown}".replace("|", "\\|"))
