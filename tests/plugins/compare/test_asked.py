"""What a comparison says of the cells that it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.zoo.targets import BUILD
from executorch_goldens_plugins.compare.asked import EARLY, OVER, WRONG, Asked
from executorch_goldens_plugins.compare.reach.choice import Choice, choose
from executorch_goldens_plugins.compare.reach.edits import between
from tests.plugins.compare.reach.packages import FOLD, PLAIN, RAN, known, packages

OPTIONS = Cell(BUILD, "options")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ((OPTIONS, PLAIN), ""),
        ((OPTIONS,), "only programs of build functions reach the edit: they set what no target sets"),
    ],
)
def test_where_only_builds_reach_an_edit_no_model_is_searched_and_a_line_says_so(
    tmp_path: Path, cells: tuple[Cell, ...], said: str
) -> None:
    base, head = packages(tmp_path / "base"), packages(tmp_path / "head", FOLD.replace("* node", "/ node"))
    made, edits = known(base, every=dict.fromkeys(cells, RAN[PLAIN])), between(base, head)
    asked = Asked(("models",), head, edits, choose(edits, base, made, 300.0, 1), made)
    assert asked.not_searched == said


def test_a_few_cells_that_are_not_right_on_the_base_do_not_wait_for_those_over_the_budget(
    tmp_path: Path,
) -> None:
    names = [f"case-{number:02}" for number in range(2 * EARLY + 2)]
    made = known(
        packages(tmp_path), every=dict.fromkeys((Cell("tosa-fp", name) for name in names), RAN[PLAIN])
    )
    over, wrong = (0, 1), tuple(range(2, len(names)))
    asked = Asked(("models",), tmp_path, None, Choice((), over, (), wrong), made)
    found = {names.index(cell.case): why for cell, why in asked.left_out.items()}
    assert list(found) == [*wrong[:EARLY], *over, *wrong[EARLY:]]
    assert found == dict.fromkeys(wrong, WRONG) | dict.fromkeys(over, OVER)
