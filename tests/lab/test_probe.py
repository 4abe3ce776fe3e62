"""What probe does with what it is given; the environment that it makes and the sweep in it are real, and not here."""

from __future__ import annotations

import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens import cli, patches, releases
from executorch_goldens.errors import CommandError
from executorch_goldens.patches.shortcuts import SHORTCUTS
from executorch_goldens.settings.exports import default_interpreter
from lab.__main__ import main
from lab.probe import command as probe
from lab.probe import newest

MATRIX = releases.load()


@pytest.mark.parametrize(
    ("version", "nearest"),
    [
        ("1.4.0", "1.4.1"),
        ("1.4.1", "1.4.1"),
        ("1.6.0a0+cpu", "1.5.1"),
        ("2.0", "1.5.1"),
        ("0.7.0", "1.1.0"),
    ],
)
def test_the_nearest_release_is_of_the_same_minor_version_or_the_last_before(
    version: str, nearest: str
) -> None:
    assert probe.closest(version, MATRIX).version == nearest


@pytest.mark.parametrize(
    ("requirement", "facts"),
    [
        ("executorch=1.6", ["executorch=1.6", "executorch==1.6.0"]),
        ("torch==2.15.0", ["torch, not executorch", "--with"]),
        ("./no-such.whl", ["./no-such.whl", "no such wheel"]),
        ("../nowhere/executorch", ["no such wheel or checkout"]),
    ],
)
def test_what_is_no_requirement_of_executorch_is_one_clear_error(requirement: str, facts: list[str]) -> None:
    with pytest.raises(CommandError) as raised:
        probe.named(requirement)
    assert all(fact in str(raised.value) for fact in facts)
    assert "\n" not in str(raised.value)


def test_a_wheel_or_a_checkout_is_a_path(tmp_path: Path) -> None:
    assert probe.named(str(tmp_path)) == str(tmp_path)
    assert probe.named("executorch>=1.6a0") == "executorch>=1.6a0"


@pytest.fixture
def trial(tmp_path: Path) -> probe.Trial:
    release = replace(
        MATRIX.releases["1.4.1"], version="1.4.2", pins={**MATRIX.releases["1.4.1"].pins, "torch": "9.9"}
    )
    return probe.Trial(tmp_path, default_interpreter(), release, MATRIX.releases["1.4.1"])


def test_the_entry_is_one_that_the_matrix_takes(trial: probe.Trial, tmp_path: Path) -> None:
    known = {"tosa-fp/linear": 'corrupt: "quoted" and \\ escaped'}
    text = probe.entry(trial, {19045: "bug", 18866: "fixed"}, ("partition-order",), known)
    matrix = tmp_path / "releases.toml"
    matrix.write_text(releases.MATRIX.read_text(encoding="utf-8") + text, encoding="utf-8")
    release = releases.load(matrix).releases["1.4.2"]
    assert release.pins["torch"] == "9.9"
    assert release.patches == ("partition-order",)
    assert release.issues == {19045: "bug", 18866: "fixed"}
    assert release.known["tosa-fp/linear"].verdict == "corrupt"
    assert tomllib.loads(text)["releases"]["1.4.2"]["known"] == known


@pytest.mark.parametrize("version", ["1.4.1", "1.4.2"])
def test_the_matrix_of_a_trial_has_its_release_in_place_of_a_known_one_and_all_others(
    trial: probe.Trial, version: str, tmp_path: Path
) -> None:
    trial = replace(trial, release=replace(trial.release, version=version))
    probe.write_matrix(trial, {19045: "bug"}, ("partition-order",), tmp_path / "releases.toml")
    found = releases.load(tmp_path / "releases.toml")
    assert found.releases[version].pins["torch"] == "9.9"
    assert found.releases[version].issues == {19045: "bug"}
    assert found.releases[version].known == {}
    others = {name: release for name, release in MATRIX.releases.items() if name != version}
    assert {name: release for name, release in found.releases.items() if name != version} == others
    assert found.default == MATRIX.default


@pytest.mark.slow
def test_a_patch_fits_where_the_functions_are_the_nearest_ones(trial: probe.Trial) -> None:
    patch = patches.PATCHES["partition-order"]
    assert "are those of 1.4.1: add 1.4.2" in probe.fits(trial, patch)
    other = replace(patch, fits={"1.4.1": dict.fromkeys(patch.fits["1.4.1"], "0" * 64)})
    assert "are not those of 1.4.1: review" in probe.fits(trial, other)
    assert "not for 1.4.1 either" in probe.fits(trial, patches.PATCHES["list-qparams"])


def test_an_installer_that_fails_is_one_error_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no such thing; see .*install\.log"):
        probe._run(["sh", "-c", "echo no such thing; exit 3"], tmp_path / "install.log")


def test_a_release_of_the_matrix_is_tried_without_the_shortcuts_that_are_for_its_own_torch(
    trial: probe.Trial,
) -> None:
    assert probe.shortcuts(trial) == tuple(SHORTCUTS)
    known = replace(trial, release=replace(trial.release, version="1.4.1"))
    assert probe.shortcuts(known) == ()


# What is newest


def wheel(folder: Path, name: str, version: str) -> None:
    """Write a wheel with nothing in it: what an installer finds where it is told to look for packages."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, the only place where uv and pip look for packages."""
    folder = tmp_path / "index"
    folder.mkdir()
    uv = tmp_path / "uv.toml"
    uv.write_text(f'no-index = true\nfind-links = ["{folder}"]\n')
    monkeypatch.setenv("UV_CONFIG_FILE", str(uv))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for name, version in {**NEWEST.stack(), "torch": "99.1+cpu", "tosa-tools": "9999.1"}.items():
        wheel(folder, name, version)
    wheel(folder, "torch", "2.0.0")
    return folder


NEWEST = MATRIX.releases["1.5.1"]


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_the_newest_of_each_is_what_the_installer_finds(
    index: Path, installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installer == "pip":
        pytest.importorskip("pip", reason="an environment that uv has made has no pip")
        monkeypatch.setattr(newest.shutil, "which", lambda name: None)
    assert newest.last(MATRIX) is NEWEST
    expected = {**NEWEST.stack(), "torch": "99.1", "tosa-tools": "9999.1"}
    assert newest.newest(MATRIX.python) == expected


@pytest.mark.parametrize("missing", ["torchao", "executorch"])
def test_an_index_that_lacks_one_is_one_clear_error(index: Path, missing: str) -> None:
    for file in index.glob(f"{missing}-*"):
        file.unlink()
    with pytest.raises(newest.IndexUnreadableError, match=missing) as raised:
        newest.newest(MATRIX.python)
    assert "\n" not in str(raised.value)


def test_what_is_newer_is_tried_one_after_another_and_together() -> None:
    found = {**NEWEST.stack(), "torch": "99.1", "tosa-tools": "9999.1"}
    assert [each.name for each in newest.combinations(NEWEST, found)] == [
        "torch 99.1",
        "tosa-tools 9999.1",
        "together",
    ]
    together = newest.combinations(NEWEST, found)[-1]
    assert (together.executorch, together.others) == (
        "executorch==1.5.1",
        ("torch==99.1", "tosa-tools==9999.1"),
    )
    (alone,) = newest.combinations(NEWEST, {**NEWEST.stack(), "executorch": "1.6.0"})
    assert (alone.executorch, alone.others) == ("executorch==1.6.0", ())
    older = {**NEWEST.stack(), "torch": "2.9.0", "tosa-tools": "2026.5.0.dev1"}
    assert newest.combinations(NEWEST, older) == []


def test_what_cannot_be_installed_is_in_the_report(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An executorch with nothing in it has no version of torch beside it, and so on: no trial gets further."""
    for file in index.glob("executorch-*"):
        file.unlink()
    wheel(index, "executorch", "1.6.0")
    wheel(index, "numpy", "0.1")
    assert main(["probe", "--newest", "--folder", str(tmp_path / "probe")]) == cli.DIFFERENT
    page = (tmp_path / "probe" / probe.PAGE).read_text()
    assert "On the package index: executorch 1.6.0, torch 99.1, torchao" in page
    assert page.count("\n## ") == 4
    assert page.count("Could not be tried: ") == 4
    assert page.strip() in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name what to try, e.g. executorch==1.6.0, or say --newest"),
        (["--newest", "executorch==1.6.0"], "leave REQUIREMENT and --with out"),
        (["--newest", "--with", "torch==2.15.0"], "leave REQUIREMENT and --with out"),
    ],
)
def test_what_to_try_is_said_once(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", *words]) == cli.ERROR
    assert said in capsys.readouterr().err
