"""Reads goldens into the facts by which releases are compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import releases
from harness.artifact import Cell
from harness.causes import cause
from harness.judging import golden
from harness.structure.outline import Outline, OutlineGraph, outline
from harness.structure.side import NUMBERING

_CALLED = re.compile(r"call_function\[target=([\w.]+)\]")
#: Operators that every graph has around its delegates.
_GLUE = ("executorch_call_delegate", "operator.getitem")
_PTE = re.compile(r"pte: (\d+) bytes")

#: The text of a compact golden that `quantities` writes.
QUANTITIES = "quantities.txt"

#: The operator, operand and dtype that a constant is used for.
Use = tuple[str, str, str]
#: A constant's type, digest and first values.
Held = tuple[str, str, str]


@dataclass(frozen=True)
class Reading:
    """What a golden says about a cell.

    Attributes
    ----------
    failure
        Why there is no program to compare: the failure to lower, or the known defect; None if there is one.
    delegates
        Number of delegates, by backend.
    operators
        Number of operators in all delegates, by type.
    attributes
        (operator, attribute) to the number of times it has each value.
    constants
        Each use of constants to the constants used, with their number.
    outside
        Operators of the lowered graph that are outside of all delegates, with their number.
    size
        Size of the ``.pte``, in bytes.
    payloads
        Text of each delegate, by the name of its file.
    versions
        Versions of format and serializer that are written in the payloads, by their names.
    """

    failure: str | None
    delegates: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    attributes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    constants: dict[Use, Counter[Held]] = field(default_factory=dict)
    outside: Counter[str] = field(default_factory=Counter)
    size: int = 0
    payloads: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def read(folder: Path, known: Mapping[str, releases.KnownDefect], pattern: str = "*") -> dict[Cell, Reading]:
    """Read every golden in a release's folder; cells with known defects have none and are read from `known`."""
    readings = {}
    for cell in golden.recorded(folder):
        texts = golden.read(golden.directory(folder, cell))
        if texts is not None:
            readings[cell] = reading(texts)
    for name, defect in known.items():
        target, _, case = name.partition("/")
        readings[Cell(target, case)] = Reading(f"{defect.verdict}: {defect.reason}")
    return {cell: found for cell, found in sorted(readings.items()) if Path(str(cell)).match(pattern)}


def reading(texts: golden.Texts) -> Reading:
    """Return the facts of one golden."""
    if golden.FAILURE in texts:
        where, error = cause(texts[golden.FAILURE])
        return Reading(f"{where}: {error}")
    if QUANTITIES in texts:
        return _of_quantities(texts)
    size = _PTE.search(texts[golden.MANIFEST])
    called = Counter(_CALLED.findall(texts["graph.txt"]))
    found = Reading(
        None,
        outside=Counter({_short(name): count for name, count in called.items() if not name.endswith(_GLUE)}),
        size=int(size[1]) if size else 0,
    )
    for name, text in texts.items():
        if name.startswith("delegate_"):
            found.payloads[name] = text
            _add(found, outline(text))
    return found


def quantities(found: Reading) -> str:
    """Return what a compact golden keeps of a reading: how many delegates and operators there are of each kind."""
    counted = (("delegate", found.delegates), ("operator", found.operators), ("outside", found.outside))
    return "".join(
        f"{what} {name}: {count}\n" for what, counts in counted for name, count in sorted(counts.items())
    )


def _of_quantities(texts: golden.Texts) -> Reading:
    size = _PTE.search(texts[golden.MANIFEST])
    counts: dict[str, Counter[str]] = {"delegate": Counter(), "operator": Counter(), "outside": Counter()}
    for line in texts[QUANTITIES].splitlines():
        counted, _, number = line.rpartition(": ")
        what, _, name = counted.partition(" ")
        counts[what][name] = int(number)
    return Reading(
        None,
        delegates=counts["delegate"],
        operators=counts["operator"],
        outside=counts["outside"],
        size=int(size[1]) if size else 0,
    )


def _short(target: str) -> str:
    """Return an operator's name without its dialect's module path.

    >>> _short("executorch.exir.dialects.edge._ops.aten.add.Tensor")
    'aten.add.Tensor'
    """
    return target.removeprefix("executorch.exir.dialects.edge._ops.").removeprefix("torch.ops.")


def _add(found: Reading, delegate: Outline) -> None:
    found.delegates[delegate.kind] += 1
    found.versions.update(
        {f"{delegate.kind} {name}": value for name, value in delegate.facts.items() if "version" in name}
    )
    for graph in delegate.graphs:
        for operator in graph.operators:
            found.operators[operator.type] += 1
            for name, value in operator.attributes.items():
                if name not in NUMBERING:
                    found.attributes.setdefault((operator.type, name), Counter())[value] += 1
        for use, held in _constants(graph):
            found.constants.setdefault(use, Counter())[held] += 1


def _constants(graph: OutlineGraph) -> Iterator[tuple[Use, Held]]:
    """Yield each constant of a graph with its use, once for each operand that reads it."""
    for operator in graph.operators:
        for place, (role, name) in enumerate(operator.inputs):
            value = graph.values.get(name)
            if value is not None and value.contents is not None:
                facts = value.contents.facts
                operand = role if role != "input" else f"input {place}"
                yield (
                    (operator.type, operand, value.type.partition("[")[0]),
                    (value.type, value.contents.sha256, facts.get("values", facts.get("first", ""))),
                )
