"""How long a comparison waits for the exports of a cell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.running.progress import Progress
from executorch_goldens.sweep.seconds import Seconds


class Waiting:
    """A sweep whose exports of some cells never come."""

    def __init__(self, *cells: Cell) -> None:
        self.cells = cells
        self.asked: list[Cell] = []

    def ready(self, cell: Cell, seconds: float) -> bool:
        self.asked.append(cell)
        return cell in self.cells

    def doing(self) -> str:
        return "waiting"


def test_what_comes_late_is_not_waited_for() -> None:
    first, second = Cell("tosa-fp", "first"), Cell("tosa-fp", "second")
    screen: Any = SimpleNamespace(write_line=lambda line: None)
    progress = Progress((first, second), Seconds({}), 2, 1, screen, live=False)
    answers = iter((False, False, True))
    sweep: Any = Waiting(first)
    assert progress.wait(sweep, first, lambda: True)
    assert not progress.wait(sweep, second, lambda: next(answers))
    assert sweep.asked == [first, second, second, second]
