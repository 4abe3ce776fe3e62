"""What probe does with what it is given; the environment that it makes and the sweep in it are real, and not here."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from harness import patches, releases, toml
from harness.cli import CommandError
from harness.commands import probe
from harness.sweeping.settings import default_interpreter

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
    assert release.reports == {19045: "bug", 18866: "fixed"}
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
    assert found.releases[version].reports == {19045: "bug"}
    assert found.releases[version].known == {}
    others = {name: release for name, release in MATRIX.releases.items() if name != version}
    assert {name: release for name, release in found.releases.items() if name != version} == others
    assert found.default == MATRIX.default


@settings(deadline=None, max_examples=50)
@given(
    strategies.dictionaries(
        strategies.text(),
        strategies.recursive(
            strategies.text() | strategies.booleans() | strategies.integers(-(2**63), 2**63 - 1),
            lambda values: strategies.lists(values) | strategies.dictionaries(strategies.text(), values),
        ),
    )
)
def test_what_is_written_as_toml_is_read_as_the_same(tables: dict[str, Any]) -> None:
    assert tomllib.loads(toml.text(tables)) == tables


@pytest.mark.slow
def test_a_patch_fits_where_the_functions_are_the_nearest_ones(trial: probe.Trial) -> None:
    patch = patches.PATCHES["partition-order"]
    assert "are those of 1.4.1: add 1.4.2" in probe.fits(trial, patch)
    other = replace(patch, known={"1.4.1": dict.fromkeys(patch.known["1.4.1"], "0" * 64)})
    assert "are not those of 1.4.1: review" in probe.fits(trial, other)
    assert "not for 1.4.1 either" in probe.fits(trial, patches.PATCHES["list-qparams"])


def test_an_installer_that_fails_is_one_error_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no such thing; see .*install\.log"):
        probe._run(["sh", "-c", "echo no such thing; exit 3"], tmp_path / "install.log")
