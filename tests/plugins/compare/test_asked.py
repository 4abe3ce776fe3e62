"""What a comparison says of the cells that it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.zoo.targets import BUILD
from executorch_goldens_plugins.compare.asked import Asked
from executorch_goldens_plugins.compare.reach.choice import choose
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
