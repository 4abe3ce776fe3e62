"""A map of reach: which statements of a release's Python ran while each of many cells was lowered.

``<goldens>/<release>/reach.xz`` holds it, MessagePack in xz; `python -m lab reach` makes it. Statements belong to the
function that they are in, and count from its first line: a function that moved is found by the digest of its code.

The situation in which a cell reaches a function is the set of the function's statements that ran, with each ``if`` that
was false, and what the program is made of. What a pass decides by (dtype, rank, layout, users, constant operands), its
own conditions tell apart.
"""

from __future__ import annotations

import functools
import hashlib
import lzma
import operator
from collections.abc import Collection, Hashable
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import HarnessError
from executorch_goldens.settings.exports import ROOT
from executorch_goldens_plugins.compare import calls

FILE = "reach.xz"
FORMAT = 1
#: The command that makes one.
UPDATE = "nox -s lab -- reach --update"
#: Bytes that a map may have when it is unpacked.
LARGEST = 1 << 30


class MapError(HarnessError):
    """A map that cannot be used; the message names the file and the way out."""


class MappedCell(msgspec.Struct, frozen=True, array_like=True):
    """A cell of the map.

    Attributes
    ----------
    source
        Number of the zoo that registers it, among `ReachMap.sources`.
    milliseconds
        Processor time of one export.
    facts
        A digest of what the program is made of: its node visitors, and whether a value has several users.
    is_wrong
        Whether it is not right there: its golden fails, or is a known defect.
    """

    source: int
    target: str
    case: str
    milliseconds: int
    facts: str
    is_wrong: bool = False

    @property
    def cell(self) -> Cell:
        return Cell(self.target, self.case)

    @property
    def seconds(self) -> float:
        return self.milliseconds / 1000


class Situation(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """Statements of a function that ran in some cells, and no others.

    Attributes
    ----------
    lines
        First lines of the statements, from the function's first, which is 0; an ``if`` that was false at line n is
        -n - 1.
    cells
        A bit for each cell of the map, the first the lowest; little endian.
    """

    lines: tuple[int, ...]
    cells: bytes

    @functools.cached_property
    def numbers(self) -> frozenset[int]:
        """The numbers of the cells."""
        bits = int.from_bytes(self.cells, "little")
        return frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)


class MappedFunction(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A function of a file that some cell reaches; see `executorch_goldens_plugins.compare.reach.code.Function`.

    Attributes
    ----------
    situations
        Empty for one that no cell reaches.
    statements
        Its statements that do not only raise, and each ``if`` that may do nothing, as `Situation.lines` has them.
    """

    file: int
    name: str
    first: int
    digest: str
    situations: tuple[Situation, ...]
    statements: tuple[int, ...] = ()

    @functools.cached_property
    def bits(self) -> int:
        """A bit for each cell that reaches it, as `Situation.cells` has them."""
        return functools.reduce(
            operator.or_, (int.from_bytes(each.cells, "little") for each in self.situations), 0
        )


class ReachMap(msgspec.Struct, frozen=True, dict=True):
    """The reach of many cells on one release.

    Attributes
    ----------
    lock
        Digest of the lock of the release's environment.
    sources
        Zoos: modules that register the cases.
    files
        Paths below site-packages.
    """

    format: int
    release: str
    lock: str
    made: str
    sources: tuple[str, ...]
    cells: tuple[MappedCell, ...]
    files: tuple[str, ...]
    functions: tuple[MappedFunction, ...]

    @functools.cached_property
    def by_name(self) -> dict[tuple[str, str], MappedFunction]:
        return {(self.files[each.file], each.name): each for each in self.functions}

    @functools.cached_property
    def by_digest(self) -> dict[str, MappedFunction]:
        return {each.digest: each for each in self.functions}

    @functools.cached_property
    def by_owner(self) -> dict[str, list[MappedFunction]]:
        """The functions by the class that they are of, those of no class by their own name."""
        found: dict[str, list[MappedFunction]] = {}
        for each in self.functions:
            found.setdefault(each.name.partition(".")[0], []).append(each)
        return found

    @functools.cached_property
    def operators(self) -> tuple[str, ...]:
        """The operator that each cell is a call of, without overload; empty for models of other zoos."""
        drawn = calls.read()
        return tuple(
            drawn[each.case].operator.partition(".")[0] if each.case in drawn else "" for each in self.cells
        )

    def function(self, file: str, name: str, digest: str = "") -> MappedFunction | None:
        """Return a function by its code, wherever it is, else by its name; None where no cell reaches it."""
        named = self.by_name.get((file, name))
        if named is not None and named.digest == digest:
            return named
        return self.by_digest.get(digest, named)

    def cells_in(self, function: MappedFunction) -> frozenset[int]:
        """Return the numbers of the cells that reach a function."""
        return frozenset().union(*(each.numbers for each in function.situations))

    def cells_at(self, function: MappedFunction, lines: Collection[int]) -> frozenset[int]:
        """Return the numbers of the cells that run a statement which begins in `lines` of the map's release."""
        found: set[int] = set()
        for each in function.situations:
            if any(line + function.first in lines for line in each.lines if line >= 0):
                found |= each.numbers
        return frozenset(found)

    def situation(self, cell: int, function: MappedFunction) -> Hashable:
        """Return in which situation a cell reaches a function."""
        at = next((n for n, each in enumerate(function.situations) if cell in each.numbers), None)
        return self.cells[cell].facts, at


def lock_of(release: str) -> str:
    """Return the digest of the lock of a release's environment; empty for one that has none."""
    lock = ROOT / "executorch_goldens" / "locks" / f"{release}.txt"
    return hashlib.sha256(lock.read_bytes()).hexdigest() if lock.is_file() else ""


def read(path: Path) -> ReachMap:
    """Read a map; raise `MapError`."""
    way_out = f"make it again by: {UPDATE}"
    try:
        unpacker = lzma.LZMADecompressor(memlimit=1 << 28)
        packed = unpacker.decompress(path.read_bytes(), LARGEST)
        if not unpacker.eof:
            raise MapError(f"{path}: it is cut off, or larger than {LARGEST:,} bytes unpacked; {way_out}")
        found = msgspec.msgpack.decode(packed, type=ReachMap)
    except (OSError, EOFError, lzma.LZMAError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise MapError(f"{path}: cannot be read ({error}); {way_out}") from error
    if found.format != FORMAT:
        raise MapError(f"{path}: it has format {found.format}, and this version reads {FORMAT}; {way_out}")
    return found
