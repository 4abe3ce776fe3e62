"""The matrix: declared files exist, and an inconsistent table is refused with its name."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from packaging.version import Version

from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.patches import PATCHES
from executorch_goldens.settings import releases
from executorch_goldens.settings.releases import MatrixError, UnknownReleaseError
from executorch_goldens.zoo.registry import load
from executorch_goldens.zoo.targets import BUILD, TARGETS
from tests import GOLDENS

ZOO = load(("models",))

MATRIX = releases.load()

each_release = pytest.mark.parametrize(
    "release", MATRIX.releases.values(), ids=lambda release: release.version
)


def edited(tmp_path: Path, old: str, new: str) -> Path:
    """Write the real matrix with the first `old` replaced, and return its path."""
    text = releases.MATRIX.read_text()
    assert old in text
    path = tmp_path / "releases.toml"
    path.write_text(text.replace(old, new, 1))
    return path


def test_the_matrix_holds_releases_in_order_and_the_default_is_one_of_them() -> None:
    versions = [Version(version) for version in MATRIX.releases]
    assert versions == sorted(set(versions))
    assert MATRIX.default in MATRIX.releases


@each_release
def test_every_declared_patch_exists_and_knows_the_release(release: releases.Release) -> None:
    for name in release.patches:
        assert release.version in PATCHES[name].fits


@each_release
def test_every_declared_target_can_be_exported(release: releases.Release) -> None:
    assert set(release.targets) <= {*TARGETS, BUILD}


@each_release
def test_every_pin_is_one_exact_public_version(release: releases.Release) -> None:
    for requirement in release.requirements():
        assert re.fullmatch(r"[a-z-]+==\d+(\.\d+)+", requirement)
    assert set(release.stack()) == {"executorch", "torch", "torchao", "tosa-tools"}


@each_release
def test_every_report_has_a_state_on_every_release(release: releases.Release) -> None:
    assert set(release.issues) == {18866, 18971, 19045, 19152}


def test_a_local_version_label_is_ignored() -> None:
    assert MATRIX.release("1.4.1+cpu").version == "1.4.1"


def test_an_unknown_release_is_named_with_those_that_are_known() -> None:
    with pytest.raises(UnknownReleaseError) as raised:
        MATRIX.release("0.9.0")
    assert "'0.9.0'" in str(raised.value)
    for version in MATRIX.releases:
        assert version in str(raised.value)


@pytest.mark.parametrize("field", ["torchao", "patches", "issues"])
def test_a_missing_field_is_named_with_its_table(tmp_path: Path, field: str) -> None:
    with pytest.raises(MatrixError, match=rf'\[releases."1.1.0"\].*{field}'):
        releases.load(edited(tmp_path, f"\n{field} = ", f"\nx{field} = "))


def test_a_missing_top_level_field_is_named(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=" default: object missing required field"):
        releases.load(edited(tmp_path, '\ndefault = "1.4.1"', ""))


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ('19045 = "bug"', '19045 = "broken"', ["1.1.0", "issues", "broken"]),
        (
            'torchao = "',
            'torchoa = "0"\ntorchao = "',
            ["1.1.0", "torchoa: object contains unknown field"],
        ),
        ('19045 = "bug"', 'aliases = "bug"', ["1.1.0", "issues", "[0-9]"]),
        ('19045 = "bug"', "19045 = []", ["1.1.0", "issues", "array"]),
        ("unsupported = {}", 'unsupported = { tosa-fp8 = "no" }', ["unsupported", "tosa-fp8", "tosa-fp, "]),
        ('patches = ["partition-order"', 'patches = [7, "partition-order"', ["1.1.0", "patches[0]", "`str`"]),
        ("unsupported = {}", 'unsupported = { tosa-fp = "" }', ["unsupported", "length"]),
        ('default = "1.4.1"', 'default = "9.9.9"', ["default", "9.9.9"]),
        ("[common]", "[common", ["releases.toml", "line"]),
    ],
    ids=[
        "issue state",
        "unknown key",
        "issue",
        "issue list",
        "target",
        "patches",
        "no why",
        "default",
        "syntax",
    ],
)
def test_a_table_that_does_not_hold_together_is_refused(
    tmp_path: Path, old: str, new: str, facts: list[str]
) -> None:
    with pytest.raises(MatrixError) as raised:
        releases.load(edited(tmp_path, old, new))
    for fact in facts:
        assert fact in str(raised.value)


#: Those that a release's cell may be known for.
VERDICTS = ("order-only", "unstable", "corrupt", "imprecise", "failed", "crashed", "timed-out")


@each_release
def test_known_defects_name_cells_of_the_zoo_and_verdicts_of_the_harness(release: releases.Release) -> None:
    for cell, defect in Decisions.of_root(GOLDENS, release.version).defects.items():
        target, _, case = cell.partition("/")
        assert target in release.targets
        assert case in ZOO
        assert defect.verdict in VERDICTS


def test_a_target_of_a_distribution_says_itself_which_release_lacks_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outside = dataclasses.replace(
        TARGETS["xnnpack-fp32"], name="outside", unsupported={"1.3.1": "no library"}
    )
    monkeypatch.setattr("executorch_goldens.zoo.targets.available", lambda: {**TARGETS, "outside": outside})
    matrix = releases.load.__wrapped__()
    lacking = matrix.release("1.3.1")
    assert lacking.unsupported["outside"] == "no library"
    assert ("outside" in lacking.targets, "outside" in matrix.release("1.4.1").targets) == (False, True)
