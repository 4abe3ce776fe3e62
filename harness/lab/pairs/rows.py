"""Reads and writes arrays: a line a model, with its name first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.pairs import factors
from lab.pairs.factors import Row

#: Factors whose values are numbers.
NUMBERS = {"form": int, "rank": int}

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
    row: Callable[..., Any] = Row


PAIRS = Array("pairs", Path(__file__).parent / "rows.tsv", factors.FACTORS, factors.RULES)


def read(array: Array = PAIRS) -> dict[str, Any]:
    """Return the rows of an array by the names of their models."""
    head, *lines = array.file.read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["name", *array.factors]
    found = {}
    for line in lines:
        name, *values = line.split("\t")
        row = zip(array.factors, values, strict=True)
        found[name] = array.row(**{factor: NUMBERS.get(factor, str)(value) for factor, value in row})
    return found


def digest(array: Array = PAIRS) -> str:
    """Return a digest of an array: another one is another measure."""
    return hashlib.sha256(array.file.read_bytes()).hexdigest()[:12]


def text(array: Array, rows: Iterable[Any]) -> str:
    """Return the file of `rows`."""
    lines = ["\t".join(("name", *array.factors))]
    for number, row in enumerate(rows):
        values = row._asdict()
        lines.append("\t".join((f"{array.name}-{number:04}", *(str(values[name]) for name in array.factors))))
    return "".join(f"{line}\n" for line in lines)
