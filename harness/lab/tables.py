"""Tables in files: a head, then a row a line, with tabs between its fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable, untrusted


class TableError(HarnessError, ValueError):
    """A table that cannot be read; the message names the line, and the way out."""

    def __init__(self, file: Path, what: str) -> None:
        super().__init__(f"{file} {what}; bring it back with 'git checkout -- {file}'")


def read(file: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a table, by column; none without a file; raise TableError."""
    try:
        head, *lines = untrusted.text(file).removesuffix("\n").split("\n")
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise TableError(file, f"cannot be read ({error})") from error
    if head.split("\t") != list(columns):
        raise TableError(file, f"has no head {' '.join(columns)}")
    rows = []
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if len(fields) != len(columns):
            raise TableError(file, f"has {len(fields)} fields in line {number}, not {len(columns)}")
        rows.append(dict(zip(columns, fields, strict=True)))
    return rows


def text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    r"""Return the text of a table.

    >>> text(("a", "b"), [{"b": 2, "a": "x\ty"}])
    'a\tb\nx y\t2\n'
    """
    lines = [columns, *([" ".join(str(row[name]).split()) for name in columns] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def write(file: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a table; whoever reads it meanwhile reads the old one or the new one."""
    durable.replace(file, text(columns, rows))
