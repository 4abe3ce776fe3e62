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

__all__ = [
    "artifacts",
    "exports",
    "other_flatc",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "release",
    "runner",
    "sweeper",
]
