"""A TOSA payload as the serializer writes it where arguments are evaluated in the opposite order."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from executorch_goldens.decode.flatbuffer import Table, read_flatbuffer
from executorch_goldens.decode.schema import Scalar, Schema, String, Type, Vector

#: Place of an offset, and the part that it refers to, alignment included.
Part = tuple[int, int, int]


def other_order(schema: Schema, payload: bytes, of: str = "") -> bytes:
    """Return `payload` with the vectors and strings of every attribute, or of every table `of`, the other way round."""
    made = bytearray(payload)
    for table in _tables(schema, read_flatbuffer(schema, memoryview(payload)).root):
        if not (table.type == of if of else table.type.endswith("Attribute")):
            continue
        found = sorted(parts(schema, payload, table), key=lambda part: part[1])
        place = found[0][1] if found else 0
        for offset_at, start, stop in reversed(found):
            made[place : place + stop - start] = payload[start:stop]
            struct.pack_into("<I", made, offset_at, place - offset_at)
            place += stop - start
    return bytes(made)


def parts(schema: Schema, payload: bytes, table: Table) -> list[Part]:
    """Return the vectors of numbers and the strings of a table."""
    (back,) = struct.unpack_from("<i", payload, table.offset)
    vtable = table.offset - back
    (size,) = struct.unpack_from("<H", payload, vtable)
    found = []
    for field in schema.tables[table.type]:
        entry = 4 + 2 * field.slot
        offset = struct.unpack_from("<H", payload, vtable + entry)[0] if entry < size else 0
        if offset and (isinstance(field.type, String) or _is_numbers(field.type)):
            at = table.offset + offset
            start = at + struct.unpack_from("<I", payload, at)[0]
            (count,) = struct.unpack_from("<I", payload, start)
            width = getattr(field.type, "element", Scalar("B")).size
            stop = start + 4 + count * width + isinstance(field.type, String)
            found.append((at, start, -(-stop // 4) * 4))
    return found


def _is_numbers(type_: Type) -> bool:
    return isinstance(type_, Vector) and isinstance(type_.element, Scalar)


def _tables(schema: Schema, table: Table) -> Iterator[Table]:
    yield table
    for value in table.fields.values():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Table):
                yield from _tables(schema, each)
