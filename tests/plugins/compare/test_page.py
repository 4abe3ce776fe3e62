"""What a comparison prints: the first line, the classes and the lines under them count the same cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Failure
from executorch_goldens.causes.groups import Group, Member
from executorch_goldens.diff.difference import Difference
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import LoadedOtherwise
from executorch_goldens.goldens.record import MANIFEST
from executorch_goldens.results.compared import SAME
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.settings import releases
from executorch_goldens.zoo.targets import BUILD
from executorch_goldens_plugins.compare.asked import Asked
from executorch_goldens_plugins.compare.making import Compared, Comparison
from executorch_goldens_plugins.compare.outcome import Made, kind_of
from executorch_goldens_plugins.compare.page import ComparisonPage
from executorch_goldens_plugins.compare.reach.choice import choose
from executorch_goldens_plugins.compare.reach.code import Statement
from executorch_goldens_plugins.compare.reach.edits import CodeEdit, Edits, between
from executorch_goldens_plugins.compare.sides import Sides
from tests import GOLDENS
from tests.plugins.compare.reach.packages import FOLD, PLAIN, RAN, known, packages
from tests.support.making import GRAPH, failure, lowered, outcomes, with_texts
from tests.support.screens import screen
from tests.support.verdicts import verdict

RELEASE = releases.load().releases["1.5.1"]


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
                        (LoadedOtherwise("it differs"),),
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
                each.base.record,
                each.head.record,
                Difference(each.base.record, each.head.record).edits,
                Difference(each.base.record, each.head.record).quantities,
                "",
            )
            for each in self.differing()
            if each.head.record is not None
        ]
        return [Group(tuple(members), {})] if members else []


def page(cells: Sequence[tuple[Made, Made]]) -> ComparisonPage:
    found = [
        Compared(Cell("tosa-int", f"cell-{at}"), kind_of(base, head), base, head)
        for at, (base, head) in enumerate(cells)
    ]
    return ComparisonPage(OfOneCause(cast("Sides", None), (), (), Path(), found=found))


def sections(found: ComparisonPage) -> list[str]:
    """Return the classes as a terminal shows them, without an empty line before the first."""
    lines: list[str] = []
    for heading, items in found.sections():
        lines += ["", heading, *(f"{'  ' * (depth + 1)}{line}" for depth, line in items)]
    return lines[1:]


def right(sqnr: float, used: float = 0.1, zero_point: int = 49) -> Made:
    """Return the golden of a quantized linear layer with another SQNR, error and zero point."""
    texts = golden.read(GOLDENS / "1.4.1/tosa-int/linear.txt")
    manifest = texts.texts()[MANIFEST].replace("example 44.3 dB", f"example {sqnr} dB")
    manifest = manifest.replace("error: 0 of the tolerance", f"error: {used:.3g} of the tolerance")
    payload = "delegate_0.tosa"
    changed = texts.texts()[payload].replace("values 49", f"values {zero_point}")
    edited = with_texts(texts, {MANIFEST: manifest, payload: changed})
    judged = verdict("new", "one delegate", cell=Cell("tosa-int", "linear"))
    return Made(judged, edited, (), Accuracy(used, 1.0, used, sqnr))


def shown(found: ComparisonPage) -> str:
    return screen([found.head(), *sections(found)])


def test_what_was_not_run_is_counted_and_named_where_both_are_identical(snapshot: SnapshotAssertion) -> None:
    not_run = replace(right(44.3), not_run="no rule gives the sizes")
    found = page([(not_run, not_run), (right(44.3), right(44.3)), (right(44.3), not_run)])
    assert found.unjudged() == {
        Cell("tosa-int", "cell-0"): "no rule gives the sizes",
        Cell("tosa-int", "cell-2"): "no rule gives the sizes",
    }
    assert shown(found) == snapshot


def test_a_class_its_lines_and_its_amounts_count_the_same_cells(snapshot: SnapshotAssertion) -> None:
    less_exact = [(right(44.3), right(43.3, zero_point=50))] * 5
    different = [(right(44.3), right(44.1, zero_point=50))] * 3
    assert shown(page(less_exact + different)) == snapshot


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
def test_a_cell_that_is_right_on_neither_side_is_in_one_class(
    head: Failure, kind: str, snapshot: SnapshotAssertion
) -> None:
    base = broken(b"one")
    sides = [Made.from_outcomes(outcomes(each, each), RELEASE) for each in (base, head)]
    fine = right(44.3)
    found = page([(sides[0], sides[1]), (fine, fine)])
    assert [each.kind for each in found.comparison.found] == [kind, SAME]
    assert found.differs == (kind != SAME)
    assert shown(found) == snapshot


EDITED = Statement("stride = tuple(reversed(stride))", 12, 13)
RAISES = Statement("raise ValueError(stride)", 14, 14, raises=True)
PASSES = "executorch/backends/arm/_passes/conv.py"


@pytest.mark.parametrize(
    ("ran", "allowed", "is_red"),
    [([12], (), False), ([11], (), True), ([11], ("unreached",), False)],
)
def test_an_answer_says_which_edited_lines_it_speaks_for_and_is_red_where_none_ran(
    ran: list[int], allowed: Sequence[str], is_red: bool, snapshot: SnapshotAssertion
) -> None:
    made = right(44.3)
    edits = Edits((CodeEdit(PASSES, "Conv.call", (EDITED,), (EDITED,)),), (PASSES,), ())
    found = replace(page([(made, made)]), allowed=allowed, asked=Asked((), Path(), edits))
    found.comparison.ran[Cell("tosa-int", "cell-0")] = {PASSES: set(ran)}
    assert screen(found.head()) == snapshot
    assert found.is_red == is_red


@pytest.mark.parametrize("compared", [0, 2])
@pytest.mark.parametrize("undecided", [(True,), (True, True, False), (False,)])
def test_cells_in_which_the_edit_decides_nothing_are_counted(
    compared: int, undecided: tuple[bool, ...], snapshot: SnapshotAssertion
) -> None:
    made = right(44.3)
    edits = Edits((CodeEdit(PASSES, "Conv.call", (EDITED,), (EDITED,)),), (PASSES,), ())
    found = replace(page([(made, made)] * compared), asked=Asked((), Path(), edits))
    for number, ran in enumerate(undecided):
        cell = Cell("tosa-int", f"undecided-{number}")
        found.comparison.undecided[cell] = ran
        found.comparison.ran[cell] = {PASSES: {12}} if ran else {}
    assert screen(found.head()) == snapshot


@pytest.mark.parametrize(
    ("ran", "left_out", "required", "missing"),
    [
        ([11], (), ("reached", "all"), {"reached": (f"{PASSES}:12-13",), "all": ()}),
        ([12], ("left",), ("reached", "all"), {"reached": (), "all": ("tosa-int/left",)}),
        ([12], ("left",), ("reached",), {"reached": ()}),
        ([12], (), ("reached", "all"), {"reached": (), "all": ()}),
        ([12], ("left",), (), {}),
    ],
)
def test_what_is_required_and_missing_is_named_and_red(
    ran: list[int],
    left_out: Sequence[str],
    required: Sequence[str],
    missing: Mapping[str, tuple[str, ...]],
    snapshot: SnapshotAssertion,
) -> None:
    made, rest = right(44.3), tuple(Cell("tosa-int", name) for name in left_out)
    edits = Edits((CodeEdit(PASSES, "Conv.call", (EDITED, RAISES), (EDITED,)),), (PASSES,), ())
    found = replace(page([(made, made)]), asked=Asked((), Path(), edits), required=required)
    # What none of the cells ran makes it red by itself.
    found = replace(found, allowed=("unreached",))
    found.comparison.cells = (Cell("tosa-int", "cell-0"), *rest)
    found.comparison._begun = {Cell("tosa-int", "cell-0")}
    found.comparison.ran[Cell("tosa-int", "cell-0")] = {PASSES: set(ran)}
    assert found.missing == missing
    assert found.is_red == any(missing.values())
    assert screen([*found.missing_lines()]) == snapshot


@pytest.mark.parametrize(
    ("enough", "why"),
    [
        (frozenset(), "the time was over"),
        (frozenset(["different"]), "a cell differs, and --first asks for one"),
    ],
)
def test_cells_behind_the_first_that_differs_are_named_with_why(enough: frozenset[str], why: str) -> None:
    behind = Cell("tosa-int", "behind")
    found = page([(right(44.3), right(44.3, zero_point=50))])
    found.comparison.cells, found.comparison.enough = (
        (*(each.cell for each in found.comparison.found), behind),
        enough,
    )
    found.comparison._begun = {found.comparison.found[0].cell}
    assert found._left_out() == {behind: why}


def test_a_file_that_is_not_python_is_not_known_to_be_reached() -> None:
    asked = Asked((), Path(), Edits((), (), ("executorch/exir/program.fbs",)))
    found = replace(page([]), asked=asked, required=("reached",))
    assert found.missing == {"reached": ("executorch/exir/program.fbs",)}
    assert found.is_red


def test_the_json_says_why_no_model_was_searched(tmp_path: Path) -> None:
    base, head = packages(tmp_path / "base"), packages(tmp_path / "head", FOLD.replace("* node", "/ node"))
    made, edits = known(base, every={Cell(BUILD, "options"): RAN[PLAIN]}), between(base, head)
    asked = Asked(("models",), head, edits, choose(edits, base, made, 300.0, 1), made)
    assert replace(page([]), asked=asked)._search() == {"tried": 0, "why": asked.not_searched}


@pytest.mark.parametrize(
    ("cells", "why"),
    [((PLAIN,), "1 cell over the budget"), ((), "no cell is known that reaches the edit")],
)
def test_where_nothing_was_compared_the_first_line_says_why(
    tmp_path: Path, cells: Sequence[Cell], why: str
) -> None:
    base, head = packages(tmp_path / "base"), packages(tmp_path / "head", FOLD.replace("* node", "/ node"))
    made, edits = known(base, every=dict.fromkeys(cells, RAN[PLAIN])), between(base, head)
    asked = Asked(("models",), head, edits, choose(edits, base, made, 0.1, 1), made)
    assert replace(page([]), asked=asked).head().startswith(f"nothing was compared: {why}; 0 of ")
