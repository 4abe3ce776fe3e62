"""The sentences about exports that did not finish."""

from __future__ import annotations

from typing import get_args

from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import (
    ENDED,
    HUNG,
    AnyCasualty,
    Exited,
    Killed,
    OfHarness,
    OutOfMemory,
    Overwritten,
    Shortage,
    TimedOut,
    died,
)
from executorch_goldens.words import casualties

EVERY = (
    died(-11),
    died(-40),
    died(3),
    Exited(1, template=ENDED),
    Killed("SIGKILL", template=HUNG, silent=60.0),
    TimedOut(180.0, 180.4, 9.96, 0.0),
    OutOfMemory(3 << 30),
    OutOfMemory(4096),
    OutOfMemory(None),
    OfHarness("run", "KeyError: 'x'", "a/b/c.py, line 1, in d"),
    OfHarness(),
    Overwritten("Input data was truncated"),
    Shortage("one.example"),
)


def test_each_end_of_an_export_has_a_sentence(snapshot: SnapshotAssertion) -> None:
    assert {*map(type, EVERY)} == {*get_args(AnyCasualty)}
    assert "\n".join(map(casualties.reason, EVERY)) == snapshot
