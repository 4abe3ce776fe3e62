"""The cells that an edit of a toolchain's Python asks for: those that reach it, unlike ones first.

Each edited line gets several. Two cells are unlike at a line if they are of another source or another target, or reach
its function in another situation (`map`). Of like ones, the cheapest come first. Every second
one is of those that run what few run after the line: an edited condition decides that, whoever asks it. Cells that are
not right on the base are apart: `Choice.wrong`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TypeVar

from executorch_goldens_plugins.compare.reach.code import Function, module_of
from executorch_goldens_plugins.compare.reach.edits import CodeEdit, Edits
from executorch_goldens_plugins.compare.reach.map import MappedFunction, ReachMap

T = TypeVar("T")

#: Seconds of processor time of an export from which a cell waits for all cheaper ones, and is changed by a search only
#: if no cheaper one reaches the edit.
DEAR = 4.0
#: How many times as many cells as reach an edit may run a function that is beside it.
BESIDE = 10
#: Cells that are not right on the base, of a place that no other cell reaches.
FEW_WRONG = 2
#: Seconds of wall time that a comparison takes beside its exports: zoos, and the first import of ExecuTorch.
BEGINNING = 30.0


@dataclass(frozen=True, eq=False)
class ReachGoal:
    """What a cell has to reach: a line of the base, or any line of a function.

    Attributes
    ----------
    function
        The function that it is in.
    cells
        Numbers, in the map, of the cells that reach it.
    is_after
        Whether it is no edited line, and one that may run after one.
    """

    function: MappedFunction
    cells: frozenset[int]
    is_after: bool = False


@dataclass(frozen=True)
class Choice:
    """The cells of a comparison.

    Attributes
    ----------
    cells
        Numbers in the map, in the order in which they are exported.
    left_out
        Cells that reach the edit too, and are over the budget: for the time that is left.
    unmapped
        Edited functions that no cell of the map is known to reach, as ``file: function``.
    wrong
        Cells that reach the edit too, and are not right on the base, where others are: for the time that is left then.
    """

    cells: tuple[int, ...]
    left_out: tuple[int, ...]
    unmapped: tuple[str, ...]
    wrong: tuple[int, ...] = ()


def choose(edits: Edits, base: Path, known: ReachMap, budget: float, jobs: int) -> Choice:
    """Return the cells to compare.

    Parameters
    ----------
    base
        The base's site-packages.
    budget
        Seconds of wall time.
    jobs
        Exports at a time.
    """
    places: dict[Hashable, ReachGoal] = {}
    unmapped: list[str] = []
    for edit in edits.every:
        found = [place for place in _places(edit, base, known) if place.cells]
        for place in found:
            # After the edits of a function the same runs.
            places.setdefault((place.function.digest, place.cells) if place.is_after else place, place)
        if not found and (edit.function or edit.users):
            unmapped.append(f"{edit.file}: {edit.function or 'what is outside of functions'}")
    every = frozenset().union(*(place.cells for place in places.values()))
    wrong = frozenset(number for number in every if known.cells[number].is_wrong)
    later = wrong if wrong < every else frozenset()
    now = [replace(place, cells=_first(place, later, known)) for place in places.values()]
    choice = _chosen(now, known, budget, jobs, tuple(unmapped))
    edited = (place for place in places.values() if not place.is_after)
    in_turns = turns([[*unlike(place.cells & later, place.function, known)] for place in edited])
    last = dict.fromkeys((*in_turns, *_cheapest_first(later, known)))
    left_out = tuple(number for number in choice.left_out if number not in later)
    return replace(
        choice, left_out=left_out, wrong=tuple(number for number in last if number not in choice.cells)
    )


def _first(place: ReachGoal, later: frozenset[int], known: ReachMap) -> frozenset[int]:
    """Return the cells of a place that are not for later; a few of those where no other tells what happens there."""
    few = itertools.islice(unlike(place.cells, place.function, known), FEW_WRONG)
    return place.cells - later or frozenset(few)


def choose_pass(name: str, known: ReachMap, budget: float, jobs: int) -> Choice:
    """Return the cells to compare for a pass, or another class; see `choose`. None of them where no cell reaches it.

    A pass runs on every program: those reach it that run a statement of it which others do not run.
    """
    functions = [each for each in known.functions if each.name.startswith(f"{name}.")]
    return _chosen(_telling(functions, known), known, budget, jobs)


def _telling(functions: Sequence[MappedFunction], known: ReachMap) -> list[ReachGoal]:
    """Return the lines of functions that not all cells run which run any of them; where there is none, all lines."""
    every = frozenset().union(*(known.cells_in(each) for each in functions))
    places: dict[frozenset[int], ReachGoal] = {}
    for function in functions:
        for _, cells in _by_line(function, known):
            places.setdefault(cells, ReachGoal(function, cells))
    return [place for cells, place in places.items() if cells != every] or [*places.values()]


def around(edits: Edits, known: ReachMap) -> list[int]:
    """Return the numbers of the cells near an edit that none reaches.

    They reach an edited function, unlike ones first; else an edited file, or one in its folder, the cheapest first.
    """
    places = [place for edit in edits.every for place in _whole(known, edit.base_file, edit.function)]
    if found := dict.fromkeys(turns([list(_in_turns(place, known)) for place in places])):
        return list(found)
    folders = {str(PurePosixPath(file).parent) for file in edits.files}
    inside = {file for file in known.files if str(PurePosixPath(file).parent) in folders}
    for wanted in (frozenset(edits.files), inside):
        functions = (each for each in known.functions if known.files[each.file] in wanted)
        if cells := frozenset().union(*(known.cells_in(function) for function in functions)):
            return _cheapest_first(cells, known)
    return []


def beside(edits: Edits, known: ReachMap) -> list[tuple[str, str]]:
    """Return file and name of the functions that all cells run which reach an edited one, and few others; rarest first.

    What these name says which operators come to a function that names none: a visitor of a dialect, a helper.
    """
    found: dict[tuple[str, str], int] = {}
    for edited in (
        mapped for edit in edits.every if (mapped := known.function(edit.base_file, edit.function))
    ):
        for each in known.functions if edited.bits else ():
            number = each.bits.bit_count()
            if edited.bits & ~each.bits == 0 and number <= BESIDE * edited.bits.bit_count():
                place = (known.files[each.file], each.name)
                found[place] = min(number, found.get(place, number))
    return sorted(found, key=found.__getitem__)


def _chosen(
    places: Sequence[ReachGoal], known: ReachMap, budget: float, jobs: int, unmapped: tuple[str, ...] = ()
) -> Choice:
    seconds = {cell: known.cells[cell].seconds for place in places for cell in place.cells}
    chosen = _taken(places, known, max(budget - BEGINNING, 0.0) * jobs)
    left_out = tuple(sorted(seconds.keys() - set(chosen), key=seconds.__getitem__))
    # In their order, but for the dear ones: a first answer does not wait for these.
    ordered = sorted(chosen, key=lambda cell: seconds[cell] if seconds[cell] > DEAR else 0.0)
    return Choice(tuple(ordered), left_out, unmapped)


def _places(edit: CodeEdit, base: Path, known: ReachMap) -> Iterator[ReachGoal]:
    """Yield what a cell has to reach for an edit."""
    if not edit.function:
        for file, name in edit.users:
            yield from _whole(known, file, name)
        return
    source = module_of(base / edit.base_file)
    function = source.functions.get(edit.function)
    if function is None:
        # A new one is called where its callers were edited, or by what calls its class.
        for each in _methods(known, edit.base_file, edit.function):
            yield ReachGoal(each, known.cells_in(each))
        return
    mapped = known.function(edit.base_file, edit.function, function.digest)
    if mapped is None:
        return
    if mapped.digest != function.digest:
        yield from _whole(known, edit.base_file, edit.function)
        return
    yield from _lines(edit, function, mapped, known)
    yield from _named(edit, mapped, known)


def _named(edit: CodeEdit, mapped: MappedFunction, known: ReachMap) -> Iterator[ReachGoal]:
    """Yield, of the cells that reach an edited function, those that tell what the difference names.

    They run a line, which others do not run, of a class or function that it names, or call an operator that it names.
    """
    within = known.cells_in(mapped)
    for word in sorted(edit.words & known.by_owner.keys()):
        for place in _telling(known.by_owner[word], known):
            yield ReachGoal(place.function, place.cells & within, is_after=True)
    if named := edit.operators:
        called = frozenset(number for number in within if known.operators[number] in named)
        yield ReachGoal(mapped, called, is_after=True)


def _lines(
    edit: CodeEdit, function: Function, mapped: MappedFunction, known: ReachMap
) -> Iterator[ReachGoal]:
    """Yield the edited lines of a function that the map has as it is, and with each what runs after it in some cells.

    An edited condition shows where the base goes on from it, however many cells ask it, and what all programs construct
    shows where one calls a method.
    """
    offset = mapped.first - function.first
    by_line = _by_line(mapped, known)
    constructs = mapped.name.endswith(".__init__")
    methods = [*_methods(known, known.files[mapped.file], mapped.name)] if constructs else []
    for statement in edit.base:
        lines = range(statement.first + offset, statement.last + offset + 1)
        cells = known.cells_at(mapped, lines)
        yield ReachGoal(mapped, cells)
        after = dict.fromkeys(cells & some for line, some in by_line if line >= lines.stop)
        yield from (ReachGoal(mapped, some, is_after=True) for some in after if some != cells)
        yield from (ReachGoal(each, cells & known.cells_in(each), is_after=True) for each in methods)


def _methods(known: ReachMap, file: str, name: str) -> Iterator[MappedFunction]:
    """Yield the functions of the class that one is in, itself left out; none of what is in no class."""
    within = name.rpartition(".")[0]
    for (inside, other), function in known.by_name.items():
        if within and inside == file and other != name and other.rpartition(".")[0] == within:
            yield function


def _by_line(function: MappedFunction, known: ReachMap) -> list[tuple[int, frozenset[int]]]:
    """Return the lines of a function that ran, in order, with the cells that ran each."""
    ran = {function.first + line for each in function.situations for line in each.lines if line >= 0}
    return [(line, known.cells_at(function, (line,))) for line in sorted(ran)]


def _whole(known: ReachMap, file: str, name: str) -> Iterator[ReachGoal]:
    mapped = known.function(file, name)
    if mapped is not None:
        yield ReachGoal(mapped, known.cells_in(mapped))


def _taken(places: Sequence[ReachGoal], known: ReachMap, capacity: float) -> list[int]:
    """Return the cells to take, for so many seconds of processor time.

    Edited lines ask for one, and what runs after them for the next.
    """
    # On both sides.
    cost = {cell: 2 * known.cells[cell].seconds for place in places for cell in place.cells}
    least = min(cost.values(), default=0.0)
    chosen: dict[int, None] = {}
    numbers: Counter[ReachGoal] = Counter()
    kinds = ([place for place in places if place.is_after is after] for after in (False, True))
    in_turns = itertools.zip_longest(*(_rounds(each, known, chosen, numbers) for each in kinds))
    for cell in itertools.chain.from_iterable(in_turns):
        if capacity < least:
            break
        if cell is not None and cell not in chosen and cost[cell] <= capacity:
            chosen[cell] = None
            numbers.update(place for place in places if cell in place.cells)
            capacity -= cost[cell]
    return list(chosen)


def _rounds(
    places: Sequence[ReachGoal], known: ReachMap, chosen: Collection[int], numbers: Mapping[ReachGoal, int]
) -> Iterator[int]:
    """Yield cells that may be chosen: in each round, one more unlike one per place.

    Parameters
    ----------
    chosen, numbers
        The cells that were, and how many of each place.
    """
    waiting = {place: _in_turns(place, known) for place in places}
    # Of the places with few cells first: what reaches them may serve others.
    order = sorted(waiting, key=lambda place: len(place.cells))
    for number in itertools.count(1):
        further = False
        for place in order:
            if numbers.get(place, 0) >= number:
                further = True
                continue
            cell = next((each for each in waiting[place] if each not in chosen), None)
            if cell is not None:
                further = True
                yield cell
        if not further:
            break


def _in_turns(place: ReachGoal, known: ReachMap) -> Iterator[int]:
    """Yield the cells of a place, unlike ones first; those that are not right on the base at the end."""
    right = {cell for cell in place.cells if not known.cells[cell].is_wrong}
    for half in (right, place.cells - right):
        yield from unlike(half, place.function, known)


def unlike(cells: Collection[int], function: MappedFunction, known: ReachMap) -> Iterator[int]:
    """Yield cells that reach a function: sources and targets take turns, and the situations of each; cheapest first."""
    groups: dict[Hashable, dict[Hashable, list[int]]] = {}
    for cell in _cheapest_first(cells, known):
        of_cell = known.cells[cell]
        kinds = groups.setdefault((of_cell.source, of_cell.target), {})
        kinds.setdefault(known.situation(cell, function), []).append(cell)
    yield from turns([list(turns(list(kinds.values()))) for kinds in groups.values()])


def _cheapest_first(cells: Collection[int], known: ReachMap) -> list[int]:
    return sorted(cells, key=lambda cell: (known.cells[cell].seconds, cell))


def turns(each: Sequence[Sequence[T]]) -> Iterator[T]:
    """Yield the first of each, then the second of each, and so on.

    >>> list(turns([[1, 2], [3], [4, 5]]))
    [1, 3, 4, 2, 5]
    """
    for turn in itertools.zip_longest(*each):
        yield from (one for one in turn if one is not None)
