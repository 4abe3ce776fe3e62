"""The harness's recipe from a case to a lowered program."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from executorch_goldens.artifact import (
    DELEGATE,
    EDGE,
    EXPORTED,
    LOWERED,
    QUANTIZED,
    Delegate,
    Lowered,
)
from executorch_goldens.decode import Schemas
from executorch_goldens.exporting import compat, tosa_validation
from executorch_goldens.exporting.building import FORWARD
from executorch_goldens.exporting.data import Example, example_of, measured
from executorch_goldens.exporting.inside import tosa
from executorch_goldens.exporting.numerics import narrow
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.arithmetic import APPROXIMATIONS
from executorch_goldens.exporting.numerics.quantizing import convert, export_program
from executorch_goldens.exporting.numerics.samples import unbounded
from executorch_goldens.exporting.program import (
    Edge,
    ExportProgress,
    Program,
    Reference,
    Request,
    expecting,
    graphs,
    held_to,
    require_function,
    sampled,
    spread,
)
from executorch_goldens.exporting.running import run_program
from executorch_goldens.exporting.trace import Given
from executorch_goldens.files import logged
from executorch_goldens.numerics import IMPRECISE
from executorch_goldens.zoo.targets import REFERENCE_MODEL, RUNTIME


def stages(request: Request) -> Iterator[ExportProgress]:
    """Export, lower, emit and run; yield each stage as it begins, and the end.

    Whatever the release raises passes through.
    """
    lowering, watch, target = request.lowering, request.watch, request.target
    off = APPROXIMATIONS.get(target.backend, {})
    example = lowering.cast(example_of(request.case))
    sizes = unbounded(example)
    reference = modelled(request, example)
    yield ExportProgress("export", (reference,))
    exported = example.program or export_program(example.module, example)
    watch.stage(EXPORTED, exported)
    if lowering.quantizer is None:
        eager = compat.graph_module(exported)
    else:
        yield ExportProgress("quantize", (reference,))
        watch.making = QUANTIZED
        converting = partial(convert, lowering, request.case, example, exported)
        eager = converting()
        reference = held_to(request, reference, eager, eager)
        # Training changes the model, as it should.
        plain = compat.graph_module(exported) if example.train is None else None
        reference = dataclasses.replace(reference, graphs=lambda: (plain, converting(fold=False)))
    narrowed = narrow_copy(eager)
    reference = spread(request, reference, eager, off)
    if lowering.quantizer is not None:
        if request.case.constant_outputs and target.runs == REFERENCE_MODEL:
            reference = dataclasses.replace(reference, codes=numerics.output_codes(eager))
        exported = export_program(eager, example)
        watch.stage(QUANTIZED, exported)
    yield ExportProgress("lower", (reference,))
    watch.making = EDGE
    with tosa.noted() if request.execute and target.runs == REFERENCE_MODEL else nullcontext():
        manager = lowering.lower(exported)
    del exported, eager
    module = manager.exported_program().graph_module
    kernels = narrow.outside(node for _, inner in graphs(module) for node in inner.graph.nodes)
    if kernels and narrowed is not None:
        # Kernels outside of delegates add up in a narrow type.
        reference = spread(request, reference, narrowed, off, kernels)
    del narrowed
    yield ExportProgress("lower", (reference,), edge=manager)
    edge = Edge.from_manager(manager, lowering)
    made = unexecuted(request, edge.graph, edge.delegates, module)
    elsewhere = numerics.Elsewhere(module, target.runs, request.observer, lowering.simulator)
    yield ExportProgress("emit", (reference,))
    emitted = manager.to_executorch()
    edge = edge.emitted(emitted)
    pte = bytes(emitted.buffer)
    watch.stage("pte", pte)
    made = dataclasses.replace(
        made, pte=pte, scales=reference.scales, codes=reference.codes, unjudged=reference.unjudged
    )
    reached = ExportProgress("run", (reference,), made=made, log=logged.end(), unbounded=sizes)
    yield reached
    source = emitted.executorch_program
    backends = tuple({each.id: None for plan in source.execution_plan for each in plan.delegates})
    called = tuple(numerics.operators_of(source))
    not_run = beyond(request, edge.delegates, source)
    program = Program(pte, edge, called, backends, elsewhere, off, not_run)
    (reference,), result = run_program(request, program, (reference,), made)
    outputs = {sample.name: sample.outputs for sample in result.samples}
    result = dataclasses.replace(
        result,
        altered=tuple(watch.given.altered()) if watch.given is not None else (),
        metric=measured(example, outputs, reference.floats or reference.expected),
    )
    yield dataclasses.replace(reached, references=(reference,), program=program, result=result)


def modelled(request: Request, example: Example) -> Reference:
    """Run the model of a case on its samples; watch what becomes of it."""
    if not request.execute:
        return Reference((FORWARD,), (example.call,))
    reference, states = sampled(request, example, FORWARD)
    request.watch.given = Given(example.module, states)
    reference = expecting(request, reference, example.module)
    require_function(request, reference, example.module)
    return reference


def narrow_copy(module: torch.nn.Module) -> torch.nn.Module | None:
    """Return a copy of a graph that has values of a narrow type, for lowering may write to the weights."""
    is_narrow = isinstance(module, torch.fx.GraphModule) and narrow.has_narrow(module.graph.nodes)
    return copy.deepcopy(module) if is_narrow else None


def unexecuted(
    request: Request,
    graph: str,
    delegates: Sequence[Delegate],
    module: torch.nn.Module,
) -> Lowered:
    """Return the graph and the delegates of a lowered program, before it is run.

    Parameters
    ----------
    module
        A module with the delegates, for tosa-tools to check.
    """
    for index, delegate in enumerate(delegates):
        request.watch.stage(f"{DELEGATE}{index}", delegate.payload)
    target, case = request.target, request.case
    # Goldens have the digests of these texts.
    request.watch.stage(LOWERED, (graph if case.is_build else graph.removesuffix("\n")).encode())
    least = case.sqnr.get(target.name, -math.inf)
    # A case that asks for all the SQNR of its target is judged by that.
    by_sqnr = target.floor is not None and least >= target.floor
    found = tosa_validation.validation(module, target.specification) if request.execute else None
    tosa_validation.tell(found)
    return Lowered(
        graph=graph,
        delegates=tuple(delegates),
        pte=b"",
        samples=(),
        bound=request.bound,
        schemas=tuple(map(str, Schemas.installed().places)),
        limit=math.inf if by_sqnr else case.imprecise.get(target.name, IMPRECISE),
        validation=found,
    )


def beyond(request: Request, delegates: Sequence[Delegate], program: Any) -> str:
    """Return what nothing here runs of an emitted program, or gives to it; empty if nothing."""
    if not request.execute:
        return ""
    if request.target.runs == RUNTIME:
        return numerics.beyond_runtime(program)
    if request.target.runs == REFERENCE_MODEL:
        return numerics.beyond_reference_model(delegates)
    backends = {each.backend_id for each in delegates}
    if request.lowering.simulator is not None or not backends:
        return ""
    return f"nothing runs delegates of {', '.join(sorted(backends))}: its target names no simulator"
