"""Makes verdicts by hand: the one place that knows how a `Verdict` is constructed."""

from __future__ import annotations

from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens.findings import Finding, LoadedOtherwise
from executorch_goldens.judging.verdict import Verdict
from tests.support.making import CELL


def verdict(name: str, *found: Finding | str, cell: Cell = CELL, **fields: Any) -> Verdict:
    """Return a verdict about a cell with findings; a sentence stands for one that says it."""
    findings = (each if isinstance(each, Finding) else LoadedOtherwise(each) for each in found or ("",))
    return Verdict(cell, name, tuple(findings), **fields)
