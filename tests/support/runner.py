"""Runs ``goldens run`` in a process of its own, over real or recorded exports."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import filelock
import pytest

from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.decisions import Decision
from executorch_goldens.running import options
from lab.variables import DROPPED as OUTER
from tests import REPOSITORY
from tests.support import clusters, forks, replay
from tests.support.screens import screen

#: Seconds after which a run is taken to hang. The longest takes 40 s on two idle cores.
RUN_LIMIT = 400.0

#: Why the model of `tests.support.zoo` that does not lower fails.
OPAQUE = "emit, ToOutVarPass: RuntimeError: Missing out variants: {'zoo::opaque'}"

#: What the output of a run has beside what it says: how far it is, pytest's header and seconds.
BESIDE = re.compile(
    r"^\d+ of \d+ cells?, .*\n|^(?:platform|rootdir|configfile|plugins)\b.*\n|^=+ | =+$| in [\d.]+s\b.*$",
    re.MULTILINE,
)

#: Variables of the person's, or of the outer pytest's, that would change what a run does.
DROPPED = (*OUTER, replay.VARIABLE)


def options_of(*words: str) -> options.Options:
    """Return a run's options from these words of its command line."""
    parser = argparse.ArgumentParser()
    options.add_to(dict.fromkeys(options.GROUPS, parser.add_argument))
    return options.read(parser.parse_args(words), words)


@dataclass(frozen=True)
class Finished:
    """A run that has come to its end.

    Attributes
    ----------
    code
        Exit status of pytest.
    output
        Its output, standard error included.
    rows
        The lines of results.jsonl, as (target/case) to fields; empty when the run did not get that far.
    names
        What screens say instead of folders, the release and the Python.
    """

    code: int
    output: str
    rows: Mapping[str, dict[str, Any]]
    names: Mapping[object, str]

    def printed(self) -> str:
        """Return its output for a snapshot."""
        return screen(BESIDE.sub("", self.output), self.names)

    def reason(self, cell: str) -> str:
        """Return why a cell has its verdict, as its results say."""
        said: str = self.rows[cell]["reason"]
        return said

    def refused(self, *facts: str) -> None:
        """Assert that the run was refused with one error that states `facts`, and is no traceback."""
        assert self.code not in (0, pytest.ExitCode.INTERNAL_ERROR), self.output
        for fact in facts:
            assert fact in self.output, self.output
        assert "Traceback" not in self.output, self.output
        assert "INTERNALERROR" not in self.output, self.output
        assert not re.search(r"\.py:\d+: ", self.output), self.output

    def verdicts(self) -> dict[str, str]:
        return {cell: row["verdict"] for cell, row in self.rows.items()}


@dataclass
class Runner:
    """Runs ``goldens run`` with goldens, results and zoos under `folder`.

    Attributes
    ----------
    release
        The one that is installed.
    program
        Python's arguments.
    directory
        Where it runs: whose ``pyproject.toml`` counts.
    """

    folder: Path
    release: str
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "executorch_goldens", "run")
    directory: Path = REPOSITORY
    #: The store of whoever runs the tests is none of theirs.
    keeping: tuple[str, ...] = ("--cache=off",)

    @property
    def goldens(self) -> Path:
        return self.folder / "goldens"

    @property
    def root(self) -> Path:
        """Goldens of the release that is installed."""
        return self.goldens / self.release

    @property
    def sweeps(self) -> Path:
        return self.folder / "sweeps" / self.release

    @property
    def results(self) -> Path:
        return self.sweeps / "results.jsonl"

    def zoo(self, module: str, *cases: str) -> str:
        """Write a module that registers `cases`, which are never built, and return its name."""
        text = "from executorch_goldens.zoo.registry import case\n"
        for case in cases:
            text += textwrap.dedent(
                f"""
                @case(guards="nothing", name={case!r})
                def build(data):
                    raise NotImplementedError
                """
            )
        (self.folder / f"{module}.py").write_text(text)
        return module

    def decide(self, *decided: Decision) -> None:
        """Add decisions to those of the goldens."""
        self.goldens.mkdir(parents=True, exist_ok=True)
        decisions.write(self.goldens, [*decisions.read(self.goldens), *decided])

    def expect(self, *cells: str, cause: str = OPAQUE) -> None:
        """Let goldens of cells be a failure, by default `OPAQUE`; without a cause, let them delegate nothing."""
        what = decisions.FAILURE if cause else decisions.NO_DELEGATE
        self.decide(Decision(what, cause=cause, releases=(self.release,), cells=cells))

    def know(self, cells: Mapping[str, str]) -> None:
        """Let cells have known defects: each a verdict and why, ``corrupt: an issue``."""
        for cell, text in cells.items():
            verdict, why = text.split(": ", 1)
            self.decide(Decision(decisions.KNOWN, verdict, why=why, releases=(self.release,), cells=(cell,)))

    def answers(self, results: Mapping[str, Any]) -> None:
        """Let runs take `results` (see `replay`) for the sweep's, instead of exporting."""
        path = self.folder / "answers"
        path.write_bytes(pickle.dumps(dict(results)))
        self.environment[replay.VARIABLE] = str(path)

    def command(self, *arguments: str) -> list[str]:
        plugins = ["-p", "tests.support.replay"] if replay.VARIABLE in self.environment else []
        keeping = () if "--cluster" in arguments else self.keeping
        return [
            *(sys.executable, *self.program, *plugins, *keeping),
            # With "=", or pytest takes the folders for tests and one of them for its root.
            *(f"--goldens={self.goldens}", f"--sweeps={self.folder / 'sweeps'}", *arguments),
        ]

    def __call__(self, *arguments: str, **environment: str) -> Finished:
        self.results.unlink(missing_ok=True)
        inherited = {name: value for name, value in os.environ.items() if name not in DROPPED}
        inherited["PYTHONPATH"] = clusters.import_path(self.folder, inherited)
        code, output = self._run(self.command(*arguments), inherited | self.environment | environment)
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        rows = [json.loads(line) for line in lines]
        names = {
            self.folder: "HERE",
            REPOSITORY: "REPOSITORY",
            self.release: "RELEASE",
            sys.executable: "PYTHON",
        }
        return Finished(code, output, {f"{row['target']}/{row['case']}": row for row in rows}, names)

    def _run(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
        """Run a command; return its exit status and its output."""
        if replay.VARIABLE in self.environment and self.program == Runner.program:
            return forks.run(command[2:], self.directory, environment, RUN_LIMIT)
        run = subprocess.run(
            command,
            cwd=self.directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_LIMIT,
        )
        return run.returncode, run.stdout

    def files(self, root: Path | None = None) -> dict[str, tuple[bytes, int, int]]:
        """Return bytes, modification time and inode of every file under the goldens, or under `root`; locks aside."""
        root = root or self.goldens
        return {
            str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.suffix != ".lock"
        }

    def recorded(self) -> set[str]:
        return {str(path.relative_to(self.root).with_suffix("")) for path in self.root.glob("*/*.txt")}


Made = TypeVar("Made")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """Return the result of `make` in a folder of its own, made by one process of these tests (pytest-xdist) for all.

    The first that asks makes it, the others wait and read what it made.
    """
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared" / name
    folder.mkdir(parents=True, exist_ok=True)
    made = folder.with_suffix(".pickle")
    with filelock.FileLock(folder.with_suffix(".lock")):
        if not made.exists():
            made.write_bytes(pickle.dumps(make(folder)))
        found: Made = pickle.loads(made.read_bytes())
    return found
