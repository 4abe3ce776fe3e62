"""Draws a model: which operators, on which values.

Every operator draws its attributes for values that are there, whose shapes are plain numbers: nothing has to be solved
for. An operator that finds nothing to work on draws nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lab.fuzz.chance import Chance
from lab.fuzz.model import BUFFER, COMPUTED, INPUT, PARAMETER, Model, Source, Step, Value

#: Sizes of a dimension: one, even and odd.
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9)
#: Ranks of an input: that of images is what most layers take.
RANKS = {0: 1.0, 1: 2.0, 2: 4.0, 3: 4.0, 4: 8.0, 5: 2.0}
#: Elements that a tensor may have: exports of small models are fast.
MOST_ELEMENTS = 2048
#: Size of a first dimension that is symbolic: no other dimension has it.
SYMBOLIC_SIZE = 6
FLOAT, INTEGER, BOOLEAN = "float32", "int32", "bool"
INTEGERS = ("int32", "int64", "int8")


@dataclass(frozen=True)
class Operator:
    """A way to add steps to a model.

    Attributes
    ----------
    draw
        Adds steps to a sketch and returns whether it did.
    weight
        Its weight against the others.
    symbolic
        Whether it leaves the first dimension alone, so that a symbolic one stays.
    """

    name: str
    draw: Callable[[Sketch], bool]
    weight: float
    symbolic: bool


#: By name, in the order in which they are registered: the order is part of what a name of a model means.
OPERATORS: dict[str, Operator] = {}


def operator(
    weight: float = 1.0, symbolic: bool = False
) -> Callable[[Callable[[Sketch], bool]], Callable[[Sketch], bool]]:
    """Register a function of a sketch as an operator of its name, with dashes."""

    def add(draw: Callable[[Sketch], bool]) -> Callable[[Sketch], bool]:
        register(draw.__name__.replace("_", "-"), draw, weight, symbolic)
        return draw

    return add


def register(name: str, draw: Callable[[Sketch], bool], weight: float, symbolic: bool) -> None:
    assert name not in OPERATORS, name
    OPERATORS[name] = Operator(name, draw, weight, symbolic)


@dataclass
class Sketch:
    """A partly drawn model.

    Attributes
    ----------
    running
        The operator that draws.
    """

    chance: Chance
    symbolic: bool = False
    sources: list[Source] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    running: str = ""

    # Queries

    def pick(self, suits: Callable[[Value], bool]) -> Value | None:
        """Return an input or a computed value; biased towards recent values.

        In a model with a symbolic dimension only values that have it are picked.
        """
        found = [
            value
            for value in self.values.values()
            if value.kind in (INPUT, COMPUTED) and suits(value) and self._is_first_symbolic(value)
        ]
        if not found:
            return None
        return (
            found[-1 - self.chance.below(min(2, len(found)))]
            if self.chance.happens(0.6)
            else self.chance.one(found)
        )

    def _is_first_symbolic(self, value: Value) -> bool:
        return not self.symbolic or value.shape[:1] == (SYMBOLIC_SIZE,)

    def floats(self, *ranks: int) -> Value | None:
        """Pick a float tensor that has one of `ranks`; any for none."""
        return self.pick(lambda value: value.dtype == FLOAT and (not ranks or len(value.shape) in ranks))

    def like(self, value: Value) -> Value:
        """Pick a value of the same shape and dtype: often another, sometimes the same one."""
        return self.pick(value.is_like) or value

    def dimension(self, value: Value) -> int | None:
        """Return one of the dimensions that may change; None if there is none."""
        start = int(self.symbolic)
        return self.chance.between(start, len(value.shape) - 1) if len(value.shape) > start else None

    # Additions

    def input(self, shape: Sequence[int], dtype: str = FLOAT) -> Value:
        return self._source(INPUT, shape, dtype, _filled(self.chance, shape, dtype, 16))

    def constant(self, *shape: int, dtype: str = FLOAT, scale: int = 16, kind: str = PARAMETER) -> Value:
        """Return a parameter (a buffer where its dtype is none of floats): new, shared, or equal to another."""
        same = [
            source
            for source in self.sources
            if source.value.kind == kind and source.value.is_like(Value(0, shape, dtype))
        ]
        if same and self.chance.happens(0.25):
            return self.chance.one(same).value
        if same and self.chance.happens(0.25):
            return self._source(kind, shape, dtype, self.chance.one(same).expression)
        kind = kind if dtype == FLOAT else BUFFER
        return self._source(kind, shape, dtype, _filled(self.chance, shape, dtype, scale))

    def buffer(self, *shape: int) -> Value:
        """Return a state of its own."""
        return self._source(BUFFER, shape, FLOAT, f"torch.zeros({_arguments(shape)})")

    def positive(self, *shape: int) -> Value:
        """Return a parameter with values from 0.5 to 1.5."""
        return self._source(PARAMETER, shape, FLOAT, f"1 + {_filled(self.chance, shape, FLOAT, 32)}")

    def indices(self, end: int, *shape: int) -> Value:
        """Return a constant with integers from 0 to `end` - 1."""
        step, start = self.chance.one((1, 3, 5, 7)), self.chance.below(end)
        numbers = f"(torch.arange({math.prod(shape)}) * {step} + {start}) % {end}"
        return self._source(BUFFER, shape, "int64", f"({numbers}).reshape({_arguments(shape)})")

    def _source(self, kind: str, shape: Sequence[int], dtype: str, expression: str) -> Value:
        value = Value(len(self.values), tuple(shape), dtype, kind)
        self.values[value.number] = value
        self.sources.append(Source(value, expression))
        return value

    def add(
        self,
        text: str,
        arguments: Sequence[Value],
        *shapes: Sequence[int],
        dtype: str = FLOAT,
        dtypes: Sequence[str] = (),
        writes: bool = False,
    ) -> bool:
        """Add a step that makes tensors of `shapes`; return whether these are small enough."""
        if any(math.prod(shape) > MOST_ELEMENTS or math.prod(shape) == 0 for shape in shapes):
            return False
        made = []
        for shape, kind in zip(shapes, dtypes or [dtype] * len(shapes), strict=True):
            value = Value(len(self.values), tuple(shape), kind)
            self.values[value.number] = value
            made.append(value)
        numbers = tuple(value.number for value in arguments)
        self.steps.append(Step(self.running, text, numbers, tuple(made), writes))
        return True


def _arguments(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape)) if shape else "()"


def _filled(chance: Chance, shape: Sequence[int], dtype: str, scale: int) -> str:
    """Return an expression for a tensor: dyadic rationals from -16 / `scale` to 16 / `scale`, or small integers."""
    count = math.prod(shape)
    # Odd numbers that 33 is no multiple of: neighbours differ, and every value comes up.
    numbers = f"torch.arange({count}) * {chance.one((5, 7, 13, 19, 25))} + {chance.below(33)}"
    shaped = f".reshape({_arguments(shape)})"
    if dtype == BOOLEAN:
        return f"(({numbers}) % 3 == 0){shaped}"
    if dtype in INTEGERS:
        return f"(({numbers}) % 9 - 4).to(torch.{dtype}){shaped}"
    return f"((({numbers}) % 33 - 16) / {scale}){shaped}"


#: Steps that a model has, about.
FEWEST_STEPS, MOST_STEPS = 2, 9


def shape(chance: Chance, rank: int) -> tuple[int, ...]:
    """Return a shape of at most `MOST_ELEMENTS`; of a rank that images have, rather few batches and channels."""
    while True:
        sizes = [chance.one(SIZES) for _ in range(rank)]
        if rank >= 3:
            sizes[: rank - 2] = [chance.one((1, 1, 2, 3, 4)) for _ in range(rank - 2)]
        if math.prod(sizes) <= MOST_ELEMENTS // 2:
            return tuple(sizes)


def draw(name: str) -> Model:
    """Return the model called `name`: the same on every machine and every Python."""
    chance = Chance(name)
    sketch = Sketch(chance, symbolic=chance.happens(0.1))
    for _ in range(1 + chance.below(3)):
        if sketch.sources and chance.happens(0.6):
            first = chance.one(sketch.sources).value
            sketch.input(first.shape, first.dtype)
        elif sketch.symbolic:
            sketch.input((SYMBOLIC_SIZE, *shape(chance, chance.between(1, 3))))
        else:
            dtype = FLOAT if not sketch.sources else chance.weighted({FLOAT: 8.0, INTEGER: 1.0, BOOLEAN: 1.0})
            sketch.input(shape(chance, chance.weighted(RANKS)), dtype)
    possible = {each.name: each.weight for each in OPERATORS.values() if each.symbolic or not sketch.symbolic}
    wanted = chance.between(FEWEST_STEPS, MOST_STEPS)
    for _ in range(20 * wanted):
        if len(sketch.steps) >= wanted:
            break
        sketch.running = chance.weighted(possible)
        OPERATORS[sketch.running].draw(sketch)
    sources = [replace(source, layout=_layout(chance, source.value)) for source in sketch.sources]
    return Model(tuple(sources), tuple(sketch.steps), outputs(sketch), sketch.symbolic).alive()


def _layout(chance: Chance, value: Value) -> str:
    """Return a layout for an input with memory in another order, sometimes: the runtime takes no further ones."""
    if value.kind != INPUT or not chance.happens(0.15):
        return ""
    if len(value.shape) == 4:
        return ".to(memory_format=torch.channels_last)"
    if len(value.shape) == 5:
        return ".to(memory_format=torch.channels_last_3d)"
    return ""


def outputs(sketch: Sketch) -> tuple[int, ...]:
    """Return unused values as outputs, sometimes a used value, sometimes one of them twice, or an input."""
    chance = sketch.chance
    read = {number for step in sketch.steps for number in step.arguments}
    computed = [value.number for value in sketch.values.values() if value.kind == COMPUTED]
    chosen = [number for number in computed if number not in read][-4:]
    inner = [number for number in computed if number in read]
    if inner and chance.happens(0.25):
        chosen.append(chance.one(inner))
    if chance.happens(0.08):
        chosen.append(chance.one(chosen))
    if chance.happens(0.04):
        chosen.append(next(value.number for value in sketch.values.values() if value.kind == INPUT))
    order = chance.permutation(len(chosen))
    return tuple(chosen[place] for place in order)
