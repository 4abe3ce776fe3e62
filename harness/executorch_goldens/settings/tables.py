"""Reads tables of TOML as the struct that declares their keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

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
        raise TableError(f"{'.'.join(keys)}: {what[:1].lower()}{what[1:]}") from error
