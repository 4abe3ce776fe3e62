"""Schemas are read as written, and unknown syntax is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.decode import SchemaError, Schemas, decode
from executorch_goldens.decode.schema import Enum, Scalar, String, TableRef, Union, Vector, load
from executorch_goldens.decode.schemas import ENVIRONMENT_VARIABLE
from tests.support.decoding.oracle import schema_path
from tests.support.decoding.payloads import FIXTURES, SCHEMAS

SMALL = """
// A comment.
namespace a; file_identifier "ABCD"; file_extension "abc";
enum Colour : ushort { RED, GREEN = 5, /* between */ BLUE }
union Any { Leaf, Other: Leaf }
table Leaf { number: int = -3; colour: Colour = BLUE; }
table Root {
  name: string (required); any: Any; leaves: [Leaf]; old: [ubyte] (deprecated, force_align: 16); last: double;
}
root_type Root;
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "schema.fbs"
    path.write_text(text)
    return path


def test_fields_have_slots_types_and_defaults(tmp_path: Path) -> None:
    schema = load(written(tmp_path, SMALL))
    assert (schema.identifier, schema.root) == (b"ABCD", "Root")
    name, any_, leaves, old, last = schema.tables["Root"]
    # A union takes two slots, its type's before its own.
    assert [field.slot for field in (name, any_, leaves, old, last)] == [0, 2, 3, 4, 5]
    assert [type(field.type) for field in (name, any_, leaves, last)] == [String, Union, Vector, Scalar]
    assert leaves.type == Vector(TableRef("Leaf"))
    assert (name.required, old.deprecated) == (True, True)
    number, colour = schema.tables["Leaf"]
    assert (number.default, colour.default) == (-3, "BLUE")
    assert isinstance(colour.type, Enum)
    assert colour.type.names == {0: "RED", 5: "GREEN", 6: "BLUE"}
    assert schema.unions["Any"].members == {1: ("Leaf", "Leaf"), 2: ("Other", "Leaf")}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("table Leaf {", "struct Leaf {", "'struct' is not understood"),
        ("number: int", "number: number", "has type number, which nothing defines"),
        ("number: int = -3;", "number: int = -3 (id: 0);", "explicit field ids"),
        ("= BLUE", "= PINK", "Colour has no value PINK"),
        ("root_type Root;", "", "needs a root_type"),
        ("{ RED", "{ ^RED", "line 4"),
        ("root_type Root;", "root_type", "ends in the middle"),
        ("leaves: [Leaf]", "leaves: [Leaf:3]", "']' expected, ':' found"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert old in SMALL
    with pytest.raises(SchemaError) as caught:
        load(written(tmp_path, SMALL.replace(old, new)))
    assert what in str(caught.value)


def test_a_missing_schema_says_where_it_was_looked_for_and_the_way_out(tmp_path: Path) -> None:
    payload = (FIXTURES / "1.5.1/tosa-fp-0.tosa").read_bytes()
    with pytest.raises(SchemaError) as caught:
        decode(payload, schemas=tmp_path)
    assert caught.value.schema == "tosa"
    for part in (str(tmp_path), "tosa-tools", "--schemas", ENVIRONMENT_VARIABLE):
        assert part in str(caught.value)


def test_the_environment_names_another_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    assert Schemas.default() == Schemas.under(tmp_path, *Schemas.installed().places)
    assert Schemas.default().load("tosa") is SCHEMAS.load("tosa")


def test_a_field_that_the_schema_lacks_is_an_error_not_silence(tmp_path: Path) -> None:
    """Decode with a schema from before a field was added, as an older decoder would a newer payload."""
    text = schema_path(SCHEMAS, "tosa").read_text()
    start = text.index("table TransposeAttribute")
    (tmp_path / "tosa.fbs").write_text(text.replace("  perms: [int32];\n", "", 1))
    assert "perms" not in (tmp_path / "tosa.fbs").read_text()[start : start + 60]
    payload = (FIXTURES / "1.5.1/tosa-int-0.tosa").read_bytes()
    with pytest.raises(ValueError, match=r"holds a field 0 that tosa\.fbs does not know"):
        decode(payload, schemas=tmp_path)


def test_an_operator_that_the_schema_lacks_is_an_error_not_silence(tmp_path: Path) -> None:
    text = schema_path(SCHEMAS, "tosa").read_text()
    (tmp_path / "tosa.fbs").write_text(
        text.replace("  RESCALE,\n", "  RESCALE = 999,\n").replace("  CONST,\n", "  CONST = 68,\n", 1)
    )
    payload = (FIXTURES / "1.5.1/tosa-int-0.tosa").read_bytes()
    with pytest.raises(ValueError, match="Op has no value 67"):
        decode(payload, schemas=tmp_path)
