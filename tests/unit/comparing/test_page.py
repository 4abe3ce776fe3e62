"""What a comparison prints: the first line, the classes and the lines under them count the same cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from executorch_goldens.artifact import Cell, Failure
from executorch_goldens.comparing.making import Compared, Comparison
from executorch_goldens.comparing.outcome import SAME, Made, kind_of
from executorch_goldens.comparing.page import BAD_ON_BOTH, Page
from executorch_goldens.comparing.sides import Sides
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.golden import MANIFEST, Texts
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.review.edits import edits, quantities
from executorch_goldens.review.groups import Group, Member
from executorch_goldens.settings import releases
from tests import GOLDENS
from tests.support.making import GRAPH, failure, lowered, outcomes

RELEASE = replace(releases.load().releases["1.5.1"], known={})


@dataclass
class OfOneCause(Comparison):
    """A comparison whose differences have one cause."""

    def causes(self) -> list[Group]:
        members = [
            Member(
                Proposal(
                    *(
                        "1.5.1",
                        each.cell.target,
                        each.cell.case,
                        "changed",
                        "it differs",
                        "SomePass",
                        "0",
                        None,
                        (),
                    ),
                    commit=None,
                    changes="",
                    settings={},
                    accuracy=each.head.accuracy,
                ),
                each.base.texts,
                each.head.texts,
                edits(each.base.texts, each.head.texts or {}),
                quantities(each.base.texts, each.head.texts or {}),
                "",
            )
            for each in self.differing()
            if each.head.texts is not None
        ]
        return [Group(tuple(members), {})] if members else []


def page(cells: Sequence[tuple[Made, Made]]) -> Page:
    found = [
        Compared(Cell("tosa-int", f"cell-{at}"), kind_of(base, head), base, head)
        for at, (base, head) in enumerate(cells)
    ]
    return Page(OfOneCause(cast("Sides", None), (), (), Path(), found=found))


def sections(found: Page) -> list[str]:
    """Return the classes as a terminal shows them, without an empty line before the first."""
    lines: list[str] = []
    for heading, items in found.sections():
        lines += ["", heading, *(f"{'  ' * (depth + 1)}{line}" for depth, line in items)]
    return lines[1:]


def right(sqnr: float, used: float = 0.1, zero_point: int = 49) -> Made:
    """Return the golden of a quantized linear layer with another SQNR, error and zero point."""
    texts = golden.read(GOLDENS / "1.4.1/tosa-int/linear")
    assert texts is not None
    manifest = texts[MANIFEST].replace("example 44.3 dB", f"example {sqnr} dB")
    manifest = manifest.replace("error: 0 of the tolerance", f"error: {used:.3g} of the tolerance")
    payload = "delegate_0.tosa.txt"
    changed = texts[payload].replace("values 49", f"values {zero_point}")
    edited: Texts = golden.sealed(golden.unsealed({**texts, MANIFEST: manifest, payload: changed}))
    verdict = Verdict(Cell("tosa-int", "linear"), "new", "one delegate")
    return Made(verdict, edited, (), Accuracy(used, 1.0, used, sqnr))


def test_what_was_not_run_is_counted_and_named_where_both_are_identical() -> None:
    not_run = replace(right(44.3), not_run="no rule gives the sizes")
    found = page([(not_run, not_run), (right(44.3), right(44.3)), (right(44.3), not_run)])
    assert found.head() == "identical: 2 of 3 cells; 1 no longer judged; of these, 2 not judged"
    assert found.unjudged() == {
        Cell("tosa-int", "cell-0"): "no rule gives the sizes",
        Cell("tosa-int", "cell-2"): "no rule gives the sizes",
    }
    assert "no longer judged: 1 cell" in sections(found)


def test_a_class_its_lines_and_its_amounts_count_the_same_cells() -> None:
    less_exact = [(right(44.3), right(43.3, zero_point=50))] * 5
    different = [(right(44.3), right(44.1, zero_point=50))] * 3
    found = page(less_exact + different)
    lines = sections(found)
    assert found.head() == "identical: 0 of 8 cells; 5 less exact, 3 different, and no worse"
    at = lines.index("different, and no worse: 3 cells")
    above, below = lines[:at], lines[at:]
    assert above[0] == "less exact: 5 cells"
    assert "    SQNR: lower by more than 0.5 dB in 5 of 5, most in tosa-int/cell-0: 44.3 -> 43.3 dB" in above
    assert "    error against eager: larger in none of 5" in above
    assert "    tosa-int/cell-0: SQNR 44.3 -> 43.3 dB" in above
    assert above[-2:] == ["    … 1 more", ""]
    assert below[1].endswith(", as above")
    assert "    SQNR: lower by more than 0.5 dB in none of 3" in below
    assert below[-3:] == [f"    tosa-int/cell-{number}" for number in (5, 6, 7)]


def broken(pte: bytes, message: str = "no kernel") -> Failure:
    """Return a program that the runtime refuses."""
    return replace(failure(message, stage="run"), made=lowered(GRAPH, pte=pte))


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (broken(b"one"), SAME),
        (broken(b"other"), "as-wrong"),
        (broken(b"one", "no memory"), "differently"),
    ],
)
def test_cells_that_are_right_on_neither_side_are_counted_and_named_in_every_class(
    head: Failure, kind: str
) -> None:
    base = broken(b"one")
    sides = [Made.of(outcomes(each, each), RELEASE) for each in (base, head)]
    fine = right(44.3)
    found = page([(sides[0], sides[1]), (fine, fine)])
    assert [each.kind for each in found.comparison.found] == [kind, SAME]
    assert found.head().endswith(f"; 1 {BAD_ON_BOTH}")
    assert found.differs == (kind != SAME)
    *_, heading, line = sections(found)
    assert heading == f"{BAD_ON_BOTH}: 1 cell"
    assert line.startswith("  tosa-int/cell-0: corrupt")
