"""What a search tries: models of the operators that the edited code names, and cells near the edit with a change."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from executorch_goldens.artifact import Artifact, Cell, Outcome
from executorch_goldens.zoo.registry import Case, load
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.reach.answer import statements_run
from executorch_goldens_plugins.compare.reach.choice import DEAR, around, beside, turns
from executorch_goldens_plugins.compare.reach.code import text_of
from executorch_goldens_plugins.compare.reach.edits import Edits
from executorch_goldens_plugins.compare.reach.map import ReachMap
from executorch_goldens_plugins.compare.searching import (
    SEED,
    UNCHANGED,
    Reached,
    Search,
    SearchOrder,
    Try,
    has_delegate,
    lines_run,
    rarity,
)
from executorch_goldens_plugins.compare.sides import Sides

T = TypeVar("T")

#: Weights and inputs of cells that have goldens are made so that sums are exact; a comparison has none to hold.
LIKELY = ("mantissas",)
#: Operators that one becomes which is about each of them.
FEW = 3
#: What an overload is called where any is meant.
ANY = "*"


def search(
    sides: Sides,
    known: ReachMap,
    edits: Edits,
    head: Path,
    chosen: Sequence[int],
    ran: Mapping[Cell, Mapping[str, Collection[int]]],
) -> Search | None:
    """Return what to search; None where there is nothing to try.

    Parameters
    ----------
    chosen
        Numbers of the cells in the map that were compared.
    ran
        Lines of the head's files that each of these cells ran.
    """
    from executorch_goldens_plugins.compare.exporting.changing import CHANGES

    cases = {name: case for source in (*known.sources, calls.ARGS) for name, case in load([source]).items()}
    cells = [known.cells[number] for number in chosen or around(edits, known)]
    known_here = [cell for cell in cells if cell.case in cases and not cases[cell.case].is_build]
    slowest = max(DEAR, min((cell.seconds for cell in known_here), default=0.0))
    able = [cell.cell for cell in known_here if cell.seconds <= slowest]
    # In models of one call there is little to change: others of their operator are tried.
    near = [cell for cell in able if cell.case not in calls.read()]
    of_cell = {cell: statements_run(edits, ran.get(cell, {}), head) for cell in able}
    runs = Counter[Hashable](itertools.chain.from_iterable(of_cell.values()))
    fewest = min((rarity(each, runs) for each in of_cell.values()), default=0)
    # Every second one ran an edited statement that the fewest ran.
    rare = [cell for cell in near if rarity(of_cell[cell], runs) == fewest] or near
    changed = [one for each in zip(near, itertools.cycle(rare), strict=False) for one in each]
    chance = random.Random(SEED)
    targets = tuple(dict.fromkeys(cell.target for cell in able))
    cases_of = [cell.case for cell in able]
    reaching, beyond = (cases_of, []) if chosen else ([], cases_of)
    named = operators(edits, head, reaching, beside(edits, known), beyond)
    tries = candidates(cases, named, targets, chance)
    if not near and not tries:
        return None
    elsewhere = retargeted([(cases[cell.case], cell.target) for cell in near], known, chance)
    walk = SearchOrder(
        [(cases[cell.case], cell.target) for cell in changed],
        tries,
        [Try(case, UNCHANGED, target) for case, target in elsewhere],
        [each for each in CHANGES if each not in UNCHANGED],
        LIKELY,
        runs=runs,
        read=frozenset().union(*(edit.names for edit in edits.every)),
    )
    names = (*known.sources, *(() if calls.ARGS in known.sources else (calls.ARGS,)))
    modules = {case.name: case.module for case in cases.values()}
    base, head_side = (
        replace(side, settings=replace(side.settings, models=names, modules=modules))
        for side in (sides.base, sides.head)
    )

    def reached(outcome: Outcome) -> Reached:
        ran = lines_run(outcome)
        lines = frozenset((file, line) for file in edits.files for line in ran.get(file, ()))
        probes = outcome.result.probes if isinstance(outcome.result, Artifact) else ()
        operands = frozenset((each.file, each.function, *each.operands) for each in probes)
        infected = any(each.infected for each in probes)
        return Reached(statements_run(edits, ran, head), lines, operands, infected, has_delegate(outcome))

    return Search(replace(sides, base=base, head=head_side), walk, reached)


def operators(
    edits: Edits,
    head: Path,
    reaching: Sequence[str],
    near: Sequence[tuple[str, str]] = (),
    beyond: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the operators that an edit is about, as models have them: those that are named closest to it first.

    Those that the difference names come first of all. Each edited function names some, as do its class and its file:
    these take turns with those of the models that reach it. Then come those that functions near it name.

    Parameters
    ----------
    reaching
        Names of the cases that do.
    near
        File and name of these: see `reach.choice.beside`.
    beyond
        Names of cases that do not, and run something of its file or folder: their operators come last.
    """
    from executorch_goldens_plugins.compare.exporting.operators import named

    every = dict.fromkeys((*edits.files, *(file for file, _ in near)))
    sources = {file: text for file in every if (text := text_of(head / file))}
    of_files = named(head, sources, sources)
    known = calls.read()
    ran, beside_it = (
        [known[case].operator for case in cases if case in known] for cases in (reaching, beyond)
    )
    asked = [
        (nearness(edit.function, name), of_function)
        for edit in edits.every
        for name, of_function in of_files.get(edit.file, {}).items()
    ]
    of_edited = [each for _, of_function in sorted(asked, key=lambda each: each[0]) for each in of_function]
    of_near = (
        each
        for file, name in near
        for within in (name, name.rpartition(".")[0])
        for each in of_files.get(file, {}).get(within, ())
    )
    first = (f"{name}.{ANY}" for edit in edits.every for name in sorted(edit.operators))
    in_turns = turns([list(dict.fromkeys(each)) for each in (ran, of_edited)])
    return tuple(dict.fromkeys((*first, *in_turns, *of_near, *beside_it)))


def nearness(edited: str, name: str) -> int:
    """Return how near what is called so is to an edited function of its file; less is nearer.

    >>> [nearness("Pass.call", name) for name in ("Pass", "Pass.call", "Pass.other", "other")]
    [0, 1, 2, 3]
    """
    within = edited.rpartition(".")[0]
    is_of_class = name.partition(".")[0] == edited.partition(".")[0]
    return (name == within != "", name == edited, is_of_class, True).index(True)


def candidates(
    cases: Mapping[str, Case], named: Sequence[str], targets: Sequence[str], chance: random.Random
) -> list[Try]:
    """Return the models of some operators, of each as many as of all that are named after it.

    Parameters
    ----------
    targets
        Targets that reach the edit: a model that is for none of them is tried on one of them. Empty for all.
    """
    of_operators = calls.by_operator(model for model in calls.read().values() if model.name in cases)
    found: dict[str, list[Try]] = {}
    for operator in dict.fromkeys(each for name in named for each in _overloads(name, of_operators)):
        every = of_operators[operator]
        here = [each for each in chance.sample(every, len(every)) if not targets or each.target in targets]
        rest = [each for each in every if targets and each.target not in targets]
        elsewhere = [Try(cases[each.name], UNCHANGED, chance.choice(targets)) for each in rest]
        found[operator] = [*(Try(cases[each.name], UNCHANGED, each.target) for each in here), *elsewhere]
    return list(halving(list(found.values())))


def halving(each: Sequence[Sequence[T]]) -> Iterator[T]:
    """Yield of several lists, of the first as much as of all later ones together while it lasts, and so on.

    >>> list(halving([[1, 2, 3], [4, 5], [6]]))
    [1, 4, 2, 6, 3, 5]
    """
    if not each:
        return
    first, others = iter(each[0]), halving(each[1:])
    for one, other in itertools.zip_longest(first, others):
        yield from (found for found in (one, other) if found is not None)


def _overloads(name: str, of_operators: Collection[str]) -> Iterator[str]:
    """Yield the operators that a name means: it, then those that become it and little else, as ``conv2d`` does."""
    called, _, overload = name.partition(".")
    names = {called, called.removesuffix("_copy")}
    becomes = calls.becomes()

    def means(operator: str) -> bool:
        its, _, its_overload = operator.partition(".")
        return its in names and (overload in (ANY, its_overload) or its != called)

    yield from (each for each in of_operators if means(each))
    yield from (
        each
        for each in of_operators
        if not means(each) and len(becomes.get(each, ())) <= FEW and any(map(means, becomes.get(each, ())))
    )


def retargeted(
    near: Sequence[tuple[Case, str]], known: ReachMap, chance: random.Random
) -> Iterator[tuple[Case, str]]:
    """Yield cases on targets of the same backend for which the map does not have them."""
    there = {(cell.case, cell.target) for cell in known.cells}
    targets = sorted({cell.target for cell in known.cells})
    for case, target in near:
        backend = target.partition("-")[0]
        free = [each for each in targets if each.startswith(backend) and (case.name, each) not in there]
        if free:
            yield case, chance.choice(free)
