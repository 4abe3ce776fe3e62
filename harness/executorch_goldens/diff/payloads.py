"""Compares two outlines and reports every difference between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.diff.changes import (
    AttributeChanged,
    Change,
    DigestChanged,
    LayoutChanged,
    PartChanged,
    Renamed,
    Reordered,
)
from executorch_goldens.diff.graphs import graph_changes
from executorch_goldens.diff.values import ABSENT, EXAMPLES, attribute_changes, content_changes
from executorch_goldens.goldens import program
from executorch_goldens.goldens.outline import Outline, OutlineDelegate, OutlineGraph, OutlineValue

#: Facts of positions and sizes in the payload, by the beginning of their names. They follow from the lengths of names
#: and from everything else.
LAYOUT = (
    "size",
    "header.",
    "flatbuffer_",
    "constant_data_",
    "segments[",
    "constant_segment.offsets",
    "processed.index",
)
#: Facts that are keys of data, by the end of their names. The data itself is compared where it is used.
KEYS = frozenset({"key", "named_key"})
#: Numbers that nothing refers to: a different one changes nothing if all else is the same. Inputs and outputs are
#: already in the order of their external ids.
LABELS = frozenset({"debug_handle", "external_id"})


#: The verdicts of payloads that compute the same, by the changes that there are beside those of layout.
ORDER_ONLY: Mapping[frozenset[type[Change]], str] = {
    frozenset({Renamed}): "renamed only",
    frozenset({Reordered}): "order only",
    frozenset({Renamed, Reordered}): "renamed and reordered",
    frozenset(): "layout only",
}


@dataclass(frozen=True)
class Differences:
    """Every difference between two payloads.

    Attributes
    ----------
    changes
        Differences of content first.
    """

    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """True if there is no difference at all."""
        return not self.changes

    @property
    def differs_in_content(self) -> bool:
        """True if more than names, numbering, order and layout differs."""
        return any(change.content for change in self.changes)

    @property
    def order_only(self) -> bool:
        """True if only names, numbering, order and layout differ, and no computation."""
        return bool(self.changes) and not self.differs_in_content

    @property
    def is_reordered(self) -> bool:
        """True if no more differs, or the order of inputs and outputs as well, which a graph around it may undo."""
        return all(change.is_of_order for change in self.changes)

    @property
    def verdict(self) -> str:
        """``same``, ``renamed only``, ``order only``, ``renamed and reordered``, ``layout only`` or ``different``."""
        if not self.order_only:
            return "same" if self.same else "different"
        return ORDER_ONLY[frozenset({Renamed, Reordered} & {type(change) for change in self.changes})]

    def lines(self, limit: int | None = None) -> Iterator[str]:
        """Yield the report: the verdict, then each difference."""
        yield self.verdict
        many = len({change.where for change in self.changes}) > 1
        for change in self.changes[:limit]:
            first, *rest = change.lines()
            yield f"  {change.where}: {first}" if many and change.where else f"  {first}"
            yield from (f"  {line}" for line in rest)
        if limit is not None and len(self.changes) > limit:
            yield f"  and {len(self.changes) - limit} more"


#: Those of two payloads that are the same.
NOTHING = Differences(())


def compare(before: Outline, after: Outline) -> Differences:
    """Compare two payloads, each of a golden or decoded."""
    if before.text == after.text:
        return NOTHING
    changes = list(_outlines(before, after, ""))
    if not Differences(tuple(changes)).differs_in_content:
        changes += _by_digest(before, after)
    if not changes:
        changes += _unexplained(before.text, after.text)
    return Differences(tuple(sorted(changes, key=lambda change: not change.content)))


def _by_digest(before: Outline, after: Outline) -> Iterator[Change]:
    """Yield that programs differ in what goldens have a digest of, if that shows nowhere else."""
    ours, theirs = (each.facts.get(program.TEXT, "") for each in (before, after))
    if ours != theirs and not program.same_but_sizes(ours, theirs):
        yield DigestChanged("", ours.partition(",")[0], theirs.partition(",")[0])


def _unexplained(before: str, after: str) -> Iterator[Change]:
    """Yield the differences of texts with equal graphs: labels alone are layout, anything else is content."""
    lines = before.splitlines(), after.splitlines()
    pairs = [(ours.strip(), theirs.strip()) for ours, theirs in zip(*lines, strict=False) if ours != theirs]
    numbers = []
    for ours, theirs in pairs:
        (name, _, old), (other, _, new) = ours.partition(" = "), theirs.partition(" = ")
        if name == other and name in LABELS:
            numbers.append((name, old, new))
    if pairs and len(numbers) < len(pairs):
        yield PartChanged("", "text", *pairs[0])
    elif len(lines[0]) != len(lines[1]):
        yield PartChanged("", "text", *(f"{len(text)} characters" for text in (before, after)))
    elif numbers:
        yield LayoutChanged("", len(numbers), tuple(numbers[:EXAMPLES]))


class _Asides:
    """Differences of one payload that change nothing that is computed: they are reported together, after all others."""

    def __init__(self) -> None:
        self.layout: list[tuple[str, str, str]] = []
        self.keys: list[tuple[str, str]] = []

    def facts(self, before: Outline, after: Outline, where: str) -> Iterator[Change]:
        """Note the facts of a payload that differ in layout or in keys of data only, and yield the others."""
        if before.size != after.size:
            self.layout.append(("bytes", before.size, after.size))
        for change in attribute_changes(where, "payload", before.facts, after.facts):
            last = change.name.rpartition(".")[2]
            if change.name == program.TEXT:
                if program.same_but_sizes(change.before, change.after):
                    ours, theirs = (each.partition(",")[0] for each in (change.before, change.after))
                    self.layout.append(("sizes and offsets", ours, theirs))
            elif change.name.startswith(LAYOUT) or last == "offset":
                self.layout.append((change.name, change.before, change.after))
            elif last in KEYS and ABSENT not in (change.before, change.after):
                self.keys.append((change.before, change.after))
            else:
                yield change

    def changes(self, where: str) -> Iterator[Change]:
        if self.keys:
            yield Renamed(where, len(self.keys), tuple(self.keys[:EXAMPLES]))
        if self.layout:
            yield LayoutChanged(where, len(self.layout), tuple(self.layout[:EXAMPLES]))


def _outlines(before: Outline, after: Outline, where: str) -> Iterator[Change]:
    if before.kind != after.kind:
        yield PartChanged(where, "kind", before.kind, after.kind)
        return
    asides = _Asides()
    yield from asides.facts(before, after, where)
    yield from _blobs(before.blobs, after.blobs, where)
    yield from _graphs(before.graphs, after.graphs, where)
    for ours, theirs in itertools.zip_longest(before.delegates, after.delegates):
        yield from _delegates(ours, theirs, where, asides)
    if before.unread != after.unread:
        shown = [", ".join(unread) or "none" for unread in (before.unread, after.unread)]
        yield PartChanged(where, "bytes that nothing refers to", shown[0], shown[1])
    yield from asides.changes(where)


def _graphs(before: Sequence[OutlineGraph], after: Sequence[OutlineGraph], where: str) -> Iterator[Change]:
    pairs = graph_pairs(before, after)
    regions = {ours.name.split("/")[0]: theirs.name.split("/")[0] for ours, theirs in pairs}
    for ours, theirs in pairs:
        yield from graph_changes(ours, theirs, f"{where} {ours.name}".lstrip(), regions)
    for left in before[len(pairs) :]:
        yield PartChanged(where, f"graph {left.name}", "there", ABSENT)
    for new in after[len(pairs) :]:
        yield PartChanged(where, f"graph {new.name}", ABSENT, "there")


def graph_pairs(
    before: Sequence[OutlineGraph], after: Sequence[OutlineGraph]
) -> list[tuple[OutlineGraph, OutlineGraph]]:
    """Pair graphs of the same name, or else in order."""
    by_name = {graph.name: graph for graph in after}
    if [graph.name for graph in before] != list(by_name) and {graph.name for graph in before} == set(by_name):
        return [(graph, by_name[graph.name]) for graph in before]
    return list(zip(before, after, strict=False))


def _blobs(
    before: Mapping[str, OutlineValue], after: Mapping[str, OutlineValue], where: str
) -> Iterator[Change]:
    kept = _digests(before) & _digests(after)
    for name in dict.fromkeys([*before, *after]):
        ours, theirs = before.get(name), after.get(name)
        if ours is not None and theirs is not None:
            yield from content_changes(where, f"data {name}", ours, theirs)
            continue
        only = ours or theirs
        # Data under a different key is the same data; the key is compared as a fact of the payload.
        if only is None or only.contents is None or only.contents.sha256 not in kept:
            shown = [ABSENT if one is None else one.type for one in (ours, theirs)]
            yield PartChanged(where, f"data {name}", shown[0], shown[1])


def _digests(blobs: Mapping[str, OutlineValue]) -> set[str]:
    return {value.contents.sha256 for value in blobs.values() if value.contents}


def _delegates(
    before: OutlineDelegate | None, after: OutlineDelegate | None, where: str, asides: _Asides
) -> Iterator[Change]:
    if before is None or after is None:
        ours, theirs = (f"{one.name} {one.backend}" if one else ABSENT for one in (before, after))
        yield PartChanged(where, "delegate", ours, theirs)
        return
    name = f"{where} delegate {before.name}".lstrip()
    if before.backend != after.backend:
        yield AttributeChanged(where, name, "backend", before.backend, after.backend)
    for change in attribute_changes(where, name, before.attributes, after.attributes):
        if change.name.startswith(LAYOUT):
            asides.layout.append((f"{name} {change.name}", change.before, change.after))
        else:
            yield change
    if before.inner is not None and after.inner is not None:
        yield from _outlines(before.inner, after.inner, name)
