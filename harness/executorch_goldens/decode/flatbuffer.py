"""A bounds-checked FlatBuffers reader driven by a schema.

It reads everything there is, records the bytes it has read, and fails with `DecodeError` on the
first byte that cannot be what the schema says. Byte vectors are views into the payload: nothing large is
copied.

It is written by hand because nothing else reads these payloads in a process: Python's ``flatbuffers`` runs code that
``flatc`` generates and has no reader driven by a schema, and the wheels hold no generated code for XNNPACK's. ``flatc
--json`` with a JSON reader takes 13,600 times as long for a payload of many constants (harness/lab/docs/benchmarks.md).

Wire format: https://flatbuffers.dev/internals/
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from executorch_goldens.decode.errors import DecodeError
from executorch_goldens.decode.numbers import Double, Float32
from executorch_goldens.decode.schema import (
    Enum,
    Field,
    Scalar,
    Schema,
    String,
    TableRef,
    Type,
    Union,
    Vector,
)

#: Content of a field: `memoryview` for a vector of unsigned bytes, `Table` for a table or a union's
#: member.
Node: TypeAlias = "bool | int | float | str | memoryview | tuple[Node, ...] | Table | None"

#: Every byte may be read this many times on average (shared strings and tables are legal) before the buffer
#: counts as hostile: a few kilobytes of crossing offsets could otherwise expand to gigabytes.
READS_PER_BYTE = 16
#: No format here nests tables deeper than 8; the limit only has to stop a cycle of a recursive schema.
DEPTH = 64

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


@dataclass(frozen=True)
class Table:
    """One table as read.

    Attributes
    ----------
    type
        Name of the table in the schema.
    offset
        Where it is in the payload.
    fields
        Every field of the schema, in its order; absent ones hold their default. The type of a union field
        ``f`` is held by ``f_type`` (``None`` for an absent one).
    """

    type: str
    offset: int
    fields: dict[str, Node]


@dataclass(frozen=True)
class Unread:
    """Bytes that no field refers to and that are not the zeros of padding."""

    offset: int
    data: bytes


@dataclass(frozen=True)
class Buffer:
    """A decoded FlatBuffer: its root table and the bytes nothing in it refers to."""

    root: Table
    unread: tuple[Unread, ...]

    def unread_with(self, spans: list[tuple[int, int]], payload: memoryview) -> tuple[Unread, ...]:
        """Return them with those of a payload outside all `spans`, of which one is the FlatBuffer's, in order."""
        return tuple(sorted((*self.unread, *unread_between(spans, payload)), key=lambda each: each.offset))


def read_flatbuffer(
    schema: Schema,
    payload: memoryview,
    start: int = 0,
    stop: int | None = None,
    apart: tuple[int, int] = (0, 0),
) -> Buffer:
    """Read the FlatBuffer at ``payload[start:stop]``.

    Parameters
    ----------
    apart
        Where, relative to `start`, something else is in the midst of the FlatBuffer.

    Raises
    ------
    DecodeError
        With offsets counted from the start of `payload`.
    """
    reader = _Reader(schema, payload[start:stop], start)
    reader.spans.append(apart)
    root = reader.root()
    return Buffer(root, reader.unread())


#: Reads one field's value: (position of the field) -> value.
_Read = Callable[[int], Node]


@dataclass
class _Layout:
    """The layout of all tables of one type that share a vtable.

    Attributes
    ----------
    offsets
        Where in the table the value of each slot is; 0 for an absent one.
    absent
        Every field at its default.
    present
        (field name, offset in the table, reader) of the fields that are present.
    unions
        (field name, offset of its type, offset of its value, union) of the unions that are present.
    spans
        Parts of the table that its head and its fields take, relative to its start.
    size
        Offset of the end of its last field.
    """

    offsets: Sequence[int]
    absent: dict[str, Node] = dataclasses.field(default_factory=dict)
    present: list[tuple[str, int, _Read]] = dataclasses.field(default_factory=list)
    unions: list[tuple[str, int, int, Union]] = dataclasses.field(default_factory=list)
    spans: list[tuple[int, int]] = dataclasses.field(default_factory=lambda: [(0, 4)])
    size: int = 4


def _width(type_: Type) -> int:
    """Return the bytes that a table has of a value: the value itself, or an offset to it."""
    return type_.size if isinstance(type_, Scalar | Enum) else 4


class _Reader:
    def __init__(self, schema: Schema, data: memoryview, base: int) -> None:
        self.schema = schema
        self.data = data
        self.size = len(data)
        self.base = base
        self.budget = READS_PER_BYTE * self.size
        self.depth = 0
        self.spans: list[tuple[int, int]] = []
        self.layouts: dict[tuple[int, str], _Layout] = {}
        self.readers: dict[Type, _Read] = {}

    def fail(self, at: int, what: str, path: str = "") -> DecodeError:
        return DecodeError(path, self.base + at, what)

    def root(self) -> Table:
        name = self.schema.root
        try:
            if self.size < 8:
                raise self.fail(0, f"a root offset and an identifier take 8 bytes, {self.size} left")
            found = bytes(self.data[4:8])
            if found != self.schema.identifier:
                raise self.fail(4, f"identifier {self.schema.identifier!r} expected, {found!r} found")
            self.spans.append((0, 8))
            return self.table(self.follow(0), name)
        except DecodeError as error:
            raise error.inside(name) from None

    def unread(self) -> tuple[Unread, ...]:
        return unread_between(self.spans, self.data, self.base)

    def take(self, at: int, size: int, what: str) -> int:
        """Account for `size` bytes at `at`; return where they end."""
        end = at + size
        if end > self.size:
            raise self.fail(at, f"{what} takes {size} bytes, {max(0, self.size - at)} left")
        self.budget -= size
        if self.budget < 0:
            raise self.fail(at, f"more than {READS_PER_BYTE} references to every byte")
        return end

    def table(self, at: int, name: str) -> Table:
        if at < 4 or at + 4 > self.size:
            raise self.fail(at, f"a table {name} expected, outside the {self.size} bytes there are")
        vtable = at - int(_I32.unpack_from(self.data, at)[0])
        layout = self.layouts.get((vtable, name)) or self.layout(vtable, name, at)
        self.take(at, layout.size, f"table {name}")
        self.depth += 1
        if self.depth > DEPTH:
            raise self.fail(at, f"tables nest deeper than {DEPTH}")
        for start, stop in layout.spans:
            self.spans.append((at + start, at + stop))
        fields = layout.absent.copy()
        field = ""
        try:
            for field, offset, reader in layout.present:
                fields[field] = reader(at + offset)
            for field, type_at, value_at, union in layout.unions:
                self.union(fields, field, at + type_at, at + value_at, union)
        except DecodeError as error:
            raise error.inside(field) from None
        self.depth -= 1
        return Table(name, self.base + at, fields)

    def union(self, fields: dict[str, Node], name: str, type_at: int, value_at: int, union: Union) -> None:
        stored = self.data[type_at]
        if stored not in union.members:
            raise self.fail(type_at, f"{union.name} has no member {stored} in {self.schema.source}")
        label, table = union.members[stored]
        fields[name + "_type"] = label
        fields[name] = self.table(self.follow(value_at), table)

    def layout(self, vtable: int, name: str, at: int) -> _Layout:
        """Read the vtable at `vtable`, that of the table `name` at `at`."""
        layout = _Layout(self.offsets(vtable, name, at))
        fields = self.schema.tables[name]
        for field in fields:
            self.place(field, layout, vtable, at)
        known = fields[-1].slot + 1 if fields else 0
        for slot, offset in enumerate(layout.offsets[known:], known):
            if offset:
                what = f"{name} holds a field {slot} that {self.schema.source} does not know"
                raise self.fail(vtable + 4 + 2 * slot, what)
        self.spans.append((vtable, vtable + 4 + 2 * len(layout.offsets)))
        layout.size = max(stop for _, stop in layout.spans)
        self.layouts[vtable, name] = layout
        return layout

    def offsets(self, vtable: int, name: str, at: int) -> tuple[int, ...]:
        """Return where the vtable at `vtable` says that the value of each slot is.

        What it says of the table's own size is not used: Python's FlatBuffers builder shares one vtable between tables
        whose fields are at the same offsets, however wide they are (seen in .pte of 1.5.1).
        """
        if vtable < 0 or vtable + 4 > self.size:
            raise self.fail(at, f"vtable of {name} expected at {self.base + vtable}, outside the payload")
        size = _U16.unpack_from(self.data, vtable)[0]
        if size < 4 or size % 2 or vtable + size > self.size:
            raise self.fail(vtable, f"vtable of {name} has the impossible size {size}")
        return struct.unpack_from(f"<{size // 2 - 2}H", self.data, vtable + 4)

    def place(self, field: Field, layout: _Layout, vtable: int, at: int) -> None:
        """Add a field to a layout; a union has two slots."""

        def offset_of(slot: int, width: int, what: str) -> int:
            offset = layout.offsets[slot] if slot < len(layout.offsets) else 0
            if 0 < offset < 4:
                where = vtable + 4 + 2 * slot
                raise self.fail(where, f"a field at {offset} overlaps its table's head", what)
            if offset:
                layout.spans.append((offset, offset + width))
            return offset

        name, type_ = field.name, field.type
        if isinstance(type_, Union):
            layout.absent[name + "_type"] = None
            type_at = offset_of(field.slot - 1, 1, name + "_type")
            value_at = offset_of(field.slot, 4, name)
            if type_at and value_at:
                layout.unions.append((name, type_at, value_at, type_))
            elif type_at or value_at:
                raise self.fail(at, "a union's type and value come together, one is missing", name)
        elif offset := offset_of(field.slot, _width(type_), name):
            layout.present.append((name, offset, self.reader(type_)))
        elif field.required:
            raise self.fail(at, "is required, and absent", name)
        layout.absent[name] = field.default

    def reader(self, type_: Type) -> _Read:
        if type_ not in self.readers:
            self.readers[type_] = self.make_reader(type_)
        return self.readers[type_]

    def make_reader(self, type_: Type) -> _Read:
        if isinstance(type_, Scalar):
            return self.scalar_reader(type_)
        if isinstance(type_, Enum):
            return self.enum_reader(type_)
        if isinstance(type_, TableRef):
            name = type_.name
            return lambda at: self.table(self.follow(at), name)
        if isinstance(type_, Vector):
            return self.vector_reader(type_)
        if isinstance(type_, String):
            return lambda at: self.string(self.follow(at))
        raise TypeError(type_)

    def follow(self, at: int) -> int:
        """Return the position that the offset stored at `at` points to."""
        target = at + int(_U32.unpack_from(self.data, at)[0])
        if target % 4:
            raise self.fail(at, f"an offset to a multiple of 4 expected, to {target} found")
        return target

    def scalar_reader(self, scalar: Scalar) -> _Read:
        data = self.data
        if scalar.code == "?":
            return self.boolean
        if scalar.code == "f":
            return lambda at: Float32(_U32.unpack_from(data, at)[0])
        unpack = struct.Struct("<" + scalar.code).unpack_from
        if scalar.code == "d":
            return lambda at: Double(unpack(data, at)[0])

        def integer(at: int) -> int:
            value: int = unpack(data, at)[0]
            return value

        return integer

    def boolean(self, at: int) -> bool:
        stored = self.data[at]
        if stored > 1:
            raise self.fail(at, f"a bool is 0 or 1, not {stored}")
        return bool(stored)

    def enum_reader(self, enum: Enum) -> _Read:
        unpack = struct.Struct("<" + enum.code).unpack_from
        names = enum.names

        def named(at: int) -> str:
            stored = unpack(self.data, at)[0]
            name = names.get(stored)
            if name is None:
                raise self.fail(at, f"{enum.name} has no value {stored} in {self.schema.source}")
            return name

        return named

    def string(self, at: int) -> str:
        length = self.count(at, 1, "text")
        end = at + 4 + length
        if end >= self.size or self.data[end] != 0:
            raise self.fail(end, "text ends with a zero byte")
        self.spans.append((at, end + 1))
        try:
            return str(self.data[at + 4 : end], "utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(at + 4 + error.start, f"text is not UTF-8: {error.reason}") from None

    def count(self, at: int, width: int, what: str) -> int:
        """Return the number of elements of the vector at `at`; raise unless all fit."""
        if at < 0 or at + 4 > self.size:
            raise self.fail(at, f"{what} expected, outside the {self.size} bytes there are")
        count: int = _U32.unpack_from(self.data, at)[0]
        self.take(at, 4 + count * width, f"{what} of {count}")
        return count

    def vector_reader(self, vector: Vector) -> _Read:
        element = vector.element
        if element == Scalar("B"):
            return lambda at: self.octets(self.follow(at))
        if isinstance(element, Scalar) and element.code not in "?fd":
            return lambda at: self.integers(self.follow(at), element.code, element.size)
        width = _width(element)
        read_one = self.reader(element)
        return lambda at: self.items(self.follow(at), width, read_one)

    def octets(self, at: int) -> memoryview:
        end = at + 4 + self.count(at, 1, "bytes")
        self.spans.append((at, end))
        return self.data[at + 4 : end]

    def integers(self, at: int, code: str, width: int) -> tuple[int, ...]:
        count = self.count(at, width, "vector")
        self.spans.append((at, at + 4 + count * width))
        return struct.unpack_from(f"<{count}{code}", self.data, at + 4)

    def items(self, at: int, width: int, read_one: _Read) -> tuple[Node, ...]:
        count = self.count(at, width, "vector")
        self.spans.append((at, at + 4 + count * width))
        items: list[Node] = []
        try:
            for position in range(at + 4, at + 4 + count * width, width):
                items.append(read_one(position))
        except DecodeError as error:
            raise error.inside(f"[{len(items)}]") from None
        return tuple(items)


def unread_between(spans: list[tuple[int, int]], data: memoryview, base: int = 0) -> tuple[Unread, ...]:
    """Return the bytes of `data` outside all `spans` that are not zero; `base` is where `data` starts."""
    found = []
    end = 0
    for start, stop in (*sorted(spans), (len(data), len(data))):
        raw = bytes(data[end:start])
        if any(raw):
            left = len(raw) - len(raw.lstrip(b"\0"))
            found.append(Unread(base + end + left, raw.strip(b"\0")))
        end = max(end, stop)
    return tuple(found)
