"""Messages of tosa-opt about the payloads of exports."""

from __future__ import annotations

import re
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Lowered
from executorch_goldens.exporting import tosa_validation
from executorch_goldens.exporting.entry import export
from executorch_goldens.judging.comparison import compare
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import load
from tests import DATA
from tests.support.making import objection, outcome
from tests.support.screens import measured, of_verdict

ZOO = load(("models",))
RELEASE = releases.load().release(version("executorch"))

#: A payload of int8, in the fixtures of the decoder; the release whose tools read it is the default.
TOSA = DATA / "decode" / "1.5.1" / "tosa-int-0.tosa"

pytestmark = pytest.mark.usefixtures("own_flatc")


@pytest.mark.slow
def test_every_tosa_payload_is_checked_against_its_specification(linear: tuple[str, Lowered]) -> None:
    target, made = linear
    if not target.startswith("tosa"):
        assert made.validation is None
        return
    assert made.validation.summary() == f"by tosa-opt of tosa-tools {RELEASE.pins['tosa-tools']}"
    assert (made.validation.invalid, made.validation.unread) == ((), ())


@pytest.mark.parametrize(
    ("target", "other"),
    [
        ("tosa-int", "TOSA-1.0+FP"),
        ("tosa-fp", "TOSA-1.0+INT"),
        pytest.param("tosa-int16", "TOSA-1.0+INT", marks=pytest.mark.slow),
        pytest.param("tosa-bf16", "TOSA-1.0+FP", marks=pytest.mark.slow),
    ],
)
def test_a_payload_under_a_profile_that_it_is_not_of_is_corrupt(
    monkeypatch: pytest.MonkeyPatch, target: str, other: str, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(tosa_validation, "specification_of", lambda module: other)
    artifact = export(ZOO["linear"], target)
    verdict = objection(artifact)
    assert of_verdict(verdict) == snapshot


@pytest.mark.parametrize(
    ("payload", "specification", "why"),
    [
        (b"nothing", "TOSA-1.0+INT", "tosa-opt cannot read it: |tosa-opt died of SIG"),
        (b"", "TOSA-1.0+INT", "tosa-opt cannot read it: |tosa-opt died of SIG"),
        (None, "TOSA-1.0+INT+something", "tosa-opt cannot read it: .*something"),
        (None, "TOSA-9.0+INT", "tosa-opt cannot read it: .*9.0"),
    ],
)
def test_a_payload_that_cannot_be_checked_is_not_validated_and_said_to_be(
    payload: bytes | None, specification: str, why: str
) -> None:
    refused, unread = tosa_validation.checked(
        TOSA.read_bytes() if payload is None else payload, specification
    )
    assert refused == ()
    assert re.match(why, unread)
    assert tosa_validation.checked(TOSA.read_bytes(), "TOSA-1.0+INT") == ((), "")


def test_a_tosa_opt_that_cannot_be_run_is_said_and_fails_no_lowering(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For example its loader is for another machine, or its script names a missing Python."""
    tool = tmp_path / "tosa-opt"
    tool.write_text("#!/no/such/python\n")
    tool.chmod(0o755)
    # Of which class it is follows what else the process has imported: importlib_metadata, the backport, has its own.
    monkeypatch.setattr(type(distribution("tosa-tools")), "locate_file", lambda *_: tool)
    refused, why = tosa_validation.checked(TOSA.read_bytes(), "TOSA-1.0+INT")
    assert refused == ()
    assert why == f"{tool} cannot be run: No such file or directory"


def test_a_payload_of_tosa_1_0_that_leaves_sizes_open_is_not_validated() -> None:
    payload = (TOSA.parent / "tosa-shape-0.tosa").read_bytes()
    assert tosa_validation.checked(payload, "TOSA-1.1+FP+shape") == ((), "")
    open_sizes = (
        "error: 'tosa.clamp' op failed level check: operand shape dimension cannot be dynamic when targeting"
    )
    other = "error: 'tosa.clamp' op illegal: requires [pro_int]"
    assert tosa_validation.verdict(1, open_sizes) == (
        (),
        "it leaves sizes open, and TOSA 1.0 has no form for that",
    )
    assert tosa_validation.verdict(1, f"{open_sizes}\n{other}") == (
        ("'tosa.clamp' op illegal: requires [pro_int]",),
        "",
    )


def test_what_could_not_be_checked_is_in_the_verdict_and_in_the_golden(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(tosa_validation, "specification_of", lambda module: "TOSA-1.0+INT+something")
    artifact = export(ZOO["linear"], "tosa-int")
    cell = Cell("tosa-int", "linear")
    compared = compare(cell, [outcome(artifact, cell)], None, RELEASE)
    assert measured(of_verdict(compared.verdict)) == snapshot
    assert "\nvalidated: not validated: lowered_module_0: " in compared.record.texts()["manifest"]
