"""The core of a zoo: few cheap cells that would catch, on a release, what is known that any cell would.

``<goldens>/<release>/core.txt`` holds it, a line a cell: `UPDATE` draws it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import merging, untrusted
from executorch_goldens.goldens import golden
from executorch_goldens.running.options import CORE, FULL, Options

FILE = "core.txt"
#: The command that writes it.
UPDATE = "nox -s lab -- core --update"


class CoreError(HarnessError):
    """A core that cannot be used or made; the message says why, and the way out."""


def read(file: Path) -> tuple[Cell, ...]:
    """Return the cells of a committed core; raise `CoreError`."""
    cells = []
    try:
        lines = untrusted.text(file).splitlines()
    except (OSError, ValueError) as error:
        raise CoreError(f"{file}: cannot be read ({error}); write it by: {UPDATE}") from error
    for line in lines:
        if line.startswith("#"):
            continue
        target, slash, case = line.partition("  ")[0].partition("/")
        if not slash:
            why = merging.conflict_in(file) or f"no line of a core: {line!r}"
            raise CoreError(f"{file}: {why}; write it again by: {UPDATE}")
        cells.append(Cell(target, case))
    return tuple(cells)


def tier(options: Options, folder: Path) -> str:
    """Return the tier of a run: as asked, or the core if one is committed and nothing says which cells or writes."""
    narrowed = bool(options.cells) or options.updating or not (folder / FILE).exists()
    return options.tier or (FULL if narrowed else CORE)


def within(
    folder: Path, cells: Collection[Cell], known: Collection[Cell], declared: Collection[Cell]
) -> frozenset[Cell]:
    """Return those of `cells` that the core tier checks: the core's, and new ones.

    Parameters
    ----------
    folder
        Folder of the release's goldens.
    known
        All of the zoo on this release.
    declared
        Cells without a golden whose defect is known.

    Raises
    ------
    CoreError
        Where no core is committed, or where it names a cell that there is not.
    """
    committed = read(folder / FILE)
    if gone := [cell for cell in committed if cell not in known]:
        raise CoreError(
            f"{folder / FILE} names {gone[0]}, and there is no such cell; write it again by: {UPDATE}"
        )
    recorded = set(golden.recorded(folder))
    return frozenset(
        cell for cell in cells if cell in committed or (cell not in recorded and cell not in declared)
    )
