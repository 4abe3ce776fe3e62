"""Values as JSON has them, in files that other programs read; each file has the version of its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from executorch_goldens.files import durable, untrusted

T = TypeVar("T")


def plain(value: Any) -> Any:
    """Return structs as JSON values; numbers that JSON does not have are text.

    >>> plain({"largest": float("inf"), "mean": 0.5})
    {'largest': 'inf', 'mean': 0.5}
    """
    return _finite(msgspec.to_builtins(value, enc_hook=str))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and value - value != 0.0 else value


def write(path: Path, value: Any, format: int) -> None:
    """Write a value with fields as an object into a file, whole."""
    durable.replace(path, json.dumps({"format": format, **plain(value)}, indent=1) + "\n")


def read(path: Path, kind: type[T], format: int) -> T:
    """Return what `write` has written; raise OSError, and ValueError for anything else."""
    return converted(untrusted.json_of(untrusted.text(path)), kind, format)


def converted(fields: Any, kind: type[T], format: int) -> T:
    """Return a value by the fields of its object; raise ValueError."""
    if not isinstance(fields, dict) or fields.get("format") != format:
        raise ValueError(f"its format is not {format}")
    return msgspec.convert(fields, kind, strict=False)
