"""Reads FlatBuffers schemas (``.fbs``) as the installed releases ship them.

Decoding is driven by the schema of the release whose payload it is, so that a field that a release adds
cannot be missed. Only what the schemas of TOSA, XNNPACK and ``.pte`` use is understood (no structs, no fixed
arrays, no nested namespaces, no explicit field ids); anything else is a `SchemaError`, never a guess.

Grammar: https://flatbuffers.dev/grammar/
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from executorch_goldens.decode.errors import SchemaError
from executorch_goldens.decode.numbers import Double, Float32

#: Scalar type names of the schema language and their little-endian `struct` codes.
SCALARS: Mapping[str, str] = {
    "bool": "?",
    "byte": "b", "int8": "b", "ubyte": "B", "uint8": "B",
    "short": "h", "int16": "h", "ushort": "H", "uint16": "H",
    "int": "i", "int32": "i", "uint": "I", "uint32": "I",
    "long": "q", "int64": "q", "ulong": "Q", "uint64": "Q",
    "float": "f", "float32": "f", "double": "d", "float64": "d",
}  # fmt: skip

#: Values of enums that a payload may hold and that the schema has in a comment only: flatc writes any number into an
#: enum. Those of ``ScalarType`` are in ``exir/scalar_type.py`` and ``ET_FORALL_SCALAR_TYPES`` of the runtime's
#: ``scalar_type.h``.
NOT_IN_SCHEMA: Mapping[str, Mapping[int, str]] = {
    "ScalarType": {
        8: "COMPLEXHALF",
        9: "COMPLEXFLOAT",
        10: "COMPLEXDOUBLE",
        # From 1.2.0 on it is in the schema.
        15: "BFLOAT16",
        18: "BITS1X8",
        19: "BITS2X4",
        20: "BITS4X2",
        21: "BITS8",
    }
}

_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<token>[A-Za-z_][A-Za-z0-9_.]*|[-+]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"|\"[^\"\n]*\"|[{}()\[\]:;,=])|(?P<odd>.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Scalar:
    """A number or a bool; `code` is its `struct` code."""

    code: str

    @property
    def size(self) -> int:
        """Bytes it takes."""
        return struct.calcsize("<" + self.code)


@dataclass(frozen=True)
class Enum:
    """A named set of integers."""

    name: str
    code: str
    names: Mapping[int, str] = field(repr=False, hash=False)

    @property
    def size(self) -> int:
        """Bytes a value takes."""
        return struct.calcsize("<" + self.code)


@dataclass(frozen=True)
class String:
    """UTF-8 text."""


@dataclass(frozen=True)
class TableRef:
    """A table, by name."""

    name: str


@dataclass(frozen=True)
class Union:
    """One of several tables; `members` maps the stored type to the member's name and its table."""

    name: str
    members: Mapping[int, tuple[str, str]] = field(repr=False, hash=False)


@dataclass(frozen=True)
class Vector:
    """A vector of scalars, enums, strings or tables."""

    element: Scalar | Enum | String | TableRef


Type = Scalar | Enum | String | TableRef | Union | Vector
#: Value of an absent field.
Default = bool | int | float | str | None


@dataclass(frozen=True)
class Field:
    """One field of a table.

    Attributes
    ----------
    slot
        Index of the field's entry in a vtable. A union takes two: its type's is just before its value's.
    default
        The value of the field when it is absent. Enums by name.
    """

    name: str
    slot: int
    type: Type
    default: Default
    required: bool = False
    deprecated: bool = False


@dataclass(frozen=True)
class Schema:
    """One schema with everything it includes.

    Attributes
    ----------
    source
        File name it was read from, without its directory: names the schema in messages.
    identifier
        The four bytes at offset 4 of a buffer of this schema.
    root
        Name of the root table.
    """

    source: str
    identifier: bytes
    root: str
    tables: Mapping[str, tuple[Field, ...]] = field(repr=False)
    enums: Mapping[str, Enum] = field(repr=False)
    unions: Mapping[str, Union] = field(repr=False)


@lru_cache(maxsize=32)
def load(path: Path) -> Schema:
    """Read the schema at `path` and the files it includes.

    Raises
    ------
    SchemaError
        If a file is missing or uses something outside the understood part of the language.
    """
    try:
        return _Parser(path).schema()
    except SchemaError:
        raise
    except (ValueError, LookupError, RecursionError) as error:
        # A number, a type or an include where something else is expected.
        raise SchemaError(str(path), f"is not understood here: {error}") from error


class _Parser:
    """Recursive descent over the tokens of a schema and its includes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identifier = ""
        self.root = ""
        self.enums: dict[str, Enum] = {}
        self.unions: dict[str, Union] = {}
        self.raw_tables: dict[str, list[_RawField]] = {}
        self._seen: set[Path] = set()
        self._parse(path)

    def schema(self) -> Schema:
        if self.root not in self.raw_tables or len(self.identifier) != 4:
            raise SchemaError(str(self.path), "needs a root_type and a file_identifier of four characters")
        tables = {name: self._fields(name, raw) for name, raw in self.raw_tables.items()}
        for union in self.unions.values():
            for label, table in union.members.values():
                if table not in tables:
                    raise SchemaError(str(self.path), f"union {union.name}: no table for member {label}")
        return Schema(self.path.name, self.identifier.encode(), self.root, tables, self.enums, self.unions)

    def _fields(self, table: str, raw: list[_RawField]) -> tuple[Field, ...]:
        fields = []
        slot = 0
        for item in raw:
            type_ = self._type(table, item)
            slot += isinstance(type_, Union)
            flags = item.flags
            default = self._default(table, item, type_)
            fields.append(Field(item.name, slot, type_, default, "required" in flags, "deprecated" in flags))
            slot += 1
        return tuple(fields)

    def _type(self, table: str, item: _RawField) -> Type:
        # Without its namespace: files that include each other name no type twice.
        name = item.type.rpartition(".")[2]
        if not item.vector and name in self.unions:
            return self.unions[name]
        plain: Scalar | Enum | String | TableRef
        if name in SCALARS:
            plain = Scalar(SCALARS[name])
        elif name == "string":
            plain = String()
        elif name in self.enums:
            plain = self.enums[name]
        elif name in self.raw_tables:
            plain = TableRef(name)
        else:
            raise SchemaError(str(self.path), f"{table}.{item.name} has type {name}, which nothing defines")
        return Vector(plain) if item.vector else plain

    def _default(self, table: str, item: _RawField, type_: Type) -> Default:
        text = item.default
        if isinstance(type_, Enum):
            names = {name: name for name in type_.names.values()}
            names |= {str(value): name for value, name in type_.names.items()}
            if text and text not in names:
                raise SchemaError(str(self.path), f"{table}.{item.name}: {type_.name} has no value {text}")
            return names[text] if text else type_.names.get(0)
        if not isinstance(type_, Scalar):
            return None
        if type_.code == "?":
            return text == "true"
        if type_.code == "f":
            return Float32.nearest(float(text or 0))
        return Double(text or 0) if type_.code == "d" else int(text or "0", 0)

    def _parse(self, path: Path) -> None:
        if path in self._seen:
            return
        self._seen.add(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise SchemaError(str(path), f"cannot be read: {error}") from error
        tokens = _Tokens(path, text)
        for keyword in tokens:
            if keyword == "include":
                self._parse(path.parent / tokens.string())
                tokens.expect(";")
            elif keyword in ("namespace", "file_extension", "attribute"):
                tokens.take()
                tokens.expect(";")
            elif keyword == "file_identifier":
                self.identifier = tokens.string()
                tokens.expect(";")
            elif keyword == "root_type":
                self.root = tokens.take()
                tokens.expect(";")
            elif keyword == "enum":
                self._enum(tokens)
            elif keyword == "union":
                self._union(tokens)
            elif keyword == "table":
                self._table(tokens)
            else:
                raise SchemaError(str(path), f"{keyword!r} is not understood here")

    def _enum(self, tokens: _Tokens) -> None:
        name = tokens.take()
        tokens.expect(":")
        underlying = tokens.take()
        names: dict[int, str] = {}
        value = -1
        for label in tokens.listed("{", "}"):
            value = int(tokens.take(), 0) if tokens.accept("=") else value + 1
            names[value] = label
        self.enums[name] = Enum(name, SCALARS[underlying], {**NOT_IN_SCHEMA.get(name, {}), **names})

    def _union(self, tokens: _Tokens) -> None:
        name = tokens.take()
        members: dict[int, tuple[str, str]] = {}
        for label in tokens.listed("{", "}"):
            table = tokens.take() if tokens.accept(":") else label
            members[len(members) + 1] = (label, table)
        self.unions[name] = Union(name, members)

    def _table(self, tokens: _Tokens) -> None:
        name = tokens.take()
        tokens.expect("{")
        fields: list[_RawField] = []
        while not tokens.accept("}"):
            fields.append(self._raw_field(tokens, name))
        self.raw_tables[name] = fields

    def _raw_field(self, tokens: _Tokens, table: str) -> _RawField:
        label = tokens.take()
        tokens.expect(":")
        vector = tokens.accept("[")
        type_ = tokens.take()
        if vector:
            tokens.expect("]")
        default = tokens.take() if tokens.accept("=") else ""
        flags: dict[str, str] = {}
        if tokens.peek() == "(":
            for flag in tokens.listed("(", ")"):
                flags[flag] = tokens.take() if tokens.accept(":") else ""
        if "id" in flags:
            raise SchemaError(str(tokens.path), f"{table}.{label}: explicit field ids are not understood")
        tokens.expect(";")
        return _RawField(label, type_, vector, default, flags)


@dataclass(frozen=True)
class _RawField:
    """A field as written, before names are resolved."""

    name: str
    type: str
    vector: bool
    default: str
    flags: Mapping[str, str]


class _Tokens:
    """The tokens of one file, with one token of look-ahead."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._tokens: list[str] = []
        self._next = 0
        for match in _TOKEN.finditer(text):
            if match["odd"]:
                at = match.start()
                line = text.count("\n", 0, at) + 1
                raise SchemaError(str(path), f"line {line}: {text[at : at + 10]!r} is not understood")
            if match["token"]:
                self._tokens.append(match["token"])

    def __iter__(self) -> Iterator[str]:
        while self._next < len(self._tokens):
            yield self.take()

    def peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise SchemaError(str(self.path), "ends in the middle of a declaration")
        self._next += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self._next += 1
        return True

    def expect(self, token: str) -> None:
        found = self.take()
        if found != token:
            raise SchemaError(str(self.path), f"{token!r} expected, {found!r} found")

    def string(self) -> str:
        return self.take().strip('"')

    def listed(self, opening: str, closing: str) -> Iterator[str]:
        """Yield the first token of each element of a comma-separated list."""
        self.expect(opening)
        while not self.accept(closing):
            yield self.take()
            if not self.accept(","):
                self.expect(closing)
                return
