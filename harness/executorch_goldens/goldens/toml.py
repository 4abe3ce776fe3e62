"""Writes TOML files that are beside goldens: their cells have a line each, so that a merge and a review see them.

tomlkit is imported where something is written: what reads these files does without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from executorch_goldens.files import durable
from executorch_goldens.goldens.golden import UnwritableError

#: The key whose values have a line each.
CELLS = "cells"


def tables(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return an array of tables, one for each row."""
    import tomlkit

    made = tomlkit.aot()
    for row in rows:
        table = tomlkit.table()
        for name, value in row.items():
            table.add(
                name, _lines(value) if name == CELLS else list(value) if isinstance(value, tuple) else value
            )
        made.append(table)
    return made


def replace(path: Path, document: Mapping[str, Any] | None, way_out: str) -> None:
    """Replace a file by a document, or delete it where there is none; raise `UnwritableError`.

    Parameters
    ----------
    way_out
        The way out where it cannot be written.
    """
    import tomlkit

    try:
        if document is None:
            path.unlink(missing_ok=True)
        else:
            durable.replace(path, tomlkit.dumps(document))
    except OSError as error:
        raise UnwritableError(path, f"cannot be written ({error})", way_out) from error


def _lines(cells: Iterable[str]) -> Any:
    import tomlkit

    array = tomlkit.array()
    array.extend(cells)
    return array.multiline(True)
