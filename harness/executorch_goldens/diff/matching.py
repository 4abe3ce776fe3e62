"""Finds out which operator of one graph is which of the other, whatever their names and positions.

The steps go from the surest to the vaguest, and none takes back what an earlier one has matched:

1. Operators that compute the same from the same inputs and are used in the same way. Then those that are in the same
   place of the graph, whatever their attributes and constants: equal numbers in two places have nothing to do with each
   other. Of several alike, a constant that they share says which is which.
2. Operators that are alone, in either graph, in what they compute, or in how they are used. Two constants that change
   places have not both changed.
3. What feeds, and what uses, operators that are matched, and so on through the graph; in between, operators with equal
   keys, which start the next spread. The keys get vaguer from round to round.
4. What is left, by type and order.
5. What is left even then, as replaced by an operator of another type, if that feeds the same user or output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from executorch_goldens.diff.side import GraphSide
from executorch_goldens.goldens.outline import OutlineValue, described

#: Description of a computation to its number, the same in both graphs. A number replaces the whole description in
#: those that build on it, which would otherwise grow with the depth of the graph.
Numbers = dict[Hashable, int]
#: A key for each operator of the graph before, and of the graph after, in the order of the operators.
Keys = tuple[Sequence[Hashable], Sequence[Hashable]]
#: An operator of the graph before, and the one of the graph after.
Pair = tuple[int, int]


@dataclass
class Matching:
    """Matching operators.

    Attributes
    ----------
    forth, back
        Operator of the one graph to the operator of the other, both ways.
    replaced
        Operators of different types in the same place.
    """

    forth: dict[int, int] = field(default_factory=dict)
    back: dict[int, int] = field(default_factory=dict)
    replaced: list[Pair] = field(default_factory=list)

    def add(self, before: int, after: int) -> None:
        """Match two operators."""
        self.forth[before] = after
        self.back[after] = before


def match(before: GraphSide, after: GraphSide) -> Matching:
    """Match the operators of two graphs."""
    matcher = _Matcher(before, after)
    inputs, uses, plain_inputs, plain_uses = (
        _keys(which, before, after, detailed)
        for detailed in (True, False)
        for which in (_by_inputs, _by_uses)
    )
    places = _both(plain_inputs, plain_uses)
    matcher.match_equal(_both(inputs, uses))
    matcher.match_unique(_both(inputs, places))
    matcher.match_neighbours(feeding=False)
    matcher.match_equal(places, constants=False)
    matcher.match_unique(inputs)
    matcher.match_unique(uses)
    for keys in (places, inputs, uses, plain_inputs, plain_uses):
        matcher.match_neighbours()
        matcher.match_equal(keys)
    matcher.match_neighbours()
    matcher.match_in_order()
    matcher.pair_replaced()
    return matcher.matching


class _Matcher:
    """The two graphs, and the operators matched so far."""

    def __init__(self, before: GraphSide, after: GraphSide) -> None:
        self.before, self.after = before, after
        self.matching = Matching()

    def match_equal(self, keys: Keys, constants: bool = True) -> None:
        """Match operators with equal keys, in order, where both graphs have equally many of them left.

        Without `constants`, operators without inputs are left out.
        """
        for ours, theirs in self._groups(keys):
            if len(ours) == len(theirs) and (constants or self.before.operators[ours[0]].inputs):
                self._match_all(ours, theirs)

    def match_unique(self, keys: Keys) -> None:
        """Match operators with equal keys where each graph has one of them left."""
        for ours, theirs in self._groups(keys):
            if len(ours) == len(theirs) == 1:
                self._match_all(ours, theirs)

    def match_neighbours(self, feeding: bool = True) -> None:
        """Match users, and with `feeding` producers, of matched operators; then the neighbours of those."""
        pending = list(self.matching.forth.items())
        while pending:
            one, other = pending.pop()
            for pair in (self._feeding(one, other) if feeding else []) + self._using(one, other):
                if self._may_match(pair):
                    self.matching.add(*pair)
                    pending.append(pair)

    def match_in_order(self) -> None:
        """Match the rest by type, in order."""
        ours, theirs = self._left_before(), self._left_after()
        our_types = [self.before.operators[at].type for at in ours]
        their_types = [self.after.operators[at].type for at in theirs]
        for block in SequenceMatcher(None, our_types, their_types, autojunk=False).get_matching_blocks():
            self._match_all(
                ours[block.a : block.a + block.size],
                theirs[block.b : block.b + block.size],
            )

    def pair_replaced(self) -> None:
        """Pair each operator that is left with the first that is left of those in its place."""
        taken: set[int] = set()
        for one in self._left_before():
            free = [at for at in self._in_place_of(one) if at not in self.matching.back and at not in taken]
            if free:
                self.matching.replaced.append((one, free[0]))
                taken.add(free[0])

    def _left_before(self) -> list[int]:
        return [at for at in range(len(self.before.operators)) if at not in self.matching.forth]

    def _left_after(self) -> list[int]:
        return [at for at in range(len(self.after.operators)) if at not in self.matching.back]

    def _groups(self, keys: Keys) -> list[tuple[list[int], list[int]]]:
        """Return the unmatched operators of either graph, by key."""
        groups: dict[object, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for at in self._left_before():
            groups[keys[0][at]][0].append(at)
        for at in self._left_after():
            groups[keys[1][at]][1].append(at)
        return list(groups.values())

    def _match_all(self, ours: Sequence[int], theirs: Sequence[int]) -> None:
        for one, other in zip(ours, theirs, strict=True):
            self.matching.add(one, other)

    def _may_match(self, pair: Pair) -> bool:
        one, other = pair
        if one in self.matching.forth or other in self.matching.back:
            return False
        return self.before.operators[one].type == self.after.operators[other].type

    def _feeding(self, one: int, other: int) -> list[Pair]:
        """Return the operators that feed the same input of two matched operators from the same port."""
        inputs = min(len(self.before.operators[one].inputs), len(self.after.operators[other].inputs))
        pairs = []
        for position in range(inputs):
            ours, theirs = self.before.operand(one, position), self.after.operand(other, position)
            if ours is not None and theirs is not None and ours[1] == theirs[1]:
                pairs.append((ours[0], theirs[0]))
        return pairs

    def _using(self, one: int, other: int) -> list[Pair]:
        """Return the users of two matched operators that are left, where both have equally many of a kind."""
        pairs: list[Pair] = []
        for ours, theirs in zip(self.before.outputs(one), self.after.outputs(other), strict=False):
            before = _users_by_kind(self.before, ours, self.matching.forth)
            after = _users_by_kind(self.after, theirs, self.matching.back)
            for kind, users in before.items():
                if len(users) == len(after.get(kind, ())):
                    pairs += zip(users, after[kind], strict=True)
        return pairs

    def _in_place_of(self, one: int) -> list[int]:
        """Return operators that feed the users, or the output of the graph, that operator `one` fed."""
        found = []
        for name in self.before.outputs(one):
            for user, position in self.before.consumers.get(name, ()):
                found += self._feeds(self.matching.forth.get(user), position)
            if name in self.before.graph.outputs:
                found += self._makes_output(self.before.graph.outputs.index(name))
        return found

    def _feeds(self, user: int | None, position: int) -> list[int]:
        """Return the operator that feeds an input of an operator after, if there are both."""
        if user is None or position >= len(self.after.operators[user].inputs):
            return []
        operand = self.after.operand(user, position)
        return [] if operand is None else [operand[0]]

    def _makes_output(self, place: int) -> list[int]:
        """Return the operator that makes an output of the graph after, if there are both."""
        outputs = self.after.graph.outputs
        if place >= len(outputs) or outputs[place] not in self.after.producer:
            return []
        return [self.after.producer[outputs[place]][0]]


def _users_by_kind(side: GraphSide, name: str, matched: dict[int, int]) -> dict[tuple[str, int], list[int]]:
    """Return the users of a value that are not matched, by their type and the input that they read it with."""
    users: dict[tuple[str, int], list[int]] = defaultdict(list)
    for user, position in side.consumers.get(name, ()):
        if user not in matched:
            users[side.operators[user].type, position].append(user)
    return users


# Keys of operators: their inputs' computation, and their users. Operators with equal keys may be the same. A detailed
# key counts attributes, types and contents of constants; a plain key only types of operators and the edges.


def _keys(
    which: Callable[[GraphSide, Numbers, bool], list[int]],
    before: GraphSide,
    after: GraphSide,
    detailed: bool,
) -> Keys:
    numbers: Numbers = {}
    return which(before, numbers, detailed), which(after, numbers, detailed)


def _both(one: Keys, other: Keys) -> Keys:
    """Return keys that are equal if both are."""
    before, after = (list(zip(*of_side, strict=True)) for of_side in zip(one, other, strict=True))
    return before, after


def _by_inputs(side: GraphSide, numbers: Numbers, detailed: bool) -> list[int]:
    """Return keys that are equal if operators compute the same from the same inputs of the graph."""
    keys: list[int] = []
    for at, operator in enumerate(side.operators):
        operands = tuple(_operand(side, at, name, keys, detailed) for _, name in operator.inputs)
        key = (operator.type, _detail(side, at) if detailed else None, operands)
        keys.append(numbers.setdefault(key, len(numbers)))
    return keys


def _operand(side: GraphSide, at: int, name: str, keys: Sequence[int], detailed: bool) -> Hashable:
    """Describe an operand of operator `at`, given the keys of the operators before it."""
    made = side.producer.get(name)
    if made is not None:
        maker, port = made
        # The key of an operator that comes later is not known yet.
        return ("made", keys[maker] if maker < at else None, port)
    if name in side.input_index:
        return ("input", side.input_index[name])
    value = side.value(name)
    if value is None:
        return ("unknown", name if name == "none" else None)
    return ("leaf", *_described_value(value)) if detailed else ("leaf", value.contents is not None)


def _by_uses(side: GraphSide, numbers: Numbers, detailed: bool) -> list[int]:
    """Return keys that are equal if operators are used in the same way, down to the outputs of the graph."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(side.graph.outputs):
        places[name].append(place)
    keys = [0] * len(side.operators)
    for at in reversed(range(len(side.operators))):
        uses = tuple(
            (
                tuple(places[name]),
                tuple(sorted((keys[user], position) for user, position in side.consumers[name])),
            )
            for name in side.outputs(at)
        )
        key = (side.operators[at].type, _detail(side, at) if detailed else None, uses)
        keys[at] = numbers.setdefault(key, len(numbers))
    return keys


def _detail(side: GraphSide, at: int) -> Hashable:
    """Describe an operator's attributes and outputs."""
    results = [side.value(name) for name in side.outputs(at)]
    return (
        described(side.operators[at].attributes),
        tuple(_described_value(value) for value in results if value is not None),
    )


def _described_value(value: OutlineValue) -> tuple[Hashable, ...]:
    return (value.type, described(value.attributes), value.contents and value.contents.sha256)
