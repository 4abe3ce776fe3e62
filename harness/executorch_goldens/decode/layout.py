"""The layout of a FlatBuffer, without the order that its serializer leaves open.

tosa-tools' serializer makes the vectors and strings of an attribute as several arguments of one call
(``TosaSerializationHandler::Serialize``: ``Create##NAME##Attribute(_builder, _builder.CreateVector(...), ...)``). C++
does not say in which order arguments are evaluated ([expr.call]), so one build writes ``pad`` before ``stride`` and the
next one after it. Everything else has the same place in every build.
"""

from __future__ import annotations

import hashlib
import struct

from executorch_goldens.decode.schema import Enum, Field, Scalar, Schema, String, TableRef, Union, Vector

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


def layout(schema: Schema, payload: memoryview) -> bytes:
    """Return a digest of the bytes of a FlatBuffer that `executorch_goldens.decode.flatbuffer.read_flatbuffer` takes.

    It covers the place of every table and vtable, which fields are present and where in their table, and every value.
    Of the vectors and strings of a union's member it covers the contents and the bytes that they take together, and
    not which of them comes first.
    """
    walk = _Walk(schema, payload)
    walk.put("buffer", len(payload), bytes(payload[4:8]))
    walk.table(walk.follow(0), schema.root, ordered=True)
    return walk.digest.digest()


class _Walk:
    def __init__(self, schema: Schema, data: memoryview) -> None:
        self.schema = schema
        self.data = data
        self.digest = hashlib.sha256()
        self.seen: set[tuple[int, str]] = set()

    def put(self, *parts: object) -> None:
        self.digest.update(f"{parts!r}\n".encode())

    def follow(self, at: int) -> int:
        return at + int(_U32.unpack_from(self.data, at)[0])

    def table(self, at: int, name: str, ordered: bool) -> None:
        """Digest a table; `ordered` says whether its vectors and strings have their place."""
        vtable = at - int(_I32.unpack_from(self.data, at)[0])
        size = _U16.unpack_from(self.data, vtable)[0]
        self.put(name, at, vtable, bytes(self.data[vtable : vtable + size]))
        if (at, name) in self.seen:
            return
        self.seen.add((at, name))
        taken: list[tuple[int, int]] = []
        for field in self.schema.tables[name]:
            entry = 4 + 2 * field.slot
            if entry < size and (offset := _U16.unpack_from(self.data, vtable + entry)[0]):
                self.field(field, at, vtable, at + offset, ordered, taken)
        if taken:
            self.put("together", min(start for start, _ in taken), max(stop for _, stop in taken))

    def field(
        self, field: Field, table: int, vtable: int, at: int, ordered: bool, taken: list[tuple[int, int]]
    ) -> None:
        """Digest a field that is present; add the bytes outside its table to `taken`, if those are unordered."""
        type_ = field.type
        self.put(field.name)
        if isinstance(type_, Union):
            stored = self.data[table + _U16.unpack_from(self.data, vtable + 2 + 2 * field.slot)[0]]
            self.put(stored)
            self.table(self.follow(at), type_.members[stored][1], ordered=False)
        elif isinstance(type_, Scalar | Enum):
            self.put(bytes(self.data[at : at + type_.size]))
        elif isinstance(type_, TableRef):
            self.table(self.follow(at), type_.name, ordered=True)
        elif isinstance(type_, Vector) and isinstance(type_.element, TableRef | String):
            self.vector(self.follow(at), type_.element)
        else:
            element = type_.element if isinstance(type_, Vector) else None
            width = element.size if isinstance(element, Scalar | Enum) else 1
            start, stop = self.contents(self.follow(at), width, zero=isinstance(type_, String))
            if ordered:
                self.put(start)
            else:
                taken.append((start, stop))

    def contents(self, at: int, width: int, zero: bool) -> tuple[int, int]:
        """Digest a vector of numbers or a string; return its start and end, alignment included."""
        stop = at + 4 + int(_U32.unpack_from(self.data, at)[0]) * width
        self.digest.update(self.data[at:stop])
        return at, -(-(stop + zero) // 4) * 4

    def vector(self, at: int, element: TableRef | String) -> None:
        """Digest a vector of tables or of strings, and these."""
        count = int(_U32.unpack_from(self.data, at)[0])
        self.put(at, count)
        for place in range(at + 4, at + 4 + 4 * count, 4):
            target = self.follow(place)
            if isinstance(element, TableRef):
                self.table(target, element.name, ordered=True)
            else:
                self.put(self.contents(target, 1, zero=True))
