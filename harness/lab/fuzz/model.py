"""A drawn model: its parameters, its steps, and the same as Python."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

#: Sources of tensors, with the prefixes of their names.
INPUT, PARAMETER, BUFFER, COMPUTED = "x", "p", "b", "v"

#: Sizes that a symbolic first dimension may have.
LEAST, LARGEST = 2, 16


@dataclass(frozen=True)
class Value:
    """A tensor of a model.

    Attributes
    ----------
    number
        Its own, within the model.
    dtype
        As ``torch.`` names it.
    kind
        `INPUT`, `PARAMETER`, `BUFFER` or `COMPUTED`.
    """

    number: int
    shape: tuple[int, ...]
    dtype: str
    kind: str = COMPUTED

    @property
    def name(self) -> str:
        return f"{self.kind}{self.number}"

    @property
    def expression(self) -> str:
        """Its name in ``forward``."""
        return f"self.{self.name}" if self.kind in (PARAMETER, BUFFER) else self.name

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def is_like(self, other: Value) -> bool:
        return (self.shape, self.dtype) == (other.shape, other.dtype)


@dataclass(frozen=True)
class Source:
    """A tensor that a model does not compute: an input, a parameter, a buffer.

    Attributes
    ----------
    expression
        Its value in Python, contiguous.
    layout
        The code after that for memory in another order; empty for none.
    """

    value: Value
    expression: str
    layout: str = ""


@dataclass(frozen=True)
class Step:
    """One line of ``forward``.

    Attributes
    ----------
    operator
        Name in the tables of operators.
    text
        Python, with ``{0}`` for the first argument.
    arguments
        Numbers of values.
    made
        Its output; several values for an operator that returns a tuple.
    writes
        Whether it changes a buffer: then it counts even if nothing reads what it makes.
    """

    operator: str
    text: str
    arguments: tuple[int, ...]
    made: tuple[Value, ...]
    writes: bool = False


@dataclass(frozen=True)
class Model:
    """A model with its example inputs.

    Attributes
    ----------
    outputs
        Numbers of values; one may come twice.
    symbolic
        Whether the first dimension of every input may change.
    """

    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    symbolic: bool = False

    @property
    def values(self) -> dict[int, Value]:
        found = {source.value.number: source.value for source in self.sources}
        return found | {value.number: value for step in self.steps for value in step.made}

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(step.operator for step in self.steps)

    def alive(self) -> Model:
        """Return the model without steps that no output and no written buffer needs; one input stays."""
        needed = set(self.outputs)
        steps: list[Step] = []
        for step in reversed(self.steps):
            if step.writes or needed & {value.number for value in step.made}:
                needed.update(step.arguments)
                steps.append(step)
        sources = [source for source in self.sources if source.value.number in needed]
        if not any(source.value.kind == INPUT for source in sources):
            sources = [next(each for each in self.sources if each.value.kind == INPUT), *sources]
        return replace(self, sources=tuple(sources), steps=tuple(reversed(steps)))

    def source(self) -> str:
        """Return Python that defines ``Model``, ``inputs``, and ``dynamic_shapes`` where a dimension is symbolic."""
        return "\n".join([*self._class(), "", "", *self._inputs()]) + "\n"

    def _class(self) -> Iterator[str]:
        yield from ("import torch", "", "", "class Model(torch.nn.Module):")
        held = [source for source in self.sources if source.value.kind != INPUT]
        if held:
            yield from ("    def __init__(self):", "        super().__init__()")
        for source in held:
            name, tensor = source.value.name, source.expression + source.layout
            if source.value.kind == PARAMETER:
                yield f"        self.{name} = torch.nn.Parameter({tensor}, requires_grad=False)"
            else:
                yield f'        self.register_buffer("{name}", {tensor})'
        if held:
            yield ""
        values = self.values
        inputs = [source.value.name for source in self.sources if source.value.kind == INPUT]
        yield f"    def forward({', '.join(['self', *inputs])}):"
        for step in self.steps:
            given = step.text.format(*(values[number].expression for number in step.arguments))
            yield textwrap.indent(f"{', '.join(value.name for value in step.made)} = {given}", " " * 8)
        yield f"        return {', '.join(values[number].expression for number in self.outputs)}"

    def _inputs(self) -> Iterator[str]:
        given = [source for source in self.sources if source.value.kind == INPUT]
        yield "inputs = ("
        for source in given:
            yield f"    {source.expression}{source.layout},"
        yield ")"
        if self.symbolic:
            yield f'first = torch.export.Dim("first", min={LEAST}, max={LARGEST})'
            yield f"dynamic_shapes = ({'{0: first}, ' * len(given)})"
