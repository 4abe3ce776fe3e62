"""The payloads that the tests of the decoder read, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.decoding.payloads import PAYLOADS, SMALL, identify


@pytest.fixture(params=PAYLOADS, ids=identify)
def payload(request: pytest.FixtureRequest) -> bytes:
    path: Path = request.param
    return path.read_bytes()


#: Changing each of its bytes takes as long as that of all others: every week.
LARGEST = max(SMALL, key=lambda path: path.stat().st_size)


@pytest.fixture(
    params=[pytest.param(path, marks=[pytest.mark.slow] if path == LARGEST else []) for path in SMALL],
    ids=[identify(path) for path in SMALL],
)
def small(request: pytest.FixtureRequest) -> bytes:
    path: Path = request.param
    return path.read_bytes()
