"""Which of the models that differ a search keeps, and after how many it ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Killed, Outcome
from executorch_goldens.cli import shown_output
from executorch_goldens.errors import UsageError
from executorch_goldens.results.compared import MARK, SAME, Tally
from executorch_goldens.results.rows import Results
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import Settings
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.variations import Variation, variations
from executorch_goldens_plugins.compare.making import (
    MOST_NO_WORSE,
    Compared,
    Comparison,
    _Screen,
    tally,
    twice,
)
from executorch_goldens_plugins.compare.searching import ENOUGH, UNCHANGED, Search, Try
from executorch_goldens_plugins.compare.sides import Sides
from tests.support.making import CELL, GRAPH, failure, lowered, outcome
from tests.support.screens import screen

NOT_USED: Any = None


def model(number: int) -> Try:
    return Try(Case(f"sample-{number}", "sample", "a case", lambda data: data), UNCHANGED, "tosa-fp")


@dataclass
class Differing:
    """Models that differ, in their order."""

    number: int
    sides: Any = None
    sweeps: list[Any] = field(default_factory=list)
    yielded: list[Try] = field(default_factory=list)

    def differing(self, *_: object) -> Iterator[Try]:
        for number in range(self.number):
            self.yielded.append(model(number))
            yield self.yielded[-1]


class Judged(Comparison):
    """A comparison that knows of which kind each model is."""

    kinds: Sequence[str]

    def _exported(
        self, sides: Any, cells: Sequence[Cell], is_late: Any = None
    ) -> Iterator[tuple[Cell, Any, Any]]:
        yield cells[0], None, None

    def _compare(self, cell: Cell, *_: Any) -> None:
        kind = self.kinds[len(self.found)]
        self.found.append(Compared(cell, kind, NOT_USED, NOT_USED))
        if kind != SAME:
            member: Any = SimpleNamespace(proposal=SimpleNamespace(cell=cell))
            self._members.append(member)


@pytest.mark.parametrize(
    ("kinds", "kept", "asked"),
    [
        (("different", "better", "wrong", "wrong"), 2, 3),
        (("outside", "wrong"), 0, 1),
        (("better", SAME, "different", "better", "wrong"), 2, 4),
        ((SAME, SAME), None, 2),
        (("renamed", "order"), 0, 2),
    ],
)
def test_a_search_goes_on_behind_what_is_no_worse_and_keeps_the_worst(
    kinds: Sequence[str], kept: int | None, asked: int
) -> None:
    assert MOST_NO_WORSE == 3
    comparison = Judged(NOT_USED, (), tuple(variations((0, 1))), Path())
    comparison.kinds = kinds
    search: Any = Differing(len(kinds))
    comparison._search(search, 60.0, NOT_USED)
    assert len(search.yielded) == asked
    wanted = [] if kept is None else [model(kept).cell]
    assert [each.cell for each in comparison.found] == wanted
    assert [each.proposal.cell for each in comparison._members] == wanted
    assert (comparison.model and comparison.model.cell) == (wanted[0] if wanted else None)


#: What one variation may make of a cell, by a letter.
MAKES = {
    "A": lowered(GRAPH),
    "B": lowered(GRAPH.replace("x", "y")),
    "C": lowered(GRAPH.replace("x", "z")),
    "F": failure("no"),
    "G": failure("never"),
    "X": Killed("SIGSEGV"),
}
FOUR = variations()


class Tossing:
    """The exports of a cell on one side: what each of four variations makes is known."""

    def __init__(self, makes: str, made: Sequence[Variation], cell: Cell = CELL) -> None:
        self.cell = cell
        self.makes = dict(zip(FOUR, makes, strict=True))
        self.made = tuple(made)

    def ask(self, asked: Sequence[Variation]) -> None:
        self.made = tuple(asked)

    def outcomes(self) -> list[Outcome]:
        return [outcome(MAKES[self.makes[each]], self.cell, each.name) for each in self.made]


@pytest.mark.parametrize(
    ("base", "head", "kind", "asked"),
    [
        # The base tosses the same coin, and had luck twice.
        ("AAAB", "ABBA", SAME, 4),
        ("AAAB", "ABAA", SAME, 4),
        # The head had.
        ("BABA", "AAAB", SAME, 4),
        ("BABA", "AAAA", "better", 4),
        ("AAAA", "ABBA", "at-times", 4),
        ("CCCC", "ABBA", "unstable", 4),
        # What fails or crashes under some seeds.
        ("AAAF", "AFAF", SAME, 4),
        ("AAAA", "AFAF", "at-times", 4),
        ("FFFF", "FAFA", "at-times", 4),
        ("AAAA", "AXAX", "at-times", 4),
        ("CCCC", "AXAX", "wrong", 4),
        ("AAAA", "XXXX", "wrong", 2),
        ("AAAA", "FFFF", "fails", 2),
        ("AAAA", "CCCC", "different", 2),
        ("AAAA", "AAAA", SAME, 1),
        ("ABBA", "ABBA", SAME, 2),
    ],
)
def test_before_one_side_is_said_to_repeat_it_gets_more_variations(
    base: str, head: str, kind: str, asked: int, tmp_path: Path
) -> None:
    release = releases.load().releases["1.5.1"]
    settings = Settings(Path("python"), ("models",), (), 1, 60.0)
    side: Any = SimpleNamespace(release=release, settings=settings, toolchain=SimpleNamespace(name="1.5.1"))
    sides = Sides(side, side, (), {}, ())
    comparison = Comparison(sides, (CELL,), FOUR[:2], tmp_path, beside=True)
    of_base: Any = Tossing(base, FOUR[:1])
    of_head: Any = Tossing(head, FOUR[1:2])
    results = Results(tmp_path / "head", release)
    results.open()
    comparison._compare(CELL, of_base, of_head, results, lambda *_: True)
    results.close([CELL])
    (found,) = comparison.found
    assert found.kind == kind
    assert len(of_base.made) == len(of_head.made) == asked


def compared_with(base: str, head: str, folder: Path, *, is_declared: bool = False) -> Comparison:
    """Return a comparison of cells whose exports are known, a letter each."""

    class Known(Comparison):
        def _exported(self, *_: Any) -> Iterator[tuple[Cell, Any, Any]]:
            for number, makes in enumerate(zip(base, head, strict=True)):
                cell = Cell("tosa-fp", f"case-{number}")
                of = (Tossing(each * len(FOUR), FOUR[:2], cell) for each in makes)
                yield cell, *of

    release = releases.load().releases["1.5.1"]
    toolchain = SimpleNamespace(name="1.5.1 + et", is_declared=is_declared)
    settings = Settings(Path("python"), ("models",), (), 1, 60.0)
    side: Any = SimpleNamespace(word="base", release=release, settings=settings, toolchain=toolchain)
    sides = Sides(side, side, (), {}, ())
    return Known(sides, (), tuple(FOUR[:2]), folder)


def test_a_base_whose_cells_mostly_fail_alike_ends_the_comparison_and_nothing_is_left(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    comparison = compared_with("A" + "F" * 30, "A" + "F" * 30, tmp_path / "made")
    with pytest.raises(UsageError) as error:
        comparison.run(lambda *_: True)
    assert str(error.value) == snapshot
    assert [each.name for each in (tmp_path / "made").iterdir()] == [MARK]


@pytest.mark.parametrize(
    ("base", "head", "is_declared"),
    [
        ("F" * 9, "F" * 9, False),
        ("F" * 12, "F" * 12, True),
        # The head mends them.
        ("F" * 12, "A" * 12, False),
        # Half of them, or in more ways than one.
        ("AF" * 12, "AF" * 12, False),
        ("FGX" * 8, "FGX" * 8, False),
    ],
)
def test_cells_that_fail_for_reasons_of_their_own_are_compared_all(
    base: str, head: str, is_declared: bool, tmp_path: Path
) -> None:
    comparison = compared_with(base, head, tmp_path / "made", is_declared=is_declared)
    comparison.run(lambda *_: True)
    assert len(comparison.found) == len(base)


@pytest.mark.parametrize(
    ("head", "enough", "found"),
    [("AACCF", {"different", "fails"}, 3), ("AACCF", {"fails"}, 5), ("AACCF", set(), 5)],
)
def test_a_difference_of_which_one_is_enough_ends_the_comparison(
    head: str, enough: set[str], found: int, tmp_path: Path
) -> None:
    comparison = compared_with("AAAAA", head, tmp_path / "made", is_declared=True)
    comparison.enough = frozenset(enough)
    comparison.run(lambda *_: True)
    assert len(comparison.found) == found
    assert comparison.has_enough == bool(enough)


def test_where_further_cells_repeat_those_that_are_not_right_on_the_base_are_compared_still() -> None:
    chosen, further, wrong = (Cell("tosa-fp", name) for name in ("chosen", "further", "wrong"))
    comparison = Comparison(
        NOT_USED, (chosen,), FOUR[:2], Path(), further=(further, wrong), last=frozenset([wrong])
    )
    for repeating, left in ((ENOUGH - 1, [chosen, further, wrong]), (ENOUGH, [chosen, wrong])):
        comparison._repeating = repeating
        assert [*comparison.left_of([chosen, further, wrong])] == left


def test_more_variations_are_those_that_there_are_and_others() -> None:
    assert twice(FOUR[:2]) == FOUR
    own = (Variation(3, 0), Variation(0, 1))
    assert twice(own)[:2] == own
    assert len(twice(own)) >= 4


def test_exports_are_counted_that_were_made() -> None:
    cells, models = (
        [
            SimpleNamespace(ended=[CELL] * made, reused=reused, core_seconds=made * 2.0, waited=made * 3.0)
            for made, reused in sweeps
        ]
        for sweeps in ([(3, 2), (4, 0)], [(5, 0), (1, 0)])
    )
    sweeps: Any = cells, models
    assert tally(*sweeps) == Tally(15, 2, 6, core_seconds=26.0, slowness=2.5)
    assert tally([], []) == Tally(0, 0, 0, core_seconds=0.0, slowness=1.0)


def test_a_live_line_is_written_over_and_nothing_that_it_names_is(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_output():
        _Screen().rewrite("a\x1b[2Jb")
    assert capsys.readouterr().err == "\r\x1b[Ka\\x1b[2Jb"


def test_a_search_says_how_far_it_is(snapshot: SnapshotAssertion) -> None:
    search = Search(NOT_USED, NOT_USED, NOT_USED)
    search.tried, search.reaching = 12, 3
    assert screen([search.line(130.0, 300.0), search.line(math.inf, math.inf)]) == snapshot
