"""Writes TOML, which the standard library only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

#: What `text` writes: no dates, and no tables in lists.
Value: TypeAlias = "str | bool | int | float | Sequence[Value] | Mapping[str, Value]"

#: A table that fits a line this long is written in one.
LINE_LENGTH = 110

#: A key that needs no quotes (TOML 1.0.0, "Keys").
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def text(tables: Mapping[str, Value]) -> str:
    r"""Return `tables` as TOML that `tomllib.loads` reads as the same.

    >>> print(text({"default": "1.0", "releases": {"1.0": {"patches": [], "known": {"a/b": "new: 2 \\"}}}}), end="")
    default = "1.0"
    releases = { "1.0" = { patches = [], known = { "a/b" = "new: 2 \\" } } }
    """
    return "\n".join(_lines(tables, ())) + "\n"


def _lines(table: Mapping[str, Value], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table: first what fits a line, for it would belong to the last table behind one."""
    lines = {name: f"{_key(name)} = {_inline(value)}" for name, value in table.items()}
    tables = {
        name: value
        for name, value in table.items()
        if isinstance(value, Mapping) and len(lines[name]) > LINE_LENGTH
    }
    inline = [line for name, line in lines.items() if name not in tables]
    if path and (inline or not tables):
        yield from ("", f"[{'.'.join(map(_key, path))}]")
    yield from inline
    for name, value in tables.items():
        yield from _lines(value, (*path, name))


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else string(name)


def _inline(value: Value) -> str:
    if isinstance(value, str):
        return string(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        fields = ", ".join(f"{_key(name)} = {_inline(field)}" for name, field in value.items())
        return f"{{ {fields} }}" if fields else "{}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_inline, value))}]"
    return repr(value)


def string(value: str) -> str:
    """Return a text as a string of TOML; of half a pair of UTF-16, which no TOML can hold, its escape as text."""
    whole = value.encode("utf-8", "backslashreplace").decode("utf-8")
    # JSON's strings are TOML's basic strings, but for one control character that JSON lets stand.
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
