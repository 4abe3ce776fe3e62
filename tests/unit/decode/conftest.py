"""The payloads that the tests of the decoder read, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.decoding.payloads import PAYLOADS, SMALL, identify


@pytest.fixture(params=PAYLOADS, ids=identify)
def payload(request: pytest.FixtureRequest) -> bytes:
    path: Path = request.param
    return path.read_bytes()


@pytest.fixture(params=SMALL, ids=identify)
def small(request: pytest.FixtureRequest) -> bytes:
    path: Path = request.param
    return path.read_bytes()
