"""Locks hold the packages of the matrix and pyproject.toml, with verified hashes; an audit without answers says so."""

from __future__ import annotations

import ensurepip
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from executorch_goldens.settings import releases
from executorch_goldens.toolchains import locking
from lab.supply import audit, locks
from tests import REPOSITORY

MATRIX = releases.load()
NUMPY = next(entry for entry in locks.ENTRY.findall(locking.path("1.4.1").read_text()) if "numpy==" in entry)


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Return a folder with a copy of every lock."""
    return shutil.copytree(locking.FOLDER, tmp_path / "locks")


def test_every_lock_holds_what_is_wanted_of_it() -> None:
    assert list(locks.problems()) == []


@pytest.mark.parametrize(
    ("lock", "change", "problem"),
    [
        ("1.4.1", lambda text: text.replace(NUMPY, ""), "1.4.1.txt has no numpy, and numpy==2.1.3 is wanted"),
        (
            "1.4.1",
            lambda text: text.replace("numpy==2.1.3", "numpy==2.1.2"),
            "1.4.1.txt has numpy 2.1.2, and numpy==2.1.3 is wanted",
        ),
        (
            "torch-2.13.0",
            lambda text: text.replace("torch==2.13.0", "torch==2.13.0+cpu"),
            "torch-2.13.0.txt: 'torch==2.13.0+cpu' does not pin a public version",
        ),
        (
            "lint",
            lambda text: text.replace("ruff==0.17.5", "ruff>=0.17.5"),
            "lint.txt: 'ruff>=0.17.5' is not a pinned distribution",
        ),
        (
            "nox",
            lambda text: text + "--extra-index-url https://example.org/simple\n",
            "nox.txt: '--extra-index-url https://example.org/simple' is not a pinned distribution",
        ),
        (
            "tests",
            lambda text: re.sub(r" *--hash=\S+", "", text),
            "tests.txt: axe-playwright-python has no hash",
        ),
        ("1.5.1", lambda text: text + NUMPY, "1.5.1.txt: numpy occurs twice"),
        ("vgf-0.9.0", None, "vgf-0.9.0.txt is missing"),
        ("0.9", lambda _: "", "0.9.txt belongs to no release and no session"),
    ],
)
def test_a_lock_that_lacks_something_is_named_with_what_it_lacks(
    lock: str, change: Callable[[str], str] | None, problem: str, copies: Path
) -> None:
    file = copies / f"{lock}.txt"
    if change is None:
        file.unlink()
    else:
        before = file.read_text() if file.exists() else None
        file.write_text(change(before or ""))
        assert file.read_text() != before
    assert problem in list(locks.problems(copies))


def test_the_wheels_of_all_packages_on_every_linux_say_which_pythons_a_lock_is_for() -> None:
    def package(*wheels: str, **fields: str) -> dict[str, object]:
        return {"wheels": [{"url": f"https://example.org/{name}"} for name in wheels], **fields}

    def built(name: str, *pythons: int) -> dict[str, object]:
        return package(
            *(
                f"{name}-cp3{python}-cp3{python}-manylinux_2_28_{machine}.whl"
                for python in pythons
                for machine in ("x86_64", "aarch64")
            )
        )

    executorch, tools = (
        built("executorch-1.5.1", 10, 11, 12, 13, 14),
        built("tosa_tools-2026.5.0", 11, 12, 13),
    )
    torchao = package(
        "torchao-0.18.0-cp310-abi3-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
        "torchao-0.18.0-py3-none-any.whl",
    )
    assert locks.pythons([executorch, tools, torchao, package()]) == ("3.11", "3.12", "3.13")
    assert locks.pythons([executorch, torchao]) == ("3.11", "3.12", "3.13", "3.14")
    until = {**built("pandas-3.1.1", 11), "marker": "python_full_version < '3.12'"}
    # Built on other machines.
    on_one = package("coremltools-9.0-cp313-none-manylinux1_x86_64.whl")
    assert locks.pythons([executorch, tools, until, on_one]) == ("3.13",)
    assert locks.pythons([torchao]) == ()
    with pytest.raises(locks.LockError, match=r"no Python from 3\.11 has wheels of all"):
        locks.pythons([built("pandas-2.0.0", 11, 12), on_one])


def test_a_session_without_its_lock_says_how_to_make_it(
    copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "FOLDER", copies)
    release = MATRIX.release(MATRIX.default)
    (copies / f"{release.version}.txt").unlink()
    with pytest.raises(
        locking.NoLockError, match=r"1\.4\.1\.txt is missing: nox -s lab -- locks --update makes it"
    ):
        list(locking.steps(release, (), None))


def test_a_table_that_does_not_hold_together_is_one_line_of_nox(tmp_path: Path) -> None:
    nox = shutil.which("nox")
    assert nox, "nox is not on the PATH: pip install nox"
    shutil.copy(REPOSITORY / "noxfile.py", tmp_path)
    package = shutil.copytree(
        REPOSITORY / "harness" / "executorch_goldens", tmp_path / "harness" / "executorch_goldens"
    )
    matrix = package / "settings" / releases.MATRIX.name
    matrix.write_text(matrix.read_text().replace("torchao = ", "torchoa = ", 1))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [nox, "-s", "lab", "--", "locks", "--update"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    unknown = r"torchoa: object contains unknown field `torchoa` \(did you mean 'torchao'\?\)"
    assert re.fullmatch(rf'nox: .*releases\.toml: \[releases\."[0-9.]+"\] {unknown}\n', done.stderr)


def test_another_build_of_torch_is_not_held_to_the_hashes_of_pypi() -> None:
    release = MATRIX.release(MATRIX.default)
    (locked,) = locking.steps(release, (), None)
    assert str(locking.path("torch-2.13.0")) in locked.arguments
    first, second = locking.steps(release, (), ("--torch-backend", "cpu"))
    assert str(locking.path("torch-2.13.0")) not in first.arguments
    assert second.arguments == ("torch==2.13.0", "--torch-backend", "cpu")
    # With it, uv takes torchao from that index as well.
    assert first.environment["UV_TORCH_BACKEND"] is None
    assert "UV_TORCH_BACKEND" not in second.environment
    assert not {"torch", "triton"} & locks.read(locking.FOLDER, release.version).keys()


# A wheel that every Python brings.
(PIP,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
INSTALLERS = {"pip": [sys.executable, str(PIP / "pip"), "install"]}
if UV := shutil.which("uv"):
    INSTALLERS["uv"] = [UV, "pip", "install", "--python", sys.executable]


@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_lock_with_one_hash_changed_installs_nothing(
    installer: str, copies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "FOLDER", copies)
    digest = hashlib.sha256(PIP.read_bytes()).hexdigest()
    changed = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    version = PIP.name.split("-")[1]
    for name, written in (("true", digest), ("changed", changed)):
        (copies / f"{name}.txt").write_text(f"pip=={version} \\\n    --hash=sha256:{written}\n")
        into = tmp_path / name
        where = ("--no-index", "--find-links", str(PIP.parent), "--target", str(into), "--no-cache-dir")
        command = [*INSTALLERS[installer], *where, *locking.locked((name,)).arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if written == digest:
            assert done.returncode == 0, done.stderr
            assert (into / "pip").is_dir()
        else:
            assert done.returncode != 0
            assert changed in done.stderr, done.stderr
            assert not (into / "pip").exists()


def test_an_audit_tells_what_is_known_from_what_nobody_said() -> None:
    # The form is pip-audit's; the first is what it printed where the index had no such data, with exit code 0.
    skipped = {
        "name": "coverage",
        "skip_reason": "Dependency not found on PyPI and could not be audited: coverage (7.17.3)",
    }
    # From its README.
    flask = {
        "name": "flask",
        "version": "0.5",
        "vulns": [{"id": "PYSEC-2019-179", "fix_versions": ["1.0"], "aliases": ["CVE-2019-1010083"]}],
    }
    found = audit.answer({"dependencies": [skipped, flask, {"name": "click", "version": "8", "vulns": []}]})
    assert found.known == ("flask 0.5: PYSEC-2019-179, fixed in 1.0",)
    assert found.unasked == (f"coverage: {skipped['skip_reason']}",)
