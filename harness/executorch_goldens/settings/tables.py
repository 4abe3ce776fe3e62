"""Reads tables of TOML as the struct that declares their keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from executorch_goldens.errors import nearest

T = TypeVar("T", bound=msgspec.Struct)

#: Messages of msgspec about a field that is missing or unknown, with its name.
FIELD = re.compile(r"(?:unknown|required) field `(.*)`")


class TableError(ValueError):
    """A table does not match its struct; the message begins with the key."""


def as_declared(
    table: Mapping[str, Any], struct: type[T], custom: Callable[[type, Any], Any] | None = None
) -> T:
    """Return a table as a struct; raise `TableError` for a key that is missing, unknown or of another type.

    Parameters
    ----------
    custom
        Reads what `msgspec` has no type for, as its ``dec_hook``.
    """
    try:
        return msgspec.convert(table, struct, dec_hook=custom)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        named = FIELD.search(what)
        keys = [each for each in (place.removesuffix("`"), named[1] if named else "") if each]
        near = f" ({nearest(named[1], _keys(struct, place))})" if named and named[0].startswith("un") else ""
        raise TableError(f"{'.'.join(keys)}: {what[:1].lower()}{what[1:]}{near}") from error


def _keys(struct: type[msgspec.Struct], place: str) -> list[str]:
    """Return the keys of a struct, or of the one that a field of it has."""
    hint = get_type_hints(struct).get(place.removesuffix("`"), struct)
    inner = [
        each
        for each in (hint, *get_args(hint))
        if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    return [field.encode_name for field in msgspec.structs.fields(inner[0] if inner else struct)]
