"""What a comparison of two toolchains leaves in its folder, and its parts.

The artifacts of the base are in the form of goldens, and the results of the head in that of a run. ``compare.json``
has what was found of both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files import plain
from executorch_goldens.results.rows import Reported
from executorch_goldens.zoo.registry import FAILS

#: Below the folder of a comparison: what the base made, as goldens, the results of the head, and, once both are whole,
#: what was found of both sides.
ARTIFACTS, RESULTS, DATA = "base", "head", "compare.json"
#: Says that a folder is one of a comparison.
MARK = "compare.txt"
#: Version of the JSON.
FORMAT = 2

#: The kinds of difference, the worst first.
KINDS = (
    *("wrong", "unstable", "at-times", "fails", "unjudged", "differently"),
    *("outside", "memory", "bytes", "inexact"),
    *("as-wrong", "unknown", "different", "renamed", "order", "better"),
)
#: The kind of a cell without a difference; and of one that is right on neither side, where that is counted apart.
SAME, BOTH = "identical", "both"


def folder_of(results: Path) -> Path | None:
    """Return the folder of the comparison whose head has its results in a folder; None for results of runs."""
    folder = results.resolve().parent
    return folder if (folder / MARK).is_file() else None


@dataclass(frozen=True)
class Column:
    """What a plugin adds to the table of an upgrade.

    Attributes
    ----------
    title, key
        Title of the column, and its key in JSON; without a title, there are only the lines.
    is_right
        False if the exit code is that of a difference.
    """

    title: str
    key: str
    words: Mapping[Cell, str]
    lines: Sequence[str]
    is_right: bool = True


class ComparedSide(msgspec.Struct, frozen=True):
    """A toolchain.

    Attributes
    ----------
    toolchain
        Its name.
    stack
        Version of each distribution that a golden names.
    source
        Where its ExecuTorch comes from; empty for an installed one.
    """

    toolchain: str
    stack: Mapping[str, str]
    source: str


class ComparedCell(msgspec.Struct, frozen=True):
    """A cell on both sides.

    Attributes
    ----------
    kind
        The kind of difference, the worst that applies.
    what
        The difference, in a sentence for people; empty for a cell that is identical and right.
    cause
        Title of its cause, for people; null where it has none.
    base, head
        What was found on each side.
    quantities
        Quantities of the program on both sides, where a side has one.
    """

    kind: str
    what: str
    cause: str | None
    base: Reported
    head: Reported
    quantities: Mapping[str, tuple[int | None, int | None]]

    @property
    def shown_as(self) -> str:
        """Its kind; `BOTH` where it is identical, and right on neither side."""
        right = self.base.verdict == "new" and self.base.new != FAILS
        return self.kind if self.kind != SAME or right else BOTH


class ComparedReach(msgspec.Struct, frozen=True, kw_only=True):
    """The edited lines that ran, and those that did not.

    Attributes
    ----------
    reached
        Number of lines that ran.
    unreached
        The places of those that did not, as ``file:12-14``.
    raising
        Number of lines that only lead to an exception, and did not run.
    unmapped
        Places that no cell of the map reaches.
    left_out
        Cells that reach the edit and were not compared, with why, for people.
    gave_the_same
        Number of cells that were exported with the head alone: the edited functions gave what the base's give.
    not_run
        Number of cells of which the head's export ran no edited function, and which were not compared.
    """

    reached: int
    unreached: tuple[str, ...]
    raising: int
    unmapped: tuple[str, ...]
    left_out: Mapping[str, str]
    gave_the_same: int = 0
    not_run: int = 0


class Tally(msgspec.Struct, frozen=True):
    """Exports of a comparison, on both sides.

    Attributes
    ----------
    made
        All that came to an end, those from the store included.
    reused, searched
        Number of these that are from the store, and of models that a search tried.
    core_seconds
        Processor time of those that are not from the store, and of those that were stopped when the time was over.
    slowness
        How many times as long these took as on an idle machine: their wall time by their processor time. 1 where none
        was made.
    """

    made: int
    reused: int
    searched: int
    core_seconds: float
    slowness: float


class ComparedSides(msgspec.Struct, frozen=True, kw_only=True):
    """What ``goldens compare --json`` prints, and leaves in its folder.

    Attributes
    ----------
    format
        Version of it.
    head, facts
        The first line, and those about the two sides, what was not compared, and of plugins, for people.
    same
        Whether nothing differs that is not allowed.
    sides
        ``base`` and ``head``.
    variations, patches
        Their names, on both sides.
    left_out
        What one side cannot have, for people.
    alone
        Number of cells that one side alone has.
    allowed
        Kinds of difference that are allowed.
    missing
        What is missing of each requirement: edited lines that were not reached, cells that were left out for time.
    cells
        The cells, by their names.
    reach
        Which lines of an edit ran; null without an edit.
    search
        What a search for a model tried and found; null without one.
    exports
        Number of exports: all, those from the cache, those of a search; their seconds of processor time; how many times
        as long they took as on an idle machine.
    columns
        What plugins add of each cell.
    """

    format: int = FORMAT
    head: str
    facts: tuple[str, ...]
    same: bool
    sides: Mapping[str, ComparedSide]
    variations: tuple[str, ...]
    patches: tuple[str, ...]
    left_out: tuple[str, ...]
    alone: Mapping[str, int]
    allowed: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]
    cells: Mapping[str, ComparedCell]
    reach: ComparedReach | None
    search: Mapping[str, Any] | None
    exports: Tally
    columns: Mapping[str, Mapping[str, str]]

    def write(self, folder: Path) -> None:
        """Leave it in the folder of the comparison."""
        plain.write(folder / DATA, self, self.format)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return what the comparison in a folder left; raise UsageError."""
        try:
            return plain.read(folder / DATA, cls, FORMAT)
        except FileNotFoundError as error:
            raise UsageError(f"{folder} has no {DATA}: the comparison did not end; compare again") from error
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder / DATA} cannot be used: {error}; compare again") from error
