"""Builds a map of reach from records of cells, takes one apart into records, and writes it."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable
from executorch_goldens.reach import code
from executorch_goldens.reach.map import FORMAT, MappedCell, MappedFunction, ReachMap, Situation

#: Beginning of the code of a definition inside of a function (`code.Statement.text`).
_INNER = ("FunctionDef", "AsyncFunctionDef", "ClassDef")


@dataclass(frozen=True)
class ReachRecord:
    """The reach of one cell, as it was recorded.

    Attributes
    ----------
    source
        The zoo that registers it.
    lines
        See `executorch_goldens.artifact.Artifact.reach`.
    """

    source: str
    cell: Cell
    seconds: float
    facts: str
    lines: Mapping[str, tuple[int, ...]]


def records(known: ReachMap) -> Iterator[ReachRecord]:
    """Yield the records that a map was built of, without lines outside of functions."""
    lines: list[dict[str, list[int]]] = [{} for _ in known.cells]
    for function in known.functions:
        for situation in function.situations:
            ran = [
                line + function.first if line >= 0 else line + 1 - function.first for line in situation.lines
            ]
            for number in situation.numbers:
                lines[number].setdefault(known.files[function.file], []).extend(ran)
    for cell, of_cell in zip(known.cells, lines, strict=True):
        found = {file: tuple(ran) for file, ran in of_cell.items()}
        yield ReachRecord(known.sources[cell.source], cell.cell, cell.seconds, cell.facts, found)


def build(
    release: str,
    lock: str,
    made: str,
    records: Iterable[ReachRecord],
    packages: Path,
    further: Iterable[str] = (),
) -> ReachMap:
    """Return the map of some records.

    Parameters
    ----------
    packages
        The release's site-packages.
    further
        Files in it that the map names although no cell reaches them.
    """
    ordered = sorted(records, key=lambda each: (each.source, each.cell.target, each.cell.case))
    sources = sorted({each.source for each in ordered})
    numbers = {source: number for number, source in enumerate(sources)}
    cells = [
        MappedCell(
            numbers[each.source], each.cell.target, each.cell.case, round(each.seconds * 1000), each.facts
        )
        for each in ordered
    ]
    files = sorted({*further, *(file for each in ordered for file in each.lines)})
    functions: list[MappedFunction] = []
    for number, file in enumerate(files):
        source = code.module((packages / file).read_text(encoding="utf-8"))
        functions += _functions(number, source, [each.lines.get(file, ()) for each in ordered])
    return ReachMap(FORMAT, release, lock, made, tuple(sources), tuple(cells), tuple(files), tuple(functions))


def _functions(file: int, source: code.Module, lines: list[tuple[int, ...]]) -> Iterator[MappedFunction]:
    """Yield the functions of a file, with the cells of each situation; `lines` are those of each cell."""
    places = sorted(source.functions.values(), key=lambda each: each.first)
    within = {line: each for each in places for line in range(each.first, each.last + 1)}
    found: dict[code.Function, dict[tuple[int, ...], int]] = {}
    for number, of_cell in enumerate(lines):
        by_function: dict[code.Function, list[int]] = {}
        for line in of_cell:
            if (function := within.get(abs(line))) is not None:
                relative = abs(line) - function.first
                by_function.setdefault(function, []).append(relative if line > 0 else -relative - 1)
        for function, ran in by_function.items():
            situations = found.setdefault(function, {})
            key = tuple(sorted(ran))
            situations[key] = situations.get(key, 0) | 1 << number
    for function in places:
        situations = found.get(function, {})
        yield MappedFunction(
            file,
            function.name,
            function.first,
            function.digest,
            tuple(Situation(key, _bytes(bits)) for key, bits in sorted(situations.items())),
            tuple(sorted(_counted(function))),
        )


def _counted(function: code.Function) -> set[int]:
    """Return the statements of a function that a program which lowers may run; definitions in it are none."""
    may_run = [each for each in function.statements if not each.raises and not each.text.startswith(_INNER)]
    lines = {each.first - function.first for each in may_run}
    return lines | {function.first - each.first - 1 for each in may_run if each.skips}


def _bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def write(path: Path, made: ReachMap) -> None:
    """Write a map, whole or not at all."""
    durable.replace(path, lzma.compress(msgspec.msgpack.encode(made), preset=9))
