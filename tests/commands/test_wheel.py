"""The built wheel, installed outside of the clone: from an empty folder to a red run, its review and a report."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from executorch_goldens.cli import SAME
from executorch_goldens.toolchains import locking
from executorch_goldens.toolchains.interpreters import find_uv
from tests import REPOSITORY
from tests.commands.test_init import MODEL
from tests.support.commands import ended, inherited

pytestmark = pytest.mark.slow

#: The sources of the wheel.
SOURCES = (
    *("pyproject.toml", "README.md", "LICENSE"),
    *("harness/executorch_goldens", "harness/executorch_goldens_plugins"),
)
#: The cell that is first recorded.
CELL = "tosa-fp/wake-word"
#: Prints the module that is imported, and the requirement that `init` writes.
ORIGIN = (
    "from executorch_goldens.commands import init; print(init.__file__, init.installed_from(), sep=chr(10))"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of its sources."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:
        source, target = REPOSITORY / name, copy / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    uv(
        "build",
        "--quiet",
        "--wheel",
        "--out-dir",
        str(out),
        "--build-constraint",
        str(locking.path("build")),
        str(copy),
    )
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its requirements alone."""
    folder = tmp_path_factory.mktemp("installed") / "environment"
    uv("venv", "--quiet", "--python", sys.executable, str(folder))
    install(folder, f"executorch-goldens @ {wheel.as_uri()}")
    return folder


def uv(*words: str) -> None:
    subprocess.run([find_uv(), *words], check=True)


def install(environment: Path, *words: str) -> None:
    uv("pip", "install", "--quiet", "--python", str(environment / "bin" / "python"), *words)


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(environment: Path, tmp_path: Path) -> Call:
    """Call a program of the environment in an empty folder, with nothing of the clone on the path."""
    path = os.pathsep.join([str(environment / "bin"), os.defpath])

    def called(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [environment / "bin" / program, *words]
        return ended(command, tmp_path, env=inherited("PYTHONPATH"), PATH=path)

    return called


def test_it_has_every_file_of_the_packages(wheel: Path) -> None:
    files = (REPOSITORY / "harness").glob("executorch_goldens*/**/*.*")
    there = {
        str(file.relative_to(REPOSITORY / "harness"))
        for file in files
        if file.suffix != ".pyc" and ".egg-info" not in file.parent.suffix
    }
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(there - set(archive.namelist())) == []


def test_from_an_empty_folder_to_a_golden_a_red_run_its_review_and_a_report(
    call: Call, tmp_path: Path
) -> None:
    model = tmp_path / "wake_word.py"
    model.write_text(MODEL)
    begun = call("goldens", "init", "wake_word.py:WakeWord", "--input", "1,40")
    assert begun.returncode == SAME, begun.stdout + begun.stderr
    # Only this machine has the file.
    assert "put a requirement that CI can install into noxfile.py" in begun.stdout
    assert "executorch-goldens @ file:///" in (tmp_path / "noxfile.py").read_text()
    green = call("goldens", "run", "--cell", CELL)
    assert green.returncode == SAME, green.stdout + green.stderr
    model.write_text(MODEL.replace("torch.relu(self.hidden(sound))", "torch.tanh(self.hidden(sound))"))
    red = call("goldens", "run", "--cell", CELL)
    assert red.returncode == pytest.ExitCode.TESTS_FAILED, red.stdout + red.stderr
    listed = call("goldens", "review")
    assert listed.returncode == SAME, listed.stdout + listed.stderr
    assert "TANH" in listed.stdout, listed.stdout
    reported = call("goldens", "report", "--html", "report.html")
    assert reported.returncode == SAME, reported.stdout + reported.stderr
    assert "report.html: 1 changed" in reported.stdout
    said = [done.stdout for done in (begun, green, red, listed)]
    assert str(REPOSITORY) not in "".join([(tmp_path / "report.html").read_text(), *said])


def test_one_that_is_installed_from_an_index_writes_a_requirement_that_others_can_install(
    call: Call, environment: Path, wheel: Path
) -> None:
    install(
        environment,
        "--no-index",
        "--find-links",
        str(wheel.parent),
        "--no-deps",
        "--reinstall",
        wheel.name.split("-")[0],
    )
    where, requirement = call("python", "-c", ORIGIN).stdout.splitlines()
    assert Path(where).is_relative_to(environment)
    assert requirement == f"executorch-goldens=={wheel.name.split('-')[1]}"
