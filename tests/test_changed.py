"""``--changed-since``: which cells a change can reach, in real git checkouts of a small zoo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import pytest

from harness import changed, patches, registry, releases
from harness.artifact import Cell
from harness.changed import ChangedError, Changes
from harness.commands import run
from harness.patches import Patch
from harness.sweeping.settings import Machine, Settings, default_interpreter
from tests.conftest import Runner
from tests.test_keys import FILES

VERSION = "1.4.1"
CELLS = tuple(
    Cell(target, case) for target in ("tosa-fp", "xnnpack-fp32") for case in ("first", "second", "third")
)
MATRIX = f"""
    python = "3.11"
    [common]
    numpy = "2.1.3"
    [releases."{VERSION}"]
    torch = "2.12.0"
    [releases."{VERSION}".known]
    "tosa-fp/third" = "corrupt: so it is"
    [releases."1.1.0"]
    torch = "2.10.0"
"""
GIT = ("git", "-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "init.defaultBranch=main")


@dataclass
class Clone:
    """A repository with a zoo, goldens and documents, committed once."""

    folder: Path
    settings: Settings

    def git(self, *words: str) -> None:
        subprocess.run([*GIT, "-C", self.folder, *words], check=True, capture_output=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def changes(self, revision: str = "HEAD") -> Changes:
        release = releases.load().release(VERSION)
        goldens, matrix = self.folder / "goldens", self.folder / "matrix.toml"
        return changed.since(revision, self.settings, CELLS, release, goldens, matrix)

    def chosen(self) -> set[str]:
        return set(map(str, self.changes().cells))


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    machine = Machine(paths=(tmp_path,))
    found = Clone(
        tmp_path,
        Settings(default_interpreter(), ("zoo_of_keys",), ("partition-order",), 2, 60.0, machine=machine),
    )
    for name, text in FILES.items():
        found.write(name, text)
    found.write("pyproject.toml", '[tool.goldens]\nmodels = ["zoo_of_keys"]\n')
    found.write("matrix.toml", MATRIX)
    found.write(f"goldens/{VERSION}/tosa-fp/first/manifest.txt", "format: 1\n")
    found.write("goldens/1.1.0/tosa-fp/first/manifest.txt", "format: 1\n")
    found.write("docs/page.md", "text\n")
    found.write("tool.cfg", "text\n")
    found.write(".gitignore", "build\n__pycache__\n")
    found.git("init", "-q")
    found.git("add", "-A")
    found.git("commit", "-q", "-m", "zoo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "CASES", registry.Registry())
    yield found
    for name in [name for name in sys.modules if name.partition(".")[0] in ("zoo_of_keys", "nets_of_keys")]:
        del sys.modules[name]


ALL = set(map(str, CELLS))
FIRST = {"tosa-fp/first", "xnnpack-fp32/first"}
WITH_PARTS = {str(cell) for cell in CELLS if cell.case != "third"}


def test_nothing_changed_chooses_nothing_and_says_so(clone: Clone) -> None:
    clone.write("build/results", "ignored")
    assert not clone.changes().cells
    (line,) = clone.changes().lines(VERSION)
    assert line.startswith("changed since HEAD: 0 files")
    assert line.endswith("nothing is to be checked")


@pytest.mark.parametrize(
    ("name", "old", "new", "cells", "why"),
    [
        ("zoo_of_keys/one.py", "return Own", "return 1, Own", FIRST, "case first"),
        ("zoo_of_keys/one.py", "class Own: pass", "class Own: x = 1", FIRST, "case first"),
        ("zoo_of_keys/parts.py", "import", "import ", WITH_PARTS, "read by the case"),
        ("nets_of_keys.py", "class Net", "class  Net", WITH_PARTS, "read by the case"),
        ("zoo_of_keys/weights.npz", "weights", "others", ALL, "read by the case"),
        ("table.csv", "1", "2", WITH_PARTS, "read by the case"),
        (f"goldens/{VERSION}/tosa-fp/first/manifest.txt", "1", "2", {"tosa-fp/first"}, "its golden"),
        ("goldens/1.1.0/tosa-fp/first/manifest.txt", "1", "2", set(), ""),
        ("matrix.toml", "2.12.0", "2.12.1", ALL, f"the table of {VERSION}"),
        ("matrix.toml", "2.10.0", "2.10.1", set(), ""),
        ("matrix.toml", "so it is", "so it was", {"tosa-fp/third"}, f"known defects of {VERSION}"),
        ("matrix.toml", "2.1.3", "2.1.4", ALL, "changed for every release"),
        ("docs/page.md", "text", "words", set(), ""),
        ("tool.cfg", "text", "words", ALL, "may reach every cell"),
        ("pyproject.toml", "models", "models ", ALL, "may reach every cell"),
    ],
)
def test_a_change_reaches_the_cells_that_depend_on_it(
    name: str, old: str, new: str, cells: set[str], why: str, clone: Clone
) -> None:
    clone.replace(name, old, new)
    assert clone.chosen() == cells
    lines = list(clone.changes().lines(VERSION))
    assert (f"{name}: {why}" in "\n".join(lines)) is bool(cells)


def test_commits_since_the_revision_count_and_so_does_what_is_not_tracked(clone: Clone) -> None:
    clone.replace("zoo_of_keys/one.py", "return Own", "return 1, Own")
    clone.git("commit", "-qam", "a change")
    assert not clone.chosen()
    assert set(map(str, clone.changes("HEAD~1").cells)) == FIRST
    clone.write("new.cfg", "text")
    assert clone.chosen() == ALL


def test_what_is_deleted_counts_for_every_cell(clone: Clone) -> None:
    (clone.folder / "tool.cfg").unlink()
    assert clone.chosen() == ALL


def test_of_the_harness_what_a_run_imports_reaches_every_cell_and_a_patch_those_it_is_applied_to(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that a module elsewhere in the harness registers, as those do that keep what an export makes.
    elsewhere = Patch("elsewhere", None, "is not in harness/patches", {VERSION: {}}, run.run)
    monkeypatch.setitem(patches.PATCHES, "elsewhere", elsewhere)
    shutil.copytree(Path(changed.__file__).parent, clone.folder / "harness")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "harness")
    clone.settings = replace(clone.settings, machine=replace(clone.settings.machine, root=clone.folder))
    for name, cells in (
        ("exporting/export.py", ALL),
        ("judging/verdict.py", ALL),
        ("drift/report.py", set()),
        ("patches/partition_order.py", ALL),
        # Not applied here.
        ("patches/list_qparams.py", set()),
        ("patches/tosa_identity.py", set()),
        ("patches/patch.py", ALL),
        (f"locks/{VERSION}.txt", ALL),
        ("locks/torch-2.13.0.txt", ALL),
        ("locks/1.1.0.txt", set()),
        ("locks/lint.txt", set()),
    ):
        path = clone.folder / "harness" / name
        before = path.read_text()
        path.write_text(before + "# changed\n")
        assert clone.chosen() == cells, name
        path.write_text(before)


@pytest.mark.parametrize("revision", ["no-such-branch", "--all", ""])
def test_an_unknown_revision_is_one_error(revision: str, clone: Clone) -> None:
    with pytest.raises(ChangedError, match=r"has no such revision: name a commit, a branch or a tag"):
        clone.changes(revision)


def test_outside_of_a_checkout_is_one_error(clone: Clone) -> None:
    shutil.rmtree(clone.folder / ".git")
    with pytest.raises(
        ChangedError, match=r"is not in a git checkout: run it in a clone, or choose cells by --cell"
    ):
        clone.changes()


def test_a_run_that_nothing_reaches_ends_well_and_says_so(runner: Runner, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["tests.zoo"]\n')
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        subprocess.run([*GIT, "-C", repository, *words], check=True, capture_output=True)
    (repository / "README.md").write_text("text")
    command = [*runner.command("--changed-since", "HEAD", "--release", runner.release)]
    done = subprocess.run(
        command, cwd=repository, capture_output=True, text=True, env=inherited(), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed since HEAD: 1 files, none of which a cell" in done.stdout
    assert "nothing is to be checked" in done.stdout


def inherited() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    return {**os.environ, "PYTHONPATH": root}
