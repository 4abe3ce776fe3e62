"""Makes inputs of the harness without an export: programs, failures, artifacts, outcomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from executorch_goldens.artifact import (
    Artifact,
    Beginning,
    Casualty,
    Cell,
    Delegate,
    Failure,
    FirstDeparture,
    Lowered,
    Outcome,
    PassRun,
    Sample,
    Tensor,
    Watched,
)
from executorch_goldens.decode import Schemas
from executorch_goldens.goldens import rendering
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import MANIFEST, Record
from executorch_goldens.goldens.rendering import MadeWith
from executorch_goldens.judging import verdict
from executorch_goldens.judging.verdict import Verdict
from tests import DATA

CELL = Cell("tosa-fp", "some-case")

GRAPH = """graph():
    %lowered_module_0 : [num_users=1] = get_attr[target=lowered_module_0]
    %a : [num_users=1] = call_function[target=delegate](args = (%lowered_module_0, %x), kwargs = {})
    %lowered_module_1 : [num_users=1] = get_attr[target=lowered_module_1]
    %b : [num_users=1] = call_function[target=delegate](args = (%lowered_module_1, %y), kwargs = {})
    return (a, b)
"""
#: The same operators, with the names of the delegates swapped.
RENUMBERED = (
    GRAPH.replace("module_0", "module_X").replace("module_1", "module_0").replace("module_X", "module_1")
)

#: Those of the installed release, which decode the payloads of the others as well.
SCHEMAS = tuple(map(str, Schemas.installed().places))
#: A real program, of ExecuTorch 1.5.1.
PROGRAM = (DATA / "decode/1.5.1/portable.pte").read_bytes()

#: TOSA payloads that ExecuTorch 1.2.0 made of the zoo's ``equal-buffers`` (tosa-fp) and ``cat-h-v`` (tosa-int) with
#: patches off: ``goldens run --release 1.2.0 --patches none --cell '*/equal-buffers'
#: --cell '*/cat-h-v'`` leaves them in ``build/sweeps`` as ``delegate_0.bin``. The loop's is
#: 1.4.1's of tosa-fp+cf/loop.
PAYLOADS = DATA / "payloads"
DUPLICATE_OUTPUTS = (PAYLOADS / "equal-buffers-1.2.0.tosa").read_bytes()
WRONG_CAT = (PAYLOADS / "cat-h-v-1.2.0.tosa").read_bytes()

#: Packages that a manifest names.
STACK = {"executorch": "1.4.1", "torch": "2.13.0", "torchao": "0.18.0", "tosa-tools": "2026.5.0"}
ORIGIN = MadeWith(STACK, ["seed0-heap0", "seed4-heap1"], Numerics())


def lowered(
    graph: str = GRAPH,
    *delegates: Delegate,
    pte: bytes = PROGRAM,
    samples: tuple[Sample, ...] = (),
    bound: float = 0.0,
    schemas: tuple[str, ...] = SCHEMAS,
) -> Lowered:
    """Return a lowered program."""
    return Lowered(graph, delegates, pte, samples, bound, schemas)


def tosa(payload: bytes) -> Delegate:
    """Return a delegate with a TOSA payload."""
    return Delegate("lowered_module_0", "TOSABackend", payload)


#: A program with one output in two slots of its delegate, and one in none.
MISWIRED = lowered(GRAPH, tosa(DUPLICATE_OUTPUTS))


def failure(message: str = "no", stage: str = "lower", type: str = "ValueError") -> Failure:
    """Return a failure of an export, in a pass."""
    return Failure(stage, type, message, "SomePass", "executorch.x.f", "Traceback …\n  here\n")


def artifact(result: Lowered | Failure, *passes: PassRun, **fields: Any) -> Artifact:
    """Return an artifact, made by `passes` if there are any."""
    made = Artifact(result, (), Watched(passes, ()) if passes else None)
    return replace(made, **fields)


def golden_of(result: Lowered | Failure, origin: MadeWith = ORIGIN, **fields: Any) -> Record:
    """Return the golden that is recorded of an artifact with `fields`."""
    return rendering.render(artifact(result, **fields), origin)


def with_texts(record: Record, texts: Mapping[str, str]) -> Record:
    """Return a golden with other sections and, under `MANIFEST`, other facts."""
    sections = {**record.sections, **texts}
    lines = sections.pop(MANIFEST, record.texts().get(MANIFEST, "")).splitlines()
    return Record.in_order([line.partition(": ")[::2] for line in lines], sections)


def with_another_program(record: Record) -> Record:
    """Return a golden whose program differs in what the golden has a digest of, and in nothing else."""
    digests = re.search(r"^text = .*$", record.sections["pte"], re.MULTILINE)
    turned = re.sub(r"[0-9a-f]{16}", lambda digest: digest[0][::-1], digests[0])
    return with_texts(record, {"pte": record.sections["pte"].replace(digests[0], turned)})


def outcome(
    result: Artifact | Lowered | Failure | Casualty, cell: Cell = CELL, variation: str = "seed0-heap0"
) -> Outcome:
    """Return the outcome of an export of a cell, in one second and with 100 MB."""
    made = artifact(result) if isinstance(result, Lowered | Failure) else result
    return Outcome(cell, variation, made, 1.0, 100.0)


def outcomes(*results: Artifact | Lowered | Failure | Casualty, cell: Cell = CELL) -> list[Outcome]:
    """Return one outcome per variation."""
    return [outcome(result, cell, f"seed{number}-heap{number}") for number, result in enumerate(results)]


def objection(made: Artifact | Lowered | Failure) -> Verdict | None:
    """Return the objection to a cell whose only export made this."""
    return verdict.objection(CELL, [outcome(made)])


def judged(*results: Lowered | Failure | Casualty) -> Verdict:
    """Return the objection to a cell whose exports made these, which has to exist."""
    found = verdict.objection(CELL, outcomes(*results))
    assert not found.accepted
    return found


def lowered_by(made: Artifact | Casualty | Outcome) -> Lowered:
    """Return the program of an export that has to have made one."""
    found = made.result if isinstance(made, Outcome) else made
    assert isinstance(found, Artifact), found
    assert isinstance(found.result, Lowered), found.result
    return found.result


def wrong(artifact: Artifact, where: str = "") -> Artifact:
    """Return an artifact whose program gives an output that is off by one, and what was found of where it begins."""
    made = lowered_by(artifact)
    example, *others = made.samples
    (expected,) = example.expected
    off = replace(example, outputs=(Tensor.from_array(expected.array() + 1),))
    place = Beginning(where, "the graphs do not give what eager gives")
    begins = FirstDeparture(example.name, place) if where else None
    return replace(artifact, result=replace(made, samples=(off, *others), begins=begins))


def with_graph(artifact: Artifact, graph: str) -> Artifact:
    """Return an artifact whose lowered graph has another text."""
    return replace(artifact, result=replace(lowered_by(artifact), graph=graph))


def renamed(artifact: Artifact, to: str = "delegated") -> Artifact:
    """Return an artifact in whose graph the node that calls the delegate has another name."""
    graph = lowered_by(artifact).graph
    return with_graph(artifact, re.sub(r"(?<=[%(])executorch_call_delegate\b", to, graph))


def other(artifact: Artifact) -> Artifact:
    """Return an artifact whose lowered graph has a line more."""
    return with_graph(artifact, lowered_by(artifact).graph + "x\n")
