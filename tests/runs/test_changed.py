"""``--changed-since``: which cells a change can reach, in real git checkouts of a small zoo.

What each cell depends on is recorded as an exporting child does, which loads its case alone and builds it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import pytest

from executorch_goldens import patches, releases
from executorch_goldens.artifact import Cell
from executorch_goldens.commands import run
from executorch_goldens.patches import Patch
from executorch_goldens.running import changed
from executorch_goldens.running.changed import ChangedError, Changes
from executorch_goldens.settings.exports import Machine, Settings, default_interpreter
from executorch_goldens.store.environment import Environment
from executorch_goldens.store.facts import Record
from executorch_goldens.store.reuse import Reuse
from executorch_goldens.store.store import Store
from tests import REPOSITORY
from tests.support.runner import Runner
from tests.unit.exporting.test_recording import settle
from tests.unit.store.test_store import VARIATIONS, made

VERSION = "1.4.1"
FILES = {
    "zoo_of_keys/__init__.py": "from zoo_of_keys import one, two\n",
    "zoo_of_keys/one.py": """
        from executorch_goldens import case
        from zoo_of_keys.parts import Part

        class Own: pass

        @case(guards="a")
        def first(data): return Own, Part, open("zoo_of_keys/weights.npz").read()

        @case(guards="b")
        def second(data): return Part
    """,
    "zoo_of_keys/two.py": """
        from executorch_goldens import case

        @case(guards="c")
        def third(data):
            try:
                import further_of_keys
            except ImportError:
                return 3
    """,
    "zoo_of_keys/parts.py": "from nets_of_keys import Net as Part\n",
    "zoo_of_keys/weights.npz": "weights",
    "nets_of_keys.py": "class Net: table = open('table.csv').read()\n",
    "table.csv": "1,2",
}
#: An exporting child's use of a request, without the export.
CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from executorch_goldens.exporting.recording import Recorder
from executorch_goldens.exporting.alone import load_alone
del sys.path[0]
sys.path.insert(0, sys.argv[2])
recorder = Recorder()
recorder.install()
load_alone(["zoo_of_keys"], sys.argv[4], sys.argv[5], ["zoo_of_keys.one", "zoo_of_keys.two"]).build(None)
recorder.write(__import__("pathlib").Path(sys.argv[3]))
"""
MODULES = {"first": "zoo_of_keys.one", "second": "zoo_of_keys.one", "third": "zoo_of_keys.two"}
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
EXPECTED = f"""\
    [[expected]]
    what = "NO DELEGATE"
    releases = ["{VERSION}"]
    cells = ["*/first"]
    why = "for now"
    [[expected]]
    what = "NO DELEGATE"
    releases = ["1.1.0"]
    cells = ["*/second"]
"""
GIT = ("git", "-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "init.defaultBranch=main")


@dataclass
class Clone:
    """A repository with a zoo, goldens and documents, committed once."""

    folder: Path
    settings: Settings
    reuse: Reuse

    def export(self, *cells: Cell) -> None:
        """Record the dependencies of cells in the store."""
        for cell in cells:
            record = self.folder.parent / "record"
            words = (str(REPOSITORY), str(self.folder), str(record), cell.case, MODULES[cell.case])
            command = [sys.executable, "-P", "-c", CHILD, *words]
            subprocess.run(
                command, cwd=self.folder, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            )
            self.reuse.put(self.settings, (cell, VARIATIONS[0], ()), made(cell), Record.read(record))
        assert not self.reuse.unsettled

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
        return changed.since(revision, self.settings, CELLS, release, goldens, self.reuse, VARIATIONS, matrix)

    def chosen(self) -> set[str]:
        return set(map(str, self.changes().cells))


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    store = Store(tmp_path / "store")
    store.open()
    reuse = Reuse(store)
    here = Environment((), {"environment": Path(sys.prefix), "python": Path(sys.base_prefix)}, ())
    monkeypatch.setattr(reuse, "_environment", lambda settings: here)
    tmp_path = tmp_path / "clone"
    tmp_path.mkdir()
    machine = Machine(paths=(tmp_path,))
    found = Clone(
        tmp_path,
        Settings(default_interpreter(), ("zoo_of_keys",), ("partition-order",), 2, 60.0, machine=machine),
        reuse,
    )
    for name, text in FILES.items():
        found.write(name, text)
    found.write("pyproject.toml", '[tool.goldens]\nmodels = ["zoo_of_keys"]\n')
    found.write("matrix.toml", MATRIX)
    found.write(f"goldens/{VERSION}/tosa-fp/first/manifest.txt", "format: 1\n")
    found.write("goldens/1.1.0/tosa-fp/first/manifest.txt", "format: 1\n")
    found.write("goldens/expected.toml", EXPECTED)
    found.write("docs/page.md", "text\n")
    found.write("tool.cfg", "text\n")
    found.write(".gitignore", "build\n__pycache__\n")
    found.git("init", "-q")
    found.git("add", "-A")
    found.git("commit", "-q", "-m", "zoo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    settle(found.folder)
    return found


ALL = set(map(str, CELLS))
FIRST = {"tosa-fp/first", "xnnpack-fp32/first"}
OF_ONE = {str(cell) for cell in CELLS if cell.case != "third"}
OF_TWO = ALL - OF_ONE


def test_nothing_changed_chooses_nothing_and_says_so(clone: Clone) -> None:
    clone.write("build/results", "ignored")
    assert not clone.changes().cells
    (line,) = clone.changes().lines(VERSION)
    assert line == f"changed since HEAD: 0 files; no cell of ExecuTorch {VERSION} is affected"


#: File, its change, the cells that it reaches, and why; None for a new file.
CHANGES = [
    ("zoo_of_keys/one.py", "return Own", "return 1, Own", OF_ONE, "read by the export"),
    ("zoo_of_keys/two.py", "return 3", "return 4", OF_TWO, "read by the export"),
    ("zoo_of_keys/__init__.py", "import one", "import  one", ALL, "read by the export"),
    ("zoo_of_keys/parts.py", "import", "import ", OF_ONE, "read by the export"),
    ("nets_of_keys.py", "class Net", "class  Net", OF_ONE, "read by the export"),
    ("zoo_of_keys/weights.npz", "weights", "others", FIRST, "read by the export"),
    ("table.csv", "1", "2", OF_ONE, "read by the export"),
    # What was looked for and not there.
    ("further_of_keys.py", None, "", OF_TWO, "read by the export"),
    ("further_of_keys/__init__.py", None, "", OF_TWO, "read by the export"),
    # It would come before what is imported now.
    ("zoo_of_keys/parts/__init__.py", None, "", OF_ONE, "read by the export"),
    ("zoo_of_keys/unread.py", None, "", set(), ""),
    (f"goldens/{VERSION}/tosa-fp/first/manifest.txt", "1", "2", {"tosa-fp/first"}, "its golden"),
    ("goldens/1.1.0/tosa-fp/first/manifest.txt", "1", "2", set(), ""),
    ("goldens/expected.toml", "1.1.0", "1.1.1", set(), ""),
    ("goldens/expected.toml", f'["{VERSION}"]', '["1.1.0"]', FIRST, f"expectations for {VERSION}"),
    ("goldens/expected.toml", "cells", "sells", ALL, "cannot be compared"),
    ("goldens/expected.toml", "for now", "for good", set(), ""),
    ("matrix.toml", "2.12.0", "2.12.1", ALL, f"the table of {VERSION}"),
    ("matrix.toml", "2.10.0", "2.10.1", set(), ""),
    ("matrix.toml", "so it is", "so it was", {"tosa-fp/third"}, f"known defects of {VERSION}"),
    ("matrix.toml", "2.1.3", "2.1.4", ALL, "changed for every release"),
    ("docs/page.md", "text", "words", set(), ""),
    ("tool.cfg", "text", "words", set(), ""),
    ("pyproject.toml", "models", "models ", ALL, "says how cells are judged"),
]


def test_a_change_reaches_the_cells_that_depend_on_it(clone: Clone) -> None:
    clone.export(*CELLS)
    for name, old, new, cells, why in CHANGES:
        if old is None:
            clone.write(name, new)
        else:
            clone.replace(name, old, new)
        changes = clone.changes()
        assert set(map(str, changes.cells)) == cells, name
        assert (f"{name}: {why}" in "\n".join(changes.lines(VERSION))) is bool(cells)
        clone.git("checkout", "-q", ".")
        clone.git("clean", "-qfd")


def test_a_cell_of_which_nothing_is_known_as_it_is_now_counts_as_reached(clone: Clone) -> None:
    clone.export(*(cell for cell in CELLS if cell.case != "second"))
    clone.write("tool.cfg", "words")
    changes = clone.changes()
    assert set(map(str, changes.cells)) == OF_ONE - FIRST
    assert "no export of it as it is now is in the store" in "\n".join(changes.lines(VERSION))
    # It was exported before, and what it read has changed since: what it reads now is not known.
    clone.replace("nets_of_keys.py", "class Net", "class  Net")
    clone.git("commit", "-qam", "another")
    assert set(map(str, clone.changes("HEAD").cells)) == set()
    clone.write("tool.cfg", "more")
    assert set(map(str, clone.changes("HEAD").cells)) == OF_ONE


def test_commits_since_the_revision_count_and_so_does_what_is_not_tracked(clone: Clone) -> None:
    clone.export(*CELLS)
    clone.replace("zoo_of_keys/one.py", "return Own", "return 1, Own")
    clone.git("commit", "-qam", "a change")
    assert not clone.chosen()
    assert set(map(str, clone.changes("HEAD~1").cells)) == OF_ONE
    clone.write("new.cfg", "text")
    # No export of the others looks for it, and what the first two do by now is not known.
    assert clone.chosen() == OF_ONE


def test_what_is_deleted_counts_for_the_cells_that_read_it(clone: Clone) -> None:
    clone.export(*CELLS)
    (clone.folder / "table.csv").unlink()
    assert clone.chosen() == OF_ONE


@pytest.mark.slow
def test_of_the_harness_what_a_run_imports_reaches_every_cell_and_a_patch_those_it_is_applied_to(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that a module elsewhere in the harness registers, as those do that keep what an export makes.
    elsewhere = Patch(
        "elsewhere", None, "is not in harness/executorch_goldens/patches", {VERSION: {}}, run.run
    )
    monkeypatch.setitem(patches.PATCHES, "elsewhere", elsewhere)
    shutil.copytree(Path(changed.__file__).parents[1], clone.folder / "executorch_goldens")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "harness")
    clone.settings = replace(clone.settings, machine=replace(clone.settings.machine, root=clone.folder))
    for name, cells in (
        ("exporting/export.py", ALL),
        ("judging/verdict.py", ALL),
        ("compare/drift.py", set()),
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
        path = clone.folder / "executorch_goldens" / name
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
    (repository / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["tests.support.zoo"]\n')
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        subprocess.run([*GIT, "-C", repository, *words], check=True, capture_output=True)
    (repository / "README.md").write_text("text")
    command = [*runner.command("--changed-since", "HEAD")]
    done = subprocess.run(
        command, cwd=repository, capture_output=True, text=True, env=inherited(), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"changed since HEAD: 1 file; no cell of ExecuTorch {runner.release} is affected" in done.stdout


def inherited() -> dict[str, str]:
    root = str(REPOSITORY)
    return {**os.environ, "PYTHONPATH": root}
