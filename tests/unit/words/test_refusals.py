"""The words of why something is not recorded, one for each reason that there is."""

from __future__ import annotations

from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from executorch_goldens.goldens.decisions import FAILURE, NO_DELEGATE, Decision, Missing
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.judging.verdict import Doubt
from executorch_goldens.words.refusals import refusal
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED
from tests.support.making import CELL
from tests.support.screens import screen

ROOT, OF = Path("goldens"), {"releases": ("1.5.1",), "cells": (str(CELL),)}
FAILURES = Decision(FAILURE, cause="export: no branch on … values", **OF)  # type: ignore[arg-type]
OUTSIDE = Decision(NO_DELEGATE, outside=("aten.abs.default",), **OF)  # type: ignore[arg-type]
EVERY = (
    Missing(ROOT, FAILURES, FAILS),
    Missing(ROOT, FAILURES, FAILS, recorded=True),
    Missing(ROOT, OUTSIDE, UNDELEGATED, of_zoo=False),
    Fewer(4, 2),
    Doubt(),
    Doubt(((CELL, "corrupt"),)),
    Doubt(((CELL, "corrupt"),) * 5),
)


def test_each_refusal_has_words(snapshot: SnapshotAssertion) -> None:
    assert screen(map(refusal, EVERY)) == snapshot
