"""Reads tables of TOML as the struct that declares their keys, with types and descriptions."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class TableError(ValueError):
    """A table does not match its struct; the message names the key and its description."""


def as_declared(
    table: Mapping[str, Any], struct: type[T], custom: Callable[[type, Any], Any] | None = None
) -> T:
    """Return a table as a struct; raise `TableError` for the first key that is missing, unknown or of another kind.

    Parameters
    ----------
    struct
        Each of its fields is ``Annotated`` with a `msgspec.Meta` that describes what the key takes.
    custom
        Reads what `msgspec` has no type for, as its ``dec_hook``.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    for key, field in fields.items():
        if field.required and key not in table:
            raise TableError(f"{key}: is missing; expected {_description(field.type)}")
    values = {}
    for key, value in table.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, 1)
            raise TableError(f"{key}: is unknown{f'; did you mean {near[0]}?' if near else ''}")
        kind = fields[key].type
        try:
            values[fields[key].name] = msgspec.convert(value, kind, dec_hook=custom)
        except msgspec.ValidationError as error:
            found = _at_fault(value, kind, custom)
            raise TableError(f"{key}: expected {_description(kind)}, found {found!r}") from error
    return struct(**values)


def _at_fault(value: Any, kind: Any, custom: Callable[[type, Any], Any] | None) -> Any:
    """Return the first entry of a table that is not of its kind, as a table; a non-table whole."""
    for key in value if isinstance(value, dict) else ():
        try:
            msgspec.convert({key: value[key]}, kind, dec_hook=custom)
        except msgspec.ValidationError:
            return {key: value[key]}
    return value


def _description(kind: object) -> str:
    """Return the words of an annotated type."""
    (meta, *_) = (each for each in typing.get_args(kind) if isinstance(each, msgspec.Meta))
    return str(meta.description)
