"""A program in a golden: what says something to a person, and digests of its whole text.

The whole text (`executorch_goldens.decode.Decoded.text`) has every value with its place in memory, every argument and
every field of the file. A golden has its methods with their inputs, outputs, arenas, instructions and constants, its
named data and its delegates. Everything else is in the line `TEXT`, with a digest of the whole text and one of it
without what follows from the lengths of names in payloads. Values are numbered by their order in the section, so that
one more of the others renumbers none.
"""

from __future__ import annotations

import hashlib
import re

from executorch_goldens.decode.decoded import DIGITS

#: The fact with the digests of the whole text, and of it without sizes and offsets.
TEXT = "text"
_WITHOUT = ", without sizes and offsets "

#: The payload of a delegate, where it is written out.
_PAYLOAD = re.compile(r"^  [a-z][a-z0-9-]* \d+ bytes\n(?:  .*\n)*", re.MULTILINE)
#: Sizes and offsets, which follow from the lengths of names in payloads.
_SIZES = re.compile(r"^(pte|(?:  )?(?:size|header\.\S*|segments\[\d+\]\.(?:size|offset)) =) .*", re.MULTILINE)
_VALUE = re.compile(r"^  value (\S+): .*\n((?:    .*\n)*)", re.MULTILINE)
#: In the lines of a value, that it is a constant: in the program or in a file beside it.
_IS_CONSTANT = re.compile(r"^    (?:sha256 |location = EXTERNAL$)", re.MULTILINE)
_ARGUMENT = re.compile(r"^    arg (\S+)\n", re.MULTILINE)
#: Arguments of delegates, which the lowered graph has under their names.
_OF_DELEGATES = re.compile(r"(?<=^  operator DelegateCall\n)(?:    arg .*\n)+", re.MULTILINE)
#: Lines that only the digests have: facts of the file, of methods, of delegates and of values.
_LEFT_OUT = re.compile(
    r"^(?:\S+|  (?:container_meta_type\.|operators\[|chains\[|processed\.)\S*"
    r"|    (?:dim_order|memory_offset|requires_grad|shape_dynamism|mutable_data_segments_idx"
    r"|extra_tensor_info\.device_\w+)) = .*\n",
    re.MULTILINE,
)
_NAMED = re.compile(r"^(  (?:input|output|value)|    arg) ([^\s:]+)", re.MULTILINE)


def section(text: str) -> str:
    """Return the section of a golden for a program's whole text, with or without its delegates' payloads."""
    text = _PAYLOAD.sub("", text)
    constants = {found[1] for found in _VALUE.finditer(text) if _IS_CONSTANT.search(found[2])}
    kept = _OF_DELEGATES.sub("", text)
    kept = _VALUE.sub(lambda found: found[0] if found[1] in constants else "", kept)
    kept = _ARGUMENT.sub(lambda found: found[0] if found[1] in constants else "", kept)
    numbers: dict[str, int] = {}
    kept = _NAMED.sub(
        lambda found: f"{found[1]} %{numbers.setdefault(found[2], len(numbers))}", _LEFT_OUT.sub("", kept)
    )
    head, _, body = kept.partition("\n")
    rest = _digest(_SIZES.sub(r"\1", text))
    return f"{head}\n{TEXT} = sha256 {_digest(text)}{_WITHOUT}{rest}\n{body}"


def is_of(whole: str, text: str) -> bool:
    """Return whether `text` is the section of a program with this whole text."""
    return f"\n{TEXT} = sha256 {_digest(whole)}{_WITHOUT}" in text


def same_but_sizes(one: str, other: str) -> bool:
    """Return whether two sections, or two facts `TEXT`, are of one text but for its sizes and offsets."""
    ours, theirs = (each.partition(_WITHOUT)[2].partition("\n")[0] for each in (one, other))
    return ours == theirs != ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
