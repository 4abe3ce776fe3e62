"""What an argument of an operator can be, by its type in the schema: a short list of levels each.

A level is made concrete only where a model is drawn: *last* of a dimension is a number once there is a shape.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from executorch_goldens_plugins.compare.calls import (
    COMPUTED,
    CONSTANT,
    INPUT,
    LAYOUTS,
    PARAMETER,
    SAME,
    VALUES,
    Operand,
    Value,
)

#: Sizes of dimensions: even, prime, or most of them one.
SIZES: Mapping[str, Sequence[int]] = {
    "even": (2, 4, 6, 8),
    "odd": (3, 5, 7, 11),
    "ones": (1, 1, 1, 2, 3),
}
#: Names of integers that are dimensions.
DIMS = ("dim", "dim0", "dim1", "dimension", "start_dim", "end_dim", "source", "destination")
#: Left at their defaults: what no program is lowered with.
LEFT = (
    "layout",
    "device",
    "pin_memory",
    "non_blocking",
    "path",
    "cudnn_enabled",
    "cudnn_enable",
    "sparse",
    "sparse_grad",
)
#: Words of PyTorch that an argument of type ``str`` may be, by its name.
WORDS: Mapping[str, Sequence[str | None]] = {
    "rounding_mode": (None, "trunc", "floor"),
    "approximate": ("none", "tanh"),
    "padding": ("valid", "same"),
    "mode": ("constant", "reflect", "replicate", "circular"),
    "reduce": ("sum", "prod", "mean", "amax", "amin"),
    "norm": (None, "backward", "ortho", "forward"),
    "equation": ("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij,ij->", "bhid,bhjd->bhij"),
}
FLOATS = ("float32", "float16", "bfloat16")
#: Dtypes of operands by kind, one of which is drawn.
KINDS: Mapping[str, Sequence[str]] = {
    "float32": ("float32",),
    "half": ("float16", "bfloat16"),
    "whole": ("int32", "int8", "bool", "int64"),
}
DTYPES = (*FLOATS, "int32", "int8", "bool", "int64", "float64")
#: The least number of a list of sizes, by the name of the argument.
LEAST = {"padding": 0, "output_padding": 0, "kernel_size": 2, "output_size": 2}
#: No value of an argument: the schema's default.
DEFAULT = "default"


@dataclass
class Context:
    """What of a model is drawn already.

    Attributes
    ----------
    shape
        Of the first operand.
    row
        The level of each factor.
    """

    chance: random.Random
    row: Mapping[str, Any]
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    made: dict[str, Value] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def dim(self, level: str) -> int:
        """Return a dimension of the first operand."""
        rank = max(self.rank, 1)
        return {
            "first": 0,
            "last": rank - 1,
            "from the end": -1,
            "first from the end": -rank,
            "middle": rank // 2,
        }[level]

    def size_at(self, name: str = "dim") -> int:
        """Return the size of the dimension that an argument named before is."""
        dim = self.made.get(name, 0)
        return self.shape[dim] if type(dim) is int and -self.rank <= dim < self.rank else 1

    def size_at_level(self, name: str) -> int:
        """Return the size of the dimension that the level of an argument is."""
        return self.shape[self.dim(self.row[name])] if self.shape and self.row.get(name) in _DIM_LEVELS else 1

    def operand(self, name: str, shape: Sequence[int], dtype: str = "", **given: Any) -> Operand:
        """Return a further operand, as the levels of its argument say."""
        held = self.row.get(f"{name} held", INPUT)
        values = self.row.get("(values)", VALUES[0])
        layout = LAYOUTS[0]
        if self.chance.random() < 0.2 and len(shape) > 1:
            layout = self.chance.choice(("permuted", "sliced"))
        return Operand(
            dtype or self.dtype, tuple(shape), held, layout, values=given.pop("values", values), **given
        )


#: Levels of lists of sizes that came later: in one direction beyond what another argument is.
FAR = ("first far larger", "second far larger")
#: Levels of lists of dimensions that came later: see `lab.args.shapes.LATER`.
LATER_DIMS = ("first two", "first and last")
_DIM_LEVELS = ("first", "last", "from the end", "first from the end", "middle")
_INTS: Mapping[str, Callable[[Context], int]] = {
    "0": lambda at: 0,
    "1": lambda at: 1,
    "2": lambda at: 2,
    "-1": lambda at: -1,
    "3": lambda at: 3,
    "size": lambda at: at.size_at(),
    "last": lambda at: at.size_at() - 1,
    "before last": lambda at: -at.size_at(),
    "beyond": lambda at: 2**63 - 1,
}
_NUMBERS: Mapping[str, Sequence[float]] = {
    "eps": (1e-5, 1e-3, 0.1),
    "momentum": (0.1,),
    "p": (0.0, 0.5),
    "dropout": (0.0,),
    "dropout_p": (0.0,),
    "scale": (0.5, 1.0),
    "ord": (1, 2, 3.0, math.inf),
    "scales_h": (2.0,),
    "scales_w": (2.0,),
}
_SCALARS = (0, 1, -1, 0.5, 2, -0.25, 100.0)


def levels(name: str, type_: str, is_left_out: bool) -> tuple[Any, ...]:
    """Return the levels of an argument that is no tensor; none for one that is left at its default.

    Parameters
    ----------
    type_
        As the schema prints it, without ``Optional``.
    is_left_out
        Whether it has a default.
    """
    if name in LEFT:
        return ()
    own: tuple[Any, ...]
    if name in WORDS and type_ == "str":
        own = tuple(WORDS[name])
    elif name == "dtype":
        own = DTYPES
    elif name == "memory_format":
        own = ("contiguous_format", "preserve_format", "channels_last")
    elif name in DIMS and type_ == "int":
        own = _DIM_LEVELS
    elif type_ == "bool":
        own = (False, True)
    elif type_ == "int":
        own = tuple(_INTS)
    elif type_ in ("float", "number"):
        own = tuple(_NUMBERS.get(name, _SCALARS))
    elif type_ == "List[int]" and name in ("dim", "dims"):
        own = ("none", "one", "from the end", "two", "all", "two from the end")
    elif type_ == "List[int]":
        own = ("equal", "first larger", "second larger", "one number", "larger", "bound")
    elif type_ == "List[float]":
        own = (2.0, 1.5)
    else:
        return ()
    # What has no default has no such level.
    return (*own, DEFAULT) if is_left_out and type_ != "bool" else own


def value(name: str, type_: str, level: Any, at: Context) -> Any:
    """Return what a level of an argument is, in a context."""
    if name in DIMS and type_ == "int":
        return at.dim(level)
    if type_ == "int" and level in _INTS:
        return _INTS[level](at)
    if type_ == "List[int]" and name in ("dim", "dims"):
        return _dims(level, at.rank)
    if type_ == "List[int]":
        return list(_list(name, level, at))
    if type_ == "List[float]":
        return [level] * max(at.rank - 2, 1)
    return level


def _dims(level: str, rank: int) -> list[Any]:
    every = range(rank)
    return {
        "none": [],
        "one": [rank // 2],
        "from the end": [-1],
        "two": [*every][-2:],
        "all": [*every],
        "two from the end": [-2, -1],
        "first two": [*every][:2],
        "first and last": [0, rank - 1],
    }[level]


def _list(name: str, level: str, at: Context) -> Sequence[int]:
    """Return a list of numbers for the dimensions after the first two, or for one fewer where there is no batch."""
    spatial = at.row.get("spatial", max(at.rank - 2, 1))
    base = LEAST.get(name, 1)
    if level == "bound":
        sizes = at.shape[-spatial:] if spatial <= at.rank else at.shape
        # A padding is at most half of the kernel.
        return [1] * spatial if name == "padding" else [*sizes]
    even = [base] * spatial
    if level == "first larger":
        even[0] += 1
    elif level == "second larger":
        even[-1] += 1
    elif level in FAR:
        even[0 if level == FAR[0] else -1] += 3
    elif level == "larger":
        even = [base + 1] * spatial
    return even[:1] if level == "one number" else even


#: Of operators that are not defined everywhere, or say nothing elsewhere: the range of their operands, by name.
RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("log", "log10", "sqrt", "sqrt_", "rsqrt", "reciprocal"), (0.25, 4.0)),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), (-0.875, 0.875)),
    "logit": (0.125, 0.875),
    "acosh": (1.25, 4.0),
    "log1p": (-0.5, 4.0),
    "pow": (0.25, 2.0),
    "tan": (-1.25, 1.25),
}
#: Operands by argument: of a divisor, of how far bits are moved.
OTHERS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("div", "div_", "floor_divide", "remainder"), (1.0, 4.0)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), (0.0, 3.0)),
}
HELD = (INPUT, CONSTANT)
#: Operands that a program may compute of a parameter: a level that came later.
LEARNED, HELD_OF_LEARNED = ("weight", "bias", "mat2"), (COMPUTED,)
HELD_OF_LATER = (INPUT, CONSTANT, PARAMETER, SAME)
