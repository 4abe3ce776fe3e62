"""Gives the sizes that a TOSA payload leaves open, for inputs of given shapes, as whoever runs the payload must.

A tensor of symbolic size is in a payload with -1 in that place. Who runs it knows the shapes of its inputs, and
from these every other size follows, operator by operator, by the shapes that TOSA 1.1 (sections 2.2 to 2.16) says an
operator's result has. Nothing but these -1 is written: what computes with sizes (the extension EXT-SHAPE) stays in the
payload, and the reference model runs it. A payload that states other sizes than its operators give is not run: the
reference model does not check all of them, and writes beyond a tensor that is too small.

Upstream's tests give the sizes by ``infer_shapes``, a binary in the wheel of tosa-tools from 2026.5.0 on. The rules are
tested against it; they stay, for they also see sizes that a payload states wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from executorch_goldens.decode import Decoded, Graph, Operator, Schemas, Value
from executorch_goldens.decode.tosa import decode_tosa
from executorch_goldens.errors import HarnessError

#: Size that a payload leaves open.
OPEN = -1
#: As `Value.dtype` has it: a value that is no tensor but a list of sizes.
SHAPE = "SHAPE"
#: The version of TOSA from which on a payload may leave sizes open.
FIRST = (1, 1)

Sizes: TypeAlias = tuple[int, ...]
Rule: TypeAlias = "Callable[[Operator, Sequence[Sizes]], Sizes]"


class OpenSizeError(HarnessError, ValueError):
    """A payload has open sizes that do not follow from its inputs; the message names them."""


def lacking(payload: bytes) -> str:
    """Return why the sizes that `payload` leaves open cannot be given; empty if they can, or if it leaves none open."""
    return _lacking(_decoded(payload)) if leaves_open(payload) else ""


def _decoded(payload: bytes) -> Decoded:
    return decode_tosa(memoryview(payload), Schemas.installed().load("tosa"))


def _lacking(decoded: Decoded) -> str:
    if (decoded.facts["version.major"], decoded.facts["version.minor"]) < FIRST:
        return "the reference model takes no dimension whose size the payload leaves open"
    if len(decoded.graphs) > 1:
        return "no rule gives the sizes that a payload with control flow leaves open"
    (graph,) = decoded.graphs
    without = sorted(
        {
            operator.type
            for operator in graph.operators
            if operator.type not in RULES and any(_is_open(graph, name) for name in operator.outputs)
        }
    )
    return f"no rule gives the sizes that {', '.join(without)} leaves open" if without else ""


def leaves_open(payload: bytes) -> bool:
    """Return whether some tensor of a TOSA payload has a dimension of unstated size."""
    return any(OPEN in tensor.ShapeAsNumpy() for tensor in _tensors(payload) if tensor.ShapeLength())


def with_sizes(payload: bytes, shapes: Sequence[Sizes]) -> bytes:
    """Return `payload` with every size that it leaves open as it is for inputs of these shapes.

    Raises
    ------
    OpenSizeError
        If a size does not follow from the shapes (see `lacking`), or differs from what the payload states.
    """
    if not leaves_open(payload):
        return payload
    decoded = _decoded(payload)
    if problem := _lacking(decoded):
        raise OpenSizeError(problem)
    sizes = sizes_of(decoded.graphs[0], shapes)
    written = bytearray(payload)
    for tensor in _tensors(written):
        if tensor.ShapeLength():
            # A view of what is written.
            tensor.ShapeAsNumpy()[:] = sizes[tensor.Name().decode()]
    return bytes(written)


def sizes_of(graph: Graph, shapes: Sequence[Sizes]) -> dict[str, Sizes]:
    """Return the shape of each tensor of `graph`, and the sizes in each of its lists of sizes, by name.

    Parameters
    ----------
    shapes
        Of the inputs, in order.

    Raises
    ------
    OpenSizeError
        If an operator does not have what its rule needs, or a tensor states other sizes than its operator gives.
    """
    found = dict(zip(graph.inputs, shapes, strict=True))
    for name, value in graph.values.items():
        if value.dtype == SHAPE:
            found.update({name: sizes} if (sizes := _listed(value)) is not None else {})
        elif not _is_open(graph, name):
            found.setdefault(name, value.shape or ())
    for operator in graph.operators:
        for made in operator.outputs if operator.type in RULES else ():
            if made is not None:
                found[made] = _made(graph, operator, made, found)
    return found


def _listed(value: Value) -> Sizes | None:
    """Return the sizes in a list of sizes; None for one that an operator computes."""
    if value.shape == (0,):
        # Of a tensor without dimensions: no constant holds nothing.
        return ()
    return tuple(map(int, value.constant.array().reshape(-1))) if value.constant is not None else None


def _made(graph: Graph, operator: Operator, made: str, found: Mapping[str, Sizes]) -> Sizes:
    """Return the sizes of an output by the rule of its operator; raise OpenSizeError, see `sizes_of`."""
    try:
        sizes = RULES[operator.type](operator, [found[each] for each in operator.inputs if each is not None])
        fits = _fits(graph.values[made], sizes)
    except (KeyError, IndexError, ValueError, ZeroDivisionError) as error:
        raise OpenSizeError(
            f"the sizes of {made} do not follow from the inputs of its {operator.type}"
        ) from error
    if not fits:
        raise OpenSizeError(
            f"{made} is {list(graph.values[made].shape or ())} where its {operator.type} gives {list(sizes)}"
        )
    return sizes


def _tensors(payload: bytes | bytearray) -> Iterator[Any]:
    from tosa.TosaGraph import TosaGraph

    graph = TosaGraph.GetRootAs(payload, 0)
    for region in map(graph.Regions, range(graph.RegionsLength())):
        for block in map(region.Blocks, range(region.BlocksLength())):
            yield from map(block.Tensors, range(block.TensorsLength()))


def _is_open(graph: Graph, name: str | None) -> bool:
    return name is not None and graph.values[name].dtype != SHAPE and OPEN in (graph.values[name].shape or ())


def _fits(value: Value, sizes: Sizes) -> bool:
    """Return whether a value has `sizes`, where these are stated."""
    if value.dtype == SHAPE:
        return value.shape == (len(sizes),)
    return all(stated in (OPEN, size) for stated, size in zip(value.shape or (), sizes, strict=True))


def _numbers(operator: Operator, name: str) -> Sizes:
    return cast(Sizes, operator.attributes[name])


def _number(operator: Operator, name: str) -> int:
    return cast(int, operator.attributes[name])


def _replaced(sizes: Sizes, place: int, size: int) -> Sizes:
    return (*sizes[:place], size, *sizes[place + 1 :])


def _of_input(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    return given[0]


def _broadcast(count: int) -> Rule:
    """Return the rule of operators whose first `count` inputs are broadcast: TOSA 1.1, section 1.10.3."""

    def rule(operator: Operator, given: Sequence[Sizes]) -> Sizes:
        return tuple(
            next((size for size in sizes if size != 1), 1) for sizes in zip(*given[:count], strict=True)
        )

    return rule


def _windows(size: int, kernel: int, stride: int, pads: Sequence[int], dilation: int = 1) -> int:
    """Return how many windows there are along a dimension; TOSA demands that the last one fits exactly."""
    return (size + sum(pads) - (kernel - 1) * dilation - 1) // stride + 1


def _spatial(sizes: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes, dilation: Sizes) -> Sizes:
    """Return the windows along the dimensions between batch and channels."""
    return tuple(
        _windows(size, kernel[at], stride[at], pad[2 * at : 2 * at + 2], dilation[at])
        for at, size in enumerate(sizes[1:-1])
    )


def _convolution(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    sizes, weights = given[:2]
    # DEPTHWISE_CONV2D: KH, KW, C, M. The others: OC, then the kernel, then IC.
    depthwise = operator.type == "DEPTHWISE_CONV2D"
    kernel, channels = (weights[:2], math.prod(weights[2:])) if depthwise else (weights[1:-1], weights[0])
    stride, pad, dilation = (_numbers(operator, name) for name in ("stride", "pad", "dilation"))
    return (sizes[0], *_spatial(sizes, kernel, stride, pad, dilation), channels)


def _transposed(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    sizes, weights = given[:2]
    out_pad, stride = _numbers(operator, "out_pad"), _numbers(operator, "stride")
    made = tuple(
        (size - 1) * stride[at] + sum(out_pad[2 * at : 2 * at + 2]) + weights[1 + at]
        for at, size in enumerate(sizes[1:-1])
    )
    return (sizes[0], *made, weights[0])


def _pool(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    kernel, stride, pad = (_numbers(operator, name) for name in ("kernel", "stride", "pad"))
    return (given[0][0], *_spatial(given[0], kernel, stride, pad, (1, 1)), given[0][-1])


def _adaptive_pool(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    # Kernel, stride and pad are the last inputs; AVG_POOL2D_ADAPTIVE has zero points before them.
    kernel, stride, pad = given[-3:]
    return (given[0][0], *_spatial(given[0], kernel, stride, pad, (1, 1)), given[0][-1])


def _product(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    return (*given[0][:2], given[1][2])


def _reduced(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    return _replaced(given[0], _number(operator, "axis"), 1)


def _argmax(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    axis = _number(operator, "axis")
    return given[0][:axis] + given[0][axis + 1 :]


def _joined(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    axis = _number(operator, "axis")
    return _replaced(given[0], axis, sum(sizes[axis] for sizes in given))


def _padded(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    pads = given[1]
    return tuple(size + sum(pads[2 * at : 2 * at + 2]) for at, size in enumerate(given[0]))


def _tiled(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    return tuple(size * times for size, times in zip(*given[:2], strict=True))


def _permuted(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    return tuple(given[0][place] for place in _numbers(operator, "perms"))


def _gathered(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    return (given[0][0], given[1][1], given[0][2])


def _resized(operator: Operator, given: Sequence[Sizes]) -> Sizes:
    sizes, scale, offset, border = given[:4]
    made = (
        ((sizes[1 + at] - 1) * scale[2 * at] - offset[at] + border[at]) // scale[2 * at + 1] + 1
        for at in range(2)
    )
    return (sizes[0], *made, sizes[3])


def _elementwise(function: Callable[..., int]) -> Rule:
    return lambda operator, given: tuple(function(*numbers) for numbers in zip(*given, strict=True))


#: The shape of an operator's result, by its type, from the shapes of its tensors and the numbers in its lists of sizes.
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        (
            *("ABS", "BITWISE_NOT", "CEIL", "CLZ", "COS", "EXP", "FLOOR", "LOG", "LOGICAL_NOT", "NEGATE"),
            *("RECIPROCAL", "RSQRT", "SIN", "ERF", "SIGMOID", "TANH", "CLAMP", "TABLE", "CAST", "RESCALE"),
            *("IDENTITY", "REVERSE", "SCATTER"),
        ),
        _of_input,
    ),
    **dict.fromkeys(
        (
            *(
                "ADD",
                "SUB",
                "MUL",
                "POW",
                "INTDIV",
                "MAXIMUM",
                "MINIMUM",
                "EQUAL",
                "GREATER",
                "GREATER_EQUAL",
            ),
            *("ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT"),
            *("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"),
        ),
        _broadcast(2),
    ),
    "SELECT": _broadcast(3),
    **dict.fromkeys(("CONV2D", "CONV3D", "DEPTHWISE_CONV2D"), _convolution),
    "TRANSPOSE_CONV2D": _transposed,
    **dict.fromkeys(("AVG_POOL2D", "MAX_POOL2D"), _pool),
    **dict.fromkeys(("AVG_POOL2D_ADAPTIVE", "MAX_POOL2D_ADAPTIVE"), _adaptive_pool),
    "MATMUL": _product,
    **dict.fromkeys((f"REDUCE_{kind}" for kind in ("ALL", "ANY", "MAX", "MIN", "PRODUCT", "SUM")), _reduced),
    "ARGMAX": _argmax,
    "CONCAT": _joined,
    "PAD": _padded,
    "RESHAPE": lambda operator, given: given[1],
    "SLICE": lambda operator, given: given[2],
    "TILE": _tiled,
    "TRANSPOSE": _permuted,
    "GATHER": _gathered,
    "RESIZE": _resized,
    # Operators on sizes (EXT-SHAPE) give the sizes themselves.
    "DIM": lambda operator, given: (given[0][_number(operator, "axis")],),
    "CONCAT_SHAPE": lambda operator, given: tuple(size for sizes in given for size in sizes),
    "SLICE_SHAPE": lambda operator, given: given[0][given[1][0] : given[1][0] + given[2][0]],
    "ADD_SHAPE": _elementwise(lambda a, b: a + b),
    "SUB_SHAPE": _elementwise(lambda a, b: a - b),
    "MUL_SHAPE": _elementwise(lambda a, b: a * b),
    "DIV_CEIL_SHAPE": _elementwise(lambda a, b: -(-a // b)),
    "DIV_FLOOR_SHAPE": _elementwise(lambda a, b: a // b),
    "MOD_SHAPE": _elementwise(lambda a, b: a % b),
    "MAX_SHAPE": _elementwise(max),
    "MIN_SHAPE": _elementwise(min),
    "EXP2_SHAPE": _elementwise(lambda a: 1 << a),
    "LOG2_CEIL_SHAPE": _elementwise(lambda a: (a - 1).bit_length()),
    "LOG2_FLOOR_SHAPE": _elementwise(lambda a: a.bit_length() - 1),
}
