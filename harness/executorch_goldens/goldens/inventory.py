"""What the artifact of a golden has, counted: the facts by which two of a cell are compared."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from executorch_goldens.decode import pte, tosa, xnnpack
from executorch_goldens.errors import HarnessError
from executorch_goldens.goldens.accuracy import Measured
from executorch_goldens.goldens.causes import cause
from executorch_goldens.goldens.operators import outside
from executorch_goldens.goldens.outline import NUMBERING, Outline, OutlineGraph

if TYPE_CHECKING:
    from executorch_goldens.goldens.record import Record

#: The instruction of a program that runs a delegate.
_CALL = "DelegateCall"
#: The attribute of a method with the sizes of the arenas that memory is planned in; the first entry is the constants'.
_MEMORY = "non_const_buffer_sizes"
_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")
#: Bits of one number, by the names that the formats have for types.
_BITS = {"bytes": 8} | {
    name: codec.bits for table in (tosa.DTYPES, xnnpack.DTYPES, pte.DTYPES) for name, codec in table.items()
}

#: The operator, operand and dtype that a constant is used for.
Use = tuple[str, str, str]
#: A constant's type, digest and first values.
Held = tuple[str, str, str]


class InventoryError(HarnessError, ValueError):
    """Sections that fit their digest and that no version of this harness wrote."""


@dataclass(frozen=True)
class Inventory:
    """Counts of a golden's artifact.

    Attributes
    ----------
    failure
        Why there is no program to compare: the failure to lower, or the known defect; None if there is one.
    attributes
        (operator, attribute) to the number of times it has each value.
    outside
        Operators of the lowered graph that are outside of all delegates, with their number.
    instructions
        Operators that the emitted program runs outside of its delegates, with their number: emission adds copies to the
        graph's, and takes views; None where they are not known.
    constant_bytes
        Size of the constants in the delegates and beside them.
    duplicated
        Bytes of constants and of named data that are stored once more than once.
    accuracies
        What was measured of each output of a quantized program (`executorch_goldens.goldens.record.Record.accuracies`).
    memory
        Bytes that are planned in each arena, over all methods.
    payloads
        Text of each delegate, by the name of its section.
    versions
        Versions of format and serializer that are written in the payloads, by their names.
    """

    failure: str | None
    delegates: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    attributes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    constants: dict[Use, Counter[Held]] = field(default_factory=dict)
    outside: Counter[str] = field(default_factory=Counter)
    instructions: Counter[str] | None = None
    size: int = 0
    constant_bytes: int = 0
    duplicated: int = 0
    accuracies: Mapping[str, Measured] = field(default_factory=dict)
    memory: tuple[int, ...] = ()
    payloads: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def inventory(record: Record) -> Inventory:
    """Return the inventory of a golden; raise InventoryError where its sections are none of the harness's."""
    try:
        return _inventory(record)
    except (ValueError, LookupError) as error:
        raise InventoryError(
            f"a golden fits its digest and cannot be read ({error}): record it again"
        ) from error


def _inventory(record: Record) -> Inventory:
    if record.fails:
        return Inventory(": ".join(cause(record.sections["failure"])))
    program = record.program
    payloads = [*record.delegates.values(), *([program] if program is not None else [])]
    found = Inventory(
        None,
        outside=outside(record.sections["graph"]),
        instructions=_instructions(program) if program is not None else None,
        size=int(record.facts.get("pte", "0").split()[0]),
        constant_bytes=sum(map(_constant_bytes, payloads)),
        duplicated=_duplicated(payloads),
        accuracies=record.accuracies,
        memory=_memory(program) if program is not None else (),
        payloads={name: record.sections[name] for name in record.delegates},
    )
    for payload in record.delegates.values():
        _add(found, payload)
    return found


def _memory(program: Outline) -> tuple[int, ...]:
    """Return the bytes planned in each arena, over the methods of a program."""
    stated = (graph.attributes[_MEMORY] for graph in program.graphs if _MEMORY in graph.attributes)
    methods = [[int(size) for size in sizes.strip("[]").split(",")][1:] for sizes in stated]
    return tuple(sum(sizes) for sizes in itertools.zip_longest(*methods, fillvalue=0))


def _instructions(program: Outline) -> Counter[str]:
    """Return the operators that a program runs outside of its delegates."""
    names = (operator.type for graph in program.graphs for operator in graph.operators)
    return Counter(name for name in names if name != _CALL)


def _constant_bytes(payload: Outline) -> int:
    values = [value for graph in payload.graphs for value in graph.values.values()]
    return sum(_bytes(value.type) for value in values if value.contents is not None)


def _duplicated(payloads: Iterable[Outline]) -> int:
    """Return the bytes that a program could spare by storing equal constants and named data once."""
    copies: dict[str, int] = {}
    spared = 0
    for digest, size in itertools.chain.from_iterable(map(_stored, payloads)):
        spared += size if digest in copies else 0
        copies[digest] = size
    return spared


def _stored(payload: Outline) -> Iterator[tuple[str, int]]:
    """Yield digest and bytes of each constant that a payload stores itself, however often it is used.

    Left out are shapes and single numbers: they are an operator's attributes.
    """
    seen = set()
    values = [(graph.name, value) for graph in payload.graphs for value in graph.values.values()]
    for where, value in (*values, *(("", blob) for blob in payload.blobs.values())):
        # XNNPACK's constants and those of a program have a number, by which several values may use one. Those that
        # XNNPACK has in the named data are found there.
        number = value.attributes.get("constant_data") or value.attributes.get("data_buffer_idx")
        # The initial value of a state has a number of its own kind.
        place = (
            (where, value.name) if number is None else (f"memory {'memory_id' in value.attributes}", number)
        )
        named = f"constant_data[{number}].named_key" in payload.facts
        if value.contents is None or place in seen or named or value.type.startswith("SHAPE"):
            continue
        seen.add(place)
        if not value.type.endswith(("[]", "[1]")):
            yield value.contents.sha256, _bytes(value.type)


def _bytes(type_: str) -> int:
    """Return how many bytes a tensor takes; 0 for a type of a format that is not the harness's own.

    >>> _bytes("INT8[8,1,1,12]"), _bytes("fp32[3]"), _bytes("mine[3]")
    (96, 12, 0)
    """
    match = _TYPE.fullmatch(type_)
    if match is None or match["dtype"] not in _BITS:
        return 0
    shape = [int(length) for length in match["shape"].split(",") if length]
    return (math.prod(shape) * _BITS[match["dtype"]] + 7) // 8


def _add(found: Inventory, delegate: Outline) -> None:
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
        for _, use, held in constants(graph):
            found.constants.setdefault(use, Counter())[held] += 1


def constants(graph: OutlineGraph) -> Iterator[tuple[tuple[int, int], Use, Held]]:
    """Yield each constant of a graph with its place, operator and operand, and its use: once for each place."""
    for at, operator in enumerate(graph.operators):
        for place, (role, name) in enumerate(operator.inputs):
            value = graph.values.get(name)
            if value is not None and value.contents is not None:
                facts = value.contents.facts
                operand = role if role != "input" else f"input {place}"
                yield (
                    (at, place),
                    (operator.type, operand, value.type.partition("[")[0]),
                    (value.type, value.contents.sha256, facts.get("values", facts.get("first", ""))),
                )
