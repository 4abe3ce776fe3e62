"""New models for an edit that no cell shows: cells near it with something changed, and models of further zoos.

What is tried first follows from a seed and from which of the edited lines the compared cells ran, what comes next also
from which of them its models ran: the same command tries the same models, as far as its time goes.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import random
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered, Outcome
from executorch_goldens.files.wording import count
from executorch_goldens.results.compared import SAME
from executorch_goldens.running.progress import duration
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.registry import NAME_PATTERN, Case, changed_name
from executorch_goldens.zoo.variations import Variation
from executorch_goldens_plugins.compare.calls import (
    AS_IT_IS,
    CallModel,
    borrowed,
    borrowing,
    by_operator,
    is_borrowing,
    read,
)
from executorch_goldens_plugins.compare.outcome import decided, kind_of
from executorch_goldens_plugins.compare.reach.choice import turns
from executorch_goldens_plugins.compare.sides import Side, Sides, side_by_side

#: The changes of a model that is tried as it is.
UNCHANGED = (AS_IT_IS,)
#: Begins the line that keeps a model.
KEEP = "from executorch_goldens_plugins.compare.exporting.changing import keep; keep(__name__, "
SEED = 0
#: Most changes of a model.
MOST = 3
#: Cells that a change is tried on until it fits one, and changes of a case of which one has to fit.
TRIES = 3
#: Exports of the head that are asked for before the first is looked at, and how many later the base's is.
AHEAD, LATER = 3, 2
#: Cases on which a likely change is tried.
SEVERAL = 3
#: The last models that reached the edit: the next is near one of them.
LATEST = 12
#: Models of an operator that reached the edit, all of whose neighbours are tried; and unlike ones whose neighbours take
#: turns, of those with a delegate and of those without.
FIRST_ONES, BASES = 2, 3
#: Facts that a model keeps; the shapes it borrows with all else of its operands alone.
NEVER_BORROWED = ("target", "shape")
#: Draws of a model until one is new.
DRAWS = 20
#: Models without a new way through the edited files, after which a search ends.
ENOUGH = 60
#: Seconds that an export of a search may take.
SLOWEST = 60.0


@dataclass(frozen=True)
class Try:
    """A model of a search: a case with some changes, on a target.

    Attributes
    ----------
    fact
        What the last change is about: the fact of a model of one call that it borrows.
    """

    case: Case
    changes: tuple[str, ...]
    target: str
    fact: str = field(default="", compare=False)

    @property
    def cell(self) -> Cell:
        return Cell(self.target, changed_name(self.case.name, self.changes))

    def made(self) -> Case:
        """Return it as a case, in a process that may import torch."""
        from executorch_goldens_plugins.compare.exporting.changing import changed

        return changed(self.case, self.changes)

    @property
    def line(self) -> str:
        """The call that keeps it in a module of a zoo."""
        words = ", ".join(map(repr, (self.case.module, self.case.name, *self.changes)))
        return f"{KEEP}{words}, target={self.target!r})"

    @functools.cached_property
    def model(self) -> CallModel | None:
        """The model of one call that it is, with what it borrows; None for a case of another zoo."""
        found = read().get(self.case.name)
        for change in self.changes if found is not None and self.changes != UNCHANGED else ():
            found = borrowed(found, change) if found is not None and is_borrowing(change) else found
        return found

    def further(self, change: str, fact: str = "") -> Try:
        """Return it with one more change."""
        before = () if self.changes == UNCHANGED else self.changes
        return replace(self, changes=(*before, change), fact=fact)

    @property
    def before(self) -> Try:
        """It without its last change."""
        return replace(self, changes=self.changes[:-1] or UNCHANGED)


class Reached(NamedTuple):
    """Lines of an edit that an export ran.

    Attributes
    ----------
    edited
        The edited statements.
    situation
        Which lines of the edited files ran.
    operands
        How what the edited statements read was related.
    infected
        Whether an edited expression gave something else than the base's there.
    taken
        Whether the program has a delegate.
    """

    edited: frozenset[Hashable]
    situation: frozenset[tuple[str, int]]
    operands: frozenset[tuple[str, ...]] = frozenset()
    infected: bool = False
    taken: bool = False


#: Of an export that came to no end.
NOTHING = Reached(frozenset(), frozenset())


class SearchOrder:
    """The order in which models are tried.

    Parameters
    ----------
    near
        Cases that reach the edit, with a target: they take turns to be changed.
    models
        Models of one call each: those next to what reached the edit come first, then those with facts of two of them.
    others
        Models that may reach it: they are tried as they are.
    changes
        Changes that may be made, by name.
    likely
        Those of them that are tried first, on `SEVERAL` cases each.
    runs
        How many programs ran each edited statement.
    read
        Names that edited statements read: arguments that are called so decide what these read, as far as is known.
    """

    def __init__(
        self,
        near: Sequence[tuple[Case, str]],
        models: Sequence[Try] = (),
        others: Iterable[Try] = (),
        changes: Sequence[str] = (),
        likely: Sequence[str] = (),
        seed: int = SEED,
        runs: Mapping[Hashable, int] | None = None,
        read: Collection[str] = (),
    ) -> None:
        self.chance = random.Random(seed)
        self.near = tuple(near)
        self.runs = Counter(runs)
        self.changes = tuple(changes)
        self.turn = 0
        order = (*tuple(likely) * SEVERAL, *(each for each in self.changes if each not in likely))
        self.first = deque((change, 0) for change in order if self.near)
        self.models = {each.cell: each for each in models}
        self.others = deque(others)
        #: Models that ran edited statements, or others of the edited files, in a way of their own.
        self.reaching: list[tuple[Try, Reached]] = []
        self.on_the_way: list[tuple[Try, Reached]] = []
        self.seen: set[Reached] = set()
        #: Changes that did not fit, by case.
        self.failing = defaultdict[str, set[str]](set)
        self.changeable: set[str] = set()
        self.asked: set[Cell] = set()
        #: Models of one call that ran edited statements, and those of them in which that infected one.
        self.reached: list[Try] = []
        self.infected: list[Try] = []
        #: Unlike ones of them, each with whether its program has a delegate.
        self.bases: list[tuple[Try, bool]] = []
        #: For each of these, and for those in which edited statements read something new, what differs in one fact.
        self.neighbours: deque[deque[Try]] = deque()
        self.second: deque[deque[Try]] = deque()
        #: What infected an edited statement, on further bases.
        self.moved: deque[Try] = deque()
        #: What edited statements read in models that reached the edit, and facts with which they read something else.
        self.operands: dict[Cell, frozenset[tuple[str, ...]]] = {}
        self.deciding: set[str] = set(read)
        #: The neighbours that are left of the first ones of an operator.
        self.firsts: list[deque[Try]] = []
        #: How often each change that is tried once was tried before it fitted.
        self.tries: dict[Cell, int] = {}
        self.number = self.turns = 0
        #: Models since one went a new way through the edited files.
        self.repeating = 0

    def next(self) -> Try | None:
        """Return what to try next; None where nothing is left, or what is left repeats. The kinds take turns."""
        if self.is_over:
            return None
        models = self._neighbour, self._model, self._first, self._neighbour, self._model
        kinds = (*models, self._other, *models, self._further)
        start, self.number = self.number % len(kinds), self.number + 1
        for kind in (*kinds[start:], *kinds[:start]):
            found = kind()
            if found is not None:
                self.asked.add(found.cell)
                return found
        return None

    @property
    def is_over(self) -> bool:
        """True if models that reached the edit went no new way through the edited files `ENOUGH` times in a row.

        All neighbours of the first of them were tried then.
        """
        return bool(self.reaching) and self.repeating >= ENOUGH and not any(self.firsts)

    def tell(self, tried: Try, ran: Reached, failed: bool) -> None:
        """Note what became of a try, and what the head ran.

        Parameters
        ----------
        failed
            Whether the model, or its export, came to no program: its last change is not tried again on the case.
        """
        self.repeating += 1
        if failed:
            self.failing[tried.case.name].add(tried.changes[-1])
            tries = self.tries.get(tried.cell, TRIES)
            if tries < TRIES:
                self.first.appendleft((tried.changes[-1], tries))
        else:
            self.runs.update(ran.edited)
            if tried.changes != UNCHANGED:
                self.changeable.add(tried.case.name)
            if ran.edited and tried.model is not None:
                self._reached(tried, ran)
            if ran.situation and ran not in self.seen:
                self.seen.add(ran)
                self.repeating = 0
                (self.reaching if ran.edited else self.on_the_way).append((tried, ran))

    def _reached(self, tried: Try, ran: Reached) -> None:
        """Note a model that reached the edit.

        Neighbours are to be tried of unlike ones of an operator, and of those changed ones in which the edited
        statements read something else than in any before. What infected one of them is tried on all unlike ones.
        """
        is_new = bool(ran.operands) and ran.operands not in self.operands.values()
        self.reached.append(tried)
        self.operands[tried.cell] = ran.operands
        if self.operands.get(tried.before.cell, ran.operands) != ran.operands:
            self.deciding.add(tried.fact)
        if ran.infected:
            self.infected.append(tried)
            self.moved.extend(_on_other_bases(tried, [each for each, _ in self.bases]))
        if tried.changes != UNCHANGED:
            if is_new and len(tried.changes) < MOST:
                self.second.appendleft(deque(neighbours(tried)))
            return
        of_operator = [each for each in self.bases if each[0].case.family == tried.case.family]
        alike = [each for each, is_taken in of_operator if is_taken == ran.taken]
        if len(alike) < BASES and all(_kind(each) != _kind(tried) for each in alike):
            self.bases.append((tried, ran.taken))
            self.neighbours.appendleft(deque(neighbours(tried)))
            if len(of_operator) < FIRST_ONES:
                self.firsts.append(self.neighbours[0])
            add = self.moved.extendleft if ran.taken else self.moved.extend
            add(itertools.chain(*(_on_other_bases(each, [tried]) for each in self.infected)))

    def _first(self) -> Try | None:
        while self.first:
            change, tries = self.first.popleft()
            case, target = self.near[self.turn % len(self.near)]
            self.turn += 1
            found = Try(case, (change,), target)
            if self._is_new(found):
                self.tries[found.cell] = tries + 1
                return found
        return None

    def _model(self) -> Try | None:
        """Return the next model; every second one is that which differs least from one that reached the edit."""
        last = (self.infected or self.reached)[-LATEST:] if len(self.models) % 2 else []
        of_operators = {each.case.family for each in last}
        near = [each for each in self.models.values() if each.case.family in of_operators]
        nearest = min(near, key=lambda each: _distance(each, last), default=None)
        for found in ([nearest] if nearest is not None else []) + [*self.models.values()]:
            if self.models.pop(found.cell, None) is not None and self._is_new(found):
                return found
        return None

    def _neighbour(self) -> Try | None:
        """Return a model that reached the edit with one fact of another one of its operator; then with one more.

        Every second one has a fact that was seen to decide what the edited statements read.
        """
        self.turns += 1
        while self.moved and self.turns % 3 == 0:
            if self._is_new(found := self.moved.popleft()):
                return found
        for queues in (self.neighbours, self.second)[:: 1 if self.turns % 2 else -1]:
            while queues:
                queue = queues.popleft()
                deciding = (each for each in queue if each.fact in self.deciding)
                found = next(deciding if len(queue) % 2 else iter(()), queue[0])
                queue.remove(found)
                if queue:
                    queues.append(queue)
                if self._is_new(found):
                    return found
        able = [each for each in self.infected or self.reached if len(each.changes) < MOST]
        for _ in range(len(able) and DRAWS):
            one = able[max(self.chance.randrange(len(able)), self.chance.randrange(len(able)))]
            model, donor = one.model, self.chance.choice(models_of(one.case.family))
            assert model is not None
            facts = [name for name in {**model.facts, **donor.plain} if name not in NEVER_BORROWED]
            weights = [1 + len(facts) * (each in self.deciding) for each in facts]
            (fact,) = self.chance.choices(facts, weights)
            if model.facts.get(fact) != donor.facts.get(fact):
                found = one.further(borrowing(fact, donor.name), fact)
                if self._is_new(found):
                    return found
        return None

    def _other(self) -> Try | None:
        while self.others:
            if self._is_new(found := self.others.popleft()):
                return found
        return None

    def _further(self) -> Try | None:
        """Return a model that reached the edit, else its files, with one more change.

        Every second one ran an edited statement that the fewest programs ran; the others are rather of the last ones.
        """
        last = self.reaching or self.on_the_way
        able = [each for each in last if self._may_change(each[0]) and each[0].model is None]
        rarest = min(reversed(able), key=lambda each: rarity(each[1].edited, self.runs), default=None)
        for _ in range(DRAWS if able and self.changes else 0):
            # The larger of two draws.
            place = max(self.chance.randrange(len(able)), self.chance.randrange(len(able)))
            one = rarest if rarest is not None and self.chance.randrange(2) else able[place]
            found = one[0].further(self.chance.choice(self.changes))
            if self._is_new(found):
                return found
        return None

    def _may_change(self, tried: Try) -> bool:
        """Return whether a model may have one more change; not where the first few that were tried failed."""
        name = tried.case.name
        fits = name in self.changeable or len(self.failing[name]) < TRIES
        return fits and (len(tried.changes) < MOST or tried.changes == UNCHANGED)

    def _is_new(self, found: Try) -> bool:
        name = found.cell.case
        fails = not self.failing[found.case.name].isdisjoint(found.changes)
        again = len(set(found.changes)) < len(found.changes)
        return found.cell not in self.asked and not fails and not again and bool(NAME_PATTERN.fullmatch(name))


def _kind(tried: Try) -> tuple[object, ...]:
    """Return the target of a model of one call, and the types and ranks of its operands."""
    assert tried.model is not None
    return tried.target, *((each.dtype, len(each.shape)) for each in tried.model.operands)


def _on_other_bases(infected: Try, bases: Iterable[Try]) -> Iterator[Try]:
    """Yield what infects an edited statement with the rest of other models of its operator, or for their target."""
    for base in bases:
        if base.case.family == infected.case.family and base.case != infected.case:
            case = infected.case if infected.changes == UNCHANGED else base.case
            yield replace(infected, case=case, target=base.target)


def _distance(one: Try, others: Sequence[Try]) -> int:
    """Return in how many facts a model differs from the nearest of some others."""
    model = one.model
    assert model is not None
    return min(
        model.distance(each.model) + (one.target != each.target)
        for each in others
        if each.model is not None and each.model.operator == model.operator
    )


def neighbours(tried: Try) -> Iterator[Try]:
    """Yield a model with one fact of another of its operator, each value once; facts take turns, arguments first.

    Arguments that it leaves out are among them.
    """
    model = tried.model
    assert model is not None
    of_facts: list[list[Try]] = []
    every = models_of(model.operator)
    arguments = dict.fromkeys((*model.plain, *itertools.chain.from_iterable(each.plain for each in every)))
    for fact in (*arguments, *(name for name in model.facts if name not in (*arguments, *NEVER_BORROWED))):
        if fact == tried.fact:
            continue
        values = {str(each.facts[fact]): each for each in reversed(every) if fact in each.facts}
        values.pop(str(model.facts[fact]) if fact in model.facts else "", None)
        of_facts.append([tried.further(borrowing(fact, donor.name), fact) for donor in values.values()])
    yield from turns(of_facts)


@functools.cache
def models_of(operator: str) -> tuple[CallModel, ...]:
    """Return the models of an operator."""
    return tuple(by_operator(read().values())[operator])


def rarity(edited: Collection[Hashable], runs: Mapping[Hashable, int]) -> int:
    """Return how many programs ran that of some edited statements which the fewest ran.

    >>> rarity(["often", "seldom"], {"often": 9, "seldom": 2})
    2
    """
    return min((runs[each] for each in edited), default=sys.maxsize)


@dataclass
class Search:
    """A search for a model that is not the same on both sides.

    Attributes
    ----------
    reached
        Returns what an export ran of the edit.
    reaching
        Number of those that ran an edited line.
    undecided
        Number of these on which the edited code gave the same as the base's.
    """

    sides: Sides
    walk: SearchOrder
    reached: Callable[[Outcome], Reached]
    tried: int = field(default=0, init=False)
    reaching: int = field(default=0, init=False)
    undecided: int = field(default=0, init=False)
    sweeps: list[Sweep] = field(default_factory=list, init=False)
    #: Models tried, and those of them that ran an edited line, by operator, or by the family of the case.
    by_family: dict[str, list[int]] = field(default_factory=dict, init=False)

    def words(self) -> str:
        """Return how many models were tried."""
        over = f"; the last {ENOUGH} went no new way through the edited code" if self.walk.is_over else ""
        return f"{self._counts()}{over}; seed {SEED}"

    def line(self, left: float, seconds: float) -> str:
        """Return how far it is, with so many seconds left of all."""
        time_left = f"; {duration(left)} of {duration(seconds)} left" if math.isfinite(seconds) else ""
        return f"searching: {self._counts()}{time_left}"

    def _counts(self) -> str:
        same = f", which gave the same in {self.undecided}" if self.undecided else ""
        return f"{count(self.tried, 'model')} tried, of which {self.reaching} ran an edited line{same}"

    def differing(
        self, seconds: float, variation: Variation, beat: Callable[[Callable[[], str]], None]
    ) -> Iterator[Try]:
        """Yield models whose programs differ, for so many seconds; nothing is run, and nothing judged.

        The base exports a model only where the head ran an edited line.

        Parameters
        ----------
        beat
            Is called again and again with what says how far it is.
        """
        deadline = time.monotonic() + seconds

        def tick() -> None:
            if (left := deadline - time.monotonic()) < 0:
                raise _LateError
            beat(lambda: self.line(left, seconds))

        pair = _Pair(self.sides, variation, tick)
        self.sweeps += pair.base, pair.head
        with side_by_side(pair.base, pair.head):
            try:
                for found in self._differing(pair):
                    yield self._smaller(found, pair)
            except _LateError:
                return

    def _differing(self, pair: _Pair) -> Iterator[Try]:
        ahead = deque[Try]()
        waiting = deque[tuple[Try, Outcome] | None]()
        while True:
            while len(ahead) < AHEAD and (new := self.walk.next()) is not None:
                pair.ask(pair.head, new)
                ahead.append(new)
            if not ahead and not waiting:
                return
            if ahead:
                waiting.append(self._on_head(ahead.popleft(), pair))
            if len(waiting) > LATER or not ahead:
                # At a fixed distance: what is tried next does not follow from the machine's speed.
                due = waiting.popleft()
                if due is not None and pair.differs(*due, self.walk):
                    yield due[0]

    def _on_head(self, new: Try, pair: _Pair) -> tuple[Try, Outcome] | None:
        """Return what the head made of a model where the edit may decide something, and ask the base for it as well."""
        outcome, ran = self._tried(new, pair)
        self.walk.tell(new, ran, failed=not ran.edited and not made_something(outcome))
        is_made = isinstance(outcome.result, Artifact)
        if is_made and (not ran.edited or decided(outcome) is False):
            self.undecided += bool(ran.edited)
            return None
        pair.ask(pair.base, new)
        return new, outcome

    def _tried(self, new: Try, pair: _Pair) -> tuple[Outcome, Reached]:
        """Return what the head made of a model, and which edited lines that ran."""
        outcome = pair.take(pair.head, new)
        ran = self.reached(outcome)
        self.tried += 1
        self.reaching += bool(ran.edited)
        counts = self.by_family.setdefault(new.case.family, [0, 0])
        counts[0] += 1
        counts[1] += bool(ran.edited)
        return outcome, ran

    def _smaller(self, found: Try, pair: _Pair) -> Try:
        """Return a model with one of the changes, where that differs as well, was not tried and there is time."""
        with contextlib.suppress(_LateError):
            for change in found.changes if len(found.changes) > 1 else ():
                smaller = replace(found, changes=(change,))
                if smaller.cell in self.walk.asked:
                    continue
                self.walk.asked.add(smaller.cell)
                for sweep in (pair.head, pair.base):
                    pair.ask(sweep, smaller)
                if pair.differs(smaller, self._tried(smaller, pair)[0], self.walk):
                    return smaller
        return found


class _LateError(Exception):
    """The time of a search is over."""


class _Pair:
    """The exports of both sides, one a model and side, in templates that last; nothing is run."""

    def __init__(self, sides: Sides, variation: Variation, tick: Callable[[], None]) -> None:
        self.variation = variation
        self.tick = tick
        self.base, self.head = (self._sweep(side) for side in (sides.base, sides.head))
        self.sides = sides

    def _sweep(self, side: Side) -> Sweep:
        settings = replace(side.settings, execute=False, limit=min(side.settings.limit, SLOWEST))
        return Sweep((), (self.variation,), settings, lasting=True)

    def ask(self, sweep: Sweep, model: Try) -> None:
        sweep.add(model.cell, (self.variation,))

    def take(self, sweep: Sweep, model: Try) -> Outcome:
        """Wait for an export that was asked for; raise `_LateError`."""
        (outcome,) = sweep.outcomes(model.cell, (self.variation,), self.tick)
        return outcome

    def differs(self, model: Try, of_head: Outcome, walk: SearchOrder) -> bool:
        """Return whether the base lowers a model, and to something else than the head."""
        base = self.sides.made_by_base([self.take(self.base, model)])
        if not base.is_right:
            walk.tell(model, NOTHING, failed=True)
            return False
        return kind_of(base, self.sides.made_by_head([of_head], base)) != SAME


def lines_run(outcome: Outcome) -> Mapping[str, Sequence[int]]:
    """Return the lines that an export ran, by file; none where it came to no end."""
    return outcome.result.reach if isinstance(outcome.result, Artifact) else {}


def made_something(outcome: Outcome) -> bool:
    """Return whether an export came to a program."""
    return isinstance(outcome.result, Artifact) and not isinstance(outcome.result.result, Failure)


def has_delegate(outcome: Outcome) -> bool:
    """Return whether an export came to a program with a delegate."""
    made = outcome.result.result if isinstance(outcome.result, Artifact) else None
    return isinstance(made, Lowered) and bool(made.delegates)
