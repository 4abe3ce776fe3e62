"""Compares two artifacts: the same, renamed, reordered or different."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from executorch_goldens.diff import equality
from executorch_goldens.diff.changes import BoundaryChanged
from executorch_goldens.diff.payloads import compare
from executorch_goldens.diff.renaming import Renames, renamed_nodes, renamed_values
from executorch_goldens.goldens.golden import LAYOUT
from executorch_goldens.goldens.outline import Outline
from executorch_goldens.goldens.program import same_but_sizes
from executorch_goldens.goldens.record import GRAPH, PROGRAM, TRACE, Record

#: Relations between two artifacts, see `likeness`.
SAME, RENAMED, REORDERED, DIFFERENT = "same", "renamed", "reordered", "different"

#: Facts about the program.
_PAYLOAD = re.compile(r"delegate \d+")
_WHOLE = (PROGRAM, LAYOUT)
#: Parts of a payload's fact that follow from its bytes.
_BYTES = re.compile(r" \d+ bytes( sha256 [0-9a-f]{16})?$")
#: Suffixes of names of one kind: ``lowered_module_1``, ``aten_add_tensor_2``, ``getitem_1)``. Not ``int8``.
NUMBERED = re.compile(r"_\d+(?=\W|$)|[()\[\]]")


def likeness(before: Record, after: Record) -> str:
    """Say how like the artifacts of one cell are.

    The program is compared, or how lowering fails, and neither the trace nor the facts about the toolchain, about
    measurements and about how it was made.

    Returns
    -------
    str
        `SAME`. `RENAMED`: names of inner nodes and tensors alone differ, see `renames`. `REORDERED`: the same by the
        same delegates, in another order or with other numbers in names; whether it is wired as before, the outputs
        say. `DIFFERENT`: anything else.

    Raises
    ------
    OutlineError
        If a section is not what `executorch_goldens.decode.Decoded.text` writes.
    """
    old, new = program(before, after), program(after, before)
    if old == new:
        return SAME
    if before.fails or after.fails:
        return DIFFERENT
    if renames(before, after):
        return RENAMED
    return REORDERED if _is_reordered_program(before, after) else DIFFERENT


def names_alone(reviewed: Record, made: Record) -> Renames:
    """Return the names in which alone an artifact differs from its golden; none where more differs, or nothing.

    To `renames` it adds the rest of the facts that are compared: about the toolchain, and about what was measured.
    """
    sides = (equality.compared(*pair).facts for pair in ((reviewed, made), (made, reviewed)))
    one, other = ({name: facts[name] for name in facts.keys() - _of_program(facts).keys()} for facts in sides)
    return renames(reviewed, made) if one == other else ()


def program(record: Record, other: Record) -> Record:
    """Return the comparable part of a program, with that of `other`."""
    compared = equality.compared(record, other)
    return compared.part(_of_program(compared.facts), compared.sections)


def _of_program(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if _PAYLOAD.fullmatch(name) or name in _WHOLE}


def renames(before: Record, after: Record) -> Renames:
    """Return the names in which alone two programs differ, before and after; none where more differs, or nothing.

    Names of nodes in the graph's text and of tensors in delegates count, where with other names the text before is the
    text after. Those of inputs, outputs, parameters, buffers, methods, delegates and their arguments have to be kept,
    and the keys of data. Bytes of a payload may differ where its text does, and those of the program where bytes of a
    payload do.
    """
    ours, theirs = ({**each.sections, TRACE: ""} for each in (before, after))
    if ours.keys() != theirs.keys() or GRAPH not in ours or not _bytes_follow(before, after):
        return ()
    found: list[tuple[str, str]] = []
    for name in sorted(name for name in ours if ours[name] != theirs[name]):
        one, other = before.delegates.get(name), after.delegates.get(name)
        renamed: Renames | None = None
        if name == GRAPH:
            renamed = renamed_nodes(ours[name], theirs[name])
        elif name == PROGRAM and same_but_sizes(ours[name], theirs[name]):
            renamed = ()
        elif one is not None and other is not None:
            renamed = renamed_values(one, other)
        if renamed is None:
            return ()
        found += renamed
    return tuple(dict.fromkeys(found))


def _bytes_follow(before: Record, after: Record) -> bool:
    """Return whether digests and sizes differ only where their content does."""
    old, new = (program(*pair).facts for pair in ((before, after), (after, before)))
    if old.keys() != new.keys():
        return False
    payloads = [name for name in old if _PAYLOAD.fullmatch(name)]
    for name in payloads:
        section = _section(before, name)
        if _BYTES.sub("", old[name]) != _BYTES.sub("", new[name]):
            return False
        if old[name] != new[name] and before.sections.get(section) == after.sections.get(section):
            return False
    if any(old[name] != new[name] for name in payloads):
        return True
    return before.sections.get(PROGRAM) == after.sections.get(PROGRAM) and all(
        old.get(name) == new.get(name) for name in _WHOLE
    )


def _section(record: Record, fact: str) -> str:
    """Return the name of the section of the delegate that a fact is about."""
    prefix = fact.replace(" ", "_") + "."
    return next((name for name in record.delegates if name.startswith(prefix)), "")


# Order


def _is_reordered_program(before: Record, after: Record) -> bool:
    ours, theirs = _payloads(before, after), _payloads(after, before)
    same_graph = before.sections[GRAPH] == after.sections[GRAPH]
    if same_graph and ours == theirs:
        # The difference is in something that neither shows.
        return False
    payloads = [[payload for payload, _ in each] for each in (ours, theirs)]
    if Counter(map(_interface, payloads[0])) != Counter(map(_interface, payloads[1])):
        return False
    # Equal texts with other bytes differ in something that they do not show.
    texts = [{(payload.text, bytes_) for payload, bytes_ in each} for each in (ours, theirs)]
    if (
        {text for text, _ in texts[0] ^ texts[1]}
        & {each.text for each in payloads[0]}
        & {each.text for each in payloads[1]}
    ):
        return False
    one, other = before.beside(after).program, after.beside(before).program
    assert one is not None
    assert other is not None
    if any(change.content for change in compare(one, other).changes) or {*one.blobs} != {*other.blobs}:
        return False
    if same_graph:
        # Nothing around a delegate undoes another order of its inputs or outputs.
        changes = (compare(*pair).changes for pair in zip(*payloads, strict=True))
        return not any(change.content for each in changes for change in each)
    return reordered(before.sections[GRAPH], payloads[0], after.sections[GRAPH], payloads[1])


def _payloads(record: Record, other: Record) -> list[tuple[Outline, str]]:
    """Return the payload of each delegate, and the part of its bytes that is compared with `other`."""
    facts = program(record, other).facts
    return [
        (record.delegates[_section(record, name)], found[0] if (found := _BYTES.search(value)) else "")
        for name, value in facts.items()
        if _PAYLOAD.fullmatch(name)
    ]


def _interface(payload: Outline) -> tuple[tuple[str, ...], ...]:
    """Return the names of a payload's inputs and outputs without numbers, in no order."""
    return tuple(
        tuple(sorted(NUMBERED.sub("", name) for name in names))
        for graph in payload.graphs[:1]
        for names in (graph.inputs, graph.outputs)
    )


def reordered(graph: str, payloads: Sequence[Outline], other: str, others: Sequence[Outline]) -> bool:
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


def _is_reordered(one: Outline, other: Outline) -> bool:
    """Return whether two delegates differ in names and order only, those of their inputs and outputs included."""
    return all(
        not change.content or (isinstance(change, BoundaryChanged) and change.order_only)
        for change in compare(one, other).changes
    )


def unnumbered(graph: str) -> Counter[str]:
    """Return the multiset of a graph's words with the numbers at the end of names taken out."""
    return Counter(NUMBERED.sub("", word) for word in re.findall(r"\S+", graph.replace(",", " ")))
