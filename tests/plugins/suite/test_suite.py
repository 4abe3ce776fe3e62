"""Goldens of single tests: recorded and read back, and never while something else writes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import filelock
import pytest

from executorch_goldens.artifact import Artifact, Delegate
from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.decisions import FAILURE, Decision
from tests import REPOSITORY
from tests.support.commands import ended
from tests.support.making import DUPLICATE_OUTPUTS, GRAPH, RENUMBERED, artifact, lowered, renamed
from tests.support.runner import OPAQUE, Runner

UPDATE = "--snapshot-update"

#: Whatever the harness makes of it is recorded: nothing is exported.
TEST = """
def test_spotter(golden_export):
    golden_export("a module", (), targets=["xnnpack-fp32"])
"""

Suite = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def suite(runner: Runner, artifacts: Mapping[str, tuple[Artifact, ...]]) -> Suite:
    """Runs the test of a suite of its own in `runner.folder`, with goldens there."""
    runner.answers({"*": artifacts["steady"][0]})
    folder = runner.folder
    (folder / "pyproject.toml").write_text("[tool.goldens]\n")
    # No environment must have the harness's plugin installed for it.
    (folder / "conftest.py").write_text(
        "from executorch_goldens_plugins.suite.fixtures import golden_export\n"
    )
    (folder / "test_spotter.py").write_text(TEST)
    own = {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'harness'}"}

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        plugins = ("-p", "tests.plugins.suite.replay", "-p", "no:cacheprovider")
        variables = {**own, **runner.environment, **environment}
        return ended([sys.executable, "-m", "pytest", *plugins, *arguments], folder, **variables)

    return run


def place(runner: Runner) -> Path:
    return runner.goldens / "tests" / runner.release / "xnnpack-fp32" / "spotter.txt"


@pytest.mark.slow
def test_the_golden_of_a_test_is_new_recorded_and_read_back(suite: Suite, runner: Runner) -> None:
    first = suite()
    assert "new: xnnpack-fp32/spotter" in first.stdout
    assert f"accept: pytest test_spotter.py::test_spotter {UPDATE}" in first.stdout
    assert not runner.goldens.exists()
    assert suite(UPDATE).returncode == 0
    assert place(runner).exists()
    before = runner.files()
    assert suite().returncode == 0
    assert suite(UPDATE).returncode == 0
    assert runner.files() == before


@pytest.mark.slow
def test_a_golden_of_a_test_may_have_other_names_where_the_repository_allows_that(
    suite: Suite, runner: Runner, artifacts: Mapping[str, tuple[Artifact, ...]]
) -> None:
    assert suite(UPDATE).returncode == 0
    before = runner.files()
    runner.answers({"*": renamed(artifacts["steady"][0])})
    red = suite()
    assert red.returncode == pytest.ExitCode.TESTS_FAILED
    assert "renamed: xnnpack-fp32/spotter" in red.stdout
    (runner.folder / "pyproject.toml").write_text('[tool.goldens]\nallow = ["renames"]\n')
    for words in ((), (UPDATE,)):
        assert suite(*words).returncode == 0
        assert runner.files() == before


@pytest.mark.slow
def test_a_test_whose_exports_disagree_without_a_declared_patch_names_it_and_the_setting(
    suite: Suite, runner: Runner
) -> None:
    # Without two delegates the patch changes nothing.
    two = [Delegate(f"lowered_module_{number}", "TOSABackend", DUPLICATE_OUTPUTS) for number in range(2)]
    answers = (lowered(GRAPH, *two), lowered(RENUMBERED, *two, pte=b"other"))
    runner.answers({"*": tuple(map(artifact, answers))})
    test = runner.folder / "test_spotter.py"
    test.write_text(TEST.replace("xnnpack-fp32", "tosa-fp"))
    way_out = 'without partition-order (#19045), which may be why: patches = "auto" under [tool.goldens]'
    red = suite().stdout
    assert "order-only: tosa-fp/spotter" in red
    assert way_out in red
    (runner.folder / "pyproject.toml").write_text('[tool.goldens]\npatches = "auto"\n')
    patched = suite().stdout
    assert "order-only: tosa-fp/spotter" in patched
    assert way_out not in patched


@pytest.mark.slow
def test_a_failure_of_a_test_is_recorded_only_where_the_file_expects_it(
    suite: Suite, runner: Runner, artifacts: Mapping[str, tuple[Artifact, ...]]
) -> None:
    runner.answers({"*": artifacts["does-not-lower"]})
    for words in ((), (UPDATE,)):
        red = suite(*words)
        assert red.returncode == pytest.ExitCode.TESTS_FAILED
        assert "new: xnnpack-fp32/spotter" in red.stdout
        where = f'releases = ["{runner.release}"], cells = ["xnnpack-fp32/spotter"], cause = "{OPAQUE}"'
        table = f'what = "failure", {where}'
        file = runner.goldens / "tests" / decisions.FILE
        refusal = "not recorded: a FAILURE is recorded only if it is expected"
        assert f"{refusal}: in {file}, a table [[decision]] with {table}\n" in red.stdout
        assert not place(runner).exists()
    expected = Decision(FAILURE, cause=OPAQUE, releases=(runner.release,), cells=("xnnpack-fp32/spotter",))
    decisions.write(runner.goldens / "tests", [expected])
    assert suite(UPDATE).returncode == 0
    assert suite().returncode == 0
    file.unlink()
    assert "unexpected: xnnpack-fp32/spotter" in suite().stdout
    assert decisions.update(runner.goldens / "tests").written == 1
    assert suite().returncode == 0


@pytest.mark.slow
def test_a_golden_of_a_test_is_not_written_while_a_run_writes_and_may_be_read(
    suite: Suite, runner: Runner
) -> None:
    lock = runner.goldens / f".{runner.release}.lock"
    runner.goldens.mkdir()
    with filelock.FileLock(lock):
        refused = suite(UPDATE)
        assert refused.returncode == pytest.ExitCode.TESTS_FAILED
        assert f"it holds {lock}" in refused.stdout
        assert "Traceback" not in refused.stdout
        assert not place(runner).exists()
    assert suite(UPDATE).returncode == 0
    with filelock.FileLock(lock):
        assert suite().returncode == 0


@pytest.mark.slow
def test_what_an_interrupted_update_left_is_deleted_by_the_next(suite: Suite, runner: Runner) -> None:
    assert suite(UPDATE).returncode == 0
    before = runner.files()
    place(runner).with_name("spotter.txt.1-2.new~").write_text("half")
    assert suite(UPDATE).returncode == 0
    assert runner.files() == before


@pytest.mark.parametrize(
    ("table", "environment", "facts"),
    [
        ("[tool.goldens]\n", {"CI": "1"}, [UPDATE, "CI is set"]),
        ("[tool.goldens]\nvariations = 1\n", {}, [UPDATE, "at least 2 variations", "[tool.goldens]"]),
    ],
    ids=["CI", "variations"],
)
def test_what_may_not_be_written_is_refused_as_for_cells(
    suite: Suite, runner: Runner, table: str, environment: dict[str, str], facts: list[str]
) -> None:
    (runner.folder / "pyproject.toml").write_text(table)
    refused = suite(UPDATE, **environment)
    assert refused.returncode != 0
    for fact in facts:
        assert fact in refused.stdout
    assert not place(runner).exists()


def test_a_golden_that_cannot_be_written_fails_the_test_with_one_line(suite: Suite, runner: Runner) -> None:
    """Syrupy reports an error while it writes as a difference, and the golden as new: neither is the reason."""
    target = place(runner).parent
    target.parent.mkdir(parents=True)
    target.write_text("in the way")
    finished = suite(UPDATE)
    assert finished.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"{place(runner)}: cannot be written" in finished.stdout
    assert "new: xnnpack-fp32/spotter" not in finished.stdout
    assert "Traceback" not in finished.stdout


@pytest.mark.slow
def test_more_variations_are_noted_as_for_cells(suite: Suite, runner: Runner) -> None:
    assert suite(UPDATE).returncode == 0
    (runner.folder / "pyproject.toml").write_text('[tool.goldens]\nvariations = "full"\n')
    before = runner.files()
    assert suite(f"{UPDATE}-new-only").returncode == 0
    assert runner.files() == before
    assert suite(UPDATE).returncode == 0
    assert "seed27-heap2 seed37-heap3" in place(runner).read_text()
