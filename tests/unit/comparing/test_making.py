"""Which of the models that differ a search keeps, and after how many it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.comparing.making import MOST_NO_WORSE, Compared, Comparison
from executorch_goldens.comparing.outcome import SAME
from executorch_goldens.comparing.searching import UNCHANGED, Try
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.variations import variations

NOT_USED: Any = None


def model(number: int) -> Try:
    return Try(Case(f"sample-{number}", "sample", "a case", lambda data: data), UNCHANGED, "tosa-fp")


@dataclass
class Differing:
    """Models that differ, in their order."""

    number: int
    sides: Any = None
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
