"""The shapes that operands of one operator have to have together, which no schema says: by name, without overload."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from executorch_goldens_plugins.compare.calls import Operand, Value
from lab.args.levels import DEFAULT, FAR, Context

#: Further factors of operators, with their levels.
FURTHER: dict[str, dict[str, tuple[Any, ...]]] = {}
_RESIZES = ("upsample_bilinear2d", "upsample_nearest2d", "_upsample_bilinear2d_aa")
_POOLS = ("max_pool2d", "max_pool2d_with_indices", "avg_pool2d")
#: Further levels of a factor, which came when models were numbered: models with these are drawn after all others.
_FIRST_LATER: Sequence[tuple[tuple[str, ...], str, tuple[str, ...]]] = (
    (
        _RESIZES,
        "by",
        ("higher", "wider", "lower", "narrower", "uneven the other way"),
    ),
    (("pad", "constant_pad_nd"), "pad", ("other side", "height")),
    (
        ("reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
        "padding",
        ("uneven the other way", "last alone", "first alone"),
    ),
    (("split_with_sizes", "split_with_sizes_copy"), "split_sizes", ("two the other way",)),
    (("cat", "concat", "concatenate", "stack"), "length", ("uneven the other way",)),
    (("as_strided_copy",), "of", ("strides alone",)),
    (("index_put", "index_put_"), "places", ("two apart", "last two")),
    (("index",), "places", ("last two",)),
)
#: Of two arguments, one is beyond the other in one direction.
_SECOND_LATER: Sequence[tuple[tuple[str, ...], str, tuple[str, ...]]] = (
    (_RESIZES, "by", ("far higher", "far wider")),
    ((*_POOLS, "conv2d", "conv_transpose2d"), "stride", FAR),
)
LATER = tuple(
    {name: {factor: later} for names, factor, later in each for name in names}
    for each in (_FIRST_LATER, _SECOND_LATER)
)
#: Ranks of the first operand.
RANKS: dict[str, tuple[int, ...]] = {}
#: Returns arguments by name: they come in place of those that the types alone say.
Shapes = Callable[[Context], Mapping[str, Any]]
SHAPES: dict[str, Shapes] = {}
#: Dtypes of indices.
INDICES = ("int64", "int32")


def _for(*names: str, ranks: tuple[int, ...] = (), **further: tuple[Any, ...]) -> Callable[[Shapes], Shapes]:
    def register(make: Shapes) -> Shapes:
        for name in names:
            SHAPES[name] = make
            FURTHER[name] = further
            if ranks:
                RANKS[name] = ranks
        return make

    return register


def _optional(at: Context, name: str, shape: Sequence[int], **given: Any) -> Value:
    """Return an operand that may be missing."""
    return None if at.row.get(f"{name} held") == DEFAULT else at.operand(name, shape, **given)


def _convolution(at: Context, spatial: int, transposed: bool) -> Mapping[str, Any]:
    kind, channels = at.row["kind"], at.row["channels"]
    groups = {"one": 1, "two": 2, "depthwise": channels, "twice depthwise": channels}[kind]
    out = {"one": 3, "two": 4, "depthwise": channels, "twice depthwise": 2 * channels}[kind]
    kernel = {
        "one": [1] * spatial,
        "equal": [3] * spatial,
        "uneven": [3, *[2] * (spatial - 1)],
        "uneven the other way": [*[2] * (spatial - 1), 3],
    }[at.row["kernel"]]
    batch = () if at.row["unbatched"] else (at.chance.choice((1, 2)),)
    shape = (*batch, channels, *(at.chance.choice((5, 6, 7, 8, 9)) for _ in range(spatial)))
    at.shape = shape
    weight = (channels, out // groups, *kernel) if transposed else (out, channels // groups, *kernel)
    made: dict[str, Value] = {
        at.row["first"]: at.operand(at.row["first"], shape),
        "weight": at.operand("weight", weight),
        "bias": _optional(at, "bias", (out,)),
        "groups": groups,
    }
    return made


_OF_CONVOLUTIONS: dict[str, tuple[Any, ...]] = {
    "kind": ("one", "two", "depthwise", "twice depthwise"),
    "channels": (2, 4, 6),
    "kernel": ("one", "equal", "uneven", "uneven the other way"),
    "unbatched": (False, True),
}
#: Dimensions of an image, by the end of an operator's name.
_SPATIAL = {"1d": 1, "2d": 2, "3d": 3}


def _spatial(at: Context) -> int:
    at.row = {"spatial": _SPATIAL.get(at.row["(operator)"].partition(".")[0][-2:], 2), **at.row}
    return int(at.row["spatial"])


_for(*(f"conv{end}" for end in _SPATIAL), ranks=(0,), first=("input",), **_OF_CONVOLUTIONS)(
    lambda at: _convolution(at, _spatial(at), False)
)
_for(*(f"conv_transpose{end}" for end in _SPATIAL), ranks=(0,), first=("input",), **_OF_CONVOLUTIONS)(
    lambda at: _convolution(at, _spatial(at), True)
)
_for(
    "convolution",
    ranks=(0,),
    spatial=(1, 2, 3),
    first=("input",),
    **{**_OF_CONVOLUTIONS, "unbatched": (False,)},
)(lambda at: _convolution(at, _spatial(at), bool(at.row.get("transposed"))))

for _name in (
    "max_pool2d",
    "max_pool2d_with_indices",
    "avg_pool2d",
    "adaptive_avg_pool2d",
    "_adaptive_avg_pool2d",
):
    RANKS[_name] = (4, 3)
    FURTHER[_name] = {"spatial": (2,)}
for _name, _ranks in {
    "pixel_shuffle": (4, 3, 5),
    "pixel_unshuffle": (4, 3, 5),
    "reflection_pad1d": (2, 3),
    "reflection_pad2d": (3, 4),
    "reflection_pad3d": (4, 5),
    "t": (0, 1, 2),
    "t_copy": (0, 1, 2),
    "fft_rfft2": (2, 3, 4),
}.items():
    RANKS[_name] = _ranks


@_for("linear", ranks=(1, 2, 3, 4), out=(1, 3, 8))
def _linear(at: Context) -> Mapping[str, Any]:
    out = at.row["out"]
    return {"weight": at.operand("weight", (out, at.shape[-1])), "bias": _optional(at, "bias", (out,))}


@_for("addmm", ranks=(2,), out=(1, 3, 8), first=("row", "whole", "one"))
def _addmm(at: Context) -> Mapping[str, Any]:
    rows, inner = at.shape
    out = at.row["out"]
    added = {"row": (out,), "whole": (rows, out), "one": (1,)}[at.row["first"]]
    return {
        "self": at.operand("self", added),
        "mat1": at.operand("mat1", (rows, inner)),
        "mat2": at.operand("mat2", (inner, out)),
    }


@_for("mm", ranks=(2,), out=(1, 3, 8))
def _mm(at: Context) -> Mapping[str, Any]:
    return {"mat2": at.operand("mat2", (at.shape[1], at.row["out"]))}


@_for("bmm", ranks=(3,), out=(1, 3, 8))
def _bmm(at: Context) -> Mapping[str, Any]:
    return {"mat2": at.operand("mat2", (at.shape[0], at.shape[2], at.row["out"]))}


@_for("matmul", ranks=(1, 2, 3, 4), other=(1, 2, 3, 4), out=(1, 3))
def _matmul(at: Context) -> Mapping[str, Any]:
    rank, inner, out = at.row["other"], at.shape[-1], at.row["out"]
    batch = [*at.shape[:-2]][-(rank - 2) :] if rank > 2 else []
    batch = [1] * (max(rank - 2, 0) - len(batch)) + batch
    return {"other": at.operand("other", (inner,) if rank == 1 else (*batch, inner, out))}


def _channels(at: Context) -> int:
    return at.shape[1] if at.rank > 1 else 1


@_for(
    "batch_norm",
    "native_batch_norm",
    "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit",
    ranks=(2, 3, 4, 5),
)
def _batch_norm(at: Context) -> Mapping[str, Any]:
    of_one = (_channels(at),)
    return {
        "weight": _optional(at, "weight", of_one),
        "bias": _optional(at, "bias", of_one),
        "running_mean": at.operand("running_mean", of_one),
        "running_var": at.operand("running_var", of_one, values="sixteenths", least=0.5, most=2.0),
        "training": at.row["(operator)"].endswith(".no_stats"),
    }


@_for("layer_norm", "native_layer_norm", ranks=(1, 2, 3, 4), normalized=(1, 2, 9))
def _layer_norm(at: Context) -> Mapping[str, Any]:
    shape = at.shape[-at.row["normalized"] :]
    return {
        "normalized_shape": [*shape],
        "weight": _optional(at, "weight", shape),
        "bias": _optional(at, "bias", shape),
    }


@_for("group_norm", "native_group_norm", ranks=(2, 3, 4), groups=("one", "two", "each"))
def _group_norm(at: Context) -> Mapping[str, Any]:
    channels = _channels(at)
    groups = {"one": 1, "two": 2, "each": channels}[at.row["groups"]]
    return {
        "num_groups": groups,
        "group": groups,
        "N": at.shape[0],
        "C": channels,
        "HxW": math.prod(at.shape[2:]),
        "weight": _optional(at, "weight", (channels,)),
        "bias": _optional(at, "bias", (channels,)),
    }


def _index(at: Context, shape: Sequence[int], size: int, name: str) -> Operand:
    held = at.row.get(f"{name} held", "input")
    dtype = at.row.get("indices", "int64")
    return Operand(dtype, tuple(shape), held, values="sixteenths", least=0.0, most=float(max(size - 1, 0)))


@_for("embedding", ranks=(2,), indices=INDICES, of=(0, 1, 2, 3))
def _embedding(at: Context) -> Mapping[str, Any]:
    shape = (2, 3, 4)[: at.row["of"]]
    return {"weight": at.operand("weight", at.shape), "indices": _index(at, shape, at.shape[0], "indices")}


@_for("prelu", "_prelu_kernel", ranks=(1, 2, 3, 4), slopes=("one", "each"))
def _prelu(at: Context) -> Mapping[str, Any]:
    channels = _channels(at) if at.row["slopes"] == "each" else 1
    return {"weight": at.operand("weight", (channels,))}


@_for(
    "index",
    ranks=(1, 2, 3, 4),
    indices=(*INDICES, "bool"),
    places=("first", "second", "both", "last", "two apart"),
)
def _index_tensor(at: Context) -> Mapping[str, Any]:
    return {"indices": _indices(at)}


def _indices(at: Context) -> list[Operand | int | float | bool | None]:
    dtype, places = at.row["indices"], at.row["places"]
    chosen = {
        "first": [0],
        "second": [1],
        "both": [0, 1],
        "last": [at.rank - 1],
        "two apart": [0, 2],
        "last two": [at.rank - 2, at.rank - 1],
    }[places]
    found: list[Operand | int | float | bool | None] = []
    for dim in range(max(chosen) + 1):
        if dim not in chosen:
            found.append(None)
        elif dtype == "bool":
            found.append(Operand("bool", (at.shape[dim],), "constant", least=0.0, most=1.0))
        else:
            found.append(_index(at, (3,), at.shape[dim], "indices"))
    return found


@_for(
    "index_put",
    "index_put_",
    ranks=(1, 2, 3),
    indices=(*INDICES, "bool"),
    places=("first", "second", "both"),
    source=("one", "each"),
)
def _index_put(at: Context) -> Mapping[str, Any]:
    indices = _indices(at)
    shape: tuple[int, ...] = (1,)
    if at.row["source"] == "each" and at.row["indices"] != "bool":
        taken = [dim for dim, each in enumerate(indices) if each is not None]
        shape = (
            (3, *(size for dim, size in enumerate(at.shape) if dim not in taken)) if taken[0] == 0 else (1,)
        )
    return {"indices": indices, "values": at.operand("values", shape)}


@_for("index_select", ranks=(1, 2, 3, 4), indices=INDICES)
def _index_select(at: Context) -> Mapping[str, Any]:
    dim = at.dim(at.row["dim"])
    return {"dim": dim, "index": _index(at, (3,), at.shape[dim], "index")}


@_for("index_copy", "index_copy_", ranks=(1, 2, 3))
def _index_copy(at: Context) -> Mapping[str, Any]:
    dim = at.dim(at.row["dim"]) % at.rank
    shape = [*at.shape]
    shape[dim] = 1
    return {
        "dim": dim,
        "index": _index(at, (1,), at.shape[dim], "index"),
        "source": at.operand("source", shape),
    }


@_for("gather", "scatter", "scatter_add", "scatter_reduce", ranks=(1, 2, 3, 4), length=("whole", "less"))
def _gather(at: Context) -> Mapping[str, Any]:
    dim = at.dim(at.row["dim"])
    shape = [*at.shape]
    if at.row["length"] == "less":
        shape[dim] = max(shape[dim] - 1, 1)
    return {"dim": dim, "index": _index(at, shape, at.shape[dim], "index"), "src": at.operand("src", shape)}


@_for("select_scatter", ranks=(1, 2, 3, 4))
def _select_scatter(at: Context) -> Mapping[str, Any]:
    dim = at.dim(at.row["dim"])
    shape = [*at.shape]
    del shape[dim]
    return {"dim": dim, "src": at.operand("src", shape)}


@_for("slice_scatter", ranks=(1, 2, 3, 4), part=("start", "end", "step", "from the end"))
def _slice_scatter(at: Context) -> Mapping[str, Any]:
    dim = at.dim(at.row["dim"])
    size = at.shape[dim]
    part = {
        "start": slice(1, None, 1),
        "end": slice(0, -1, 1),
        "step": slice(0, None, 2),
        "from the end": slice(-2, None, 1),
    }
    chosen = part[at.row["part"]]
    shape = [*at.shape]
    shape[dim] = len(range(size)[chosen])
    start, end, step = chosen.start, chosen.stop, chosen.step
    return {"dim": dim, "src": at.operand("src", shape), "start": start, "end": end, "step": step}


@_for("slice", "slice_copy", part=("start", "end", "step", "from the end", "beyond", "middle"))
def _slice(at: Context) -> Mapping[str, Any]:
    size = at.size_at_level("dim")
    start, end, step = {
        "start": (1, None, 1),
        "end": (0, -1, 1),
        "step": (0, None, 2),
        "from the end": (-2, None, 1),
        "beyond": (0, 2**63 - 1, 3),
        "middle": (1, max(size - 1, 1), 1),
    }[at.row["part"]]
    return {"start": start, "end": end, "step": step}


@_for("where", overloads=(0,))
def _where(at: Context) -> Mapping[str, Any]:
    return {
        "condition": _mask(at, "condition"),
        "self": at.operand("self", at.shape),
        "other": broadcast(at, "other"),
    }


@_for("where.ScalarOther")
def _where_number(at: Context) -> Mapping[str, Any]:
    return {"condition": _mask(at, "condition"), "self": at.operand("self", at.shape)}


@_for(
    "upsample_bilinear2d",
    "upsample_nearest2d",
    "_upsample_bilinear2d_aa",
    ranks=(4,),
    by=("size", "same", "twice", "larger", "uneven", "less"),
)
def _upsampled(at: Context) -> Mapping[str, Any]:
    sizes, factors = {
        "size": ([5, 7], None),
        "same": ([*at.shape[-2:]], None),
        "twice": (None, [2.0, 2.0]),
        "larger": (None, [1.5, 1.5]),
        "uneven": (None, [3.0, 2.0]),
        "less": (None, [0.5, 0.5]),
        "higher": (None, [2.0, 1.0]),
        "wider": (None, [1.0, 2.0]),
        "lower": (None, [0.5, 1.0]),
        "narrower": (None, [1.0, 0.5]),
        "uneven the other way": (None, [2.0, 3.0]),
        "far higher": (None, [4.0, 1.0]),
        "far wider": (None, [1.0, 4.0]),
    }[at.row["by"]]
    if at.row["(operator)"].endswith("aa.default"):
        if factors is not None and at.row["by"] not in FURTHER["_upsample_bilinear2d_aa"]["by"]:
            sizes = [int(size * by) for size, by in zip(at.shape[-2:], factors, strict=True)]
        return {"output_size": sizes or [7, 5]}
    return {"output_size": sizes, "scale_factors": factors}


@_for("one_hot", ranks=(0, 1, 2, 3), classes=(3, 8))
def _one_hot(at: Context) -> Mapping[str, Any]:
    return {"self": _index(at, at.shape, at.row["classes"], "self"), "num_classes": at.row["classes"]}


@_for("masked_fill", "masked_fill_")
def _masked(at: Context) -> Mapping[str, Any]:
    return {"mask": _mask(at, "mask")}


def _mask(at: Context, name: str) -> Operand:
    held = at.row.get(f"{name} held", "input")
    return Operand("bool", at.shape, held, least=0.0, most=1.0)


def broadcast(at: Context, name: str) -> Operand:
    """Return a second operand, broadcast to the first one or it to that, in one of the ways there are."""
    shape, kind = at.shape, at.row.get("broadcast", "same")
    if kind == "ones":
        shape = tuple(1 if at.chance.random() < 0.5 else size for size in shape)
    elif kind == "lower":
        shape = shape[1:]
    elif kind == "number":
        shape = ()
    elif kind == "higher":
        shape = (2, *shape)
    return at.operand(name, shape)


#: Ways in which a second operand is broadcast.
BROADCAST = ("same", "ones", "lower", "number", "higher")
for _name in (
    *("add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "maximum", "minimum", "pow", "remainder"),
    *("floor_divide", "eq", "ne", "ne_", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
):
    FURTHER[_name] = {"broadcast": BROADCAST}
FURTHER["where"] = {"broadcast": BROADCAST}


@_for("grid_sampler", "grid_sampler_2d", ranks=(4,))
def _grid(at: Context) -> Mapping[str, Any]:
    return {"grid": at.operand("grid", (at.shape[0], 3, 4, 2), values="mantissas", least=-1.0, most=1.0)}


@_for(
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    ranks=(3, 4),
    keys=("as many", "more"),
)
def _attention(at: Context) -> Mapping[str, Any]:
    *batch, rows, width = at.shape
    keys = rows if at.row["keys"] == "as many" else rows + 2
    return {
        "key": at.operand("key", (*batch, keys, width)),
        "value": at.operand("value", (*batch, keys, width)),
        "attn_mask": _optional(at, "attn_mask", (rows, keys)),
        "dropout_p": 0.0,
    }


@_for("gru", "lstm", "rnn_tanh", "rnn_relu", ranks=(3,), hidden=(2, 5))
def _recurrent(at: Context) -> Mapping[str, Any]:
    layers = at.row.get("layers", 1)
    ways, hidden, gates = 1 + bool(at.row["bidirectional"]), at.row["hidden"], at.row["gates"]
    batch = at.shape[0] if at.row["batch_first"] else at.shape[1]
    params: list[Any] = []
    for layer in range(layers):
        for _ in range(ways):
            width = at.shape[-1] if not layer else hidden * ways
            shapes: list[tuple[int, ...]] = [(gates * hidden, width), (gates * hidden, hidden)]
            shapes += [(gates * hidden,)] * 2 if at.row["has_biases"] else []
            params += [Operand(at.dtype, shape, "parameter", values=at.row["(values)"]) for shape in shapes]
    state = Operand(at.dtype, (layers * ways, batch, hidden))
    of_states: dict[str, Value] = {"hx": [state, state]} if gates == 4 else {"hx": state}
    return {**of_states, "params": params, "num_layers": layers, "train": False, "dropout": 0.0}


for _name, _gates in (("gru", 3), ("lstm", 4), ("rnn_tanh", 1), ("rnn_relu", 1)):
    FURTHER[_name] = {"hidden": (2, 5), "layers": (1, 2), "gates": (_gates,)}


@_for("lstm_cell", ranks=(2,), hidden=(2, 5))
def _lstm_cell(at: Context) -> Mapping[str, Any]:
    (batch, width), hidden = at.shape, at.row["hidden"]
    state = Operand(at.dtype, (batch, hidden))
    return {
        "hx": [state, state],
        "w_ih": at.operand("w_ih", (4 * hidden, width)),
        "w_hh": at.operand("w_hh", (4 * hidden, hidden)),
        "b_ih": _optional(at, "b_ih", (4 * hidden,)),
        "b_hh": _optional(at, "b_hh", (4 * hidden,)),
    }


@_for("cat", "concat", "concatenate", "stack", length=(1, 2, 6, "same twice", "uneven"))
def _lists(at: Context) -> Mapping[str, Any]:
    length = at.row["length"]
    operands: list[Any] = [
        at.operand("tensors", at.shape) for _ in range(length if isinstance(length, int) else 2)
    ]
    first = Operand(at.dtype, at.shape, "input", values=at.row["(values)"])
    operands[0] = first
    if length == "same twice":
        operands[1] = Operand(at.dtype, at.shape, "same")
    elif length in ("uneven", "uneven the other way") and at.rank and at.row["(operator)"] != "stack":
        shape = [*at.shape]
        shape[at.dim(at.row["dim"])] += 1
        if length == "uneven":
            operands[1] = at.operand("tensors", shape)
        else:
            operands[0] = Operand(at.dtype, tuple(shape), "input", values=at.row["(values)"])
    return {"tensors": operands}


@_for("einsum", ranks=(2,))
def _einsum(at: Context) -> Mapping[str, Any]:
    of_equations: dict[str, list[tuple[int, ...]]] = {
        "ij,jk->ik": [(3, 4), (4, 5)],
        "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
        "ij->ji": [(3, 4)],
        "ij,ij->": [(3, 4), (3, 4)],
        "bhid,bhjd->bhij": [(1, 2, 3, 4), (1, 2, 5, 4)],
    }
    return {"tensors": [at.operand("tensors", shape) for shape in of_equations[at.row["equation"]]]}


@_for("cosine_similarity", "copy", "copy_", "view_as")
def _alike(at: Context) -> Mapping[str, Any]:
    return {name: at.operand(name, at.shape) for name in ("x2", "src", "other")}


def _sized(
    *names: str, argument: str, levels: tuple[str, ...]
) -> Callable[[Callable[[Context, str], list[int]]], None]:
    """Register operators with a list of sizes that follows from the shape, by level."""

    def register(make: Callable[[Context, str], list[int]]) -> None:
        for name in names:
            SHAPES[name] = lambda at: {argument: [*make(at, at.row[argument])]}
            FURTHER[name] = {argument: levels}

    return register


def _viewed(at: Context, level: str) -> list[int]:
    shape, count = [*at.shape], math.prod(at.shape)
    return {
        "flat": [-1],
        "same": shape,
        "one more": [1, *shape],
        "reversed": shape[::-1],
        "two": [shape[0] if shape else 1, -1],
        "merged": [count // shape[-1], shape[-1]] if shape else [1],
        "ones": [count, 1, 1],
    }[level]


_VIEWS = ("flat", "same", "one more", "reversed", "two", "merged", "ones")
_sized("view", "view_copy", "_unsafe_view", argument="size", levels=_VIEWS)(_viewed)
_sized("reshape", argument="shape", levels=_VIEWS)(_viewed)


def _permuted(at: Context, level: str) -> list[int]:
    every = [*range(at.rank)]
    return {
        "same": every,
        "reversed": every[::-1],
        "rolled": [*every[1:], *every[:1]],
        "rolled back": [*every[-1:], *every[:-1]],
        "last two": [*every[:-2], *every[-2:][::-1]],
        "from the end": [each - at.rank for each in [*every[1:], *every[:1]]],
        "channels last": [*every[:1], *every[2:], *every[1:2]],
    }[level]


_sized(
    "permute",
    "permute_copy",
    argument="dims",
    levels=("same", "reversed", "rolled", "rolled back", "last two", "from the end", "channels last"),
)(_permuted)


def _repeated(at: Context, level: str) -> list[int]:
    ones = [1] * at.rank
    return {
        "once": ones,
        "first": [2, *ones[1:]],
        "last": [*ones[:-1], 3],
        "all": [2] * at.rank,
        "one more": [2, *ones],
    }[level]


_sized("repeat", argument="repeats", levels=("once", "first", "last", "all", "one more"))(_repeated)
_sized("tile", argument="dims", levels=("once", "first", "last", "all", "one more"))(_repeated)


def _expanded(at: Context, level: str) -> list[int]:
    grown = [size if size > 1 else 3 for size in at.shape]
    return {
        "same": [*at.shape],
        "ones": grown,
        "one more": [2, *at.shape],
        "left": [-1] * at.rank,
        "both": [2, *grown],
    }[level]


_sized("expand", "expand_copy", argument="size", levels=("same", "ones", "one more", "left", "both"))(
    _expanded
)


def _padded(at: Context, level: str) -> list[int]:
    return {
        "last": [1, 1],
        "one side": [0, 2],
        "two": [1, 0, 0, 1],
        "uneven": [2, 1, 1, 2],
        "cut": [-1, 0],
        "none": [0, 0],
        "three": [1, 1, 0, 1, 1, 0],
        "other side": [2, 0],
        "height": [0, 0, 1, 1],
    }[level]


_PADS = ("last", "one side", "two", "uneven", "cut", "none", "three")
_sized("pad", "constant_pad_nd", argument="pad", levels=_PADS)(_padded)
for _name, _dims in (("reflection_pad1d", 1), ("reflection_pad2d", 2), ("reflection_pad3d", 3)):
    _sized(_name, argument="padding", levels=("equal", "uneven", "none"))(
        lambda at, level, dims=_dims: {  # type: ignore[misc]
            "equal": [1, 1] * dims,
            "uneven": [0, 1] * dims,
            "none": [0, 0] * dims,
            "uneven the other way": [1, 0] * dims,
            "last alone": [1, 1, *[0, 0] * (dims - 1)],
            "first alone": [*[0, 0] * (dims - 1), 1, 1],
        }[level]
    )
_sized("split_with_sizes", "split_with_sizes_copy", argument="split_sizes", levels=("two", "each", "whole"))(
    lambda at, level: {
        "two": [1, at.size_at_level("dim") - 1],
        "two the other way": [at.size_at_level("dim") - 1, 1],
        "each": [1] * at.size_at_level("dim"),
        "whole": [at.size_at_level("dim")],
    }[level]
)
_sized("unflatten", argument="sizes", levels=("two", "left", "one"))(
    lambda at, level: {
        "two": [2, at.size_at_level("dim") // 2],
        "left": [-1, 1],
        "one": [1, at.size_at_level("dim")],
    }[level]
)
_sized("moveaxis.intlist", "movedim.intlist", argument="source", levels=("first", "last", "two"))(
    lambda at, level: {"first": [0], "last": [-1], "two": [0, 1]}[level]
)
_sized("full", "ones", "zeros", "empty", argument="size", levels=("none", "one", "two", "four"))(
    lambda at, level: {"none": [], "one": [3], "two": [2, 3], "four": [1, 2, 3, 4]}[level]
)


@_for("as_strided_copy", ranks=(2, 3, 4), of=("same", "turned"))
def _strided(at: Context) -> Mapping[str, Any]:
    strides = [math.prod(at.shape[place + 1 :]) for place in range(at.rank)]
    size = [*at.shape]
    return {
        "same": {"size": size, "stride": strides},
        "turned": {"size": size[::-1], "stride": strides[::-1]},
        "strides alone": {
            "size": size,
            "stride": [math.prod(at.shape[:place]) for place in range(at.rank)],
        },
    }[at.row["of"]]
