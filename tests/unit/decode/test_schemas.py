"""Each payload is decoded with the schemas of the release that made it, whatever else this process decodes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell, Lowered
from executorch_goldens.decode import DecodeError, SchemaError
from executorch_goldens.decode.schemas import ENVIRONMENT_VARIABLE
from executorch_goldens.goldens import rendering
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.judging import verdict
from tests.support.decoding.oracle import schema_path
from tests.support.decoding.payloads import FIXTURES, SCHEMAS
from tests.support.making import artifact, lowered, outcome, tosa

CELL = Cell("tosa-int", "linear")
ORIGIN = rendering.MadeWith({}, ["seed0-heap0"], Numerics())


def release(folder: Path, name: str) -> str:
    """Write the schemas of a release that calls the attribute scale32 of a RESCALE by `name`; return its folder."""
    folder.mkdir()
    # The program's schema includes others beside it.
    for path in schema_path(SCHEMAS, "program").parent.glob("*.fbs"):
        shutil.copy(path, folder)
    text = schema_path(SCHEMAS, "tosa").read_text()
    assert "scale32" in text
    (folder / "tosa.fbs").write_text(text.replace("scale32", name))
    return str(folder)


def made(version: str, *schemas: str) -> Lowered:
    """Return a program of a release's fixtures, said to be made where `schemas` are."""
    payload = (FIXTURES / version / "tosa-int-0.tosa").read_bytes()
    pte = (FIXTURES / version / "portable.pte").read_bytes()
    return lowered("graph", tosa(payload), pte=pte, schemas=schemas)


def rendered(program: Lowered) -> str:
    return rendering.render(artifact(program), ORIGIN).sections["delegate_0.tosa"]


def judged(program: Lowered) -> verdict.Verdict | None:
    return verdict.objection(CELL, [outcome(program, CELL)])


def test_payloads_of_two_releases_have_their_own_schemas_in_one_process(tmp_path: Path) -> None:
    before, after = release(tmp_path / "1.1.0", "old_scale32"), release(tmp_path / "1.5.1", "new_scale32")
    one, other = made("1.1.0", before), made("1.5.1", after)
    for _ in range(2):
        assert "old_scale32" in rendered(one)
        assert "new_scale32" in rendered(other)
    assert "new_scale32" not in rendered(one)
    assert judged(one) is None
    assert judged(other) is None


def test_a_payload_that_the_schema_of_its_release_does_not_know_is_an_error_whatever_is_installed(
    tmp_path: Path,
) -> None:
    folder = release(tmp_path / "older", "scale32")
    tosa = Path(folder) / "tosa.fbs"
    tosa.write_text(tosa.read_text().replace("  RESCALE,\n", "  RESCALE = 999,\n"))
    with pytest.raises(DecodeError, match="Op has no value"):
        judged(made("1.5.1", folder))
    with pytest.raises(SchemaError, match="tosa"):
        judged(made("1.5.1", str(tmp_path)))


def test_the_environment_names_no_schemas_for_what_was_exported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lowered = made("1.5.1", *map(str, SCHEMAS.places))
    text = rendered(lowered)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, release(tmp_path / "named", "renamed_scale32"))
    before = dict(os.environ)
    assert rendered(lowered) == text
    assert judged(lowered) is None
    assert dict(os.environ) == before
