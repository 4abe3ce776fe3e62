"""The lab's tests have the options, the order and the exports of the core's."""

from __future__ import annotations

from tests.conftest import (
    artifacts,
    exports,
    other_flatc,
    pytest_addoption,
    pytest_collection_modifyitems,
    release,
    runner,
    sweeper,
)
from tests.support.browsing import browser

__all__ = [
    "artifacts",
    "browser",
    "exports",
    "other_flatc",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "release",
    "runner",
    "sweeper",
]
