"""Takes a table apart field by field, so that no field can be forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from executorch_goldens.decode.constant import Codec, Constant, make_constant
from executorch_goldens.decode.decoded import Attribute
from executorch_goldens.decode.errors import DecodeError
from executorch_goldens.decode.flatbuffer import Node, Table

_T = TypeVar("_T", str, memoryview, Table)


class Fields:
    """The fields of a table that have not been taken yet.

    A format module takes what it gives a meaning to; `rest` returns everything else as attributes, whatever
    the schema of a later release adds.

    Attributes
    ----------
    path
        Where the table is, for `DecodeError`.
    """

    def __init__(self, table: Table, path: str) -> None:
        self.path = path
        self.type = table.type
        self.offset = table.offset
        self._fields = dict(table.fields)

    def fail(self, what: str) -> DecodeError:
        """Return an error about this table."""
        return DecodeError(self.path, self.offset, what)

    def constant(
        self, dtype: str, shape: tuple[int, ...], data: memoryview, codec: Codec
    ) -> tuple[Constant, memoryview]:
        """Return the constant that this table describes, and the bytes after it."""
        try:
            return make_constant(dtype, shape, data, codec)
        except ValueError as error:
            raise self.fail(str(error)) from None

    def take(self, name: str, default: Node = None) -> Node:
        """Take a field that some releases' schemas may lack."""
        return self._fields.pop(name, default)

    def text(self, name: str) -> str | None:
        """Take a string, an enum's value or a union's type."""
        return self._of_type(name, str, "text")

    def name(self, name: str) -> str:
        """Take a string that must be there."""
        value = self.text(name)
        if value is None:
            raise self.fail(f"{name} is missing")
        return value

    def number(self, name: str) -> int:
        """Take an integer."""
        value = self.take(name, 0)
        if not _is_integer(value):
            raise self._expected(name, "an integer", value)
        return cast(int, value)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Take a vector of integers; None if it is absent."""
        value = self.take(name)
        if isinstance(value, memoryview):
            return tuple(value)
        return None if value is None else cast("tuple[int, ...]", self._vector(name, value, _is_integer))

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a vector of strings; an absent one is empty."""
        value = self.take(name, ())
        return cast("tuple[str, ...]", self._vector(name, value, lambda item: isinstance(item, str)))

    def octets(self, name: str) -> memoryview | None:
        """Take a vector of bytes; None if it is absent."""
        return self._of_type(name, memoryview, "a vector of bytes")

    def table(self, name: str) -> Fields | None:
        """Take a table, or a union's member; None if it is absent."""
        value = self._of_type(name, Table, "a table")
        return None if value is None else Fields(value, f"{self.path}.{name}")

    def tables(
        self, name: str, facts: dict[str, Attribute] | None = None, without: str = ""
    ) -> Iterator[Fields]:
        """Take a vector of tables; an absent one is empty.

        Parameters
        ----------
        facts
            Gets all that the tables hold, named as by `rest`, but for the field `without`.
        """
        value = self.take(name, ())
        items = cast("tuple[Table, ...]", self._vector(name, value, lambda item: isinstance(item, Table)))
        if facts is not None:
            for at, item in enumerate(items):
                shown = Fields(item, self.path)
                shown.take(without)
                facts |= shown.rest(f"{name}[{at}].")
        return iter([Fields(item, f"{self.path}.{name}[{at}]") for at, item in enumerate(items)])

    def _of_type(self, name: str, type_: type[_T], what: str) -> _T | None:
        """Take a field of a type; None if it is absent."""
        value = self.take(name)
        if value is not None and not isinstance(value, type_):
            raise self._expected(name, what, value)
        return value

    def _vector(self, name: str, value: Node, fits: Callable[[Node], bool]) -> tuple[Node, ...]:
        """Return a vector whose items all fit; an absent one is empty. An item left out would be lost to the text."""
        if value is None:
            return ()
        if not isinstance(value, tuple):
            raise self._expected(name, "a vector", value)
        for at, item in enumerate(value):
            if not fits(item):
                raise self.fail(f"{name}[{at}] is {_kind(item)}, which this decoder does not accept there")
        return value

    def _expected(self, name: str, what: str, value: Node) -> DecodeError:
        return self.fail(f"{name} expected to be {what}, found {_kind(value)}")

    def rest(self, prefix: str = "") -> dict[str, Attribute]:
        """Take everything that is left, as attributes; tables within are named with dots and indices."""
        named: dict[str, Attribute] = {}
        for name, value in self._fields.items():
            named |= _flat(prefix + name, value)
        self._fields.clear()
        return named

    def set_apart(self) -> dict[str, Attribute]:
        """Take everything that is left and is not none, zero, false or empty.

        For fields that serializers leave at nothing: no line in the text says so.
        """
        return {name: value for name, value in self.rest().items() if not _is_nothing(value)}


def _is_integer(value: Node) -> bool:
    # To Python, a bool is an integer as well.
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: Node) -> str:
    """Return the type of a field's value, in words."""
    if isinstance(value, Table):
        return f"a table {value.type}"
    if isinstance(value, tuple):
        return "a vector"
    return "a vector of bytes" if isinstance(value, memoryview) else f"{value!r:.40}"


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
