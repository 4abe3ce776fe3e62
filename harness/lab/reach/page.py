"""What exports of a release reach, from its map: harness/lab/docs/coverage/<release>-reach.md."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from executorch_goldens.artifact import Cell
from executorch_goldens.reach import map as maps
from executorch_goldens.reach.map import MappedFunction, ReachMap
from executorch_goldens.running import core
from executorch_goldens.settings import releases
from lab import GOLDENS
from lab.mutants.mechanical.drawing import place_of
from lab.pages import Part

#: The package that a file is relative to for `place_of`, below site-packages.
PACKAGE = "executorch/"
#: Of the owners with the most statements that no cell reaches, this many are listed with these.
LISTED = 20
#: Why nothing reaches what is left of an owner, by its name.
WHY = Path(__file__).with_name("why.toml")
#: The sources of a release.
UPSTREAM = "https://github.com/pytorch/executorch/blob/v{release}/{file}"


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
        if not self.statements:
            return "none"
        return f"{self.reached} ({100 * self.reached / self.statements:.1f}%)"


def parts() -> Iterator[Part]:
    """Yield the page of each release that has a map."""
    for release in releases.load().releases:
        if (GOLDENS / release / maps.FILE).exists():
            yield Part(
                f"harness/lab/docs/coverage/{release}-reach.md", "", functools.partial(_committed, release)
            )


def _committed(release: str) -> Iterator[str]:
    folder = GOLDENS / release
    return page(maps.read(folder / maps.FILE), core.read(folder / core.FILE))


def page(known: ReachMap, of_core: Collection[Cell]) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    of_core
        Cells of the release's core.
    """
    owners = owned(known)
    every = [function for functions in owners.values() for function in functions]
    by_core = bits(number for number, each in enumerate(known.cells) if each.cell in of_core)
    by_any = bits(range(len(known.cells)))
    yield from (
        f"# Reach of exports of ExecuTorch {known.release}",
        "",
        f"Made from the [map](../instruments.md#reach) of {known.made}, by `nox -s lab -- pages --update`: statements",
        "of functions that partition, quantize, rewrite and serialize, which a program that lowers may run. An `if`",
        "without `else` counts once more, where it is false. Of files outside of the two backends, those count of",
        "which something ran.",
        "",
        "| exports of | cells | statements reached |",
        "|---|---:|---:|",
        f"| the core | {by_core.bit_count()} | {Counts(every, by_core)} |",
    )
    for number, source in enumerate(known.sources):
        cells = bits(at for at, each in enumerate(known.cells) if each.source == number)
        yield f"| `{source}` | {cells.bit_count()} | {Counts(every, cells)} |"
    whole = Counts(every, by_any)
    yield f"| any of these, of {whole.statements} | {by_any.bit_count()} | {whole} |"
    yield from ("", "| backend | what | statements | core | any cell |", "|---|---|---:|---:|---:|")
    groups = _groups(owners)
    for (backend, kind), within in groups.items():
        functions = [function for owner in within for function in owners[owner]]
        counts = Counts(functions, by_any)
        yield f"| {backend} | {kind} | {counts.statements} | {Counts(functions, by_core)} | {counts} |"
    left = {owner: Counts(functions, by_any) for owner, functions in owners.items()}
    yield from _longest(known.release, left)
    for (backend, kind), within in groups.items():
        yield from ("", f"## {backend}: {kind}", "")
        yield from (
            "| owner | statements | core | any | functions without a cell |",
            "|---|---:|---:|---:|---|",
        )
        for owner in within:
            counts = left[owner]
            without = ", ".join(
                f"`{_short(each)}`" for each, missing in counts.missing.items() if missing == each.statements
            )
            by = Counts(owners[owner], by_core).reached
            yield f"| {owner.name} | {counts.statements} | {by} | {counts.reached} | {without} |"


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


def _groups(owners: Iterable[Owner]) -> dict[tuple[str, str], list[Owner]]:
    found: dict[tuple[str, str], list[Owner]] = {}
    for owner in sorted(owners, key=lambda each: (each.backend, each.kind, each.file, each.name)):
        found.setdefault((owner.backend, owner.kind), []).append(owner)
    return found


def _longest(release: str, left: Mapping[Owner, Counts]) -> Iterator[str]:
    """Yield the owners with the most statements that no cell reaches."""
    why = tomllib.loads(WHY.read_text(encoding="utf-8"))
    missing = {owner: counts.statements - counts.reached for owner, counts in left.items()}
    yield from ("", "## Owners with the most statements that no cell reaches", "")
    yield from (
        "Lines are those of the release; at `12-` a condition is never false. A function without lines never runs.",
        "",
    )
    yield from ("| owner | statements | not reached | why | which |", "|---|---:|---:|---|---|")
    for owner in sorted(missing, key=lambda each: (-missing[each], each.file, each.name))[:LISTED]:
        if missing[owner]:
            counts = left[owner]
            which = "; ".join(_missing(each, lines) for each, lines in counts.missing.items() if lines)
            link = UPSTREAM.format(release=release, file=owner.file)
            reason = why.get(owner.name, "not known")
            yield f"| [{owner.name}]({link}) | {counts.statements} | {missing[owner]} | {reason} | {which} |"


def _missing(function: MappedFunction, lines: Sequence[int]) -> str:
    """Return a function's name with the lines that no cell reaches; alone where it reaches none."""
    places = () if len(lines) == len(function.statements) else _places(function, lines)
    return " ".join((f"`{_short(function)}`", ", ".join(places))).strip()


def _places(function: MappedFunction, lines: Sequence[int]) -> Iterator[str]:
    for line in sorted(lines, key=lambda each: (each if each >= 0 else -each - 1, each < 0)):
        yield f"{function.first + line}" if line >= 0 else f"{function.first - line - 1}-"


def _short(function: MappedFunction) -> str:
    return function.name.rpartition(".")[2]
