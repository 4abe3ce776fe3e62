"""Functions that a map counts, by whose they are, and their statements that cells reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from executorch_goldens_plugins.compare.reach.map import MappedFunction, ReachMap
from lab.mutants.mechanical.drawing import place_of

#: The package that a file is relative to for `place_of`, below site-packages.
PACKAGE = "executorch/"


@dataclass(frozen=True)
class Owner:
    """A class, or a module's functions of none.

    Attributes
    ----------
    backend
        Folder below ``backends``, or ``exir``.
    kind
        As in `lab.mutants.mechanical.PLACES`.
    file
        Relative to the package ``executorch``.
    """

    backend: str
    kind: str
    file: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        return self.file, self.name


class Counts:
    """Statements of some functions, and those that some cells reach.

    Parameters
    ----------
    cells
        A bit for each cell that counts.
    """

    def __init__(self, functions: Iterable[MappedFunction], cells: int) -> None:
        self.statements = 0
        #: Statements that no cell reaches, by function; as `Situation.lines`.
        self.missing: dict[MappedFunction, tuple[int, ...]] = {}
        for function in functions:
            ran = {
                line
                for each in function.situations
                if int.from_bytes(each.cells, "little") & cells
                for line in each.lines
            }
            self.statements += len(function.statements)
            self.missing[function] = tuple(line for line in function.statements if line not in ran)

    @property
    def reached(self) -> int:
        return self.statements - sum(map(len, self.missing.values()))

    def __str__(self) -> str:
        return self.share(self.statements)

    def share(self, statements: int) -> str:
        """Return the number that cells reach, with its share of some statements."""
        return f"{self.reached} ({100 * self.reached / statements:.1f}%)" if statements else "none"


def owned(known: ReachMap) -> dict[Owner, list[MappedFunction]]:
    """Return the functions that count, by whose they are."""
    found: dict[Owner, list[MappedFunction]] = {}
    for function in known.functions:
        file = known.files[function.file].removeprefix(PACKAGE)
        kind = place_of(file)
        if kind and function.statements:
            top, below, *_ = PurePosixPath(file).parts
            of = function.name.rpartition(".")[0] or PurePosixPath(file).stem
            owner = Owner(below if top == "backends" else top, kind, file, of)
            found.setdefault(owner, []).append(function)
    return found


def bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)
