"""A row of the matrix as Python: ``Model``, ``inputs``, and ``dynamic_shapes`` where a dimension is symbolic."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence

from lab.fuzz.model import LARGEST, LEAST
from lab.pairs.factors import BOOLEAN, FLOATS, SIZES, Row
from lab.pairs.wider import HALVES, NOTHING, OPERATORS, PARAMETER

#: Code before the operator: from ``given`` to ``x``, and the input's shape where it differs.
BEFORE = {
    "nothing": "given",
    "view": "given.reshape(SHAPE)",
    "permute": "given.permute(BACK)",
    "clone": "given.clone()",
    "slice": "given[..., 1:]",
    "cat": "torch.cat((given, given[:1]))",
    "clamp": "given.clamp(-2, 2)",
    "outside": "given.sort(-1).values",
}
#: Code after it.
AFTER = {
    "nothing": "made",
    "view": "made.reshape(-1)",
    "permute": "made.permute(tuple(reversed(range(made.dim()))))",
    "clone": "made.clone()",
    "slice": "made[..., :1]",
    "cat": "torch.cat((made, made), -1)",
    "clamp": "made.clamp(-1, 1)",
    "outside": "made.sort(-1).values",
}

#: Second operands that the model holds, and further outputs, by the users of its values.
CONSTANT = ("constant", "constant of two", "scalar")
RESULTS = {"output as well": ("made",), "computed twice": ("again",), "returned twice": ("after",)}
FLOATING = (*FLOATS, *HALVES)
#: Modules besides torch that register a form's operators.
FURTHER = {"quantized_decomposed": "torch.ao.quantization.fx._decomposed"}


def source(row: Row) -> str:
    """Return the text of a model."""
    of = OPERATORS[row.operator]
    shape = SIZES[-row.rank :]
    if row.sized == "ones":
        # Every second size, the last one aside.
        shape = tuple(1 if place % 2 == 0 else size for place, size in enumerate(shape[:-1])) + shape[-1:]
    form = of.forms[row.form]
    has_y, has_w = bool(re.search(r"\by\b", form)), bool(re.search(r"\bw\b", form))
    modules = [f"import {name}" for text, name in FURTHER.items() if text in form]
    return (
        "\n".join(
            [
                "import torch",
                *modules,
                *_class(row, form, shape, has_y, has_w),
                "",
                "",
                *_inputs(row, shape, has_y),
            ]
        )
        + "\n"
    )


def _class(row: Row, form: str, shape: Sequence[int], has_y: bool, has_w: bool) -> Iterator[str]:
    constant = has_y and row.shared in CONSTANT
    yield from ("", "", "class Model(torch.nn.Module):", "    def __init__(self):")
    yield "        super().__init__()"
    if constant:
        of_what = () if row.shared == "scalar" else shape
        value = _laid_out(_filled(of_what, row.dtype, 13), row.held, len(of_what))
        yield f"        {_held('constant', value, 'buffer' if row.held == PARAMETER else row.held)}"
    if has_w:
        weights = OPERATORS[row.operator].weights
        value = f"{_filled(weights, row.dtype if row.dtype in FLOATING else 'float32', 7)} / 4"
        yield f"        {_held('weight', _laid_out(value, row.held, len(weights)), row.held)}"
    if row.shared == "state":
        yield f'        self.register_buffer("state", {_filled(shape, row.dtype, 5)})'
    passed = "given, other" if _takes_other(row, has_y) else "given"
    yield from ("", f"    def forward(self, {passed}):")
    yield from (f"        {line}" for line in _steps(row, form, shape, has_y, has_w, constant))


def _takes_other(row: Row, has_y: bool) -> bool:
    """Return whether the second operand is an input of its own."""
    return has_y and row.shared not in (*CONSTANT, "one twice")


def _laid_out(value: str, held: str, rank: int) -> str:
    """Return the expression for a held tensor, in the layout `held`."""
    if held == "permuted buffer" and rank > 1:
        return f"({value}).transpose(0, -1).contiguous().transpose(0, -1)"
    if held == "channels-last buffer" and rank == 4:
        return f"({value}).to(memory_format=torch.channels_last)"
    if held == "part of a buffer" and rank:
        return f"({value}).repeat({'1, ' * (rank - 1)}2).chunk(2, -1)[1]"
    return value


def _held(name: str, value: str, held: str) -> str:
    """Return the statement that makes a model hold a value."""
    if held == PARAMETER:
        return f"self.{name} = torch.nn.Parameter({value}, requires_grad=False)"
    if held == "literal":
        return f"self.{name} = {value}"
    return f'self.register_buffer("{name}", {value})'


def _steps(
    row: Row, form: str, shape: Sequence[int], has_y: bool, has_w: bool, constant: bool
) -> Iterator[str]:
    order = _order(len(shape))
    back = ", ".join(str(order.index(place)) for place in range(len(shape)))
    before = BEFORE.get(row.before) or NOTHING[row.before].format("given")
    yield f"x = {before.replace('SHAPE', str(tuple(shape))).replace('BACK', back)}"
    if has_y:
        yield f"y = {'self.constant' if constant else 'x' if row.shared == 'one twice' else 'other'}"
    if has_w:
        yield "w = self.weight"
    if row.shared == "state":
        yield from ("self.state.add_(x)", "x = self.state + x")
    yield f"made = {form}"
    if row.users == "computed twice":
        yield f"again = {form}"
    yield f"after = {AFTER.get(row.after) or NOTHING[row.after].format('made')}"
    results = ["after"]
    if row.users == "two":
        results.append("made.to(torch.float32) * 2")
    results.extend(RESULTS.get(row.users, ()))
    if row.shared == "output as well":
        results.append("x")
    if row.shared == "constant of two" and constant:
        results.append("x + self.constant")
    yield f"return {', '.join(results)}{',' if len(results) == 1 else ''}"


def _order(rank: int) -> tuple[int, ...]:
    """Return the order of the dimensions of an input that is permuted first: each moves by one."""
    return (*range(1, rank), 0)


def _inputs(row: Row, shape: Sequence[int], has_y: bool) -> Iterator[str]:
    given = list(shape)
    if row.before == "view":
        given = [math.prod(shape)]
    elif row.before == "permute":
        given = [shape[place] for place in _order(len(shape))]
    elif row.before == "slice":
        given[-1] += 1
    elif row.before == "cat":
        given[0] -= 1
    layout = {
        "contiguous": "",
        "permuted": ".transpose(0, -1).contiguous().transpose(0, -1)",
        "channels last": ".to(memory_format=torch.channels_last)",
    }[row.layout if len(given) == len(shape) else "contiguous"]
    yield "inputs = ("
    yield f"    {_filled(given, row.dtype, 11)}{layout},"
    shapes = [given]
    if _takes_other(row, has_y):
        shapes.append([1, *shape[1:]] if row.shared == "broadcast" else list(shape))
        another = "int32" if row.dtype in FLOATING else "float32"
        yield f"    {_filled(shapes[1], another if row.shared == 'another type' else row.dtype, 17)},"
    yield ")"
    yield from _dynamic(row, shapes)


def _dynamic(row: Row, shapes: Sequence[Sequence[int]]) -> Iterator[str]:
    """Yield which dimensions of the inputs may change, where some may; one that is broadcast may not."""
    places = {"symbolic": {"first": 0}, "first": {"first": 0}, "last": {"last": -1}}
    found = places.get(row.sized) or ({**places["first"], **places["last"]} if " and " in row.sized else {})
    if not found:
        return
    for name in found:
        yield f'{name} = torch.export.Dim("{name}", min={LEAST}, max={LARGEST})'
    changing = []
    for shape in shapes:
        dims = {place % len(shape): name for name, place in found.items()}
        changing.append(", ".join(f"{place}: {name}" for place, name in dims.items() if shape[place] > 1))
    yield f"dynamic_shapes = ({''.join(f'{{{each}}}, ' for each in changing)})"


def _filled(shape: Sequence[int], dtype: str, step: int) -> str:
    """Return an expression for a tensor: sixteenths off the numbers where operators jump, or small integers.

    Elements are neither equal nor at a jump of a rounding to whole numbers, which rounding would decide.
    """
    numbers = f"torch.arange({math.prod(shape)}) * {step}"
    shaped = f".reshape({tuple(shape)})"
    if dtype == BOOLEAN:
        return f"(({numbers}) % 3 == 0){shaped}"
    if dtype in FLOATING:
        values = f"((({numbers}) % 67 - 33) / 16 + 0.03125){shaped}"
        return values if dtype == "float32" else f"{values}.to(torch.{dtype})"
    offset = "" if dtype == "uint8" else " - 4"
    return f"(({numbers}) % 9{offset}).to(torch.{dtype}){shaped}"


def in_words(row: Row) -> str:
    """Return the description of a row, in one line."""
    form = textwrap.shorten(OPERATORS[row.operator].forms[row.form], 60)
    around = f"before: {row.before}, after: {row.after}; {row.shared}; users: {row.users}; {row.sized}"
    if row.held != PARAMETER:
        around += f"; held: {row.held}"
    return f"{form}; {row.dtype}, rank {row.rank}, {row.layout}; {around}"
