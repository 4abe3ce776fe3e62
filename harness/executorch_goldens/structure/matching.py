"""Finds out which operator of one graph is which of the other, whatever their names and positions.

The steps go from the surest to the vaguest, and none takes back what an earlier one has matched:

1. Operators that compute the same from the same inputs and are used in the same way. Then those that stand in the same
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
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from executorch_goldens.structure.keys import Keys, by_both, by_inputs, by_uses
from executorch_goldens.structure.side import Side

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


def match(before: Side, after: Side) -> Matching:
    """Match the operators of two graphs."""
    matcher = _Matcher(before, after)
    inputs, uses = by_inputs(before, after, detailed=True), by_uses(before, after, detailed=True)
    plain_inputs, plain_uses = (
        by_inputs(before, after, detailed=False),
        by_uses(before, after, detailed=False),
    )
    places = by_both(plain_inputs, plain_uses)
    matcher.match_equal(by_both(inputs, uses))
    matcher.match_unique(by_both(inputs, places))
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

    def __init__(self, before: Side, after: Side) -> None:
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
            groups[keys.before[at]][0].append(at)
        for at in self._left_after():
            groups[keys.after[at]][1].append(at)
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


def _users_by_kind(side: Side, name: str, matched: dict[int, int]) -> dict[tuple[str, int], list[int]]:
    """Return the users of a value that are not matched, by their type and the input that they read it with."""
    users: dict[tuple[str, int], list[int]] = defaultdict(list)
    for user, position in side.consumers.get(name, ()):
        if user not in matched:
            users[side.operators[user].type, position].append(user)
    return users
