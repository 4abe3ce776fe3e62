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

    def work(self, expected: object) -> tuple[()]:
        return ()


def test_what_comes_late_is_not_waited_for() -> None:
    first, second = Cell("tosa-fp", "first"), Cell("tosa-fp", "second")
    screen: Any = SimpleNamespace(write_line=lambda line: None)
    answers = iter((20.0, 10.0, 0.0))
    sweep: Any = Waiting(first)
    progress = Progress((first, second), [sweep], Seconds({}), 1, screen, live=False)
    assert progress.wait(sweep, first, lambda: 0.0)
    assert not progress.wait(sweep, second, lambda: next(answers))
    assert sweep.asked == [first, second, second, second]
