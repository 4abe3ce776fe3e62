"""Compares two artifacts: the same, renamed, reordered or different."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from executorch_goldens.decode import Decoded
from executorch_goldens.goldens import equality, golden
from executorch_goldens.goldens.golden import GRAPH, LAYOUT, PROGRAM, Texts
from executorch_goldens.structure import (
    BoundaryChanged,
    Outline,
    Renames,
    compare,
    outline,
    renamed_nodes,
    renamed_values,
)

#: Relations between two artifacts, see `likeness`.
SAME, RENAMED, REORDERED, DIFFERENT = "same", "renamed", "reordered", "different"

#: Fields of a manifest that are of the program.
_PAYLOAD = re.compile(r"delegate \d+")
_WHOLE = (PROGRAM, LAYOUT)
#: Parts of a payload's field that follow from its bytes.
_BYTES = re.compile(r" \d+ bytes( sha256 [0-9a-f]{16})?$")
#: Suffixes of names of one kind: ``lowered_module_1``, ``aten_add_tensor_2``, ``getitem_1)``. Not ``int8``.
NUMBERED = re.compile(r"_\d+(?=\W|$)|[()\[\]]")


def likeness(before: Texts, after: Texts) -> str:
    """Say how like the artifacts of one cell are, by their texts as `goldens.rendering.render` makes them.

    The program is compared, or how lowering fails, and neither the trace nor what a manifest says of the toolchain,
    of measurements and of how it was made.

    Returns
    -------
    str
        `SAME`. `RENAMED`: names of inner nodes and tensors alone differ, see `renames`. `REORDERED`: the same by the
        same delegates, in another order or with other numbers in names; whether it is wired as before, the outputs
        say. `DIFFERENT`: anything else.

    Raises
    ------
    OutlineError
        If the text of a payload is not what `executorch_goldens.decode.Decoded.text` writes.
    """
    old, new = program(before, after), program(after, before)
    if old == new:
        return SAME
    if GRAPH not in before or GRAPH not in after:
        return DIFFERENT
    if renames(before, after):
        return RENAMED
    return REORDERED if _is_reordered_program(before, after) else DIFFERENT


def names_alone(reviewed: Texts, made: Texts) -> Renames:
    """Return the names in which alone an artifact differs from its golden; none where more differs, or nothing.

    To `renames` it adds the rest of what is compared of a manifest: the toolchain, and what was measured.
    """
    one, other = (golden.fields(equality.compared(*pair)) for pair in ((reviewed, made), (made, reviewed)))
    around = [
        {name: found[name] for name in found.keys() - _of_program(found).keys()} for found in (one, other)
    ]
    return renames(reviewed, made) if around[0] == around[1] else ()


def program(texts: Texts, other: Texts) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the comparable part of a program, with that of `other`: its texts, and its fields of the manifest."""
    compared = equality.compared(texts, other)
    kept = _of_program(golden.fields(compared))
    return {name: text for name, text in compared.items() if name != golden.MANIFEST}, kept


def _of_program(found: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if _PAYLOAD.fullmatch(name) or name in _WHOLE}


def renames(before: Texts, after: Texts) -> Renames:
    """Return the names in which alone two programs differ, before and after; none where more differs, or nothing.

    Names of nodes in the graph's text and of tensors in delegates count, where with other names the text before is the
    text after. Those of inputs, outputs, parameters, buffers, methods, delegates and their arguments have to be kept,
    and the keys of data. Bytes of a payload may differ where its text does, and those of the program where bytes of a
    payload do.
    """
    if before.keys() - {golden.TRACE} != after.keys() - {golden.TRACE} or GRAPH not in before:
        return ()
    if not _bytes_follow(before, after):
        return ()
    found: list[tuple[str, str]] = []
    for name in sorted(before):
        if name in (golden.MANIFEST, golden.TRACE) or before[name] == after[name]:
            continue
        renamed = (renamed_nodes if name == GRAPH else renamed_values)(before[name], after[name])
        # The numbers of a program's values are what its instructions refer to.
        if renamed is None or (name == PROGRAM and renamed):
            return ()
        found += renamed
    return tuple(dict.fromkeys(found))


def _bytes_follow(before: Texts, after: Texts) -> bool:
    """Return whether digests and sizes differ only where their content does."""
    old, new = (program(*pair)[1] for pair in ((before, after), (after, before)))
    if old.keys() != new.keys():
        return False
    payloads = [name for name in old if _PAYLOAD.fullmatch(name)]
    for name in payloads:
        file = _file(before, name)
        if _BYTES.sub("", old[name]) != _BYTES.sub("", new[name]):
            return False
        if old[name] != new[name] and before.get(file) == after.get(file):
            return False
    if any(old[name] != new[name] for name in payloads):
        return True
    return before.get(PROGRAM) == after.get(PROGRAM) and all(
        old.get(name) == new.get(name) for name in _WHOLE
    )


def _file(texts: Texts, field: str) -> str:
    """Return the name of the text of the delegate that a field of the manifest is of."""
    prefix = field.replace(" ", "_") + "."
    return next((name for name in texts if name.startswith(prefix)), "")


# Order


def _is_reordered_program(before: Texts, after: Texts) -> bool:
    ours, theirs = _payloads(before, after), _payloads(after, before)
    if before[GRAPH] == after[GRAPH] and ours == theirs:
        # The difference is in something that neither shows.
        return False
    texts = [[text for text, _ in payloads] for payloads in (ours, theirs)]
    if Counter(map(_interface, texts[0])) != Counter(map(_interface, texts[1])):
        return False
    # Equal texts with other bytes differ in something that they do not show.
    if {text for text, _ in {*ours} ^ {*theirs}} & {*texts[0]} & {*texts[1]}:
        return False
    around = compare(before[PROGRAM], after[PROGRAM])
    if any(change.content for change in around.changes) or _keys(before) != _keys(after):
        return False
    if before[GRAPH] == after[GRAPH]:
        # Nothing around a delegate undoes another order of its inputs or outputs.
        changes = (compare(*pair).changes for pair in zip(*texts, strict=True))
        return not any(change.content for each in changes for change in each)
    return reordered(before[GRAPH], texts[0], after[GRAPH], texts[1])


def _payloads(texts: Texts, other: Texts) -> list[tuple[str, str]]:
    """Return the text of each delegate, and the part of its bytes that is compared with `other`."""
    fields = program(texts, other)[1]
    payloads = [(name, value) for name, value in fields.items() if _PAYLOAD.fullmatch(name)]
    return [
        (texts[_file(texts, name)], found[0] if (found := _BYTES.search(value)) else "")
        for name, value in payloads
    ]


def _keys(texts: Texts) -> set[str]:
    return {*outline(texts[PROGRAM]).blobs}


def _interface(payload: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of a payload's inputs and outputs without numbers, in no order."""
    read: Outline = outline(payload)
    return tuple(
        tuple(sorted(NUMBERED.sub("", name) for name in names))
        for graph in read.graphs[:1]
        for names in (graph.inputs, graph.outputs)
    )


def reordered(
    graph: str, payloads: Sequence[Decoded | str], other: str, others: Sequence[Decoded | str]
) -> bool:
    """Return whether two programs, graph and payloads each, differ only in names, numbers and order.

    The order of inputs and outputs of delegates counts as such: the graph around them undoes it, or the program's
    outputs would differ.
    """
    if unnumbered(graph) != unnumbered(other):
        return False
    remaining = list(others)
    for payload in payloads:
        twin = next((twin for twin in remaining if _is_reordered(payload, twin)), None)
        if twin is None:
            return False
        remaining.remove(twin)
    return not remaining


def _is_reordered(one: Decoded | str, other: Decoded | str) -> bool:
    """Return whether two delegates differ in names and order only, those of their inputs and outputs included."""
    return all(
        not change.content or (isinstance(change, BoundaryChanged) and change.order_only)
        for change in compare(one, other).changes
    )


def unnumbered(graph: str) -> Counter[str]:
    """Return the multiset of a graph's words with the numbers at the end of names taken out."""
    return Counter(NUMBERED.sub("", word) for word in re.findall(r"\S+", graph.replace(",", " ")))
