"""Compares attributes and contents of values that two outlines have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from executorch_goldens.decode.difference import TensorDifference, index_of, tensor_difference
from executorch_goldens.decode.numbers import read_number
from executorch_goldens.diff.changes import AttributeChanged, Change, ConstantChanged, PartChanged
from executorch_goldens.goldens.outline import Contents, OutlineValue

#: At most this many examples are shown.
EXAMPLES = 3
#: Shown in place of what one side does not have.
ABSENT = "absent"


def attribute_changes(
    where: str, owner: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[AttributeChanged]:
    """Yield the attributes that differ; one that a side does not have is `ABSENT` there."""
    for name in dict.fromkeys([*before, *after]):
        ours, theirs = before.get(name, ABSENT), after.get(name, ABSENT)
        if ours != theirs:
            yield AttributeChanged(where, owner, name, ours, theirs)


def content_changes(where: str, owner: str, before: OutlineValue, after: OutlineValue) -> Iterator[Change]:
    """Yield the differences in the types and contents of two values."""
    ours, theirs = before.contents, after.contents
    if ours is None or theirs is None:
        if before.type != after.type:
            yield AttributeChanged(where, owner, "type", before.type, after.type)
        if (ours is None) != (theirs is None):
            shown = [ABSENT if held is None else f"sha256 {held.sha256}" for held in (ours, theirs)]
            yield PartChanged(where, f"contents of {owner}", shown[0], shown[1])
    elif before.type != after.type or ours.sha256 != theirs.sha256:
        yield _constant(where, owner, before, after, ours, theirs)


def _constant(
    where: str, owner: str, before: OutlineValue, after: OutlineValue, ours: Contents, theirs: Contents
) -> ConstantChanged:
    difference = None
    if ours.constant is not None and theirs.constant is not None:
        difference = tensor_difference(ours.constant, theirs.constant)
    elif before.type == after.type:
        difference = _recorded_difference(before.type, ours, theirs)
    if difference is not None:
        return ConstantChanged(where, owner, difference)
    facts = [("type", before.type, after.type)]
    facts += [
        (name, ours.facts.get(name, ABSENT), theirs.facts.get(name, ABSENT))
        for name in dict.fromkeys([*ours.facts, *theirs.facts])
    ]
    return ConstantChanged(where, owner, None, tuple(fact for fact in facts if fact[1] != fact[2]))


def _recorded_difference(type_: str, before: Contents, after: Contents) -> TensorDifference | None:
    """Return the difference of two constants whose values the goldens list; None for larger ones."""
    if "values" not in before.facts or "values" not in after.facts:
        return None
    dtype, _, lengths = type_.rpartition("[")
    shape = tuple(int(length) for length in lengths[:-1].split(",") if length)
    ours, theirs = before.facts["values"].split(), after.facts["values"].split()
    at = [index for index, (left, right) in enumerate(zip(ours, theirs, strict=False)) if left != right]
    gaps = [abs(read_number(ours[index]) - read_number(theirs[index])) for index in at]
    gaps = [gap for gap in gaps if math.isfinite(gap)]
    return TensorDifference(
        dtypes=(dtype, dtype),
        shapes=(shape, shape),
        differing=len(at),
        size=len(ours),
        largest=max(gaps) if gaps else None,
        mean=sum(gaps) / len(ours) if gaps else None,
        first=tuple((index_of(index, shape), ours[index], theirs[index]) for index in at[:EXAMPLES]),
    )
