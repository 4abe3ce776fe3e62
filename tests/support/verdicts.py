"""Makes verdicts by hand: the one place that knows how a `Verdict` is constructed."""

from __future__ import annotations

from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens.findings import LoadedOtherwise
from executorch_goldens.judging.verdict import Verdict
from tests.support.making import CELL


def verdict(
    name: str, said: str = "", detail: tuple[str, ...] = (), cell: Cell = CELL, **fields: Any
) -> Verdict:
    """Return a verdict about a cell that says a sentence, with lines under it."""
    return Verdict(cell, name, tuple(map(LoadedOtherwise, (said, *detail))), **fields)


def kind_of_new(found: Verdict) -> str:
    """Return the kind of a new cell; empty for any other."""
    return found.kind_of_new
