"""Values as JSON has them, in files that other programs read."""

from __future__ import annotations

from typing import Any

import msgspec


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
