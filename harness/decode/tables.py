"""Takes a table apart field by field, so that no field can be forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from harness.decode.decoded import Attribute
from harness.decode.errors import DecodeError
from harness.decode.flatbuffer import Node, Table


class Fields:
    """The fields of a table that have not been taken yet.

    A format module takes what it gives a meaning to; `rest` returns everything else as attributes, whatever
    the schema of a later release adds.

    Attributes
    ----------
    path
        Where the table stands, for `DecodeError`.
    """

    def __init__(self, table: Table, path: str) -> None:
        self.path = path
        self.type = table.type
        self.offset = table.offset
        self._fields = dict(table.fields)

    def fail(self, what: str) -> DecodeError:
        """Return an error about this table."""
        return DecodeError(self.path, self.offset, what)

    def take(self, name: str, default: Node = None) -> Node:
        """Take a field that some releases' schemas may lack."""
        return self._fields.pop(name, default)

    def text(self, name: str) -> str | None:
        """Take a string, an enum's value or a union's type."""
        value = self.take(name)
        if value is not None and not isinstance(value, str):
            raise self.fail(f"{name} expected to be text")
        return value

    def name(self, name: str) -> str:
        """Take a string that must be there."""
        value = self.text(name)
        if value is None:
            raise self.fail(f"{name} is missing")
        return value

    def number(self, name: str) -> int:
        """Take an integer."""
        value = self.take(name, 0)
        if not isinstance(value, int):
            raise self.fail(f"{name} expected to be an integer")
        return value

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Take a vector of integers; None if it is absent."""
        value = self.take(name)
        if isinstance(value, memoryview):
            return tuple(value)
        if value is not None and not isinstance(value, tuple):
            raise self.fail(f"{name} expected to be a vector")
        return None if value is None else tuple(item for item in value if isinstance(item, int))

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a vector of strings; an absent one is empty."""
        value = self.take(name)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, tuple) else ()

    def octets(self, name: str) -> memoryview | None:
        """Take a vector of bytes; None if it is absent."""
        value = self.take(name)
        return value if isinstance(value, memoryview) else None

    def table(self, name: str) -> Fields | None:
        """Take a table, or a union's member; None if it is absent."""
        value = self.take(name)
        return Fields(value, f"{self.path}.{name}") if isinstance(value, Table) else None

    def tables(self, name: str) -> Iterator[Fields]:
        """Take a vector of tables; an absent one is empty."""
        value = self.take(name)
        for at, item in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(item, Table):
                yield Fields(item, f"{self.path}.{name}[{at}]")

    def rest(self, prefix: str = "") -> dict[str, Attribute]:
        """Take everything that is left, as attributes; tables within are named with dots and indices."""
        named: dict[str, Attribute] = {}
        for name, value in self._fields.items():
            named |= _flat(prefix + name, value)
        self._fields.clear()
        return named

    def set_apart(self, prefix: str = "") -> dict[str, Attribute]:
        """Take everything that is left and is not none, zero, false or empty.

        For fields that serializers leave at nothing: no line in the text says so.
        """
        return {name: value for name, value in self.rest(prefix).items() if not _is_nothing(value)}


def _is_nothing(value: Attribute) -> bool:
    return value is None or value == "" or (isinstance(value, int) and value == 0)


def _flat(name: str, value: Node) -> dict[str, Attribute]:
    if isinstance(value, Table):
        return Fields(value, name).rest(f"{name}.")
    if isinstance(value, tuple) and any(isinstance(item, Table) for item in value):
        named: dict[str, Attribute] = {}
        for at, item in enumerate(value):
            named |= _flat(f"{name}[{at}]", item)
        return named
    return {name: _plain(value)}


def _plain(value: Node) -> Attribute:
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Table):
        raise TypeError(f"table {value.type} among plain values")
    return value
