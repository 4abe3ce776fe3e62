"""Compact goldens: those of all cells of one target in one file, ``<root>/<target>.cells.txt``.

Each cell is a block: its case, then each of its texts, indented::

    case abs-zeros
    manifest.txt
      format: 2
      ...
    failure.txt
      ...

Conflicts that git leaves in it are named.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.untrusted import UntrustedError

#: A line that begins, divides or ends a conflict in a file (git-merge(1), "How conflicts are presented").
MARKER = re.compile(r"(<{7}|[|]{7}|>{7}) |={7}$")
SUFFIX = ".cells.txt"
CASE = "case "
INDENT = "  "
#: Ends the names of texts.
ENDING = ".txt"

#: By case, its texts by name.
Table = Mapping[str, Mapping[str, str]]


class TableError(ValueError):
    """A file that is no table of goldens; the message says where."""


def file_of(folder: Path, target: str) -> Path:
    """Return the table of a target in a release's folder."""
    return folder / f"{target}{SUFFIX}"


def tables(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield each table in a release's folder, with its target, sorted."""
    for path in sorted(root.glob(f"*{SUFFIX}")):
        yield path.name.removesuffix(SUFFIX), path


def read(path: Path) -> Table:
    """Return the content of a table; empty if missing; raise `TableError`, OSError."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return {}
    return _read(path, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=8)
def _read(path: Path, *_state: int) -> Table:
    try:
        read = parsed(untrusted.text(path))
        untrusted.require_names(read)
        return read
    except (UnicodeDecodeError, UntrustedError) as error:
        raise TableError(str(error)) from error


def parsed(text: str) -> Table:
    r"""Read a table.

    >>> parsed("case abs\nmanifest.txt\n  format: 2\n")
    {'abs': {'manifest': 'format: 2\n'}}
    """
    found: dict[str, dict[str, list[str]]] = {}
    case: dict[str, list[str]] | None = None
    lines: list[str] | None = None
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if line.startswith(CASE):
            case = found.setdefault(line.removeprefix(CASE), {})
            lines = None
            if case:
                raise TableError(f"line {number}: {line!r} is there twice")
        elif MARKER.match(line):
            raise TableError(f"line {number}: {line!r} was left by a merge")
        elif line.startswith(INDENT) and lines is not None:
            lines.append(line.removeprefix(INDENT))
        elif line and not line.startswith(" ") and case is not None:
            lines = case.setdefault(line.removesuffix(ENDING), [])
        else:
            raise TableError(f"line {number}: {line!r} belongs to no golden")
    return {
        name: {file: "".join(f"{line}\n" for line in of_file) for file, of_file in texts.items()}
        for name, texts in found.items()
    }


def rendered(table: Table) -> str:
    """Return the text of a table, sorted by case; the same whenever it holds the same."""
    blocks = []
    for case in sorted(table):
        blocks.append(f"{CASE}{case}\n")
        for name, text in sorted(table[case].items(), reverse=True):
            blocks.append(f"{name}{ENDING}\n")
            blocks += [f"{INDENT}{line}\n" for line in text.removesuffix("\n").split("\n")]
    return "".join(blocks)


def write(path: Path, table: Table) -> None:
    """Replace a table whole, or delete it where it holds nothing; raise OSError."""
    if not table:
        path.unlink(missing_ok=True)
        return
    durable.replace(path, rendered(table))
