"""A wait says what it does once it has taken some seconds, and a short one says nothing."""

from __future__ import annotations

import time

import pytest

from executorch_goldens.files import waits
from executorch_goldens.files.waits import saying


def test_what_takes_long_says_what_it_does_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "PATIENCE", 0.05)
    said: list[str] = []
    with saying("drawing", said.append):
        for _ in range(200):
            time.sleep(0.01)
            if said:
                break
    assert said == ["drawing …"]


def test_what_takes_no_time_says_nothing() -> None:
    said: list[str] = []
    with saying("drawing", said.append):
        pass
    assert said == []
