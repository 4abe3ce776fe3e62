"""What may be imported where: the harness knows no zoo, and only a few places in it import torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import REPOSITORY

SOURCES = sorted((REPOSITORY / "harness").rglob("*.py"))
SLOW = {"torch", "torchao", "executorch"}
#: A file that another interpreter is given, and one that exporting processes import.
IN_OTHERS = (
    "harness/executorch_goldens/programs/runner.py",
    "harness/executorch_goldens/programs/recorder.py",
)
WITH_TORCH = (
    "harness/executorch_goldens/exporting",
    "harness/executorch_goldens/patches",
    "harness/lab/guests/capture.py",
    *IN_OTHERS,
)


def imported(path: Path) -> Iterator[str]:
    """Yield the first part of the name of whatever a module imports, in functions as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_module_of_the_harness_imports_no_zoo_and_torch_only_where_it_may(path: Path) -> None:
    found = set(imported(path))
    assert not found & {"models", "tests"}
    if not str(path.relative_to(REPOSITORY)).startswith(WITH_TORCH):
        assert not found & SLOW


def test_what_another_interpreter_runs_needs_nothing_of_the_harness() -> None:
    runner = REPOSITORY / "harness" / "corpus" / "runner.py"
    engines = {"executorch", "torch", "numpy", "tosa_reference_model"}
    assert set(imported(runner)) - engines <= sys.stdlib_module_names
    at_once = {
        alias.name.partition(".")[0]
        for node in ast.parse(runner.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert not at_once & engines


def test_a_run_from_the_store_waits_for_no_library_that_only_exports_need() -> None:
    program = "import sys, models; sys.exit(' '.join({'torchao', 'executorch'} & {*sys.modules}) or 0)"
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True)
