"""A row of the matrix as Python: ``Model``, ``inputs``, and ``dynamic_shapes`` where a dimension is symbolic."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence

from lab.pairs.factors import BOOLEAN, FLOATS, OPERATORS, SIZES, Row

#: Sizes that a symbolic dimension may have.
LEAST, LARGEST = 2, 16
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

#: Second operands that the model holds.
CONSTANT = ("constant", "constant of two")


def source(row: Row) -> str:
    """Return the text of a model."""
    shape = SIZES[-row.rank :]
    form = OPERATORS[row.operator].forms[row.form]
    has_y, has_w = bool(re.search(r"\by\b", form)), bool(re.search(r"\bw\b", form))
    lines = ["import torch", *_class(row, form, shape, has_y, has_w), "", "", *_inputs(row, shape, has_y)]
    return "".join(f"{line}\n" for line in lines)


def _class(row: Row, form: str, shape: Sequence[int], has_y: bool, has_w: bool) -> Iterator[str]:
    constant = has_y and row.shared in CONSTANT
    yield from ("", "", "class Model(torch.nn.Module):", "    def __init__(self):")
    yield "        super().__init__()"
    if constant:
        yield f'        self.register_buffer("constant", {_filled(shape, row.dtype, 13)})'
    if has_w:
        dtype = row.dtype if row.dtype in FLOATS else "float32"
        value = f"{_filled(OPERATORS[row.operator].weights, dtype, 7)} / 4"
        yield f"        self.weight = torch.nn.Parameter({value}, requires_grad=False)"
    if row.shared == "state":
        yield f'        self.register_buffer("state", {_filled(shape, row.dtype, 5)})'
    passed = "given, other" if _takes_other(row, has_y) else "given"
    yield from ("", f"    def forward(self, {passed}):")
    yield from (f"        {line}" for line in _steps(row, form, shape, has_y, has_w, constant))


def _takes_other(row: Row, has_y: bool) -> bool:
    """Return whether the second operand is an input of its own."""
    return has_y and row.shared not in (*CONSTANT, "one twice")


def _steps(
    row: Row, form: str, shape: Sequence[int], has_y: bool, has_w: bool, constant: bool
) -> Iterator[str]:
    order = _order(len(shape))
    back = ", ".join(str(order.index(place)) for place in range(len(shape)))
    yield f"x = {BEFORE[row.before].replace('SHAPE', str(tuple(shape))).replace('BACK', back)}"
    if has_y:
        yield f"y = {'self.constant' if constant else 'x' if row.shared == 'one twice' else 'other'}"
    if has_w:
        yield "w = self.weight"
    if row.shared == "state":
        yield from ("self.state.add_(x)", "x = self.state + x")
    yield f"made = {form}"
    yield f"after = {AFTER[row.after]}"
    results = ["after"]
    if row.users == "two":
        results.append("made.to(torch.float32) * 2")
    if row.users == "output as well":
        results.append("made")
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
    if _takes_other(row, has_y):
        yield f"    {_filled(shape, row.dtype, 17)},"
    yield ")"
    if row.sized == "symbolic":
        yield f'first = torch.export.Dim("first", min={LEAST}, max={LARGEST})'
        inputs = 2 if _takes_other(row, has_y) else 1
        yield f"dynamic_shapes = ({'{0: first}, ' * inputs})"


def _filled(shape: Sequence[int], dtype: str, step: int) -> str:
    """Return an expression for a tensor: sixteenths off the numbers where operators jump, or small integers.

    Elements are neither equal nor at a jump of a rounding to whole numbers, which rounding would decide.
    """
    numbers = f"torch.arange({math.prod(shape)}) * {step}"
    shaped = f".reshape({tuple(shape)})"
    if dtype == BOOLEAN:
        return f"(({numbers}) % 3 == 0){shaped}"
    if dtype in FLOATS:
        values = f"((({numbers}) % 67 - 33) / 16 + 0.03125){shaped}"
        return values if dtype == "float32" else f"{values}.to(torch.{dtype})"
    return f"(({numbers}) % 9 - 4).to(torch.{dtype}){shaped}"


def in_words(row: Row) -> str:
    """Return the description of a row, in one line."""
    form = textwrap.shorten(OPERATORS[row.operator].forms[row.form], 60)
    around = f"before: {row.before}, after: {row.after}; {row.shared}; users: {row.users}; {row.sized}"
    return f"{form}; {row.dtype}, rank {row.rank}, {row.layout}; {around}"
