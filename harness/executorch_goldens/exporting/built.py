"""Exports a case that makes its program by itself: its program, how it runs, and its reference."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from executorch.exir import EdgeProgramManager, ExecutorchProgramManager

from executorch_goldens.artifact import (
    DELEGATE,
    LOWERED,
    Delegate,
    Failure,
    Inside,
    Lost,
    Lowered,
    Sample,
    Tensor,
)
from executorch_goldens.decode import Decoded, DecodeError, Schemas, Value, decode
from executorch_goldens.decode.pte import DTYPES
from executorch_goldens.exporting import compat, kernels, tosa_validation
from executorch_goldens.exporting.building import Build, Built, Method
from executorch_goldens.exporting.calls import Call
from executorch_goldens.exporting.data import Example
from executorch_goldens.exporting.export import LOOKING, MODEL, Export, delegates, text_of
from executorch_goldens.exporting.given import is_plain
from executorch_goldens.exporting.inside import beginning, tosa
from executorch_goldens.exporting.numerics import arithmetic, loading, narrow
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.quantizing import export_program
from executorch_goldens.exporting.numerics.samples import samples_of
from executorch_goldens.exporting.numerics.walking import Walker, nothing_runs
from executorch_goldens.files import logged
from executorch_goldens.files.wording import type_of
from executorch_goldens.goldens.accuracy import worst
from executorch_goldens.zoo.registry import ZooError
from executorch_goldens.zoo.targets import BUILD, INT8_FLOOR, REFERENCE_MODEL, TOSA, XNNPACK

#: The stage in which the function of a case makes its program.
BUILDING = "build"
#: The samples on which methods are run in order.
IN_ORDER = ("example", "drawn")
#: Approximations of each backend, by the id of its delegates; see `arithmetic.APPROXIMATIONS`.
BACKENDS = {"TOSABackend": TOSA, "XnnpackBackend": XNNPACK}


@dataclasses.dataclass(frozen=True)
class Emitted:
    """A program before ``to_executorch``, which rewrites it, and the result.

    Attributes
    ----------
    programs
        By method, in the order of their names, which is that of the emitted program.
    modules
        Their graph modules.
    graph
        The text of all graphs.
    delegates
        Of all methods.
    unset
        By method: see `executorch_goldens.exporting.inside.beginning.unset`.
    """

    programs: Mapping[str, beginning.Program]
    modules: Mapping[str, torch.fx.GraphModule]
    graph: str
    delegates: tuple[Delegate, ...]
    unset: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, edge: EdgeProgramManager) -> Emitted:
        names = sorted(edge.methods)
        edges = {name: edge.exported_program(name) for name in names}
        texts, found = [], []
        for name, program in edges.items():
            several = name if len(names) > 1 else ""
            texts += [f"method {name}:\n"] if several else []
            texts.append(f"{text_of(program.graph_module)}\n")
            found += [
                dataclasses.replace(each, name=f"{several}.{each.name}".lstrip("."))
                for each in delegates(program.graph_module)
            ]
        return cls(
            {name: beginning.Program.of(program) for name, program in edges.items()},
            {name: program.graph_module for name, program in edges.items()},
            "".join(texts),
            tuple(found),
        )


@contextlib.contextmanager
def emissions() -> Iterator[dict[int, tuple[ExecutorchProgramManager, Emitted]]]:
    """Record arguments and results of ``to_executorch``, by the identity of the result."""
    made: dict[int, tuple[ExecutorchProgramManager, Emitted]] = {}
    method = EdgeProgramManager.to_executorch

    @functools.wraps(method)
    def noting(edge: EdgeProgramManager, *args: Any, **kwargs: Any) -> ExecutorchProgramManager:
        before = Emitted.of(edge)
        program: ExecutorchProgramManager = method(edge, *args, **kwargs)
        unset = {
            name: beginning.unset(each, program.exported_program(name))
            for name, each in before.programs.items()
        }
        made[id(program)] = program, dataclasses.replace(before, unset=unset)
        return program

    EdgeProgramManager.to_executorch = noting
    try:
        yield made
    finally:
        EdgeProgramManager.to_executorch = method


class InOrder(torch.nn.Module):
    """Runs one module after another, each time the next, and begins again after the last."""

    def __init__(self, modules: Sequence[torch.nn.Module], calls: Sequence[Call]) -> None:
        super().__init__()
        self.steps = torch.nn.ModuleList(modules)
        self.calls = tuple(calls)
        self.done = 0

    def forward(self, *inputs: torch.Tensor) -> Any:
        at = self.done % len(self.steps)
        self.done += 1
        return self.calls[at].run(self.steps[at], inputs)


class Way(Export):
    """A way to run a program, some methods in order, with expected outputs.

    Attributes
    ----------
    order
        The methods that the steps run: one for all, or one for each.
    examples
        Of each method.
    """

    def __init__(self, whole: BuiltExport, order: Sequence[str]) -> None:
        super().__init__(whole.case, whole.lowering, execute=whole.executing, observer=whole.observer)
        self.order = tuple(order)
        self.examples: Sequence[Example] = ()
        self.bound = whole.bound

    @property
    def method(self) -> str:
        """The method whose outputs count."""
        return self.order[-1]

    def of_step(self, number: int) -> str:
        """Return the method that a step runs."""
        return self.order[number] if len(self.order) > 1 else self.method

    @property
    def constants(self) -> tuple[Any, ...]:
        return tuple(each for example in self.examples for each in example.call.constants)

    def for_runtime(self, steps: numerics.Steps) -> list[tuple[str, Sequence[Any]]]:
        """Return the runtime's inputs: the method of each step, and its arguments."""
        several = [each.call for each in self.examples] if len(self.order) > 1 else []
        calls = several or [self.call] * len(steps)
        return [
            (self.of_step(at), call.for_runtime([inputs])[0])
            for at, (call, inputs) in enumerate(zip(calls, steps, strict=True))
        ]

    def take(self, method: Method, prefix: str) -> None:
        """Set the expected outputs of a method on each of its samples."""
        if (example := method.example) is not None:
            self.call, self.examples = example.call, (example,)
            with torch.no_grad(), self.lowering.eager():
                states = numerics.states(example.module, example.call, example.tensors)
            found = samples_of(self.case, example, remembers=bool(states))
            self.samples = {f"{prefix}{name}": steps for name, steps in found.items()}
            self.judge_by(example.module, method.quantized, method.quantized)
        elif method.recorded:
            self.call = Call.of(next(iter(method.recorded.values()))[0], {})
        for name, (inputs, outputs) in method.recorded.items():
            self.samples[f"{prefix}{name}"] = (inputs,)
            self.expected[f"{prefix}{name}"] = numerics.flatten(outputs)

    def judge_by(
        self,
        module: torch.nn.Module,
        quantized: torch.nn.Module | None,
        last: torch.nn.Module | None,
    ) -> None:
        """Return the outputs of the eager module on each sample, and of the quantized one if there is one.

        Parameters
        ----------
        last
            The source of the outputs, quantized: its graph tells what one code of them is worth.
        """
        self.expect(module)
        if quantized is not None:
            self.hold_to(quantized, last)
        self.spread(self.as_exported(module if quantized is None else quantized))

    def as_exported(self, module: torch.nn.Module) -> torch.nn.Module:
        """Return a module as operators that rounding is known of: tensors that torchao made hide theirs.

        Programs that cannot be exported alone, as methods in order, stay unchanged.
        """
        if isinstance(module, torch.fx.GraphModule):
            return module
        if isinstance(module, InOrder):
            steps = zip(module.steps, self.examples, strict=True)
            return InOrder([exported(inner, each) for inner, each in steps], module.calls)
        return exported(module, self.examples[0])

    def sample(self, name: str, given: tuple[Tensor, ...]) -> Sample:
        if name in self.moved:
            return super().sample(name, given)
        return Sample(name, self.expected[name], given)


class BuiltExport(Export):
    """One export of a case that makes its program by itself.

    Attributes
    ----------
    build
        The argument of the case's function.
    ways
        The ways in which the program is run.
    emitted
        The source of the program; None where it came as bytes that nothing here emitted.
    built
        The program.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.build = Build(self.case.name)
        self.ways: list[Way] = []
        self.emitted: Emitted | None = None
        self.built = Built(b"")
        self._constants: tuple[Any, ...] = ()

    def run(self) -> Lowered:
        """Have the case make its program, then run it; whatever the release raises passes through."""
        self.stage = BUILDING
        with emissions() as made, tosa.noted() if self.executing else nullcontext():
            given = self.case.build(self.build)
        self.take(given, made)
        self.watch.stage("pte", self.built.pte)
        lowered = self.unjudged_program()
        if not self.executing:
            return lowered
        self.stage = MODEL
        self.ways = list(self.all_ways())
        for way in self.ways:
            self.require_inputs(way)
        self.made = lowered = dataclasses.replace(
            lowered, methods=tuple(self.scales_by_method()), scales=self.ways[0].scales if self.ways else ()
        )
        self.stage, self.log = "run", logged.end()
        not_run = self.not_run()
        in_eager = () if not_run else self.in_eager(self.called())
        not_run = not_run or nothing_runs(in_eager)
        samples: list[Sample] = []
        loads: list[str] = []
        for way in self.ways:
            outputs, lines = ({}, ()) if not_run else self.run_way(way, in_eager)
            samples += [
                dataclasses.replace(way.sample(name, out), method=way.method if lowered.methods else "")
                for name, out in outputs.items()
            ]
            loads += lines
            self.samples |= way.samples
            self.methods |= {
                name: tuple(way.of_step(at) for at in range(len(steps)))
                for name, steps in way.samples.items()
            }
            self._constants += way.constants
            self.unjudged += way.unjudged
        if not samples and not not_run:
            not_run = self.left_out or "the case names no module and no recorded run: build.method(...)"
        return dataclasses.replace(
            lowered,
            samples=tuple(samples),
            not_run=not_run,
            in_eager=in_eager,
            unjudged=self.unjudged,
            loads=tuple(dict.fromkeys(loads)),
            recipe=self.recipe(),
            model=tuple(self.model()),
        )

    def take(self, given: object, made: Mapping[int, tuple[ExecutorchProgramManager, Emitted]]) -> None:
        """Take the result of the case's function; raise `ZooError` if it is no program."""
        self.emitted = None
        if isinstance(given, ExecutorchProgramManager):
            if id(given) in made:
                self.emitted = made[id(given)][1]
            data = {name: bytes(content) for name, content in (given._tensor_data or {}).items()}
            self.built = Built(bytes(given.buffer), data)
            return
        if isinstance(given, bytes | bytearray):
            given = Built(bytes(given))
        if not isinstance(given, Built):
            raise ZooError(
                f"case {self.case.name!r} of {self.case.module} gives {type_of(given)}, and no program: return "
                "the result of to_executorch(), its bytes, or Built(pte, {name: data})"
            )
        try:
            self.decoded = decode(given.pte, schemas=Schemas.installed())
            if self.decoded.kind != "pte":
                raise ZooError(
                    f"case {self.case.name!r}: its bytes are {self.decoded.kind}, and no program (.pte)"
                )
        except DecodeError as error:
            raise ZooError(f"case {self.case.name!r}: its bytes are no program (.pte): {error}") from error
        self.built = given
        for program, emitted in made.values():
            if bytes(program.buffer) == self.built.pte:
                self.emitted = emitted

    @property
    def constants(self) -> tuple[Any, ...]:
        return self._constants

    @property
    def has_several(self) -> bool:
        """Return whether samples belong to methods: there are several methods, or some run in order."""
        return len(self.build.methods) > 1 or bool(self.build.orders)

    @property
    def backends(self) -> tuple[str, ...]:
        """The ids of the backends that the program has delegates of, by its own account."""
        return tuple(dict.fromkeys(delegate.backend_id for delegate in self.delegates))

    @functools.cached_property
    def delegates(self) -> tuple[Delegate, ...]:
        """The delegates of the program; of one that nothing here emitted, those that the bytes have."""
        if self.emitted is not None:
            return self.emitted.delegates
        named = tuple(
            (key.removeprefix("named_data "), bytes(blob.data))
            for key, blob in self.decoded.blobs.items()
            if key.startswith("named_data ")
        )
        return tuple(
            Delegate(each.name.replace("/", "."), each.backend, bytes(each.payload), named)
            for each in self.decoded.delegates
        )

    @functools.cached_property
    def decoded(self) -> Decoded:
        """The program, decoded."""
        return decode(self.built.pte, schemas=Schemas.installed())

    def unjudged_program(self) -> Lowered:
        """Return the program with its graph and its delegates, before anything is run."""
        graph = self.emitted.graph if self.emitted is not None else ""
        bounds = {
            name: method.bound for name, method in self.build.methods.items() if method.bound > self.bound
        }
        for index, delegate in enumerate(self.delegates):
            self.watch.stage(f"{DELEGATE}{index}", delegate.payload)
        self.watch.stage(LOWERED, graph.encode())
        found = None
        if self.executing and self.emitted is not None:
            whole = torch.nn.Module()
            for name, module in self.emitted.modules.items():
                whole.add_module(f"method {name}", module)
            found = tosa_validation.validation(whole, "")
            tosa_validation.tell(found)
        return Lowered(
            graph=graph,
            delegates=self.delegates,
            pte=self.built.pte,
            samples=(),
            bound=self.bound if self.has_several else max([self.bound, *bounds.values()]),
            bounds=tuple(bounds.items()) if self.has_several else (),
            schemas=tuple(map(str, Schemas.installed().places)),
            limit=self.case.imprecise.get(BUILD, Lowered.limit),
            validation=found,
            data=tuple(sorted(self.built.data.items())),
            unchecked=tuple(plan.name for plan in self.decoded.graphs if plan.name not in self.build.methods),
        )

    def all_ways(self) -> Iterator[Way]:
        """Yield each method by itself, then the orders that the case asks for, from their second method on."""
        for name, method in self.build.methods.items():
            way = self.way((name,))
            way.take(method, f"{name}: " if self.has_several else "")
            yield way
        for order in self.build.orders:
            for end in range(2, len(order) + 1):
                yield self.ordered(order[:end])

    def require_inputs(self, way: Way) -> None:
        """Raise `ZooError` where a method takes inputs of other types than its declaration gives."""
        plan = next((each for each in self.decoded.graphs if each.name == way.method), None)
        if plan is None or len(way.order) > 1 or not way.samples:
            return
        ((_, given),) = way.for_runtime(next(iter(way.samples.values()))[:1])
        taken = [plan.values[name] for name in plan.inputs]
        for number, (value, leaf) in enumerate(zip(taken, given, strict=False)):
            wanted = _type(value, leaf) if isinstance(leaf, torch.Tensor) else ""
            declared = f"{dtype_name(leaf)}{list(leaf.shape)}" if wanted else ""
            if wanted != declared:
                quantized = (
                    "; a program with quantized inputs is declared by what it takes: build.recorded(inputs, outputs)"
                    if leaf.is_floating_point() and "int" in wanted
                    else ""
                )
                raise ZooError(
                    f"case {self.case.name!r} declares input {number} of {way.method} as {declared}, and the program "
                    f"takes {wanted}{quantized}"
                )

    def way(self, methods: Sequence[str]) -> Way:
        way = Way(self, methods)
        operators = (operator.type for graph in self.decoded.graphs for operator in graph.operators)
        way.kernels = narrow.accumulating() & {
            type_.partition("::")[2].partition(".")[0] for type_ in operators
        }
        way.off = {
            name: move
            for backend in self.backends
            for name, move in arithmetic.APPROXIMATIONS.get(BACKENDS.get(backend, ""), {}).items()
        }
        return way

    def ordered(self, order: Sequence[str]) -> Way:
        """Return the way that runs methods in order; raise `ZooError` for one that has no module."""
        examples = [self.build.methods.get(name, Method()).example for name in order]
        known = [example for example in examples if example is not None]
        if len(known) != len(order):
            lacking = order[examples.index(None)]
            raise ZooError(f"build.in_order: {lacking!r} has no module: build.method(..., {lacking!r})")
        way = self.way(order)
        names = [name for name in IN_ORDER if name == "example" or name in self.case.run_on]
        for name in names:
            way.samples[f"{', '.join(order)}: {name}"] = tuple(
                each.tensors if name == "example" else self.build.data.all_like(each.tensors, name)
                for each in known
            )
        way.examples = known
        # A step is given as tensors, whichever method it is of.
        way.call = Call.of(known[0].tensors, {})
        quantized = [self.build.methods[name].quantized for name in order]
        plain = self.in_order(known, [None] * len(known))
        is_quantized = any(module is not None for module in quantized)
        way.judge_by(plain, self.in_order(known, quantized) if is_quantized else None, quantized[-1])
        return way

    def in_order(
        self, examples: Sequence[Example], quantized: Sequence[torch.nn.Module | None]
    ) -> torch.nn.Module:
        """Return methods in order, each as it is quantized, or as it is where it is not."""
        return InOrder(
            [
                each.module if module is None else module
                for each, module in zip(examples, quantized, strict=True)
            ],
            [each.call for each in examples],
        )

    def scales_by_method(self) -> Iterator[tuple[str, tuple[float, ...]]]:
        """Yield each method with the scales of its outputs, where there are several methods."""
        scales = {way.method: way.scales for way in self.ways if len(way.order) == 1}
        yield from scales.items() if self.has_several else ()

    def called(self) -> Iterator[str]:
        """Yield the operators that the program calls outside of delegates."""
        for plan in self.decoded.graphs:
            yield from (each.type for each in plan.operators if "::" in each.type)

    @property
    def runs_in_order(self) -> bool:
        """Return whether several methods run one after another."""
        return any(len({*order}) > 1 for order in self.build.orders)

    def not_run(self) -> str:
        """Return why the program is not run; empty where it is."""
        there = {*kernels.backends(), numerics.TOSA_BACKEND}
        if lacking := [name for name in self.backends if name not in there]:
            return f"the runtime has no backend {', '.join(lacking)}"
        if why := numerics.beyond_reference_model(self.delegates):
            return why
        if len(self.built.data) > 1:
            return f"the runtime's Python interface takes one data file, and there are {len(self.built.data)}"
        if not self.runs_in_order:
            return ""
        if self.built.data:
            return "the runtime's Python interface runs several methods in order only without a data file"
        if numerics.TOSA_BACKEND in self.backends:
            return (
                "" if self.emitted is not None else "of a program in bytes, no methods with TOSA run in order"
            )
        without = numerics.without_kernels(self.called())
        return f"the runtime has no kernel for {', '.join(without)}" if without else ""

    def run_way(
        self, way: Way, in_eager: Sequence[str]
    ) -> tuple[dict[str, tuple[Tensor, ...]], tuple[str, ...]]:
        """Run the program in one way; return its outputs by sample, and the effect of other ways to load it."""
        data = next(iter(self.built.data.values()), b"")
        if in_eager or numerics.TOSA_BACKEND in self.backends:
            with self.lowering.eager():
                return way.outputs(self.apart(way, data)), ()
        outputs = way.outputs(
            lambda steps: numerics.methods_in_runtime(self.built.pte, data, way.for_runtime(steps)),
            self.built.pte,
        )
        if not outputs or self.built.data or len(way.order) > 1:
            return outputs, ()
        given = {name: way.call.for_runtime(steps) for name, steps in way.samples.items()}
        return outputs, loading.differences(self.built.pte, given, outputs, LOOKING, way.method)

    def apart(self, way: Way, data: bytes) -> Callable[[numerics.Steps], tuple[Tensor, ...]]:
        """Return what runs the program with what the runtime lacks elsewhere; methods in order before it is emitted."""
        if len({*way.order}) > 1:
            return partial(self.in_edge, way)
        walker = Walker(
            self.built.pte, numerics.Elsewhere(None, REFERENCE_MODEL, self.observer), way.method, data
        )
        return lambda steps: numerics.flatten(walker.run([inputs for _, inputs in way.for_runtime(steps)]))

    def in_edge(self, way: Way, steps: numerics.Steps) -> tuple[Tensor, ...]:
        """Run the lowered program, with each delegate in its own runtime."""
        assert self.emitted is not None
        programs = {name: self.emitted.programs[name] for name in way.order}
        held = {name: dict(program.held) for name, program in programs.items()}
        given: tuple[Tensor, ...] = ()
        shared: dict[str, Any] = {}
        for at, inputs in enumerate(steps):
            name = way.of_step(at)
            held[name] |= {key: value for key, value in shared.items() if key in held[name]}
            interpreter = EachByItsOwn(programs[name].module)
            interpreter.observer = self.observer
            given = numerics.run_edge(interpreter, programs[name].signature, held[name], inputs)
            shared |= held[name]
        return given

    def model(self) -> Iterator[str]:
        """Yield a line for each parameter and buffer of the named modules: its name and digest."""
        for name, method in self.build.methods.items():
            state = method.example.module.state_dict() if method.example is not None else {}
            # Tensors quantized by torchao are of its own class: their bytes are not numpy's.
            for path, tensor in filter(lambda item: is_plain(item[1]), state.items()):
                held = numerics.flatten((tensor.detach(),))[0]
                digest = hashlib.sha256(held.data).hexdigest()[:16]
                yield f"{name} {path} {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)} sha256 {digest}"

    def recipe(self) -> str:
        """Return how the program was made, the references of its methods, and the facts that stay unknown."""
        unknown = ["which quantization loses what is lost", "whether lowering changes the model"]
        if self.emitted is None:
            unknown.insert(0, "the graph, as the program came as bytes")
        held = "; ".join(f"{name} held to {method.held_to}" for name, method in self.build.methods.items())
        return f"the case's own; {held or 'held to nothing'}; not known: {', '.join(unknown)}"

    def looked_into(self, result: Lowered | Failure) -> Lowered | Failure:
        """Return a result with the start of its departure, and the losses of quantization."""
        if isinstance(result, Failure):
            return result
        inside: list[Inside] = []
        for way in self.ways:
            if self.emitted is None or len(way.order) > 1 or way.method not in self.emitted.programs:
                continue
            samples = tuple(sample for sample in result.samples if sample.name in way.samples)
            way.program = self.emitted.programs[way.method]
            way.unset = self.emitted.unset[way.method]
            found = way.with_beginning(
                dataclasses.replace(
                    result,
                    samples=samples,
                    scales=way.scales,
                    bound=dict(result.bounds).get(way.method, result.bound),
                    methods=(),
                    bounds=(),
                )
            )
            if found.begins is not None:
                result = dataclasses.replace(result, begins=found.begins)
                break
            inside += [found.inside] if found.inside is not None else []
        else:
            if inside and len(inside) == len(self.ways):
                result = dataclasses.replace(result, inside=together(inside))
        return dataclasses.replace(result, lost=self.lost_of(result))

    def lost_of(self, lowered: Lowered) -> Lost | None:
        """Return the loss of quantization on the example of a method; None within the floor."""
        floor = self.case.sqnr.get(BUILD, INT8_FLOOR)
        for sample in lowered.samples:
            if not sample.floats or not sample.name.endswith("example"):
                continue
            found = worst(sample.floats, sample.outputs)
            if found is not None and found[1] < floor:
                name = f" of {sample.method}" if sample.method else ""
                why = f"which quantization{name} loses it is not looked for"
                return Lost(found[0], found[1], floor, (why,), named=False)
        return None


#: Names of torch's types by the letters of a codec's.
KINDS = {"i": "int", "u": "uint", "f": "float", "bf": "bfloat", "c": "complex", "bool": "bool"}


def dtype_name(tensor: torch.Tensor) -> str:
    """Return the name of a tensor's dtype, without torch's."""
    return str(tensor.dtype).removeprefix("torch.")


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


def exported(module: torch.nn.Module, example: Example) -> torch.nn.Module:
    """Return the exported graph of a module, or the module itself where it cannot be exported."""
    if isinstance(module, torch.fx.GraphModule):
        return module
    try:
        return compat.graph_module(export_program(copy.deepcopy(module), example))
    except Exception:  # whatever torch.export raises, the program is there already
        return module


class EachByItsOwn(numerics.EdgeInterpreter):
    """Runs each delegate in the runtime of its backend."""

    def call_delegate(self, lowered: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        if lowered.backend_id == "TOSABackend":
            return super().call_delegate(lowered, inputs)
        return beginning.LOOKS[lowered.backend_id].run(lowered, inputs)


def together(inside: Sequence[Inside]) -> Inside:
    """Return the findings of several methods as one."""
    return Inside(
        tuple(name for each in inside for name in each.samples),
        sum(each.values for each in inside),
        tuple(line for each in inside for line in each.unseen),
    )
