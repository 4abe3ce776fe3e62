"""Exports a case that makes its program by itself: its program, how it runs, and its reference."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import torch
from executorch.exir import EdgeProgramManager, ExecutorchProgramManager

from executorch_goldens.artifact import Delegate, Lowered
from executorch_goldens.decode import Decoded, DecodeError, Schemas, Value, decode
from executorch_goldens.decode.pte import DTYPES
from executorch_goldens.exporting import compat, kernels
from executorch_goldens.exporting.arrays import type_name
from executorch_goldens.exporting.building import Build, Built, Method
from executorch_goldens.exporting.calls import CallSpec
from executorch_goldens.exporting.data import Example, in_training
from executorch_goldens.exporting.inside import tosa
from executorch_goldens.exporting.numerics import narrow
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.arithmetic import APPROXIMATIONS, Approximations
from executorch_goldens.exporting.numerics.quantizing import export_program
from executorch_goldens.exporting.program import (
    MODEL,
    Edge,
    ExportProgress,
    Program,
    Reference,
    Request,
    departs,
    expecting,
    held_to,
    require_function,
    sampled,
    spread,
)
from executorch_goldens.exporting.recipe import unexecuted
from executorch_goldens.exporting.running import run_program
from executorch_goldens.exporting.trace import is_plain
from executorch_goldens.files import logged
from executorch_goldens.files.wording import some, type_of
from executorch_goldens.zoo.registry import Case, ZooError
from executorch_goldens.zoo.targets import REFERENCE_MODEL, TOSA, XNNPACK

#: The stage in which the function of a case makes its program.
BUILDING = "build"
#: The samples on which methods are run in order.
IN_ORDER = ("example", "drawn")
#: Approximations of each backend, by the id of its delegates; see `arithmetic.APPROXIMATIONS`.
BACKENDS = {numerics.TOSA_BACKEND: TOSA, "XnnpackBackend": XNNPACK}


def stages(request: Request) -> Iterator[ExportProgress]:
    """Have the case make its program, then run it; yield each stage as it begins, and the end.

    Whatever the release raises passes through.
    """
    yield ExportProgress(BUILDING)
    build = Build(request.case.name)
    with emissions() as made, tosa.noted() if request.execute else nullcontext():
        given = request.case.build(build)
    own = own_of(request, build, given, made)
    lowered = unjudged(request, own)
    if not request.execute:
        yield ExportProgress(MODEL, result=lowered)
        return
    yield ExportProgress(MODEL)
    program = program_of(request, own)
    references = tuple(references_of(request, own, program.off))
    training = tuple(taken_out(build, references))
    for reference in references:
        require_inputs(request.case, own, reference)
    scales = {each.method: each.scales for each in references if len(each.order) == 1}
    lowered = dataclasses.replace(
        lowered,
        methods=tuple(scales.items()) if own.has_several else (),
        scales=references[0].scales if references else (),
        training=training,
    )
    reached = ExportProgress("run", references, made=lowered, log=logged.end())
    yield reached
    program = dataclasses.replace(program, not_run=not_run(own, program))
    references, result = run_program(request, program, references, lowered)
    result = dataclasses.replace(result, recipe=recipe(own, dict(training)), model=tuple(model(build)))
    if not result.samples and not result.not_run:
        why = "the case names no module and no recorded run: build.method(...)"
        result = dataclasses.replace(result, not_run=why)
    yield dataclasses.replace(reached, references=references, program=program, result=result)


@dataclass(frozen=True)
class Emission:
    """A call of ``to_executorch``: its result, its source, and the graph modules of this as they are left."""

    program: ExecutorchProgramManager
    edge: Edge
    modules: Mapping[str, torch.nn.Module]


@contextlib.contextmanager
def emissions() -> Iterator[list[Emission]]:
    """Record the calls of ``to_executorch``."""
    made: list[Emission] = []
    method = EdgeProgramManager.to_executorch

    @functools.wraps(method)
    def noting(manager: EdgeProgramManager, *args: Any, **kwargs: Any) -> ExecutorchProgramManager:
        edge = Edge.from_manager(manager)
        modules = {name: manager.exported_program(name).graph_module for name in edge.methods}
        program: ExecutorchProgramManager = method(manager, *args, **kwargs)
        made.append(Emission(program, edge.emitted(program), modules))
        return program

    with mock.patch.object(EdgeProgramManager, "to_executorch", noting):
        yield made


@dataclass(frozen=True)
class Own:
    """The program that a case has made.

    Attributes
    ----------
    emission
        Its source; None where it came as bytes that nothing here emitted.
    """

    build: Build
    built: Built
    decoded: Decoded
    emission: Emission | None

    @property
    def has_several(self) -> bool:
        """Return whether samples belong to methods: there are several methods, or some run in order."""
        return len(self.build.methods) > 1 or bool(self.build.orders)

    @property
    def operators(self) -> Iterator[str]:
        """The operators of all methods."""
        return (operator.type for graph in self.decoded.graphs for operator in graph.operators)

    @property
    def edge(self) -> Edge | None:
        return self.emission.edge if self.emission is not None else None

    @property
    def delegates(self) -> tuple[Delegate, ...]:
        """The delegates of the program; of one that nothing here emitted, those that the bytes have."""
        if self.edge is not None:
            return self.edge.delegates
        named = tuple(
            (key.removeprefix("named_data "), bytes(blob.data))
            for key, blob in self.decoded.blobs.items()
            if key.startswith("named_data ")
        )
        return tuple(
            Delegate(each.name.replace("/", "."), each.backend, bytes(each.payload), named)
            for each in self.decoded.delegates
        )


def own_of(request: Request, build: Build, given: object, made: Sequence[Emission]) -> Own:
    """Take the result of the case's function; raise `ZooError` if it is no program."""
    case = request.case
    if isinstance(given, ExecutorchProgramManager):
        data = {name: bytes(content) for name, content in (given._tensor_data or {}).items()}
        built = Built(bytes(given.buffer), data)
        emission = next((each for each in made if each.program is given), None)
        decoded = None
    else:
        built = Built(bytes(given)) if isinstance(given, bytes | bytearray) else given  # type: ignore[assignment]
        if not isinstance(built, Built):
            raise ZooError(
                f"case {case.name!r} of {case.module} gives {type_of(given)}, and no program: return "
                "the result of to_executorch(), its bytes, or Built(pte, {name: data})"
            )
        try:
            decoded = decode(built.pte, schemas=Schemas.installed())
        except DecodeError as error:
            raise ZooError(f"case {case.name!r}: its bytes are no program (.pte): {error}") from error
        if decoded.kind != "pte":
            raise ZooError(f"case {case.name!r}: its bytes are {decoded.kind}, and no program (.pte)")
        emission = next((each for each in reversed(made) if bytes(each.program.buffer) == built.pte), None)
    request.watch.stage("pte", built.pte)
    return Own(build, built, decoded or decode(built.pte, schemas=Schemas.installed()), emission)


def unjudged(request: Request, own: Own) -> Lowered:
    """Return the program with its graph and its delegates, before anything is run."""
    build, modules = own.build, own.emission.modules if own.emission is not None else {}
    whole = torch.nn.Module()
    for name, module in modules.items():
        whole.add_module(f"method {name}", module)
    graph = own.edge.graph if own.edge is not None else ""
    bounds = {name: method.bound for name, method in build.methods.items() if method.bound > request.bound}
    return dataclasses.replace(
        unexecuted(request, graph, own.delegates, whole),
        pte=own.built.pte,
        bound=request.bound if own.has_several else max([request.bound, *bounds.values()]),
        bounds=tuple(bounds.items()) if own.has_several else (),
        data=tuple(sorted(own.built.data.items())),
        unchecked=tuple(plan.name for plan in own.decoded.graphs if plan.name not in build.methods),
    )


def program_of(request: Request, own: Own) -> Program:
    """Return what is run of the program."""
    backends = tuple(dict.fromkeys(delegate.backend_id for delegate in own.delegates))
    return Program(
        own.built.pte,
        own.edge,
        tuple(each for each in own.operators if "::" in each),
        backends,
        numerics.Elsewhere(None, REFERENCE_MODEL, request.observer),
        {
            name: move
            for backend in backends
            for name, move in APPROXIMATIONS.get(BACKENDS.get(backend, ""), {}).items()
        },
        data=next(iter(own.built.data.values()), b""),
    )


def not_run(own: Own, program: Program) -> str:
    """Return why the program is not run; empty where it is."""
    there = {*kernels.backends(), numerics.TOSA_BACKEND}
    if lacking := [name for name in program.backends if name not in there]:
        return f"the runtime has no backend {', '.join(lacking)}"
    if why := numerics.beyond_reference_model(own.delegates):
        return why
    if len(own.built.data) > 1:
        return f"the runtime's Python interface takes one data file, and there are {len(own.built.data)}"
    if not any(len({*order}) > 1 for order in own.build.orders):
        return ""
    if own.built.data:
        return "the runtime's Python interface runs several methods in order only without a data file"
    if numerics.TOSA_BACKEND in program.backends:
        return "" if own.edge is not None else "of a program in bytes, no methods with TOSA run in order"
    without = numerics.without_kernels(program.called)
    return f"the runtime has no kernel for {', '.join(without)}" if without else ""


def model(build: Build) -> Iterator[str]:
    """Yield a line for each parameter and buffer of the named modules: its name and digest."""
    for name, method in build.methods.items():
        state = method.example.module.state_dict() if method.example is not None else {}
        # Tensors quantized by torchao are of its own class: their bytes are not numpy's.
        for path, tensor in filter(lambda item: is_plain(item[1]), state.items()):
            held = numerics.flatten((tensor.detach(),))[0]
            digest = hashlib.sha256(held.data).hexdigest()[:16]
            yield f"{name} {path} {type_name(tensor)} sha256 {digest}"


def recipe(own: Own, training: Mapping[str, str]) -> str:
    """Return how the program was made, the references of its methods, and the facts that stay unknown."""
    unknown = ["which quantization loses what is lost", "whether lowering changes the model"]
    if own.edge is None:
        unknown.insert(0, "the graph, as the program came as bytes")
    held = "; ".join(
        f"{name} held to {method.held_to}"
        + (f" in eval mode, given {training[name]}" if name in training else "")
        for name, method in own.build.methods.items()
    )
    return f"the case's own; {held or 'held to nothing'}; not known: {', '.join(unknown)}"


# What should come out


def references_of(request: Request, own: Own, off: Approximations) -> Iterator[Reference]:
    """Yield each method by itself, then the orders that the case asks for, from their second method on."""
    named = {each.partition("::")[2].partition(".")[0] for each in own.operators}
    spreading = partial(spread, request, off=off, kernels=narrow.accumulating() & named)
    for name, method in own.build.methods.items():
        prefix = f"{name}: " if own.has_several else ""
        runs = {f"{prefix}{sample}": run for sample, run in method.recorded.items()}
        if (example := method.example) is not None:
            reference, _ = sampled(request, example, name, prefix)
            reference = expecting(request, reference, example.module)
            require_function(request, reference, example.module)
            if method.quantized is not None:
                reference = held_to(request, reference, method.quantized, method.quantized)
            graph = exported(example.module if method.quantized is None else method.quantized, example)
            reference = spreading(reference, graph)
            if method.quantized is not None:
                graphs = partial(graphs_of, example, graph)
                reference = dataclasses.replace(reference, graphs=graphs, folded=True)
        else:
            inputs, _ = next(iter(runs.values()))
            reference = Reference((name,), (CallSpec.from_arguments(inputs, {}),))
        yield dataclasses.replace(
            reference,
            samples={**reference.samples, **{sample: (inputs,) for sample, (inputs, _) in runs.items()}},
            expected={
                **reference.expected,
                **{sample: numerics.flatten(outputs) for sample, (_, outputs) in runs.items()},
            },
        )
    for order in own.build.orders:
        for end in range(2, len(order) + 1):
            yield spreading(*of_order(request, own.build, order[:end]))


def taken_out(build: Build, references: Sequence[Reference]) -> Iterator[tuple[str, str]]:
    """Yield each method whose module gives something else as it was given, in training mode, and what was in that."""
    expected = {each.method: each for each in references if len(each.order) == 1}
    for name, method in build.methods.items():
        if method.given is None or not (reference := expected[name]).samples:
            continue
        sample, steps = next(iter(reference.samples.items()))
        eager = (reference.floats or reference.expected)[sample]
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                made = numerics.given_by(reference.flat(method.given), copy.deepcopy(steps))
            line = departs(sample, eager, numerics.flatten(made))
        except Exception as error:  # a batch norm in training mode, for instance, of one value a channel
            line = str(error)
        if line:
            names = [*in_training(method.given)]
            yield name, "in training mode" if "" in names else f"with {some(names, 3)} in training mode"


def of_order(request: Request, build: Build, order: Sequence[str]) -> tuple[Reference, torch.nn.Module]:
    """Return the samples of methods in order; raise `ZooError` for one that has no module.

    As one module they cannot be exported: each is by itself.
    """
    methods = [build.methods.get(name, Method()) for name in order]
    known = [method.example for method in methods if method.example is not None]
    if len(known) != len(order):
        lacking = next(name for name, each in zip(order, methods, strict=True) if each.example is None)
        raise ZooError(f"build.in_order: {lacking!r} has no module: build.method(..., {lacking!r})")
    calls = tuple(example.call for example in known)
    samples = {
        f"{', '.join(order)}: {name}": tuple(
            each.tensors if name == "example" else build.data.all_like(each.tensors, name) for each in known
        )
        for name in IN_ORDER
        if name == "example" or name in request.case.run_on
    }
    plain = [example.module for example in known]
    held = [
        module if method.quantized is None else method.quantized
        for module, method in zip(plain, methods, strict=True)
    ]
    reference = expecting(request, Reference(tuple(order), calls, samples), InOrder(plain, calls))
    if any(method.quantized is not None for method in methods):
        reference = held_to(request, reference, InOrder(held, calls), methods[-1].quantized)
    return reference, InOrder([exported(*each) for each in zip(held, known, strict=True)], calls)


def require_inputs(case: Case, own: Own, reference: Reference) -> None:
    """Raise `ZooError` where a method takes inputs of other types than its declaration gives."""
    plan = next((each for each in own.decoded.graphs if each.name == reference.method), None)
    if plan is None or len(reference.order) > 1 or not reference.samples:
        return
    ((_, given),) = reference.for_runtime(next(iter(reference.samples.values()))[:1])
    taken = [plan.values[name] for name in plan.inputs]
    for number, (value, leaf) in enumerate(zip(taken, given, strict=False)):
        wanted = _type(value, leaf) if isinstance(leaf, torch.Tensor) else ""
        declared = type_name(leaf) if wanted else ""
        if wanted != declared:
            quantized = (
                "; a program with quantized inputs is declared by what it takes: build.recorded(inputs, outputs)"
                if leaf.is_floating_point() and "int" in wanted
                else ""
            )
            raise ZooError(
                f"case {case.name!r} declares input {number} of {reference.method} as {declared}, and the program "
                f"takes {wanted}{quantized}"
            )


class InOrder(torch.nn.Module):
    """Runs one module after another, each time the next, and begins again after the last."""

    def __init__(self, modules: Sequence[torch.nn.Module], calls: Sequence[CallSpec]) -> None:
        super().__init__()
        self.steps = torch.nn.ModuleList(modules)
        self.calls = tuple(calls)
        self.done = 0

    def forward(self, *inputs: torch.Tensor) -> Any:
        at = self.done % len(self.steps)
        self.done += 1
        return self.calls[at].run(self.steps[at], inputs)


#: Names of torch's types by the letters of a codec's.
KINDS = {"i": "int", "u": "uint", "f": "float", "bf": "bfloat", "c": "complex", "bool": "bool"}


def _type(value: Value, declared: torch.Tensor) -> str:
    """Return the type of a program's input in torch's words; empty where that is not known.

    A program has the largest sizes of dynamic dimensions.
    """
    found = re.fullmatch(r"([a-z]+)(\d*)", DTYPES[value.dtype].name) if value.dtype in DTYPES else None
    if found is None or value.shape is None:
        return ""
    is_dynamic = "shape_dynamism" in value.attributes and len(value.shape) == declared.dim()
    shape = declared.shape if is_dynamic else value.shape
    return f"{KINDS[found[1]]}{found[2]}{list(shape)}"


def graphs_of(example: Example, quantized: torch.nn.Module) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Return the graph of a float model, where it can be exported, beside that of the quantized one."""
    return exported(example.module, example), quantized


def exported(module: torch.nn.Module, example: Example) -> torch.nn.Module:
    """Return the exported graph of a module, or the module itself where it cannot be exported."""
    if isinstance(module, torch.fx.GraphModule):
        return module
    try:
        return compat.graph_module(export_program(copy.deepcopy(module), example))
    except Exception:  # whatever torch.export raises, the program is there already
        return module
