"""The reader reads what the builder wrote, accounts for every byte, and locates bad bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import flatbuffers
import pytest

from executorch_goldens.decode import DecodeError
from executorch_goldens.decode.flatbuffer import Table, Unread, read_flatbuffer
from executorch_goldens.decode.numbers import Double
from executorch_goldens.decode.schema import Schema, load
from executorch_goldens.decode.tables import Fields

TEXT = """
file_identifier "ABCD";
enum Colour : ushort { RED = 1, GREEN = 5 }
union Any { Leaf, Other: Leaf }
table Leaf { number: int = -3; colour: Colour = GREEN; flag: bool; next: Leaf; }
table Root { name: string (required); any: Any; leaves: [Leaf]; data: [ubyte]; last: double; words: [string]; }
root_type Root;
"""
#: Slots of `Root`.
NAME, ANY_TYPE, ANY, LEAVES, DATA, LAST, WORDS = range(7)


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    path = tmp_path / "small.fbs"
    path.write_text(TEXT)
    return load(path)


def leaf(
    builder: flatbuffers.Builder, number: int = 7, colour: int = 1, flag: int = 1, next_: int = 0
) -> int:
    builder.StartObject(4)
    builder.PrependInt32Slot(0, number, -3)
    builder.PrependUint16Slot(1, colour, 5)
    builder.PrependUint8Slot(2, flag, 0)
    builder.PrependUOffsetTRelativeSlot(3, next_, 0)
    return int(builder.EndObject())


def built(
    name: str | None = "root", any_type: int = 2, flag: int = 1, colour: int = 1, depth: int = 0
) -> bytes:
    builder = flatbuffers.Builder()
    inner = 0
    for _ in range(depth + 1):
        inner = leaf(builder, flag=flag, colour=colour, next_=inner)
    word = builder.CreateString("word")
    title = builder.CreateString(name) if name is not None else 0
    data = builder.CreateByteVector(b"\1\2\3")
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(inner)
    leaves = builder.EndVector()
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(word)
    words = builder.EndVector()
    builder.StartObject(7)
    builder.PrependFloat64Slot(LAST, 2.5, 0.0)
    for slot, offset in ((NAME, title), (ANY, inner if any_type else 0), (LEAVES, leaves), (DATA, data)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.PrependUOffsetTRelativeSlot(WORDS, words, 0)
    builder.PrependUint8Slot(ANY_TYPE, any_type, 0)
    builder.Finish(builder.EndObject(), b"ABCD")
    return bytes(builder.Output())


def test_fields_unions_vectors_and_defaults(schema: Schema) -> None:
    payload = built()
    buffer = read_flatbuffer(schema, memoryview(payload))
    fields = buffer.root.fields
    assert list(fields) == ["name", "any_type", "any", "leaves", "data", "last", "words"]
    assert (fields["name"], fields["any_type"], fields["words"]) == ("root", "Other", ("word",))
    assert (bytes(fields["data"]), fields["last"]) == (b"\1\2\3", Double(2.5))  # type: ignore[arg-type]
    assert isinstance(fields["any"], Table)
    assert fields["any"].fields == {"number": 7, "colour": "RED", "flag": True, "next": None}
    assert fields["leaves"] == (fields["any"],)
    assert buffer.unread == ()


def test_absent_fields_hold_their_defaults(schema: Schema) -> None:
    payload = built(any_type=0, colour=5, flag=0)
    fields = read_flatbuffer(schema, memoryview(payload)).root.fields
    assert (fields["any_type"], fields["any"]) == (None, None)
    assert isinstance(fields["leaves"], tuple)
    assert isinstance(fields["leaves"][0], Table)
    assert fields["leaves"][0].fields == {"number": 7, "colour": "GREEN", "flag": False, "next": None}


def test_bytes_that_nothing_refers_to_are_reported(schema: Schema) -> None:
    payload = built()
    assert read_flatbuffer(schema, memoryview(payload + b"\0\0")).unread == ()
    assert read_flatbuffer(schema, memoryview(payload + b"\0\7\0\x08\0")).unread == (
        Unread(len(payload) + 1, b"\7\0\x08"),
    )


def test_offsets_count_from_the_start_of_the_payload(schema: Schema) -> None:
    payload = b"\0" * 16 + built(colour=9)
    with pytest.raises(DecodeError) as caught:
        read_flatbuffer(schema, memoryview(payload), 16)
    assert caught.value.path == "Root.leaves[0].colour"
    assert struct.unpack_from("<H", payload, caught.value.offset) == (9,)
    assert str(caught.value).startswith(f"Root.leaves[0].colour: byte {caught.value.offset} (0x")


@pytest.mark.parametrize(
    ("payload", "path", "what"),
    [
        (built(flag=2), "Root.leaves[0].flag", "a bool is 0 or 1, not 2"),
        (built(colour=9), "Root.leaves[0].colour", "Colour has no value 9 in small.fbs"),
        (built(any_type=3), "Root.any", "Any has no member 3 in small.fbs"),
        (built(name=None), "Root.name", "is required, and absent"),
        (built(depth=70), "", "tables nest deeper than 64"),
        (built().replace(b"ABCD", b"ABCE"), "Root", "identifier b'ABCD' expected, b'ABCE' found"),
        (built().replace(b"root\0", b"root\1"), "Root.name", "text ends with a zero byte"),
        (built().replace(b"word\0", b"wo\xffd\0"), "Root.words[0]", "text is not UTF-8"),
        (built().replace(b"\4\0\0\0word", b"\xff\xff\xff\x7fword"), "Root.words[0]", "bytes, "),
        (built()[:6], "Root", "take 8 bytes, 6 left"),
    ],
)
def test_bad_bytes_are_told_by_path_and_expectation(
    payload: bytes, path: str, what: str, schema: Schema
) -> None:
    with pytest.raises(DecodeError) as caught:
        read_flatbuffer(schema, memoryview(payload))
    assert what in caught.value.what
    assert not path or caught.value.path == path


def test_a_union_without_its_value_is_an_error(schema: Schema) -> None:
    payload = bytearray(built())
    root = struct.unpack_from("<I", payload)[0]
    vtable = root - struct.unpack_from("<i", payload, root)[0]
    payload[vtable + 4 + 2 * ANY : vtable + 6 + 2 * ANY] = b"\0\0"
    with pytest.raises(DecodeError, match="one is missing") as caught:
        read_flatbuffer(schema, memoryview(payload))
    assert caught.value.path == "Root.any"


def test_an_offset_into_the_middle_of_a_word_is_an_error(schema: Schema) -> None:
    payload = bytearray(built())
    root = struct.unpack_from("<I", payload)[0]
    payload[0:4] = struct.pack("<I", root + 1)
    with pytest.raises(DecodeError, match="multiple of 4"):
        read_flatbuffer(schema, memoryview(payload))


#: Values of a table where a decoder expects another type.
HELD = {
    "number": 3,
    "flag": True,
    "real": Double(1.5),
    "text": "words",
    "bytes": memoryview(b"ab"),
    "numbers": (1, 2),
    "words": ("a", "b"),
    "mixed": (1.5, 2, "x"),
    "leaf": Table("Leaf", 8, {}),
    "leaves": (Table("Leaf", 8, {}), 3),
}


@pytest.mark.parametrize(
    ("take", "fits"),
    [
        (Fields.number, {"number"}),
        (Fields.text, {"text"}),
        (Fields.name, {"text"}),
        (Fields.integers, {"bytes", "numbers"}),
        (Fields.texts, {"words"}),
        (Fields.octets, {"bytes"}),
        (Fields.table, {"leaf"}),
        (Fields.tables, set()),
    ],
)
def test_a_field_of_another_type_than_is_taken_is_an_error_that_names_it_and_never_lost(
    take: Callable[[Fields, str], object], fits: set[str]
) -> None:
    for name in HELD:
        fields = Fields(Table("Root", 4, dict(HELD)), "Root")
        if name in fits:
            assert take(fields, name) is not None
            continue
        with pytest.raises(DecodeError, match=name) as raised:
            take(fields, name)
        assert (raised.value.path, raised.value.offset) == ("Root", 4)


def test_an_enum_gets_names_for_the_values_that_its_schema_has_none_for(
    schema: Schema, tmp_path: Path
) -> None:
    path = tmp_path / "of_types.fbs"
    path.write_text(TEXT.replace("Colour", "ScalarType").replace("GREEN = 5", "GREEN = 5, OURS = 15"))
    of_types = load(path)
    names = of_types.enums["ScalarType"].names
    assert (names[1], names[8], names[15]) == ("RED", "COMPLEXHALF", "OURS")
    root = read_flatbuffer(of_types, memoryview(built(colour=8))).root
    assert isinstance(leaves := root.fields["leaves"], tuple)
    assert isinstance(leaves[0], Table)
    assert leaves[0].fields["colour"] == "COMPLEXHALF"
    with pytest.raises(DecodeError, match="Colour has no value 3"):
        read_flatbuffer(schema, memoryview(built(colour=3)))
