"""Which operators came to what on which target of which release: the table, and what changed between releases.

It counts models that were tried, and says nothing of those that were not.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import msgspec

from executorch_goldens.goldens.findings import Key
from executorch_goldens.settings import releases
from executorch_goldens.zoo.targets import TARGETS
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.calls import INPUT, LAYOUTS, VALUES, CallModel
from lab.args import kept
from lab.args.trying import OUTCOMES, WHOLE, Tried

FORMAT = 1
#: What is plain of an operand.
PLAIN = {"dtype": "float32", "held": INPUT, "layout": LAYOUTS[0], "values": VALUES[0]}
#: Models that changed alike are told by what they share where there are so many, and so many of those that share it and
#: were or are whole.
MANY, MOST = 5, 2 / 3


class Came(msgspec.Struct, frozen=True):
    """Models that came to one outcome, with one finding.

    Attributes
    ----------
    outcome
        `whole`, `partly`, `outside`, `wrong`, `failed`, `ended` or `unjudged`.
    models
        How many did.
    example
        The smallest of them: a name of `models` of the table.
    finding
        The key of what is not right, as of a finding; empty for what is right.
    """

    outcome: str
    models: int
    example: str
    finding: Key


class TableRow(msgspec.Struct, frozen=True):
    """What the models of an operator came to on a target of a release.

    Attributes
    ----------
    operator
        Name and overload, of ATen.
    target, release
        One of the harness's targets, and the version of a release.
    tried
        How many were exported. There is no row where none was.
    came
        What they came to, by outcome, and within it the commonest finding first.
    """

    operator: str
    target: str
    release: str
    tried: int
    came: tuple[Came, ...]


class TriedOn(msgspec.Struct, frozen=True):
    """How much of the models was tried on a release.

    Attributes
    ----------
    drawn
        Models of operators that the release's sources name.
    tried
        How many of them were exported.
    """

    drawn: int
    tried: int


class Shift(msgspec.Struct, frozen=True):
    """What models share that changed alike from a release to the next, whatever their operator.

    Attributes
    ----------
    backend
        Of their targets.
    fact, level
        What they share: a fact that models of a call have, and its value.
    models
        How many were tried on both releases.
    before, after
        How many of them were and are `whole`.
    """

    backend: str
    fact: str
    level: str
    models: int
    before: int
    after: int


class Step(msgspec.Struct, frozen=True):
    """What changed from a release to the next: operators and targets, decided on models that were tried on both.

    Attributes
    ----------
    before, after
        The releases.
    models
        How many models were tried on both.
    shifts
        What many models changed by; none of these models counts for an operator below.
    gained
        Operators with a target: no model was `whole` before, and some are.
    lost
        The other way round.
    more, fewer
        Those of which some were and are, and more, or fewer.
    """

    before: str
    after: str
    models: int
    shifts: tuple[Shift, ...]
    gained: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...]
    fewer: tuple[tuple[str, str], ...]


class OperatorTable(msgspec.Struct, frozen=True):
    """The table of operators.

    Attributes
    ----------
    format
        Version of it.
    releases
        By version.
    rows
        By operator, then by target and release.
    steps
        One for each two neighbouring releases.
    models
        The models that are an example, by name, each as a call.
    """

    format: int
    releases: dict[str, TriedOn]
    rows: tuple[TableRow, ...]
    steps: tuple[Step, ...]
    models: dict[str, str]


#: What the models of a release came to, by their names.
Results = Mapping[str, Mapping[str, Tried]]


def size(model: CallModel) -> tuple[int, int, int, str]:
    """Return how large a model is: its elements, then how many of its facts are no plain ones, then its text.

    >>> from executorch_goldens_plugins.compare.calls import Operand
    >>> plain, turned = (Operand("float32", (2, 3), layout=layout) for layout in ("contiguous", "permuted"))
    >>> [size(CallModel("a", "tosa-fp", "relu.default", {"self": each}))[:2] for each in (plain, turned)]
    [(6, 0), (6, 1)]
    """
    return (
        sum(math.prod(each.shape) for each in model.operands),
        sum(1 for _ in levels(model)),
        len(str(model)),
        model.name,
    )


def committed() -> OperatorTable:
    """Return the table of what is kept."""
    every = calls.read()
    return made({version: kept.read(version, every.values()) for version in releases.load().releases}, every)


def as_json() -> bytes:
    """Return the committed table as JSON."""
    return msgspec.json.encode(committed())


def made(results: Results, every: Mapping[str, CallModel]) -> OperatorTable:
    """Return the table of some results."""
    rows = tuple(_rows(results, every))
    shown = sorted({came.example for row in rows for came in row.came})
    return OperatorTable(
        FORMAT,
        {
            version: TriedOn(
                sum(version in (each.releases or (version,)) for each in every.values()), len(found)
            )
            for version, found in results.items()
        },
        rows,
        tuple(step(one, other, results, every) for one, other in itertools.pairwise(results)),
        {name: str(every[name]) for name in shown},
    )


def _rows(results: Results, every: Mapping[str, CallModel]) -> Iterator[TableRow]:
    """Yield the rows, by operator, then as targets and releases are listed."""
    found: dict[tuple[str, int, str], list[Tried]] = defaultdict(list)
    places = {target: place for place, target in enumerate(TARGETS)}
    for release, of_release in results.items():
        for name, each in of_release.items():
            found[every[name].operator, places[every[name].target], release].append(each)
    order = list(results)
    for key in sorted(found, key=lambda key: (*key[:2], order.index(key[2]))):
        operator, place, release = key
        target = list(TARGETS)[place]
        yield TableRow(operator, target, release, len(found[key]), tuple(_came(found[key], every)))


def _came(found: Iterable[Tried], every: Mapping[str, CallModel]) -> Iterator[Came]:
    """Yield what models came to, by outcome, and within it the commonest finding first."""
    kinds: dict[tuple[str, bytes], list[Tried]] = defaultdict(list)
    for each in found:
        kinds[each.outcome, msgspec.json.encode(each.finding, order="sorted")].append(each)
    ordered = sorted(kinds.items(), key=lambda kind: (OUTCOMES.index(kind[0][0]), -len(kind[1]), kind[0][1]))
    for (outcome, _), of_kind in ordered:
        example = min((every[each.model] for each in of_kind), key=size)
        yield Came(outcome, len(of_kind), example.name, of_kind[0].finding)


def step(before: str, after: str, results: Results, every: Mapping[str, CallModel]) -> Step:
    """Return what changed from a release to another."""
    common = results[before].keys() & results[after].keys()
    was, now = (
        {name for name in common if results[release][name].outcome == WHOLE} for release in (before, after)
    )
    shifts, alike = shifted(was, now, {name: every[name] for name in sorted(common)})
    pairs = {name: (every[name].operator, every[name].target) for name in common - alike}
    whole = [Counter(pairs[name] for name in each - alike) for each in (was, now)]
    of_pairs = {pair: (whole[0][pair], whole[1][pair]) for pair in sorted({*pairs.values()})}
    return Step(
        before,
        after,
        len(common),
        tuple(shifts),
        tuple(pair for pair, (one, other) in of_pairs.items() if not one and other),
        tuple(pair for pair, (one, other) in of_pairs.items() if one and not other),
        tuple(pair for pair, (one, other) in of_pairs.items() if 0 < one < other),
        tuple(pair for pair, (one, other) in of_pairs.items() if one > other > 0),
    )


def shifted(
    was: Set[str], now: Set[str], common: Mapping[str, CallModel]
) -> tuple[Sequence[Shift], Set[str]]:
    """Return what models share most of which changed alike, that of the most first, and the names of all that share it.

    Parameters
    ----------
    was, now
        Names of those of some models that were and are `whole`.
    """
    with_level: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for name, model in common.items():
        for fact, level in levels(model):
            with_level[TARGETS[model.target].backend, fact, level].add(name)
    shifts, alike = list[Shift](), set[str]()
    while True:
        found = []
        for shared, names in with_level.items():
            left = names - alike
            for one, other in ((was, now), (now, was)):
                changed = len(left & one - other)
                if changed >= MANY and changed >= MOST * len(left & one):
                    found.append((changed, shared))
        if not found:
            return shifts, alike
        _, shared = max(found)
        left = with_level[shared] - alike
        shifts.append(Shift(*shared, len(left), len(left & was), len(left & now)))
        alike |= left


def levels(model: CallModel) -> Iterator[tuple[str, str]]:
    """Yield the facts of a model that are no plain ones, with their values.

    >>> from executorch_goldens_plugins.compare.calls import Operand
    >>> given = Operand("int32", (2, 3), layout="permuted")
    >>> sorted({*levels(CallModel("a", "tosa-fp", "relu.default", {"self": given}, after="mul", open=0))})
    [('after', 'mul'), ('dtype', 'int32'), ('layout', 'permuted'), ('size', 'symbolic')]
    """
    if model.open is not None:
        yield "size", "symbolic"
    for fact in ("before", "after", "users"):
        if getattr(model, fact):
            yield fact, getattr(model, fact)
    for operand in model.operands:
        for fact, plain in PLAIN.items():
            if getattr(operand, fact) != plain:
                yield fact, getattr(operand, fact)
