"""Reads and makes ``rows.tsv``, the frozen array: a line a model, with its name first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from executorch_goldens.errors import CommandError
from lab.pairs.factors import FACTORS, RULES, Row

FILE = Path(__file__).parent / "rows.tsv"
LIBRARY = "covertable==3.2.0"
#: Decides in which order pairs are covered.
SALT = "1"


def read() -> dict[str, Row]:
    """Return the rows by the names of their models."""
    head, *lines = FILE.read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["name", *FACTORS]
    found = {}
    for line in lines:
        name, *values = line.split("\t")
        row = dict(zip(FACTORS, values, strict=True))
        found[name] = Row(**{**row, "form": int(row["form"]), "rank": int(row["rank"])})  # type: ignore[arg-type]
    return found


def digest() -> str:
    """Return a digest of the array: another one is another measure."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()[:12]


def drawn(runs: Callable[[Row], bool]) -> list[Row]:
    """Return rows that have every pair of values which fit each other, as far as PyTorch itself `runs` them.

    Raises
    ------
    CommandError
        Where the library that makes the array is not installed.
    """
    try:
        import covertable
    except ModuleNotFoundError as error:
        raise CommandError(
            f"the array is made by a library that is not installed: pip install {LIBRARY}"
        ) from error
    rules = [{"operator": "fn", "requires": fields, "evaluate": holds} for fields, holds in RULES]
    found = covertable.make(dict(FACTORS), constraints=rules, sorter=covertable.sorters.hash, salt=SALT)
    # Whether PyTorch runs a row is asked at the end: asked in between, the greedy search would take hours.
    made = (Row(**{name: row[name] for name in FACTORS}) for row in found)
    return [row for row in made if runs(row)]


def text(rows: Iterable[Row]) -> str:
    """Return the file of `rows`."""
    lines = ["\t".join(("name", *FACTORS))]
    lines += ["\t".join((f"pairs-{number:04}", *map(str, row))) for number, row in enumerate(rows)]
    return "".join(f"{line}\n" for line in lines)
