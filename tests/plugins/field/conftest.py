"""A frozen corpus, its programs, and an environment that runs them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens_plugins.field.format import EXECUTORCH, REFERENCE_MODEL, FrozenProgram
from executorch_goldens_plugins.field.running import Runtime
from tests.plugins.field.corpora import FROZEN, TOSA, XNNPACK, program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the corpus, to be changed."""
    return Path(shutil.copytree(FROZEN, tmp_path / "corpus"))


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """The environment of the tests, in a process that has nothing of the harness."""
    with Runtime(default_interpreter(), (EXECUTORCH, REFERENCE_MODEL)) as started:
        yield started


@pytest.fixture
def xnnpack() -> FrozenProgram:
    return program(XNNPACK, "program")


@pytest.fixture
def tosa() -> FrozenProgram:
    return program(TOSA, "delegate_0")
