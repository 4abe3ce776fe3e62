"""Builds a map of reach from records of cells, takes one apart into records, and writes it."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable
from executorch_goldens_plugins.compare.reach import code
from executorch_goldens_plugins.compare.reach.map import (
    FORMAT,
    MappedCell,
    MappedFunction,
    ReachMap,
    Situation,
)

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
    is_wrong
        See `executorch_goldens_plugins.compare.reach.map.MappedCell`.
    """

    source: str
    cell: Cell
    seconds: float
    facts: str
    lines: Mapping[str, tuple[int, ...]]
    is_wrong: bool = False


def records(known: ReachMap) -> Iterator[ReachRecord]:
    """Yield the records that a map was built of, without lines outside of functions."""
    lines: list[dict[str, list[int]]] = [{} for _ in known.cells]
    for function in known.functions:
        for situation in function.situations:
            ran = _absolute(function, situation)
            for number in situation.numbers:
                lines[number].setdefault(known.files[function.file], []).extend(ran)
    for cell, of_cell in zip(known.cells, lines, strict=True):
        found = {file: tuple(ran) for file, ran in of_cell.items()}
        yield ReachRecord(
            known.sources[cell.source], cell.cell, cell.seconds, cell.facts, found, cell.is_wrong
        )


def encoded(record: ReachRecord) -> str:
    cell, seconds = record.cell, round(record.seconds, 3)
    found = [cell.target, cell.case, seconds, record.facts, record.lines, record.is_wrong]
    return f"{json.dumps(found, separators=(',', ':'))}\n"


def read(file: Path) -> Iterator[ReachRecord]:
    """Yield the records of a source; of one that was cut off while it was written, nothing."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            target, case, seconds, facts_of, lines, is_wrong = json.loads(line)
        except ValueError:
            continue
        ran = {name: tuple(found) for name, found in lines.items()}
        yield ReachRecord(
            file.name.removesuffix(".jsonl"), Cell(target, case), seconds, facts_of, ran, is_wrong
        )


class Ways:
    """The statements that ran so far, and the ways through functions of some files.

    Parameters
    ----------
    packages
        The release's site-packages.
    of_ways
        Beginnings of the paths of files whose functions' situations count.
    """

    def __init__(self, packages: Path, of_ways: tuple[str, ...]) -> None:
        self.packages = packages
        self.of_ways = of_ways
        self.seen: set[tuple[str, object]] = set()
        #: The functions of files by line.
        self.within: dict[str, dict[int, code.Function]] = {}

    def take(self, known: ReachMap) -> None:
        """Note what the cells of a map ran."""
        for function in known.functions:
            file = known.files[function.file]
            for situation in function.situations:
                self.seen.update((file, line) for line in _absolute(function, situation))
                if file.startswith(self.of_ways):
                    self.seen.add((file, (function.name, tuple(sorted(situation.lines)))))

    def add(self, lines: Mapping[str, tuple[int, ...]]) -> bool:
        """Note what a program ran; return whether some of it is new."""
        before = len(self.seen)
        for file, ran in lines.items():
            if file not in self.within:
                self.within[file] = _by_line(code.module_of(self.packages / file).functions.values())
            of_functions = _in_functions(self.within[file], ran)
            self.seen.update((file, line) for line in ran if abs(line) in self.within[file])
            if file.startswith(self.of_ways):
                self.seen.update((file, (function.name, way)) for function, way in of_functions.items())
        return len(self.seen) > before


def _absolute(function: MappedFunction, situation: Situation) -> list[int]:
    """Return the lines of a situation in the function's file, as they are recorded."""
    return [line + function.first if line >= 0 else line + 1 - function.first for line in situation.lines]


def _by_line(functions: Iterable[code.Function]) -> dict[int, code.Function]:
    """Return the function of each line of a file."""
    places = sorted(functions, key=lambda each: each.first)
    return {line: each for each in places for line in range(each.first, each.last + 1)}


def _in_functions(
    within: Mapping[int, code.Function], lines: Iterable[int]
) -> dict[code.Function, tuple[int, ...]]:
    """Return what ran of each function, as `Situation.lines` has it."""
    by_function: dict[code.Function, list[int]] = {}
    for line in lines:
        if (function := within.get(abs(line))) is not None:
            relative = abs(line) - function.first
            by_function.setdefault(function, []).append(relative if line > 0 else -relative - 1)
    return {function: tuple(sorted(ran)) for function, ran in by_function.items()}


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
            numbers[each.source],
            each.cell.target,
            each.cell.case,
            round(each.seconds * 1000),
            each.facts,
            each.is_wrong,
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
    within = _by_line(places)
    found: dict[code.Function, dict[tuple[int, ...], int]] = {}
    for number, of_cell in enumerate(lines):
        for function, key in _in_functions(within, of_cell).items():
            situations = found.setdefault(function, {})
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
