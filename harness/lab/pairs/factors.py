"""The factors of the matrix, the values of each, and which of these fit each other.

An operator has several forms of call: the function, the method, in place, an alias, an argument left out or given, one
number or several, a dimension counted from either end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

FLOATS, INTEGERS, BOOLEAN = ("float32", "float16"), ("int32", "int64"), "bool"
NUMBERS = (*FLOATS, *INTEGERS)
ANYTHING = (*NUMBERS, BOOLEAN)
#: Ranks of what is operated on.
RANKS = (1, 2, 3, 4, 5)
#: Sizes of the dimensions, the last ones of smaller ranks; 2 of the channels divides what groups need.
SIZES = (2, 3, 4, 6, 5)


@dataclass(frozen=True)
class Operator:
    """The operator under test of a model.

    Attributes
    ----------
    forms
        Expressions of ``x``; of ``y``, a second operand like it; of ``w``, weights that `weights` describes.
    dtypes, ranks
        Of ``x``.
    weights
        Shape of ``w``; none where it is empty.
    """

    forms: Sequence[str]
    dtypes: Sequence[str] = FLOATS
    ranks: Sequence[int] = RANKS
    weights: Sequence[int] = ()

    @property
    def takes_two(self) -> bool:
        return any("y" in form.replace("torch.any", "") for form in self.forms)


def _called(name: str, *others: str, rest: str = "", aliases: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the usual forms: the function, the method, in place, by its aliases.

    >>> _called("clamp", rest=", -0.5, 0.5", aliases=("clip",))[:3]
    ('torch.clamp(x, -0.5, 0.5)', 'x.clamp(-0.5, 0.5)', 'x.clone().clamp_(-0.5, 0.5)')
    """
    alone = rest.removeprefix(", ")
    usual = (f"torch.{name}(x{rest})", f"x.{name}({alone})", f"x.clone().{name}_({alone})")
    return (*usual, *(f"torch.{alias}(x{rest})" for alias in aliases), *others)


_F = "torch.nn.functional"
_UNARY = (
    *("abs", "neg", "exp", "sigmoid", "tanh", "sin", "cos", "erf", "floor", "ceil", "round", "sign"),
    *("square", "relu", "expm1", "atan"),
)
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

#: By name. Arguments that jump, or are not defined everywhere, are moved off that.
OPERATORS: Mapping[str, Operator] = {
    **{
        name: Operator(
            _called(name),
            NUMBERS if name in ("abs", "neg", "square", "relu", "sign") else FLOATS,
        )
        for name in _UNARY
    },
    **{
        name: Operator((*_called(name, rest=", y"), f"x {sign} y", f"x {sign} 2", f"3 {sign} x"), NUMBERS)
        for name, sign in _ARITHMETIC.items()
    },
    "div": Operator(
        (
            *("torch.div(x, y.abs() + 1)", "x / 2", "torch.true_divide(x, y.abs() + 1)"),
            *('torch.div(x, y.abs() + 1, rounding_mode="trunc")', "1 / (x.abs() + 1)"),
        ),
        NUMBERS,
    ),
    "floor-divide": Operator(("x // (y.abs() + 3)", "torch.floor_divide(x, 3)"), NUMBERS),
    "remainder": Operator(("x % 3", "torch.remainder(x, y.abs() + 3)", "torch.fmod(x, 3)"), NUMBERS),
    "pow": Operator(
        ("x ** 2", "torch.pow(x, 3)", "x.pow(0)", "2 ** x", "x.abs().pow(0.5)", "x.abs().pow(y)")
    ),
    "maximum": Operator(("torch.maximum(x, y)", "torch.max(x, y)", "x.clamp(min=y)"), NUMBERS),
    "minimum": Operator(("torch.minimum(x, y)", "torch.min(x, y)", "x.clamp(max=y)"), NUMBERS),
    **{
        name: Operator((f"torch.{name}(x, y)", f"x {sign} y", f"x {sign} 1", f"x.{name}(y)"), NUMBERS)
        for name, sign in _COMPARED.items()
    },
    "bitwise": Operator(("x & y", "x | y", "x ^ y", "~x", "torch.bitwise_and(x, y)"), (*INTEGERS, BOOLEAN)),
    "logical": Operator(
        ("torch.logical_and(x, y)", "torch.logical_or(x, y)", "torch.logical_not(x)"), ANYTHING
    ),
    "where": Operator(
        (
            "torch.where(x > y, x, y)",
            "torch.where(x > 0, x, 0)",
            "torch.where(x > 0, 1, x)",
            "x.where(x > y, y)",
        ),
        NUMBERS,
    ),
    "masked-fill": Operator(("x.masked_fill(x > y, 0)", "x.masked_fill(x > 0, 2)"), NUMBERS),
    "clamp": Operator(
        (*_called("clamp", rest=", -1, 2", aliases=("clip",)), "x.clamp(min=0)", "x.clamp(max=1)"), NUMBERS
    ),
    "sum": Operator(
        ("x.sum()", "x.sum(-1)", "x.sum(0, keepdim=True)", "torch.sum(x, dim=[0, -1])"), ANYTHING
    ),
    "mean": Operator(("x.mean()", "x.mean(-1)", "x.mean((0, -1), keepdim=True)", "torch.mean(x, 0)")),
    "var": Operator(("x.var()", "x.var(-1)", "torch.var(x, 0, correction=0)", "x.std(-1)")),
    "amax": Operator(("x.amax()", "x.amax(-1)", "x.max(-1).values", "x.amax(0, keepdim=True)"), NUMBERS),
    "amin": Operator(("x.amin()", "x.amin(-1)", "x.min(0).values", "x.min()"), NUMBERS),
    "argmax": Operator(("x.argmax(-1)", "torch.argmax(x, 0)", "x.argmax()"), FLOATS),
    "any": Operator(("torch.any(x > 0)", "torch.any(x > 0, -1)", "torch.all(x > 0, 0)"), NUMBERS),
    "softmax": Operator(("torch.softmax(x, -1)", f"{_F}.softmax(x, 0)", "x.log_softmax(-1)")),
    "view": Operator(
        ("x.reshape(-1)", "x.contiguous().view(1, -1)", "x.flatten()", "x.unflatten(-1, (5, 1))"), ANYTHING
    ),
    "unsqueeze": Operator(
        ("x.unsqueeze(0)", "x.unsqueeze(-1)", "x[None]", "x.unsqueeze(1)"), ANYTHING, (1, 2, 3, 4)
    ),
    "squeeze": Operator(
        ("x[:1].squeeze(0)", "x[..., :1].squeeze()", "x.unsqueeze(-1).squeeze(-1)"), ANYTHING
    ),
    "transpose": Operator(
        ("x.transpose(0, -1)", "x.mT", "x.permute(-1, *range(x.dim() - 1))", "x.swapaxes(-2, -1)"),
        ANYTHING,
        (2, 3, 4, 5),
    ),
    "cat": Operator(
        ("torch.cat((x, y))", "torch.cat([x, y], -1)", "torch.concat((x, y, x), -1)", "torch.cat((x,), 0)"),
        ANYTHING,
    ),
    "stack": Operator(
        ("torch.stack((x, y))", "torch.stack([x, y], -1)", "torch.stack((x, y, x), 1)"),
        ANYTHING,
        (1, 2, 3, 4),
    ),
    "slice": Operator(
        ("x[1:]", "x[..., ::2]", "x[..., -3:-1]", "x.narrow(-1, 1, 2)", "x[:, 0]", "x.select(-1, -1)"),
        ANYTHING,
        (2, 3, 4, 5),
    ),
    "split": Operator(
        ("x.split(2, -1)[0]", "x.chunk(2, -1)[1]", "torch.split(x, [2, 3], -1)[1]", "x.unbind(0)[1]"),
        ANYTHING,
    ),
    "expand": Operator(
        (
            "x.unsqueeze(0).expand(2, *x.shape)",
            "x[:1].expand_as(x)",
            "x.repeat_interleave(2, 0)",
            "x.tile((2,))",
        ),
        ANYTHING,
        (1, 2, 3, 4),
    ),
    "repeat": Operator(
        ("x.repeat(2, *[1] * (x.dim() - 1))", "x.repeat(*[1] * x.dim(), 2)", "torch.tile(x, (1, 2))"),
        ANYTHING,
        (1, 2, 3),
    ),
    "flip": Operator(
        ("x.flip(-1)", "torch.flip(x, (0, -1))", "torch.flip(x, [0])", "x.roll(1, -1)"), ANYTHING
    ),
    "gather": Operator(
        (
            "x.index_select(-1, torch.tensor([2, 0]))",
            "x[..., torch.tensor([1, 1])]",
            "x.gather(-1, (x > 0).long())",
        ),
        ANYTHING,
    ),
    "pad": Operator(
        (f"{_F}.pad(x, (1, 2))", f"{_F}.pad(x, (1, 0), value=1)", f"{_F}.pad(x, (0, 0, 1, 1))"),
        NUMBERS,
        (2, 3, 4),
    ),
    "full": Operator(
        (
            "x + torch.zeros_like(x)",
            "x * torch.full(x.shape, 2, dtype=x.dtype)",
            "torch.ones_like(x) + x",
            "x.new_zeros(x.shape) + x",
        ),
        NUMBERS,
    ),
    "arange": Operator(("x + torch.arange(5)", "x * torch.linspace(0, 1, 5).to(x.dtype)"), NUMBERS),
    "cast": Operator(
        (
            "x.to(torch.int32)",
            "x.to(torch.float32)",
            "x.float() + 1",
            "x.bool()",
            "x.to(torch.float16).float()",
            "x.type_as(y)",
        ),
        ANYTHING,
    ),
    "no-op": Operator(
        (
            "x.clone()",
            "x.detach()",
            "x.contiguous()",
            "torch.ops.aten.alias(x)",
            f"{_F}.dropout(x, training=False)",
        ),
        NUMBERS,
    ),
    "gelu": Operator(
        (
            f"{_F}.gelu(x)",
            f'{_F}.gelu(x, approximate="tanh")',
            f"{_F}.silu(x)",
            f"{_F}.silu(x.clone(), inplace=True)",
            f"{_F}.mish(x)",
        )
    ),
    "hard": Operator(
        (
            f"{_F}.hardswish(x)",
            f"{_F}.hardsigmoid(x)",
            f"{_F}.hardtanh(x)",
            f"{_F}.relu6(x)",
            f"{_F}.hardtanh(x.clone(), -0.5, 0.5, inplace=True)",
        )
    ),
    "elu": Operator(
        (
            f"{_F}.elu(x)",
            f"{_F}.elu(x, alpha=0.5)",
            f"{_F}.leaky_relu(x)",
            f"{_F}.leaky_relu(x.clone(), 0.1, inplace=True)",
            f"{_F}.selu(x)",
            f"{_F}.celu(x)",
        )
    ),
    "prelu": Operator(
        (
            f"{_F}.prelu(x, w[:1, 0])",
            f"{_F}.threshold(x, 0.1, 0.5)",
            f"{_F}.softplus(x)",
            f"{_F}.logsigmoid(x)",
        ),
        FLOATS,
        RANKS,
        (4, 5),
    ),
    "roots": Operator(
        (
            "torch.sqrt(x.abs() + 1)",
            "torch.rsqrt(x.abs() + 1)",
            "torch.log(x.abs() + 1)",
            "torch.log1p(x.abs())",
            "torch.reciprocal(x.abs() + 1)",
        )
    ),
    "linear": Operator(
        (f"{_F}.linear(x, w)", f"{_F}.linear(x, w, w[:, 0])", "x @ w.T", "torch.matmul(x, w.t())"),
        FLOATS,
        RANKS,
        (4, 5),
    ),
    "matmul": Operator(("x @ y.mT", "torch.matmul(x, x.transpose(-2, -1))", "x.mT @ y"), FLOATS, (2, 3, 4)),
    "bmm": Operator(
        ("torch.bmm(x, y.mT)", "torch.baddbmm(x @ x.mT, x, y.mT)", 'torch.einsum("bij,bkj->bik", x, y)'),
        FLOATS,
        (3,),
    ),
    "conv1d": Operator(
        (
            f"{_F}.conv1d(x, w)",
            f"{_F}.conv1d(x, w, padding=1, stride=2)",
            f'{_F}.conv1d(x, w, w[:, 0, 0], padding="same")',
        ),
        FLOATS,
        (3,),
        (3, 6, 3),
    ),
    "conv2d": Operator(
        (
            f"{_F}.conv2d(x, w)",
            f"{_F}.conv2d(x, w, w[:, 0, 0, 0], stride=2, padding=1)",
            f'{_F}.conv2d(x, w, padding="same")',
            f"{_F}.conv2d(x, w[:, :2], groups=2)",
            f"{_F}.conv2d(x, w, dilation=(1, 2), padding=(1, 2))",
        ),
        FLOATS,
        (4,),
        (4, 4, 3, 3),
    ),
    "conv-transpose2d": Operator(
        (
            f"{_F}.conv_transpose2d(x, w)",
            f"{_F}.conv_transpose2d(x, w, w[0, :, 0, 0], stride=2, output_padding=1)",
            f"{_F}.conv_transpose2d(x, w, stride=(2, 1), padding=1)",
        ),
        FLOATS,
        (4,),
        (4, 2, 3, 3),
    ),
    "max-pool": Operator(
        (
            f"{_F}.max_pool2d(x, 2)",
            f"{_F}.max_pool2d(x, (3, 2), stride=1, padding=1)",
            f"{_F}.max_pool2d(x, [2, 2], ceil_mode=True)",
            f"{_F}.adaptive_max_pool2d(x, 1)",
        ),
        FLOATS,
        (3, 4),
    ),
    "avg-pool": Operator(
        (
            f"{_F}.avg_pool2d(x, 2)",
            f"{_F}.avg_pool2d(x, (3, 2), 1, 1)",
            f"{_F}.adaptive_avg_pool2d(x, 1)",
            f"{_F}.avg_pool2d(x, 2, count_include_pad=False, padding=1)",
        ),
        FLOATS,
        (3, 4),
    ),
    "resize": Operator(
        (
            f'{_F}.interpolate(x, scale_factor=2, mode="nearest")',
            f'{_F}.interpolate(x, size=(8, 10), mode="bilinear")',
            f"{_F}.interpolate(x, size=[12, 10])",
            f'{_F}.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)',
        ),
        FLOATS,
        (4,),
    ),
    "batch-norm": Operator(
        (
            f"{_F}.batch_norm(x, w[0].abs(), w[1].abs() + 0.5, w[2], w[0])",
            f"{_F}.batch_norm(x, w[0], w[1].abs() + 0.5)",
        ),
        FLOATS,
        (4,),
        (3, 4),
    ),
    "layer-norm": Operator(
        (
            f"{_F}.layer_norm(x, x.shape[-1:])",
            f"{_F}.layer_norm(x, (5,), w[0], w[1])",
            f"{_F}.layer_norm(x, [5], w[0], eps=1e-3)",
        ),
        FLOATS,
        RANKS,
        (2, 5),
    ),
    "group-norm": Operator(
        (
            f"{_F}.group_norm(x, 1)",
            f"{_F}.group_norm(x, 1, w[0, :1].expand(x.shape[1]), w[1, :1].expand(x.shape[1]))",
        ),
        FLOATS,
        (3, 4),
        (2, 5),
    ),
    "embedding": Operator(
        (
            f"{_F}.embedding(x.abs() % 4, w)",
            "w[x.abs() % 4]",
            f"{_F}.embedding(x.abs() % 4, w, padding_idx=0)",
        ),
        INTEGERS,
        (1, 2, 3),
        (4, 5),
    ),
    "cumsum": Operator(("x.cumsum(-1)", "torch.cumsum(x, 0)", "x.cumsum(dim=-1)"), NUMBERS),
    "pixel-shuffle": Operator(
        (f"{_F}.pixel_shuffle(x.repeat(1, 4, 1, 1), 2)", f"{_F}.pixel_unshuffle(x[..., :4, :4], 2)"),
        FLOATS,
        (4,),
    ),
    "glu": Operator((f"{_F}.glu(x[..., :4])", f"{_F}.glu(x[..., :4], dim=-1)", f"{_F}.glu(x[:2], 0)")),
    "attention": Operator(
        (
            f"{_F}.scaled_dot_product_attention(x, y, x)",
            f"{_F}.scaled_dot_product_attention(x, y, y, is_causal=True)",
        ),
        FLOATS,
        (3, 4),
    ),
    "slice-scatter": Operator(
        (
            "x.slice_scatter(y[:1], 0, 0, 1)",
            "x.select_scatter(y[0], 0, 1)",
            "x.index_put((torch.tensor([0]),), y[:1])",
            "x.clone().index_fill_(0, torch.tensor([1]), 0)",
        ),
        NUMBERS,
    ),
}

#: Code before the operator, and after it. No partitioner takes a sort.
NEIGHBOURS = ("nothing", "view", "permute", "clone", "slice", "cat", "clamp", "outside")
#: Values for a second operand only.
OF_TWO = ("one twice", "constant", "constant of two")
#: Uses of the operands.
SHARED = ("apart", "one twice", "constant", "constant of two", "output as well", "state")
LAYOUTS = ("contiguous", "permuted", "channels last")
USERS = ("one", "two", "output as well")
SIZED = ("plain", "symbolic")
TARGETS = ("tosa-fp", "tosa-int", "tosa-u55", "xnnpack-fp32", "xnnpack-int8")
#: Forms that an operator of fewer has again.
FORMS = tuple(range(6))


class Row(NamedTuple):
    """A model of the matrix: a value of each factor."""

    operator: str
    form: int
    dtype: str
    rank: int
    target: str
    before: str
    after: str
    shared: str
    layout: str
    users: str
    sized: str


FACTORS: Mapping[str, Sequence[object]] = {
    "operator": tuple(OPERATORS),
    "form": FORMS,
    "dtype": ANYTHING,
    "rank": RANKS,
    "target": TARGETS,
    "before": NEIGHBOURS,
    "after": NEIGHBOURS,
    "shared": SHARED,
    "layout": LAYOUTS,
    "users": USERS,
    "sized": SIZED,
}


#: Of which values of some factors a row is made: the factors, and whether their values fit each other.
RULES: Sequence[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], bool]]] = (
    (("operator", "form"), lambda row: row["form"] < len(OPERATORS[row["operator"]].forms)),
    (("operator", "dtype"), lambda row: row["dtype"] in OPERATORS[row["operator"]].dtypes),
    (("operator", "rank"), lambda row: row["rank"] in OPERATORS[row["operator"]].ranks),
    (
        ("operator", "shared"),
        lambda row: row["shared"] not in OF_TWO or OPERATORS[row["operator"]].takes_two,
    ),
    (
        ("layout", "rank"),
        lambda row: row["rank"] in {"channels last": (4,), "permuted": RANKS[1:]}.get(row["layout"], RANKS),
    ),
    # XNNPACK alone takes half of float32's digits.
    (("dtype", "target"), lambda row: row["dtype"] != "float16" or row["target"] == "xnnpack-fp32"),
    (("dtype", "before"), lambda row: row["dtype"] != BOOLEAN or row["before"] != "clamp"),
    (("dtype", "after"), lambda row: row["dtype"] != BOOLEAN or row["after"] != "clamp"),
    (("dtype", "shared"), lambda row: row["dtype"] != BOOLEAN or row["shared"] != "state"),
    # A symbolic first dimension goes with what leaves it alone, and with a state of no other size.
    (("sized", "layout"), lambda row: row["sized"] == "plain" or row["layout"] == "contiguous"),
    (
        ("sized", "before"),
        lambda row: row["sized"] == "plain" or row["before"] in ("nothing", "clone", "clamp"),
    ),
    (
        ("sized", "shared"),
        lambda row: row["sized"] == "plain" or row["shared"] in ("apart", "one twice", "output as well"),
    ),
)
