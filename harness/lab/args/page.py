"""The page of the table of operators, docs/operators.md: its parts, and what the site adds to it as HTML."""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import jinja2
import msgspec

from executorch_goldens.files.wording import count
from executorch_goldens.goldens.findings import Key
from executorch_goldens.words.findings import keyed
from executorch_goldens.zoo.targets import TARGETS
from executorch_goldens_plugins.compare.calls import CallModel
from lab import REPOSITORY, markdown
from lab.args import table
from lab.args.table import Came, OperatorTable, TableRow
from lab.args.trying import OUTCOMES
from lab.pages import Part

PAGE = "docs/operators.md"
TEMPLATES = REPOSITORY / "docs" / "site"
#: Findings of an operator and an outcome that are shown, the commonest.
SHOWN = 3


@dataclass(frozen=True)
class Span:
    """What models came to on each of some neighbouring releases; nothing where none was tried."""

    releases: Sequence[str]
    came: Sequence[Came]

    @property
    def counts(self) -> Mapping[str, int]:
        return counts(self.came)


@dataclass(frozen=True)
class Kind:
    """An outcome with a finding: the smallest model that came to it, and where models did: releases, with targets."""

    outcome: str
    finding: Key
    example: str
    places: Mapping[Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class Operator:
    """An operator on the page: what models came to on the last release that was tried, by target, and of each kind."""

    name: str
    last: str
    counts: Mapping[str, int]
    rows: Mapping[str, Sequence[Span]]
    kinds: Sequence[Kind]
    #: Number of kinds that are not shown.
    more: int


def counts(every: Iterable[Came]) -> Mapping[str, int]:
    """Return how many models came to each outcome, in the order of these."""
    found = Counter[str]()
    for each in every:
        found[each.outcome] += each.models
    return {outcome: found[outcome] for outcome in OUTCOMES if found[outcome]}


def html(made: OperatorTable, every: Mapping[str, CallModel]) -> str:
    """Return the table as HTML."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    targets = {row.target for row in made.rows}
    return environment.get_template("operators.html.jinja").render(
        operators=list(operators(made, every)),
        releases=list(made.releases),
        every=[name for name in TARGETS if name in targets],
        outcomes=OUTCOMES,
        models={name: every[name] for name in made.models},
        keyed=keyed,
        span=span,
    )


def span(some: Sequence[str], every: Sequence[str]) -> str:
    """Return releases in words.

    >>> every = ["1.1.0", "1.2.0", "1.3.1", "1.4.1"]
    >>> span(every[1:], every), span(every[:2], every), span(["1.1.0", "1.3.1", "1.4.1"], every)
    ('1.2.0 to 1.4.1', '1.1.0, 1.2.0', '1.1.0, 1.3.1, 1.4.1')
    """
    start = every.index(some[0])
    whole = len(some) > 2 and list(some) == every[start : start + len(some)]
    return f"{some[0]} to {some[-1]}" if whole else ", ".join(some)


def operators(made: OperatorTable, every: Mapping[str, CallModel]) -> Iterator[Operator]:
    """Yield the operators of the page."""
    for name, of_operator in itertools.groupby(made.rows, key=lambda row: row.operator):
        rows = list(of_operator)
        came: dict[str, dict[str, Sequence[Came]]] = defaultdict(dict)
        kinds: dict[tuple[int, bytes], list[tuple[TableRow, Came]]] = defaultdict(list)
        for row in rows:
            came[row.target][row.release] = row.came
            for each in row.came:
                kind = OUTCOMES.index(each.outcome), msgspec.json.encode(each.finding, order="sorted")
                kinds[kind].append((row, each))
        common = sorted(kinds, key=lambda kind: -sum(each.models for _, each in kinds[kind]))
        seen = {
            outcome: [kind for kind in common if kind[0] == outcome][:SHOWN]
            for outcome in range(len(OUTCOMES))
        }
        last = [version for version in made.releases if any(row.release == version for row in rows)][-1]
        yield Operator(
            name,
            last,
            counts(each for row in rows if row.release == last for each in row.came),
            {target: list(_spans(of_target, made.releases)) for target, of_target in came.items()},
            [_kind(kinds[kind], list(made.releases), every) for of in seen.values() for kind in of],
            len(kinds) - sum(map(len, seen.values())),
        )


def _spans(of_target: Mapping[str, Sequence[Came]], versions: Iterable[str]) -> Iterator[Span]:
    for found, neighbours in itertools.groupby(versions, key=lambda version: of_target.get(version, ())):
        yield Span(list(neighbours), found)


def _kind(
    found: Sequence[tuple[TableRow, Came]], versions: Sequence[str], every: Mapping[str, CallModel]
) -> Kind:
    _, first = found[0]
    on: dict[str, set[str]] = defaultdict(set)
    for row, _ in found:
        on[row.target].add(row.release)
    places: dict[Sequence[str], list[str]] = defaultdict(list)
    for target, of_target in on.items():
        places[tuple(version for version in versions if version in of_target)].append(target)
    example = min((came.example for _, came in found), key=lambda name: table.size(every[name]))
    return Kind(first.outcome, first.finding, example, places)


def parts() -> Iterator[Part]:
    """Yield the parts of the page that are committed: how many models came to what, and what changed."""
    made = functools.cache(table.committed)
    yield Part(PAGE, "tried", lambda: _tried(made()))
    yield Part(PAGE, "changed", lambda: _changed(made()))


def _tried(made: OperatorTable) -> Iterator[str]:
    yield ""
    yield from markdown.head(("release", "drawn", "tried", *OUTCOMES))
    for version, of in made.releases.items():
        found = counts(each for row in made.rows if row.release == version for each in row.came)
        numbers = (of.drawn, of.tried, *(found.get(outcome, 0) for outcome in OUTCOMES))
        yield markdown.row((version, *(f"{number:,}" for number in numbers)))
    yield ""


def _changed(made: OperatorTable) -> Iterator[str]:
    for step in made.steps:
        if not step.models:
            yield from ("", f"**{step.before} -> {step.after}**: no model was tried on both")
            continue
        gained, lost = (len({operator for operator, _ in pairs}) for pairs in (step.gained, step.lost))
        yield ""
        yield (
            f"**{step.before} -> {step.after}**: {count(gained, 'operator')} gained, {lost} lost, "
            f"on {count(step.models, 'model')}"
        )
        for each in step.shifts:
            shared = f"{each.backend}, {each.fact} {each.level}"
            yield from ("", f"- {shared}: of {each.models} models {each.before} were whole, {each.after} are")
        for name in ("gained", "lost", "more", "fewer"):
            if pairs := getattr(step, name):
                yield from ("", f"- {name}: {', '.join(_named(pairs))}")
    yield ""


def _named(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield each operator with its targets."""
    for operator, of in itertools.groupby(pairs, key=lambda pair: pair[0]):
        yield f"`{operator}` ({' '.join(target for _, target in of)})"
