"""Operators that work on each element: of one tensor, of two that broadcast, and from one dtype to another."""

from __future__ import annotations

import functools

from lab.fuzz.model import PARAMETER, Value
from lab.fuzz.sketch import BOOLEAN, FLOAT, INTEGERS, Sketch, operator, register

#: Of floats. Those that are not defined everywhere get arguments that keep off where they are not. Those that jump get
#: some thirty-seconds more: what is drawn are sixteenths, and of a value at a jump rounding decides.
UNARY = {
    "relu": "torch.relu({0})",
    "relu6": "torch.nn.functional.relu6({0})",
    "sigmoid": "torch.sigmoid({0})",
    "tanh": "torch.tanh({0})",
    "exp": "torch.exp({0})",
    "expm1": "torch.expm1({0})",
    "neg": "-{0}",
    "abs": "torch.abs({0})",
    "square": "torch.square({0})",
    "cube": "torch.pow({0}, 3)",
    "floor": "torch.floor({0} * 3 + 0.28125)",
    "ceil": "torch.ceil({0} * 3 + 0.28125)",
    "round": "torch.round({0} * 3 + 0.28125)",
    "sign": "torch.sign({0} + 0.03125)",
    "sin": "torch.sin({0})",
    "cos": "torch.cos({0})",
    "erf": "torch.erf({0})",
    "atan": "torch.atan({0})",
    "sqrt": "torch.sqrt(torch.abs({0}))",
    "rsqrt": "torch.rsqrt(torch.abs({0}) + 0.5)",
    "log": "torch.log(torch.abs({0}) + 0.5)",
    "log1p": "torch.log1p(torch.abs({0}))",
    "reciprocal": "torch.reciprocal(torch.abs({0}) + 0.5)",
    "hardtanh": "torch.nn.functional.hardtanh({0}, -0.5, 0.75)",
    "hardswish": "torch.nn.functional.hardswish({0})",
    "hardsigmoid": "torch.nn.functional.hardsigmoid({0})",
    "leaky-relu": "torch.nn.functional.leaky_relu({0}, 0.125)",
    "elu": "torch.nn.functional.elu({0}, 0.5)",
    "silu": "torch.nn.functional.silu({0})",
    "mish": "torch.nn.functional.mish({0})",
    "gelu": "torch.nn.functional.gelu({0})",
    "gelu-tanh": 'torch.nn.functional.gelu({0}, approximate="tanh")',
    "softplus": "torch.nn.functional.softplus({0})",
    "clamp": "torch.clamp({0}, -0.5, 0.5)",
    "clamp-low": "torch.clamp({0}, min=0.25)",
    "clone": "{0}.clone()",
    "detach": "{0}.detach()",
    "add-number": "{0} + 0.75",
    "subtract-from-number": "1.5 - {0}",
    "multiply-number": "{0} * 0.375",
    "divide-number": "{0} / 3",
}

BINARY = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / (torch.abs({1}) + 0.5)",
    "maximum": "torch.maximum({0}, {1})",
    "minimum": "torch.minimum({0}, {1})",
    "add-scaled": "torch.add({0}, {1}, alpha=0.5)",
    "power": "torch.pow(torch.abs({0}) + 0.5, {1})",
    "divide-floor": 'torch.div({0} * 4 + 0.28125, torch.abs({1}) + 0.5, rounding_mode="floor")',
}

OF_INTEGERS = {
    "add-integers": "{0} + {1}",
    "subtract-integers": "{0} - {1}",
    "multiply-integers": "{0} * {1}",
    "maximum-integers": "torch.maximum({0}, {1})",
    "floor-divide-integers": "torch.div({0}, {1} * {1} + 1, rounding_mode='floor')",
    "bitwise-and": "{0} & {1}",
    "bitwise-xor": "{0} ^ {1}",
}

#: Of floats, only with a distance from what is equal.
COMPARISONS = {"less": "<", "at-most": "<=", "greater": ">", "at-least": ">=", "equal": "==", "unlike": "!="}


def unary(text: str, sketch: Sketch) -> bool:
    given = sketch.floats()
    return given is not None and sketch.add(text, [given], given.shape)


def second(sketch: Sketch, first: Value) -> Value:
    """Return a second operand for `first`: a value or a constant, of its shape or broadcast."""
    chance = sketch.chance
    if chance.happens(0.5):
        return sketch.like(first)
    kept = tuple(size if chance.happens(0.6) else 1 for size in first.shape)
    shape = kept[chance.below(len(kept) + 1) if not sketch.symbolic else 1 :] if kept else ()
    broadcast = sketch.pick(lambda value: value.shape == shape and value.dtype == first.dtype)
    if broadcast is not None and chance.happens(0.5):
        return broadcast
    return sketch.constant(*shape, dtype=first.dtype, kind=PARAMETER)


def binary(text: str, kinds: tuple[str, ...], made: str | None, sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: value.dtype in kinds)
    if given is None:
        return False
    pair = [given, second(sketch, given)]
    if not sketch.symbolic and sketch.chance.happens(0.3):
        pair.reverse()
    return sketch.add(text, pair, given.shape, dtype=made or given.dtype)


for _name, _text in UNARY.items():
    register(_name, functools.partial(unary, _text), 0.5, symbolic=True)
for _name, _text in BINARY.items():
    register(_name, functools.partial(binary, _text, (FLOAT,), FLOAT), 1.5, symbolic=True)
for _name, _text in OF_INTEGERS.items():
    register(_name, functools.partial(binary, _text, INTEGERS, None), 0.5, symbolic=True)
for _name, _sign in COMPARISONS.items():
    register(_name, functools.partial(binary, f"{{0}} {_sign} {{1}}", INTEGERS, BOOLEAN), 0.2, symbolic=True)
    if _sign not in ("==", "!="):
        _text = f"{{0}} {_sign} {{1}} + 0.03125"
        register(
            f"{_name}-of-floats", functools.partial(binary, _text, (FLOAT,), BOOLEAN), 0.3, symbolic=True
        )
for _name, _text in {"logical-and": "{0} & {1}", "logical-or": "torch.logical_or({0}, {1})"}.items():
    register(_name, functools.partial(binary, _text, (BOOLEAN,), BOOLEAN), 1.0, symbolic=True)


@operator(symbolic=True)
def logical_not(sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: value.dtype == BOOLEAN)
    return given is not None and sketch.add("~{0}", [given], given.shape, dtype=BOOLEAN)


@operator(weight=1.5, symbolic=True)
def where(sketch: Sketch) -> bool:
    """Choose by a boolean tensor between two others, or one and a number."""
    condition = sketch.pick(lambda value: value.dtype == BOOLEAN)
    if condition is None:
        return False
    one = sketch.pick(lambda value: value.shape == condition.shape and value.dtype == FLOAT)
    if one is None:
        return False
    if sketch.chance.happens(0.3):
        return sketch.add("torch.where({0}, {1}, 0.25)", [condition, one], one.shape)
    return sketch.add("torch.where({0}, {1}, {2})", [condition, one, sketch.like(one)], one.shape)


@operator(weight=1.5, symbolic=True)
def cast(sketch: Sketch) -> bool:
    """Go to another dtype; a boolean or an integer tensor rather to float32."""
    given = sketch.pick(lambda value: True)
    if given is None:
        return False
    others = [FLOAT] * 3 if given.dtype != FLOAT else ["int32", "int64", "int8", BOOLEAN, "float16"]
    dtype = sketch.chance.one(others)
    if dtype == "float16":
        # There and back: half of float32's digits.
        return sketch.add("{0}.to(torch.float16).to(torch.float32)", [given], given.shape)
    scaled = "({0} * 4 + 0.28125)" if given.dtype == FLOAT else "{0}"
    return sketch.add(f"{scaled}.to(torch.{dtype})", [given], given.shape, dtype=dtype)
