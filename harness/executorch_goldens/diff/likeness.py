"""Compares two artifacts: the same, renamed, reordered or different."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cached_property

from executorch_goldens.diff.pair import Pair
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


def likeness(found: Likeness) -> str:
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
    old, new = found.programs
    if old == new:
        return SAME
    if old.fails or new.fails:
        return DIFFERENT
    if found.renames:
        return RENAMED
    return REORDERED if _is_reordered_program(found) else DIFFERENT


def names_alone(found: Likeness) -> Renames:
    """Return the names in which alone an artifact differs from its golden; none where more differs, or nothing.

    To `renames` it adds the rest of the facts that are compared: about the toolchain, and about what was measured.
    """
    one, other = (
        {name: value for name, value in each.facts.items() if not _is_of_program(name)}
        for each in found.compared
    )
    return found.renames if one == other else ()


def program(compared: Record) -> Record:
    """Return what of an artifact is about its program."""
    return replace(
        compared, facts={name: value for name, value in compared.facts.items() if _is_of_program(name)}
    )


def _is_of_program(fact: str) -> bool:
    return _PAYLOAD.fullmatch(fact) is not None or fact in _WHOLE


def renames(found: Likeness) -> Renames:
    """Return the names in which alone two programs differ, before and after; none where more differs, or nothing.

    Names of nodes in the graph's text and of tensors in delegates count, where with other names the text before is the
    text after. Those of inputs, outputs, parameters, buffers, methods, delegates and their arguments have to be kept,
    and the keys of data. Bytes of a payload may differ where its text does, and those of the program where bytes of a
    payload do.
    """
    before, after = found.before, found.after
    ours, theirs = ({**each.sections, TRACE: ""} for each in (before, after))
    if ours.keys() != theirs.keys() or GRAPH not in ours or not _bytes_follow(found):
        return ()
    names: list[tuple[str, str]] = []
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
        names += renamed
    return tuple(dict.fromkeys(names))


def _bytes_follow(found: Likeness) -> bool:
    """Return whether digests and sizes differ only where their content does."""
    old, new = (each.facts for each in found.programs)
    if old.keys() != new.keys():
        return False
    before, after = found.before, found.after
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
    return next((name for name in record.sections if name.startswith(prefix)), "")


# Order


def _is_reordered_program(found: Likeness) -> bool:
    before, after = found.before, found.after
    ours, theirs = (_payloads(each) for each in found.programs)
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
    one, other = (each.program for each in found.sides)
    assert one is not None
    assert other is not None
    if found.changes[PROGRAM].differs_in_content or {*one.blobs} != {*other.blobs}:
        return False
    if same_graph:
        # Nothing around a delegate undoes another order of its inputs or outputs.
        pairs = zip(before.delegates, after.delegates, strict=True)
        return all(ours == theirs and not found.changes[ours].differs_in_content for ours, theirs in pairs)
    return found.is_reordered


def _payloads(program: Record) -> list[tuple[Outline, str]]:
    """Return the payload of each delegate, and the part of its bytes that is compared."""
    return [
        (program.delegates[_section(program, name)], size[0] if (size := _BYTES.search(value)) else "")
        for name, value in program.facts.items()
        if _PAYLOAD.fullmatch(name)
    ]


def _interface(payload: Outline) -> tuple[tuple[str, ...], ...]:
    """Return the names of a payload's inputs and outputs without numbers, in no order."""
    return tuple(
        tuple(sorted(NUMBERED.sub("", name) for name in names))
        for graph in payload.graphs[:1]
        for names in (graph.inputs, graph.outputs)
    )


def is_reordered(found: Likeness) -> bool:
    """Return whether two programs, graph and delegates each, differ only in names, numbers and order.

    The order of inputs and outputs of delegates counts as such: the graph around them undoes it, or the program's
    outputs would differ.
    """
    before, after = found.before, found.after
    if unnumbered(before.sections[GRAPH]) != unnumbered(after.sections[GRAPH]):
        return False
    remaining = dict(after.delegates)
    for name, payload in before.delegates.items():
        changes = (
            (other, found.changes[name] if other == name else compare(payload, each))
            for other, each in remaining.items()
        )
        twin = next((other for other, each in changes if each.is_reordered), None)
        if twin is None:
            return False
        del remaining[twin]
    return not remaining


def unnumbered(graph: str) -> Counter[str]:
    """Return the multiset of a graph's words with the numbers at the end of names taken out."""
    return Counter(NUMBERED.sub("", word) for word in re.findall(r"\S+", graph.replace(",", " ")))


class Likeness(Pair):
    """How like two artifacts are."""

    @cached_property
    def programs(self) -> tuple[Record, Record]:
        """What of both is compared, without facts about the toolchain and about measurements."""
        one, other = map(program, self.compared)
        return one, other

    renames = cached_property(renames)
    names_alone = cached_property(names_alone)
    is_reordered = cached_property(is_reordered)
    likeness = cached_property(likeness)
