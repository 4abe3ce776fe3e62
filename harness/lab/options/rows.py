"""Reads and writes arrays: a line a model, with its name first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import tables

Rules = Sequence[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], bool]]]


@dataclass(frozen=True)
class Array:
    """A covering array.

    Attributes
    ----------
    name
        With which those of its models begin.
    row
        Makes a row of a value of each factor.
    """

    name: str
    file: Path
    factors: Mapping[str, Sequence[object]]
    rules: Rules
    row: Callable[..., Any]


def read(array: Array) -> dict[str, Any]:
    """Return the rows of an array by the names of their models."""
    found = {}
    for values in tables.read(array.file, ("name", *array.factors)):
        name = values.pop("name")
        found[name] = array.row(**values)
    return found


def drawn(array: Array) -> list[Any]:
    """Return the rows of an array, as they are, and those that it lacks for a pair of values that its rules allow.

    A factor that is new has its default in the rows that are there.
    """
    import covertable  # only where something is drawn: no release brings it

    rules = [{"operator": "fn", "requires": list(of), "evaluate": holds} for of, holds in array.rules]
    head = array.file.read_text(encoding="utf-8").partition("\n")[0].split("\t")
    held = [array.row(**{name: row[name] for name in head[1:]}) for row in tables.read(array.file, head)]
    there = [{name: getattr(row, name) for name in array.factors} for row in held]
    made = covertable.make(dict(array.factors), presets=there, constraints=rules)
    return [array.row(**row) for row in made]


def digest(array: Array) -> str:
    """Return a digest of an array: another one is another measure."""
    return hashlib.sha256(array.file.read_bytes()).hexdigest()[:12]


def text(array: Array, rows: Iterable[Any]) -> str:
    """Return the file of `rows`."""
    named = ({"name": f"{array.name}-{number:04}", **row._asdict()} for number, row in enumerate(rows))
    return tables.text(("name", *array.factors), named)
