"""Passes that ``compare`` is asked for."""

from __future__ import annotations

from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.commands.compare import changes_nothing, passes, traced
from tests import REPOSITORY


def test_a_misspelt_pass_is_named_with_those_that_goldens_name(tmp_path: Path) -> None:
    trace = tmp_path / "tosa-fp/linear/trace.txt"
    trace.parent.mkdir(parents=True)
    trace.write_text("arm backend: RewriteConvPass 8de5cde57d92\n")
    # A cell without a trace might have any pass.
    cells = frozenset({Cell("tosa-fp", "linear"), Cell("tosa-fp", "loop")})
    assert traced("RewriteConvPas", cells, tmp_path) == (frozenset({Cell("tosa-fp", "loop")}), frozenset())
    error = changes_nothing("RewriteConvPas", passes(cells, tmp_path))
    assert str(error).endswith("no cell that was chosen; near: RewriteConvPass")


def test_a_pass_that_a_cell_fails_in_chooses_it() -> None:
    # The trace of its golden ends before the pass.
    cell = frozenset({Cell("xnnpack-fp32", "resnet8")})
    assert traced("FuseBatchNormPass", cell, REPOSITORY / "goldens" / "1.4.1") == (cell, cell)
