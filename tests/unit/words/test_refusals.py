"""The words of why something is not recorded, one for each reason that there is."""

from __future__ import annotations

from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from executorch_goldens.goldens.decisions import (
    FAILURE,
    FILE,
    NO_CELL,
    NO_DELEGATE,
    TWICE,
    UNMET,
    Decision,
    Missing,
    Misused,
)
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.judging.verdict import Doubt
from executorch_goldens.words.refusals import misused, refusal
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


SUPERFLUOUS = (
    Misused(ROOT / FILE, NO_CELL, ("tosa-int16/gate",), (FAILURES,)),
    Misused(ROOT / FILE, UNMET, (str(CELL),), (FAILURES,)),
    Misused(ROOT / FILE, TWICE, (str(CELL),), (FAILURES, FAILURES)),
)


def test_each_superfluous_decision_has_words(snapshot: SnapshotAssertion) -> None:
    assert screen(map(misused, SUPERFLUOUS)) == snapshot


def test_each_refusal_has_words(snapshot: SnapshotAssertion) -> None:
    assert screen(map(refusal, EVERY)) == snapshot
