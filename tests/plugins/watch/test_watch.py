"""``goldens run --watch``: real exports of a small zoo, whose files and passes are edited while it runs."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from executorch_goldens.errors import UsageError
from executorch_goldens.sweep.folder import PREFIX
from executorch_goldens.toolchains.sources import package_in
from executorch_goldens_plugins.watch.watching import require
from tests import REPOSITORY
from tests.support.commands import GOLDENS, inherited
from tests.support.runner import RUN_LIMIT, options_of
from tests.unit.toolchains.test_records import environment_in

ZOO = """
import torch
from executorch_goldens import Example, case

@case(guards="a line that is edited")
def edited(data):
    return Example(torch.nn.Linear(4, 3), (data.tensor("x", 2, 4),))
"""
OTHER = """
import torch
from executorch_goldens import Example, case

@case(guards="what no edit concerns")
def untouched(data):
    return Example(torch.nn.Linear(4, 2), (data.tensor("x", 2, 4),))
"""
PASS = "backends/arm/_passes/fuse_constant_ops_pass.py"
#: Ends a pass of every release.
BROKEN = """
def _broken(*_): raise ValueError("the edited pass")
FuseConstantArgsPass.call = _broken
"""


class Watch:
    """A running watch.

    Attributes
    ----------
    shown
        All that it has printed.
    """

    def __init__(self, folder: Path, words: tuple[str, ...], variables: dict[str, str]) -> None:
        temporary = folder / "temporary"
        temporary.mkdir()
        self.folder = folder
        self.temporary = temporary
        self.shown = ""
        self.process = subprocess.Popen(
            [*GOLDENS, "run", "--watch", *words],
            cwd=folder,
            env={**inherited(), "TMPDIR": str(temporary), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def round(self) -> str:
        """Return what it prints until it waits for a saved file."""
        printed, ends = "", time.monotonic() + RUN_LIMIT
        while "watching; Ctrl-C ends it\n" not in printed:
            line = self._lines.get(timeout=ends - time.monotonic())
            self.shown += line
            assert line, self.shown
            printed += line
        return printed

    def rows(self) -> dict[str, tuple[str, list[bool]]]:
        """Return the verdicts of the last round, and whether its exports were taken from the store."""
        (file,) = self.folder.glob("build/sweeps/*/results.jsonl")
        rows = map(json.loads, file.read_text().splitlines())
        return {f"{row['target']}/{row['case']}": (row["verdict"], row["reused"]) for row in rows}

    def children(self) -> set[int]:
        found = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return {int(number) for listing in found for number in listing.read_text().split()}


@contextlib.contextmanager
def watching(folder: Path, *words: str, **variables: str) -> Iterator[Watch]:
    """Run a watch; end it by Ctrl-C, after which nothing of it is left."""
    watch = Watch(folder, (*words, f"--cache={folder / 'store'}"), variables)
    try:
        yield watch
        children = watch.children()
        watch.process.send_signal(signal.SIGINT)
        assert watch.process.wait(RUN_LIMIT) == 128 + signal.SIGINT
        assert children
        assert not [child for child in children if Path(f"/proc/{child}").exists()]
        assert not list(watch.temporary.glob(f"{PREFIX}*"))
    finally:
        watch.process.kill()


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """The module of a repository that has another, each with a case."""
    file = tmp_path / "zoo.py"
    file.write_text(ZOO)
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["zoo", "other"]\n')
    return file


@pytest.mark.slow
def test_an_edit_of_a_model_exports_its_cells_in_the_same_templates(zoo: Path) -> None:
    with watching(zoo.parent, "--cell", "tosa-fp/*") as watch:
        watch.round()
        assert watch.rows() == dict.fromkeys(("tosa-fp/edited", "tosa-fp/untouched"), ("new", [False, False]))
        templates = watch.children()
        assert len(templates) == 2

        # What somebody writes beside the zoo concerns no cell, and is not said: it may be the output of this watch.
        (zoo.parent / "watch.log").write_text("new: tosa-fp/edited")
        time.sleep(2.0)
        zoo.write_text(ZOO.replace("Linear(4, 3)", "Linear(4, 5)"))
        printed = watch.round()
        assert "saved: zoo.py: 1 cell of 2\n" in printed
        assert watch.rows() == {"tosa-fp/edited": ("new", [False, False])}
        assert watch.children() == templates

        zoo.write_text(ZOO.replace("Linear(4, 3)", "Linear(4, 5"))
        assert (
            watch.round() == "zoo.py, line 7: SyntaxError: '(' was never closed\nwatching; Ctrl-C ends it\n"
        )
        zoo.write_text("nothing\n" + ZOO)
        _, what, _ = watch.round().split("\n", 2)
        assert f"--models zoo cannot be imported: {zoo}, line 1: NameError" in watch.shown
        assert what == "watching; Ctrl-C ends it"

        # The export of the first round is still there.
        zoo.write_text(ZOO)
        printed = watch.round()
        assert "saved: zoo.py: 1 cell of 2\n" in printed
        assert watch.rows() == {"tosa-fp/edited": ("new", [True, True])}
        assert watch.children() == templates
        assert "not kept" not in watch.shown


@pytest.mark.slow
def test_an_edit_of_a_pass_in_a_checkout_exports_the_cells_of_its_backend_in_other_templates(
    zoo: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (REPOSITORY / "build").mkdir(exist_ok=True)
    # The environment that is made has files of this one under further names, which one file system has.
    with tempfile.TemporaryDirectory(dir=REPOSITORY / "build") as cache:
        monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
        place = environment_in(Path(cache), zoo.parent, release)
        edited = zoo.parent / "checkout" / PASS
        edited.parent.mkdir(parents=True)
        text = (package_in(place) / PASS).read_text()
        edited.write_text(text)
        words = ("-t", f"{release} + checkout", "--cell", "xnnpack-fp32/edited", "--cell", "tosa-fp/edited")
        with watching(zoo.parent, *words, UV_TORCH_BACKEND="cpu", XDG_CACHE_HOME=cache) as watch:
            watch.round()
            assert {verdict for verdict, _ in watch.rows().values()} == {"new"}
            templates = watch.children()

            edited.write_text(text + "\nnothing\n")
            printed = watch.round()
            assert "fuse_constant_ops_pass.py, line" in printed
            assert "NameError: name 'nothing' is not defined" in printed

            edited.write_text(text + BROKEN)
            printed = watch.round()
            assert "1 cell of 2\n" in printed, watch.shown
            assert "ValueError: the edited pass" in printed
            assert watch.rows().keys() == {"tosa-fp/edited"}
            assert not watch.children() & templates


def test_a_watch_without_facts_is_refused() -> None:
    with pytest.raises(UsageError, match="pass --cache on"):
        require(options_of("--cache", "off"))
