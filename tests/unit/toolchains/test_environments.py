"""Environments are made once, whole or not at all, and sources replace the files that differ."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from executorch_goldens.toolchains import environments as made_by_uv
from executorch_goldens.toolchains import interpreters, locking
from executorch_goldens.toolchains import sources as sources_over
from executorch_goldens.toolchains.environments import (
    MADE,
    Environments,
    Layer,
    closest,
    name_of,
    torch_backend,
)
from executorch_goldens.toolchains.naming import Name, Sources, ToolchainError
from executorch_goldens.toolchains.sources import described, laid_over, package_in

GIT = ("git", "-c", "user.name=somebody", "-c", "user.email=somebody@example.org")


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    return Environments(tmp_path / "environments", lambda line: None)


def test_two_that_ask_at_once_get_one(environments: Environments) -> None:
    calls, found = [], []

    def make(aside: Path) -> None:
        calls.append(aside)
        aside.mkdir()
        time.sleep(0.2)
        (aside / "whole").touch()

    def ask() -> None:
        place = environments.once(environments.folder / "one", make)
        found.append((place / "whole").exists())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(calls), found) == (1, [True] * 4)


def test_of_one_that_cannot_be_made_nothing_is_left_and_the_next_begins_again(
    environments: Environments,
) -> None:
    place = environments.folder / "one"

    def fail(aside: Path) -> None:
        aside.mkdir()
        raise ToolchainError("no")

    with pytest.raises(ToolchainError):
        environments.once(place, fail)
    assert [path.name for path in environments.folder.iterdir() if path.is_dir()] == []
    # Killed: nothing could be cleaned.
    place.with_name("one.partial").mkdir()
    (place.with_name("one.partial") / "half").touch()

    def make(aside: Path) -> None:
        aside.mkdir()

    assert list(environments.once(place, make).iterdir()) == []


def test_one_that_the_index_does_not_have_is_named_with_what_uv_says(
    environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_by_uv, "torch_backend", lambda: (None, "not asked"))
    with pytest.raises(
        ToolchainError, match=r"'executorch==0\.0\.1' can be made; uv pip says: .*executorch"
    ) as raised:
        environments.made(Name.parse("executorch==0.0.1"))
    assert "\n" not in str(raised.value)
    assert not [path for path in environments.folder.iterdir() if path.is_dir()]


def test_what_it_is_made_of_gives_its_folder_another_name(
    environments: Environments, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(made_by_uv._Maker, "make", lambda self, *rest: self.aside.mkdir())
    monkeypatch.setattr(made_by_uv, "torch_backend", lambda: (None, "not asked"))
    plain = environments.made(Name.parse("1.5.1"))
    names = [
        environments.made(Name.parse("1.5.1 + torch==2.15.0")),
        environments.made(Name.parse("1.4.1")),
        environments.made(Name.parse("1.5.1"), Layer(("timm==1.0.20",), tmp_path)),
        environments.made(Name.parse("1.5.1"), Layer(("-e .",), tmp_path)),
        environments.made(Name.parse("1.5.1"), Layer(("-e .",), tmp_path / "other")),
        environments.made(Name.parse("1.5.1"), Layer(locks=("lint",))),
        environments.made(Name.parse("1.5.1"), Layer(locks=("tests",))),
    ]
    assert len({plain, *names}) == 8
    assert environments.made(Name.parse("1.5.1"), Layer((), tmp_path)) == plain
    monkeypatch.setattr(made_by_uv, "torch_backend", lambda: (("--torch-backend", "cpu"), "another build"))
    assert environments.made(Name.parse("1.5.1")) != plain
    assert set(environments.there()) == {path.name for path in environments.folder.iterdir() if path.is_dir()}


def test_the_locks_of_a_layer_are_installed_with_the_release_and_with_their_hashes(
    environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(made_by_uv._Maker, "_uv", lambda self, *words, **options: calls.append(words))
    monkeypatch.setattr(made_by_uv._Maker, "_venv", lambda self: self.aside.mkdir())
    monkeypatch.setattr(made_by_uv, "torch_backend", lambda: (None, "not asked"))
    environments.made(Name.parse("1.5.1"), Layer(locks=("lint",)))
    (installed,) = calls
    assert "--require-hashes" in installed
    files = [Path(word).name for word in installed if word.endswith(".txt")]
    assert files == ["1.5.1.txt", "torch-2.14.1.txt", "lint.txt"]


def test_packages_for_other_pythons_leave_an_environment_as_it_is(
    environments: Environments, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(made_by_uv._Maker, "make", lambda self, *rest: self.aside.mkdir())
    monkeypatch.setattr(made_by_uv, "torch_backend", lambda: (None, "not asked"))
    monkeypatch.setattr(locking, "FOLDER", shutil.copytree(locking.FOLDER, tmp_path / "locks"))

    def made() -> Iterator[Path]:
        for version in ("3.11", "3.12"):
            monkeypatch.setattr(interpreters, "own", lambda version=version: version)
            yield environments.made(Name.parse("1.5.1"))

    before = list(made())
    with locking.path("1.5.1").open("a") as lock:
        lock.write("six==1.17.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:0\n")
    after = list(made())
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_one_that_is_made_is_taken_before_one_that_is_found(
    environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_by_uv._Maker, "make", lambda self, *rest: self.aside.mkdir())
    monkeypatch.setattr(interpreters, "own", lambda: "3.12")
    earlier = environments.made(Name.parse("1.5.1"))
    monkeypatch.setattr(interpreters, "own", lambda: "3.99")
    assert environments.made(Name.parse("1.5.1")) == earlier


def test_where_no_python_fits_the_error_names_the_release_the_wheels_and_the_way_out(
    environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_by_uv, "torch_backend", lambda: (None, "not asked"))
    monkeypatch.setattr(interpreters, "with_wheels", lambda locks: ("3.98", "3.97"))
    with pytest.raises(
        ToolchainError,
        match=r"'1\.5\.1' has wheels for Python 3\.97, 3\.98; .*`uv python install 3\.98` \(.*; uv venv says: ",
    ):
        environments.made(Name.parse("1.5.1"))


def test_the_build_of_torch_follows_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu130")
    assert torch_backend.__wrapped__()[0] == ()


def test_the_nearest_release_of_one_that_the_matrix_lacks() -> None:
    from executorch_goldens.settings import releases

    matrix = releases.load()
    near = {version: closest(version, matrix).version for version in ("1.4.0", "1.6.0a0", "1.0.0", "2.0")}
    assert near == {"1.4.0": "1.4.1", "1.6.0a0": "1.5.1", "1.0.0": "1.1.0", "2.0": "1.5.1"}


# Sources


@pytest.fixture
def below(environments: Environments) -> Path:
    """An environment with a package of three modules, one of them compiled."""
    place = environments.folder / "1.5.1-0123456789ab"
    package = place / "lib" / "python3.11" / "site-packages" / "executorch"
    for name, text in {
        "exir/a.py": "a = 1\n",
        "backends/arm/b.py": "b = 1\n",
        "version.py": "v = 1\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    (package / "exir" / "edge.yaml").write_text("one\n")
    subprocess.run([sys.executable, "-m", "compileall", "-q", package], check=True)
    (place / MADE).write_text("{}")
    return place


def checkout(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def value(environment: Path, module: str, name: str) -> str:
    """Import a module of an environment's package as Python does, its byte-code counted."""
    path = package_in(environment).parent
    code = f"import sys; sys.path.insert(0, {str(path)!r}); import {module} as m; print(m.{name})"
    return subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_what_differs_is_laid_over_and_the_environment_below_stays(
    environments: Environments, below: Path, tmp_path: Path
) -> None:
    # The same size, and the same second: by these byte-code of the other file would be taken.
    files = {
        "exir__a_py": "a = 2\n",
        "exir__new_py": "n = 3\n",
        "exir__edge_yaml": "two\n",
        "docs__c_py": "c = 1\n",
    }
    folder = checkout(tmp_path / "checkout", **files, exir__other_yaml="not in the package\n")
    old = package_in(below) / "exir" / "a.py"
    os.utime(folder / "exir" / "a.py", ns=(old.stat().st_atime_ns, old.stat().st_mtime_ns))
    record = package_in(below).parent / "executorch-1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("executorch/version.py,,\n")
    changed = record.stat().st_ctime_ns
    above = laid_over(environments, below, Sources(folder))
    assert above != below
    assert value(above, "executorch.exir.a", "a") == "2"
    assert value(above, "executorch.exir.new", "n") == "3"
    assert (package_in(above) / "exir" / "edge.yaml").read_text() == "two\n"
    assert not (package_in(above) / "exir" / "other.yaml").exists()
    assert not (package_in(above) / "docs").exists()
    assert value(below, "executorch.exir.a", "a") == "1"
    assert (package_in(below) / "exir" / "edge.yaml").read_text() == "one\n"
    # What does not differ is no copy.
    assert (package_in(above) / "version.py").samefile(package_in(below) / "version.py")
    # But for what says that the files of the environment below are as they were.
    assert (package_in(above).parent / "executorch-1.dist-info" / "RECORD").read_text() == record.read_text()
    assert record.stat().st_ctime_ns == changed
    assert laid_over(environments, below, Sources(folder)) == above


def test_sources_that_do_not_differ_are_the_environment_itself(
    environments: Environments, below: Path, tmp_path: Path
) -> None:
    folder = checkout(tmp_path / "checkout", executorch__exir__a_py="a = 1\n")
    assert laid_over(environments, below, Sources(folder)) == below


def test_a_revision_is_taken_as_it_was_committed(
    environments: Environments, below: Path, tmp_path: Path
) -> None:
    folder = checkout(tmp_path / "checkout", exir__a_py="a = 4\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "four")):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    checkout(folder, exir__a_py="a = 5\n")
    assert value(laid_over(environments, below, Sources(folder, "HEAD")), "executorch.exir.a", "a") == "4"
    assert value(laid_over(environments, below, Sources(folder)), "executorch.exir.a", "a") == "5"
    assert described(Sources(folder)).endswith(" with uncommitted changes")
    assert "uncommitted" not in described(Sources(folder, "HEAD"))
    with pytest.raises(ToolchainError, match="has no revision nowhere"):
        laid_over(environments, below, Sources(folder, "nowhere"))


def test_a_clone_that_lacks_a_file_of_a_revision_is_one_clear_error(
    environments: Environments, below: Path, tmp_path: Path
) -> None:
    folder = checkout(tmp_path / "checkout", exir__a_py="a = 4\n", docs__c_py="c = 1\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "four")):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    # Nothing asks for what the package has no part of.
    for name, is_asked in (("docs/c.py", False), ("exir/a.py", True)):
        words = [*GIT, "rev-parse", f"HEAD:{name}"]
        blob = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
        if is_asked:
            with pytest.raises(ToolchainError, match=r"git cannot read exir/a\.py: .* git fetch --refetch"):
                laid_over(environments, below, Sources(folder, "HEAD"))
        else:
            assert laid_over(environments, below, Sources(folder, "HEAD")) != below


def test_a_revision_needs_git_and_says_so(
    environments: Environments, below: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = checkout(tmp_path / "checkout", exir__a_py="a = 4\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ToolchainError, match=r"checkout@main: git, which reads a revision, is not on the PATH"
    ):
        laid_over(environments, below, Sources(folder, "main"))


def test_a_folder_without_executorch_is_one_clear_error(
    environments: Environments, below: Path, tmp_path: Path
) -> None:
    folder = checkout(tmp_path / "checkout", setup_py="")
    with pytest.raises(ToolchainError, match="neither exir nor backends"):
        laid_over(environments, below, Sources(folder))


def test_those_asked_for_longest_ago_are_deleted_and_the_one_below_stays(
    environments: Environments, below: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_over, "KEPT", 2)
    made = []
    for number in range(4):
        folder = checkout(tmp_path / f"checkout{number}", exir__a_py=f"a = {number + 10}\n")
        made.append(laid_over(environments, below, Sources(folder)))
        os.utime(made[-1], (number, number))
    assert [place.exists() for place in made] == [False, False, True, True]
    assert below.exists()
    assert name_of(made[3]).endswith("checkout3")
