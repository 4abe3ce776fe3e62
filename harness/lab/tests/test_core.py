"""What a core must have."""

from __future__ import annotations

from pathlib import Path

from executorch_goldens.artifact import Cell
from lab.core.computing import drawn
from lab.core.wanted import DEAR, Source
from tests.unit.reach.packages import PLAIN, RAN, known, packages

CHEAP, DEARER = 0b01, 0b10


def test_a_dear_cell_is_asked_for_no_mutant_alone_and_is_named(tmp_path: Path) -> None:
    # The first cell takes less than `DEAR` seconds, the second more.
    cells = Cell("tosa-fp", "cheap"), Cell("tosa-int", "dear")
    made = known(packages(tmp_path / "base"), 0.6 * DEAR, dict.fromkeys(cells, RAN[PLAIN]))
    mutants = {"mutant both": CHEAP | DEARER, "mutant dear": DEARER}
    source = Source(tmp_path, made, CHEAP | DEARER, CHEAP, (), mutants, {}, {})
    assert "mutant both" in dict(source.must())
    assert "mutant dear" not in dict(source.must())
    assert dict(source.shows())["mutant dear"] == DEARER
    assert source.unkept() == [f"mutant dear: {cells[1]}"]
    # A target is asked for whatever its cells take: the second one's has no other.
    assert set(drawn(source)) == {0, 1}
