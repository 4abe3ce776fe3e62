"""The factors of the wider matrix: every target and dtype, and what holds, surrounds and sizes the operands.

No fix was read to choose a value. Targets are all of the harness's own. To the operators come those that the tables of
the partitioners of ExecuTorch 1.1.0 have and no form of the matrix is decomposed to. Dtypes are those of its samples of
PyTorch's database.
The other factors are the forms that data takes: what an operand is held by, in which layout, shared with what; what
does nothing beside an operator; which sizes are one, or symbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from executorch_goldens.zoo.targets import TARGETS
from lab.pairs import factors
from lab.pairs.factors import ANYTHING, BOOLEAN, FLOATS, FORMS, INTEGERS, RANKS, Operator

_QUANTIZED = "torch.ops.quantized_decomposed"

OPERATORS: Mapping[str, Operator] = {
    **factors.OPERATORS,
    **{
        name: Operator((f"torch.{name}(x / 4)", f"(x / 4).{name}()", f"(x / 4).{name}_()"))
        for name in ("asin", "acos", "atanh", "asinh", "sinh", "cosh", "tan")
    },
    "acosh": Operator(("torch.acosh(x.abs() + 2)", "(x.abs() + 2).acosh_()")),
    "logit": Operator(("torch.logit(x.sigmoid())", "torch.logit(x / 8, 0.1)")),
    "shift": Operator(("x << 1", "x >> 1", "x << (y & 3)", "torch.bitwise_right_shift(x, y & 3)"), INTEGERS),
    "bitwise-number": Operator(("x & 3", "x | 1", "x ^ 2"), INTEGERS),
    "logical-xor": Operator(("torch.logical_xor(x, y)", "x.logical_xor(y)"), ANYTHING),
    "any-of-several": Operator(
        ("torch.any(x > 0, dim=(0, -1))", "torch.all(x > 0, (0, -1))"), FLOATS, (2, 3, 4)
    ),
    "addmm": Operator(
        (
            "torch.addmm(w[:, 0], x, w.T)",
            "torch.addmm(x @ w.T, x, w.T, beta=2, alpha=0.5)",
            "(x @ w.T).addmm_(x, w.T)",
        ),
        FLOATS,
        (2,),
        (4, 5),
    ),
    "eye": Operator(
        ("x @ torch.eye(5, dtype=x.dtype)", "x + torch.eye(6, 5, dtype=x.dtype)"), FLOATS, (2, 3)
    ),
    "copy": Operator(("x.clone().copy_(y)", "torch.empty_like(x).copy_(x)"), ANYTHING),
    # The subjects of TOSA's extensions, beside dtypes and states.
    "condition": Operator(
        (
            "torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, (x,))",
            "torch.cond(x.sum() > 0, lambda x, y: x * y, lambda x, y: x - y, (x, y))",
        ),
        ("float32",),
    ),
    "loop": Operator(
        (
            "torch._higher_order_ops.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 0.5), "
            "(torch.zeros((), dtype=torch.int32), x))[1]",
        ),
        ("float32",),
    ),
    "fft": Operator(
        ("torch.fft.rfft(x).abs()", "torch.fft.fft(x).real", "torch.fft.rfft2(x).abs()"), ("float32",), (2, 3)
    ),
    "quantize": Operator(
        (
            f"{_QUANTIZED}.dequantize_per_tensor({_QUANTIZED}.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)"
            ", 0.1, 3, -128, 127, torch.int8)",
            f"{_QUANTIZED}.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)",
        ),
        ("float32",),
    ),
}

#: Beside those of `FLOATS` and `INTEGERS`, which operators take alike.
ALIKE = {"bfloat16": "float16", "int8": "int32", "uint8": "int32"}
DTYPES = (*ANYTHING, *ALIKE)
HALVES = ("float16", "bfloat16")

#: No-ops by name: before the operator, of ``given``; after it, of ``made``.
NOTHING = {
    "same view": "{0}.reshape({0}.shape)",
    "same permute": "{0}.permute(tuple(range({0}.dim())))",
    "same slice": "{0}[:]",
    "same expand": "{0}.expand({0}.shape)",
    "unsqueeze and squeeze": "{0}.unsqueeze(0).squeeze(0)",
    "detach": "{0}.detach()",
    "alias": "torch.ops.aten.alias({0})",
    "dropout": "torch.nn.functional.dropout({0}, training=False)",
    "repeat once": "{0}.repeat([1] * {0}.dim())",
    "no pad": "torch.nn.functional.pad({0}, (0, 0))",
    "cast and back": "{0}.to(torch.float32).to({0}.dtype)",
    "cat of one": "torch.cat(({0},))",
    "in place": "{0}.clone().mul_(1)",
}
NEIGHBOURS = (*factors.NEIGHBOURS, *NOTHING)
#: Values for a second operand only.
OF_TWO = (*factors.OF_TWO, "scalar", "broadcast", "another type")
SHARED = (*factors.SHARED, "scalar", "broadcast", "another type")
USERS = (*factors.USERS, "computed twice", "returned twice")
#: Sizes of one; a symbolic first or last dimension, or both.
SIZED = ("plain", "ones", "first", "last", "first and last")
SYMBOLIC = SIZED[2:]
#: Neighbours before an operator that keep the sizes, and sharing that asks for none.
KEEPING = ("nothing", "clone", "clamp", *NOTHING)
OF_ANY_SIZE = ("apart", "one twice", "output as well", "scalar", "broadcast", "another type")
#: Holders of weights and constants.
PARAMETER = "parameter"
HELD = (PARAMETER, "buffer", "literal", "permuted buffer", "channels-last buffer", "part of a buffer")

FACTORS: Mapping[str, Sequence[object]] = {
    "operator": tuple(OPERATORS),
    "form": FORMS,
    "dtype": DTYPES,
    "rank": RANKS,
    "target": tuple(TARGETS),
    "before": NEIGHBOURS,
    "after": NEIGHBOURS,
    "shared": SHARED,
    "layout": factors.LAYOUTS,
    "users": USERS,
    "sized": SIZED,
    "held": HELD,
}
#: Factors with few values, whose triples all occur.


def _dtype_fits(row: Mapping[str, Any]) -> bool:
    dtype = row["dtype"]
    return ALIKE.get(dtype, dtype) in OPERATORS[row["operator"]].dtypes


def _has_held(row: Mapping[str, Any]) -> bool:
    """Return whether the model holds weights or constants, or the holder is not specified."""
    return bool(OPERATORS[row["operator"]].weights) or row["shared"] in (
        "constant",
        "constant of two",
        "scalar",
    )


def _computes(place: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether booleans can have a neighbour."""
    return lambda row: row["dtype"] != BOOLEAN or row[place] not in ("clamp", "in place")


#: As `lab.pairs.factors.RULES`.
RULES: Sequence[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], bool]]] = (
    (("operator", "form"), lambda row: row["form"] < len(OPERATORS[row["operator"]].forms)),
    (("operator", "dtype"), _dtype_fits),
    (("operator", "rank"), lambda row: row["rank"] in OPERATORS[row["operator"]].ranks),
    (
        ("operator", "shared"),
        lambda row: row["shared"] not in OF_TWO or OPERATORS[row["operator"]].takes_two,
    ),
    (("operator", "shared", "held"), lambda row: row["held"] == PARAMETER or _has_held(row)),
    (
        ("layout", "rank"),
        lambda row: row["rank"] in {"channels last": (4,), "permuted": RANKS[1:]}.get(row["layout"], RANKS),
    ),
    # Quantizers take float32; a target with a dtype of its own casts the rest to it.
    (("dtype", "target"), lambda row: row["dtype"] not in HALVES or not TARGETS[row["target"]].is_quantized),
    (("dtype", "before"), _computes("before")),
    (("dtype", "after"), _computes("after")),
    (("dtype", "shared"), lambda row: row["dtype"] != BOOLEAN or row["shared"] != "state"),
    # A symbolic dimension goes with what leaves it alone, and with a state or a constant of no other size.
    (("sized", "before"), lambda row: row["sized"] not in SYMBOLIC or row["before"] in KEEPING),
    (("sized", "shared"), lambda row: row["sized"] not in SYMBOLIC or row["shared"] in OF_ANY_SIZE),
    (("sized", "rank"), lambda row: row["sized"] != "first and last" or row["rank"] > 1),
)
