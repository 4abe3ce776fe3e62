"""Edits that no program can run, and the files that a lowering imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens_plugins.compare.reach.edits import between
from executorch_goldens_plugins.compare.reach.unused import imported, unused
from tests.plugins.compare.reach.packages import FILE, FOLD, OTHER, TORCHAO, known, packages

NEW = "class {}:\n    def call(self, node):\n        return node\n"
IMPORTING = "from executorch.backends.arm._passes import (  # all of them\n    other,\n)\n" + FOLD


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return packages(tmp_path / "base")


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return tmp_path / "head"


@pytest.mark.parametrize(
    ("other", "fold", "names"),
    [
        (NEW.format("Other"), IMPORTING, ("Other",)),
        (NEW.format("Other") + "\n\n" + NEW.format("More"), IMPORTING, ("More", "Other")),
        # It is named in a file that cells run, in its own, or registered.
        (NEW.format("Other"), IMPORTING.replace("self.half(scale)", "Other().call(scale)"), ()),
        (NEW.format("Other") + "\n\nPASSES = [Other]\n", IMPORTING, ()),
        ("@register\n" + NEW.format("Other"), IMPORTING, ()),
        # Or nothing imports the file.
        ("@register\n" + NEW.format("Other"), FOLD, (OTHER,)),
        ("TABLE = {}\n", FOLD, (OTHER,)),
        ("TABLE = {}\n", IMPORTING, ()),
    ],
)
def test_what_no_code_imports_or_names_that_cells_run_is_called_by_nothing(
    base: Path, head: Path, other: str, fold: str, names: tuple[str, ...]
) -> None:
    packages(base, fold)
    packages(head, fold)
    (head / OTHER).write_text(other)
    assert unused(between(base, head), known(base), head) == names


def test_what_a_cell_runs_is_called_though_no_other_code_names_it(base: Path, head: Path) -> None:
    found = between(base, packages(head, FOLD.replace("scale / 2", "scale / 4")))
    assert unused(found, known(base), head) == ()


def test_what_is_no_python_any_more_may_be_called(base: Path, head: Path) -> None:
    packages(head, IMPORTING)
    for folder, text in ((packages(base, IMPORTING), NEW), (head, NEW + "    def broken(\n")):
        (folder / OTHER).write_text(text.format("Other"))
    assert unused(between(base, head), known(base), head) == ()


def test_a_file_that_is_gone_and_still_imported_may_be_called(base: Path, head: Path) -> None:
    packages(base, IMPORTING)
    (base / OTHER).write_text(NEW.format("Other"))
    found = between(base, packages(head, IMPORTING))
    assert unused(found, known(base), head) == ()


@pytest.mark.parametrize(
    "words",
    [
        "from executorch.backends.arm._passes.other import Other, More",
        "import executorch.backends.arm._passes.other as other, json",
        "from . import fold, other",
        "from .other import (\n    Other,  # a pass\n)",
        "from .. import _passes\nfrom .._passes import other",
        "def call():\n    from executorch.backends.arm._passes.other import Other",
    ],
)
def test_forms_of_imports_are_followed_with_the_packages_around(tmp_path: Path, words: str) -> None:
    packages(tmp_path, words)
    (tmp_path / OTHER).write_text("from torchao.quantization.pt2e.utils import rounded\n")
    assert imported(tmp_path, [FILE]) >= {
        OTHER,
        TORCHAO,
        "torchao/__init__.py",
        "executorch/backends/__init__.py",
    }
