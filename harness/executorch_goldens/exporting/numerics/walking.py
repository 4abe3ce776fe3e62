"""Runs an emitted program of which the installed runtime lacks a part; what it lacks runs elsewhere, in its place.

A delegate without a backend runs in a reference model or a simulator, an operator without a kernel in eager. The
instructions between these run in ExecuTorch's own runtime: the same program, with its memory plan, its constants and
what it has of its initial state, whose instructions are cut to a `Segment`. So the kernels of a device run all of the
program outside of delegates, and a state begins as it does there.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from executorch.exir import schema
from executorch.exir.tensor import get_scalar_type, stride_from_dim_order

from executorch_goldens.exporting import compat
from executorch_goldens.exporting.blame import handed_on
from executorch_goldens.exporting.numerics import programs as numerics

#: Holder of a value: where memory is planned for it, so that a view without an instruction shares it, or its number.
Place: TypeAlias = "tuple[int, int] | int"
#: Runs a part of a program in the runtime.
Run: TypeAlias = "Callable[[tuple[Any, ...]], Sequence[Any]]"
#: Operators of the runtime alone write their last argument, but for this one.
PRIM, COPY_INDEX = "executorch_prim::", "executorch_prim::et_copy_index"


@dataclass(frozen=True)
class Flow:
    """The values that an instruction reads, and those that it writes, by number; lists are their elements."""

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Segment:
    """Instructions that run in one go: those from `start` to before `end`, in the runtime, or one elsewhere.

    Attributes
    ----------
    reads
        Values that they read before they write them.
    writes
        Values that they write, each once, in the order in which they were written last.
    elsewhere
        Whether the runtime does not run it.
    """

    start: int
    end: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    elsewhere: bool


class Walker:
    """A method of an emitted program, ready to be run on samples.

    Parameters
    ----------
    elsewhere
        Runner of the delegates that the runtime does not run.
    data
        A data file (``.ptd``); empty where there is none.
    """

    def __init__(
        self, pte: bytes, elsewhere: numerics.Elsewhere, method: str = "forward", data: bytes = b""
    ) -> None:
        self.elsewhere, self.data = elsewhere, data
        self.file = compat.deserialized(pte)
        self.plan = next(plan for plan in self.file.program.execution_plan if plan.name == method)
        (chain,) = self.plan.chains
        self.instructions = [each.instr_args for each in chain.instructions]
        self.values = [value.val for value in self.plan.values]
        self.lacking = numerics.without_kernels(numerics.operators_of(self.file.program))
        self.flows = list(map(self._flow, self.instructions))
        self.parts = {part.start: part for part in self._parts()}
        self.first = self._first()
        self._loaded: dict[tuple[int, tuple[tuple[int, Any], ...]], tuple[Any, Any, Run]] = {}

    # What instructions do

    def _flow(self, call: Any) -> Flow:
        """Return what an instruction reads and writes."""
        if isinstance(call, schema.MoveCall):
            return Flow((call.move_from,), (call.move_to,))
        if isinstance(call, schema.JumpFalseCall):
            return Flow((call.cond_value_index,))
        if isinstance(call, schema.FreeCall):
            return Flow()
        if isinstance(call, schema.DelegateCall):
            inputs, outputs = self._of_delegate(call)
            return Flow(self._elements(inputs), self._elements(outputs))
        writes, is_read = self._written(call)
        reads = [each for at, each in enumerate(call.args) if at not in writes or is_read[at]]
        return Flow(self._elements(reads), self._elements([call.args[at] for at in writes]))

    def _of_delegate(self, call: Any) -> tuple[Sequence[int], Sequence[int]]:
        outputs = len(call.args) - self.elsewhere.count(*self._delegate(call))
        return call.args[:outputs], call.args[outputs:]

    def _delegate(self, call: Any) -> tuple[str, bytes]:
        """Return the id of the backend that an instruction calls, and the payload."""
        delegate = self.plan.delegates[call.delegate_index]
        return delegate.id, bytes(self.file.program.backend_delegate_data[delegate.processed.index].data)

    def _written(self, call: Any) -> tuple[list[int], dict[int, bool]]:
        """Return the places of the arguments that an operator writes, and whether it reads them as well."""
        name, overload = self._operator(call)
        last = len(call.args) - 1
        found = operator(name, overload)
        if found is None:
            return [0 if name == COPY_INDEX else last], {0: name == COPY_INDEX, last: False}
        arguments = found._schema.arguments
        written = {at: not each.is_out for at, each in enumerate(arguments) if each.is_write}
        # What an operator returns follows its arguments, as each that it writes does.
        results = range(len(arguments), len(call.args))
        return [*written, *results], {**dict.fromkeys(results, False), **written}

    def _operator(self, call: Any) -> tuple[str, str]:
        named = self.plan.operators[call.op_index]
        return named.name, named.overload

    def _elements(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return values with the elements of lists in place of these."""
        found: list[int] = []
        for number in numbers:
            value = self.values[number]
            if isinstance(value, schema.TensorList | schema.OptionalTensorList | schema.IntList):
                found += [each for each in value.items if each >= 0]
            else:
                found.append(number)
        return tuple(dict.fromkeys(found))

    def _is_elsewhere(self, call: Any) -> bool:
        if isinstance(call, schema.DelegateCall):
            return self.elsewhere.takes(self._delegate(call)[0])
        return (
            isinstance(call, schema.KernelCall)
            and ".".join(filter(None, self._operator(call))) in self.lacking
        )

    # Parts

    def _parts(self) -> Iterator[Segment]:
        """Yield the parts in order; what jumps around an instruction that runs elsewhere is none of the runtime's."""
        apart = {at for at, call in enumerate(self.instructions) if self._is_elsewhere(call)}
        jumps = [at for at, call in enumerate(self.instructions) if isinstance(call, schema.JumpFalseCall)]
        while around := [at for at in jumps if at not in apart and apart & {*self._reach(at)}]:
            apart |= {*around}
        targets = {self.instructions[at].destination_instruction for at in apart & {*jumps}}
        start = 0
        for end in range(1, len(self.instructions) + 1):
            if end == len(self.instructions) or {end, end - 1} & apart or end in targets:
                yield self._part(start, end, start in apart)
                start = end

    def _reach(self, at: int) -> range:
        destination = self.instructions[at].destination_instruction
        return range(min(at, destination), max(at, destination))

    def _part(self, start: int, end: int, elsewhere: bool) -> Segment:
        reads: dict[int, None] = {}
        writes: dict[int, None] = {}
        places: set[Place] = set()
        for flow in self.flows[start:end]:
            reads |= {each: None for each in flow.reads if self.place(each) not in places}
            places |= {*map(self.place, flow.writes)}
            for each in flow.writes:
                writes.pop(each, None)
                writes[each] = None
        return Segment(start, end, tuple(reads), tuple(writes), elsewhere)

    def place(self, number: int) -> Place:
        """Return what holds a value."""
        value = self.values[number]
        planned = value.allocation_info if isinstance(value, schema.Tensor) else None
        return number if planned is None else (planned.memory_id, planned.memory_offset)

    @functools.cached_property
    def _changed(self) -> set[Place]:
        """The places that are written: other values are the program's own, and stay as they are."""
        written = (each for flow in self.flows for each in flow.writes)
        return {*map(self.place, written), *map(self.place, self.plan.inputs)}

    def _inputs(self, part: Segment) -> tuple[int, ...]:
        """Return the tensors that a part of the runtime's is given."""
        return tuple(
            each
            for each in part.reads
            if isinstance(self.values[each], schema.Tensor) and self.place(each) in self._changed
        )

    @functools.cached_property
    def _needed(self) -> tuple[set[int], set[Place]]:
        """The values that some part, or whoever runs the program, is given, and their places."""
        needed = {each for part in self.parts.values() for each in part.reads}
        needed |= {*self._elements(self.plan.outputs)}
        return needed, {self.place(each) for each in needed}

    def _outputs(self, part: Segment) -> tuple[int, ...]:
        """Return the values of a part of the runtime's that another, or the next step, needs."""
        needed, places = self._needed
        last = {self.place(each): each for each in part.writes}
        return tuple(
            each
            for each in part.writes
            if each in needed or (self.place(each) in places and last[self.place(each)] == each)
        )

    # Values

    def _first(self) -> Mapping[int, Any]:
        """Return the tensors that the program has before anything runs, where something asks for them."""
        written = {self.place(each) for each in self.plan.inputs}
        asked: dict[int, None] = {}
        for part in self.parts.values():
            reads = part.reads if part.elsewhere else self._inputs(part)
            asked |= {each: None for each in reads if self.place(each) not in written}
            written |= {*map(self.place, part.writes)}
        outputs = self._elements(self.plan.outputs)
        asked |= {each: None for each in outputs if self.place(each) not in written}
        tensors = [each for each in asked if isinstance(self.values[each], schema.Tensor)]
        own = [each for each in tensors if math.prod(self.values[each].sizes)]
        found = self._load((), (), own, {})(()) if own else []
        empty = {each: torch.empty(self.values[each].sizes) for each in tensors if each not in own}
        return {**dict(zip(own, map(self._as_sized, own, found), strict=True)), **empty}

    def get(self, held: HeldValues, number: int) -> Any:
        """Return a value; a tensor in the order of dimensions that the program declares."""
        value = self.values[number]
        if isinstance(value, schema.TensorList | schema.OptionalTensorList | schema.IntList):
            return [None if each < 0 else self.get(held, each) for each in value.items]
        if self.place(number) in held.values:
            owner, content = held.values[self.place(number)]
            return content if owner == number else self._viewed(held, number, owner, content)
        return self.first[number] if isinstance(value, schema.Tensor) else _constant(value)

    def _viewed(self, held: HeldValues, number: int, owner: int, content: torch.Tensor) -> torch.Tensor:
        """Return a value that shares its memory with the one that was written there last.

        Of another size it is one that nothing has written: memory that an operator writes to for itself, and that has
        what was left there.
        """
        value, order = self.values[number], self.values[owner].dim_order
        dtype, sizes = get_scalar_type(value.scalar_type), held.sizes.get(number, tuple(value.sizes))
        left = content.permute(order).contiguous().reshape(-1).view(torch.uint8)
        memory = torch.zeros(math.prod(sizes) * dtype.itemsize, dtype=torch.uint8)
        both = min(len(left), len(memory))
        memory[:both] = left[:both]
        flat = memory.view(dtype)
        return flat.as_strided(sizes, stride_from_dim_order(list(sizes), value.dim_order))

    def put(self, held: HeldValues, number: int, content: Any) -> None:
        """Set a value."""
        if isinstance(self.values[number], schema.TensorList):
            for each, item in zip(self.values[number].items, content, strict=True):
                self.put(held, each, item)
            return
        if isinstance(content, torch.Tensor):
            content = numerics.laid_out(content, self.values[number].dim_order)
            held.sizes[number] = tuple(content.shape)
        held.values[self.place(number)] = number, content

    # Running

    def run(self, steps: Sequence[Sequence[Any]]) -> list[Any]:
        """Run the method step by step; return the last outputs."""
        held = HeldValues()
        for inputs in steps:
            numerics.require_matching("the program takes", self.plan.inputs, inputs)
            for number, given in zip(self.plan.inputs, inputs, strict=True):
                # The runtime has numbers as they were when the program was made.
                if isinstance(given, torch.Tensor):
                    self.put(held, number, given)
            at = 0
            while at < len(self.instructions):
                at = self._run_part(held, self.parts[at])
        return [self.get(held, each) for each in self.plan.outputs]

    def _run_part(self, held: HeldValues, part: Segment) -> int:
        """Run a part; return the number of the instruction that follows."""
        call = self.instructions[part.start]
        if not part.elsewhere:
            self._in_runtime(held, part)
        elif isinstance(call, schema.JumpFalseCall):
            if not bool(torch.as_tensor(self.get(held, call.cond_value_index)).all()):
                return int(call.destination_instruction)
        elif isinstance(call, schema.DelegateCall):
            inputs, outputs = self._of_delegate(call)
            given = [self.get(held, each) for each in inputs]
            declared = ([self.values[each] for each in numbers] for numbers in (inputs, outputs))
            made = self.elsewhere.run(*self._delegate(call), given, *declared)
            for number, content in zip(outputs, made, strict=True):
                self.put(held, number, content)
        else:
            self._in_eager(held, call)
        return part.end

    def _in_runtime(self, held: HeldValues, part: Segment) -> None:
        scalars = [each for each in part.reads if not isinstance(self.values[each], schema.Tensor)]
        baked = {each: held.values[each][1] for each in scalars if each in held.values}
        key = part.start, tuple(baked.items())
        if key not in self._loaded:
            inputs, outputs = self._inputs(part), self._outputs(part)
            run = self._load(range(part.start, part.end), inputs, outputs, baked)
            self._loaded[key] = inputs, outputs, run
        inputs, outputs, run = self._loaded[key]
        given = ((self.values[each], self.get(held, each)) for each in inputs)
        made = run(tuple(each.reshape(1) if _goes_by_another(value) else each for value, each in given))
        for number, content in zip(outputs, made, strict=True):
            self.put(held, number, self._as_sized(number, content))

    def _as_sized(self, number: int, content: Any) -> Any:
        """Return what the runtime gives for a value; a tensor without dimensions as that."""
        value = self.values[number]
        is_single = isinstance(value, schema.Tensor) and not value.sizes
        return content.reshape(()) if is_single else content

    def _in_eager(self, held: HeldValues, call: Any) -> None:
        """Run an operator in eager: the variant that the program calls, or else the one that makes its own outputs."""
        called = operator(*self._operator(call))
        found = eager_variant(called)
        if called is None or found is None:
            raise RuntimeError(f"nothing here runs {'.'.join(self._operator(call))}")
        arguments = called._schema.arguments
        given = [
            self._emptied(number) if each.is_out else self.get(held, number)
            for each, number in zip(arguments, call.args, strict=False)
        ]
        if found is called:
            _call(found, arguments, given)
        else:
            inputs = [value for each, value in zip(arguments, given, strict=True) if not each.is_out]
            made = _call(found, found._schema.arguments, inputs)
            outs = [at for at, each in enumerate(arguments) if each.is_out]
            for at, content in zip(outs, made if isinstance(made, tuple | list) else [made], strict=True):
                given[at] = content
        for at in self._written(call)[0]:
            if at < len(arguments):
                self.put(held, call.args[at], given[at])

    def _emptied(self, number: int) -> Any:
        """Return an empty tensor for an output of an operator, which gives it its sizes; a list for a list."""
        value = self.values[number]
        if isinstance(value, schema.TensorList):
            return [self._emptied(each) for each in value.items]
        return torch.empty(0, dtype=get_scalar_type(value.scalar_type))

    def _load(
        self, chosen: Sequence[int], inputs: Sequence[int], outputs: Sequence[int], baked: Mapping[int, Any]
    ) -> Run:
        """Return what runs the program, cut to some instructions, in the runtime.

        Parameters
        ----------
        baked
            Numbers that a part before has computed: the runtime takes no other number as an input than the program has.
        """
        plan, start = copy.copy(self.plan), chosen[0] if chosen else 0
        calls = [copy.copy(self.instructions[at]) for at in chosen]
        used = {*inputs, *outputs, *self._elements([*inputs, *outputs])}
        delegates: list[Any] = []
        for call in calls:
            if isinstance(call, schema.JumpFalseCall):
                call.destination_instruction -= start
            if isinstance(call, schema.DelegateCall):
                delegates.append(self.plan.delegates[call.delegate_index])
                call.delegate_index = len(delegates) - 1
            used |= {*_numbers(call), *self._elements(_numbers(call))}
        values = [
            (KINDS[type(baked[at])](baked[at]) if at in baked else value) if at in used else schema.Null()
            for at, value in enumerate(self.values)
        ]
        plan.inputs, plan.outputs = ([_crossing(values, each) for each in side] for side in (inputs, outputs))
        plan.values, plan.delegates = [schema.EValue(value) for value in values], delegates
        plan.chains = [schema.Chain([], [], [schema.Instruction(call) for call in calls], None)]
        return numerics.loaded(compat.serialized(self.file, plan), self.data, plan.name)


@dataclass
class HeldValues:
    """The values of a run.

    Attributes
    ----------
    values
        Number of the value that was written last in each place that holds one, and its content.
    sizes
        Size of each tensor, as it was written last.
    """

    values: dict[Place, tuple[int, Any]] = field(default_factory=dict)
    sizes: dict[int, tuple[int, ...]] = field(default_factory=dict)


def operator(name: str, overload: str) -> Any | None:
    """Return torch's operator of a name; None where only the runtime has it."""
    if name.startswith(PRIM):
        return None
    namespace, _, short = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), short, None)
    return getattr(packet, overload or "default", None)


@functools.cache
def eager_variant(called: Any | None) -> Any | None:
    """Return the variant of an operator that eager has a kernel for; None where there is none.

    The variant that is given its outputs may be a schema alone: a device has the kernel.
    """
    if called is None:
        return None
    packet = called.overloadpacket
    variants = (called, *(getattr(packet, each) for each in packet.overloads()))
    alike = (each for each in variants if _has_kernel(each) and _inputs(each) == _inputs(called))
    return next(alike, None)


def nothing_runs(in_eager: Iterable[str]) -> str:
    """Return that eager has no kernel for some operators, such as ``aten::polar.out``, either; empty where it has."""
    named = (name.partition(".") for name in in_eager)
    found = [
        f"{name}{dot}{overload}"
        for name, dot, overload in named
        if eager_variant(operator(name, overload)) is None
    ]
    return f"neither the runtime nor eager has a kernel for {', '.join(found)}" if found else ""


def _has_kernel(found: Any) -> bool:
    return torch._C._dispatch_has_computed_kernel_for_dispatch_key(found.name(), "CPU")


def _inputs(found: Any) -> list[tuple[str, str]]:
    return [(each.name, str(each.type)) for each in found._schema.arguments if not each.is_out]


def _numbers(call: Any) -> list[int]:
    if isinstance(call, schema.KernelCall | schema.DelegateCall):
        return list(call.args)
    return [each for name, each in vars(call).items() if name != "destination_instruction"]


def _constant(value: Any) -> Any:
    """Return a number, a text, None, or a list of numbers that a program holds."""
    if isinstance(value, schema.Null):
        return None
    (content,) = vars(value).values()
    return float(content) if isinstance(value, schema.Double) else content


def _goes_by_another(value: Any) -> bool:
    """Return whether a value is a tensor without dimensions that has memory, planned or of a constant."""
    has_memory = isinstance(value, schema.Tensor) and (value.allocation_info or value.data_buffer_idx)
    return bool(has_memory) and not value.sizes


def _crossing(values: list[Any], number: int) -> int:
    """Return the number by which a value enters or leaves the runtime.

    Before ExecuTorch 1.3.1 the runtime's Python interface dies of a tensor without dimensions. It goes by another value
    in the same memory, of one element.
    """
    value = values[number]
    if not _goes_by_another(value):
        return number
    values.append(dataclasses.replace(value, sizes=[1], dim_order=[0]))
    return len(values) - 1


#: Declarations of numbers in a program, by type.
KINDS: Mapping[type, Any] = {bool: schema.Bool, int: schema.Int, float: schema.Double}


@handed_on
def _call(found: Any, arguments: Sequence[Any], given: Sequence[Any]) -> Any:
    positional = [value for each, value in zip(arguments, given, strict=True) if not each.kwarg_only]
    named = {each.name: value for each, value in zip(arguments, given, strict=True) if each.kwarg_only}
    return found(*positional, **named)
