"""The built wheels, installed outside of the clone.

The first goes from an empty folder to a red run, its review and a report. With the second, the zoo, `goldens compare`
has models there.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from executorch_goldens.cli import ERROR, SAME
from executorch_goldens.files import git
from executorch_goldens.settings import config, releases
from executorch_goldens.toolchains import locking
from executorch_goldens.toolchains.interpreters import find_uv
from tests import REPOSITORY
from tests.support.commands import ended, inherited

pytestmark = pytest.mark.slow

#: The sources of the wheel.
SOURCES = (
    *("pyproject.toml", "README.md", "LICENSE"),
    *("harness/executorch_goldens", "harness/executorch_goldens_plugins"),
)
#: The sources of the wheel of the zoo, and the repository in it.
ZOO, INSIDE = REPOSITORY / "harness" / "zoo", "executorch_goldens_zoo/repository/"
#: Bytes that it may have: most are those of the maps.
LARGEST = 2_000_000
#: Prints the cases of zoos, by zoo.
LISTED = """
import msgspec, sys
from executorch_goldens.running.zoo import Listed
from executorch_goldens.zoo import registry
for zoo in sys.argv[1:]:
    for case in registry.load([zoo]).values():
        print(zoo, case.guards, msgspec.json.encode(Listed.from_case(case)).decode())
"""
#: A model of somebody's, and the cell that is first recorded.
MODEL = (REPOSITORY / "tests" / "support" / "wake_word.py").read_text()
CELL = "tosa-fp/wake-word"
#: Prints the module that is imported, and the requirement that `init` writes.
ORIGIN = "from executorch_goldens_plugins.start import init; print(init.__file__, init.installed_from(), sep=chr(10))"


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
    return built(copy, out)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the zoo, built in the clone."""
    return built(ZOO, tmp_path_factory.mktemp("zoo"))


def built(sources: Path, out: Path, *kinds: str) -> Path:
    """Return the wheel of sources, built in `out`: from them, or as ``uv build`` is told."""
    constraint = ("--build-constraint", str(locking.path("build")))
    uv("build", "--quiet", *(kinds or ("--wheel",)), "--out-dir", str(out), *constraint, str(sources))
    (wheel,) = out.glob("*.whl")
    return wheel


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


def test_the_zoo_has_models_and_maps_and_no_goldens_or_tests(zoo: Path) -> None:
    with zipfile.ZipFile(zoo) as archive:
        names = {name.removeprefix(INSIDE) for name in archive.namelist() if name.startswith(INSIDE)}
    folders = ("models", *(f"goldens/{release}" for release in releases.load().releases))
    tracked = git.names(REPOSITORY, "ls-files", "-z", *folders)
    cells = {name for name in tracked if name.count("/") > 2 and name.startswith("goldens/")}
    assert {name for name in names if not name.startswith("harness/lab/")} == {
        *tracked,
        "pyproject.toml",
    } - cells
    assert not [name for name in names if "/tests/" in name or "/docs/" in name]
    assert zoo.stat().st_size < LARGEST


def test_the_zoo_registers_the_cases_that_it_registers_here(zoo: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(zoo) as archive:
        archive.extractall(tmp_path)
    root = tmp_path / INSIDE
    read = config.load(root)
    assert replace(read, root=REPOSITORY, goldens=REPOSITORY / "goldens") == replace(
        config.load(REPOSITORY), import_from=read.import_from, sweeps=read.sweeps
    )
    maps = [
        msgspec.msgpack.decode(lzma.decompress(file.read_bytes())) for file in root.glob("goldens/*/reach.xz")
    ]
    zoos = sorted({source for each in maps for source in each["sources"]})
    assert len(maps) == len(releases.load().releases)

    def listed(repository: Path) -> str:
        paths = (repository, repository / "harness", REPOSITORY / "harness")
        said = ended([sys.executable, "-P", "-c", LISTED, *zoos], PYTHONPATH=os.pathsep.join(map(str, paths)))
        assert said.returncode == SAME, said.stderr
        return said.stdout

    assert listed(root) == listed(REPOSITORY)


def test_the_zoo_is_the_same_from_its_source_distribution_and_of_the_same_version(
    zoo: Path, wheel: Path, tmp_path: Path
) -> None:
    again = built(ZOO, tmp_path, "--sdist", "--wheel")
    assert record(again) == record(zoo)
    assert again.name.split("-")[1] == wheel.name.split("-")[1]
    with zipfile.ZipFile(zoo) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        assert (
            f"Requires-Dist: {'=='.join(wheel.name.split('-')[:2]).replace('_', '-')}\n"
            in archive.read(metadata).decode()
        )


def record(wheel: Path) -> bytes:
    """Return the digests of the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/RECORD"))
        return archive.read(name)


def test_with_the_zoo_an_empty_folder_has_models_to_compare_and_nothing_is_written_beside_it(
    call: Call, environment: Path, zoo: Path, tmp_path: Path
) -> None:
    words = ("compare", sys.executable, sys.executable, "--pass", "DecomposeGeluPass", "--budget", "1")
    without = call("goldens", *words)
    assert without.returncode == ERROR
    assert "executorch-goldens[zoo]" in without.stderr
    install(environment, "--no-deps", str(zoo))
    packages = next(environment.glob("lib/python*/site-packages/executorch_goldens_zoo"))
    before = [each for each in sorted(packages.rglob("*")) if "__pycache__" not in each.parts]
    compared = call("goldens", *words, "--json")
    assert compared.returncode == SAME, compared.stdout + compared.stderr
    data = json.loads(compared.stdout)
    assert data["same"], compared.stdout
    assert data["cells"], compared.stdout
    assert [each for each in sorted(packages.rglob("*")) if "__pycache__" not in each.parts] == before
    assert [each.name for each in tmp_path.iterdir()] == ["build"]
