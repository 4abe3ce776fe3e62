"""Layers with weights, products of matrices, poolings, normalizations, resizing, attention."""

from __future__ import annotations

from lab.fuzz.chance import Chance
from lab.fuzz.model import Value
from lab.fuzz.sketch import Sketch, operator

FUNCTIONAL = "torch.nn.functional"


def _window(chance: Chance, size: int) -> tuple[int, int, int, int, int]:
    """Return kernel, stride, padding, dilation and the size that comes out of `size`; even kernels as well as odd."""
    while True:
        kernel, stride, dilation = (
            chance.one((1, 2, 3, 3, 4, 5)),
            chance.one((1, 1, 2, 3)),
            chance.one((1, 1, 1, 2)),
        )
        padding = chance.between(0, kernel // 2)
        made = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        if size + 2 * padding >= dilation * (kernel - 1) + 1:
            return kernel, stride, padding, dilation, made


def _convolution(sketch: Sketch, given: Value, weight_rank: int) -> bool:
    chance = sketch.chance
    channels = given.shape[1]
    groups = chance.one([number for number in range(1, channels + 1) if channels % number == 0])
    groups = groups if chance.happens(0.4) else 1
    out = groups * chance.one((1, 2, 3, 4) if groups == 1 else (1, 1, 2))
    windows = [_window(chance, size) for size in given.shape[2:]]
    kernels, strides, paddings, dilations, made = zip(*windows, strict=True)
    settings = f"stride={strides}, padding={paddings}, dilation={dilations}"
    if all(stride == 1 for stride in strides) and chance.happens(0.2):
        settings, made = f'padding="same", dilation={dilations}', given.shape[2:]
    arguments = [given, sketch.constant(out, channels // groups, *kernels, scale=64)]
    names = "{0}, {1}"
    if chance.happens(0.7):
        arguments.append(sketch.constant(out))
        names += ", {2}"
    text = f"{FUNCTIONAL}.conv{weight_rank}d({names}, {settings}, groups={groups})"
    return sketch.add(text, arguments, (given.shape[0], out, *made))


@operator(weight=5.0, symbolic=True)
def conv2d(sketch: Sketch) -> bool:
    given = sketch.floats(4)
    return given is not None and _convolution(sketch, given, 2)


@operator(weight=2.0, symbolic=True)
def conv1d(sketch: Sketch) -> bool:
    given = sketch.floats(3)
    return given is not None and _convolution(sketch, given, 1)


@operator(weight=0.7, symbolic=True)
def conv3d(sketch: Sketch) -> bool:
    given = sketch.floats(5)
    return given is not None and _convolution(sketch, given, 3)


@operator(weight=1.5, symbolic=True)
def conv_transpose2d(sketch: Sketch) -> bool:
    given = sketch.floats(4)
    if given is None:
        return False
    chance = sketch.chance
    out = chance.one((1, 2, 3))
    kernels, strides = [tuple(chance.one(sizes) for _ in range(2)) for sizes in ((1, 2, 3, 4), (1, 2, 3))]
    paddings = tuple(chance.between(0, (kernel - 1) // 2) for kernel in kernels)
    extra = tuple(chance.between(0, stride - 1) for stride in strides)
    made = [
        (size - 1) * stride - 2 * padding + kernel + beyond
        for size, stride, padding, kernel, beyond in zip(
            given.shape[2:], strides, paddings, kernels, extra, strict=True
        )
    ]
    arguments = [given, sketch.constant(given.shape[1], out, *kernels, scale=64), sketch.constant(out)]
    text = (
        f"{FUNCTIONAL}.conv_transpose2d({{0}}, {{1}}, {{2}}, stride={strides}, padding={paddings}, "
        f"output_padding={extra})"
    )
    return min(made) > 0 and sketch.add(text, arguments, (given.shape[0], out, *made))


@operator(weight=4.0, symbolic=True)
def linear(sketch: Sketch) -> bool:
    given = sketch.floats(2 if sketch.symbolic else 1, 2, 3, 4)
    if given is None:
        return False
    out = sketch.chance.one((1, 2, 3, 5, 8))
    arguments = [given, sketch.constant(out, given.shape[-1], scale=64)]
    names = "{0}, {1}"
    if sketch.chance.happens(0.7):
        arguments.append(sketch.constant(out))
        names += ", {2}"
    return sketch.add(f"{FUNCTIONAL}.linear({names})", arguments, (*given.shape[:-1], out))


@operator(weight=2.0)
def matmul(sketch: Sketch) -> bool:
    """Multiply with a value whose last dimensions fit, with its own transpose, or with a constant."""
    given = sketch.floats(2, 3, 4)
    if given is None:
        return False
    inner, chance = given.shape[-1], sketch.chance
    other = sketch.pick(
        lambda value: value.dtype == "float32" and value.shape[:-1] == (*given.shape[:-2], inner)
    )
    if other is not None and chance.happens(0.6):
        return sketch.add("torch.matmul({0}, {1})", [given, other], (*given.shape[:-1], other.shape[-1]))
    if chance.happens(0.4):
        return sketch.add("torch.matmul({0}, {0}.mT)", [given], (*given.shape[:-1], given.shape[-2]))
    weight = sketch.constant(inner, chance.one((1, 2, 3, 8)), scale=64)
    return sketch.add("torch.matmul({0}, {1})", [given, weight], (*given.shape[:-1], weight.shape[-1]))


@operator()
def addmm(sketch: Sketch) -> bool:
    given = sketch.floats(2)
    if given is None:
        return False
    weight = sketch.constant(given.shape[-1], sketch.chance.one((1, 3, 4)), scale=64)
    made = (given.shape[0], weight.shape[-1])
    bias = sketch.pick(lambda value: value.shape == made and value.dtype == "float32")
    arguments = [bias or sketch.constant(weight.shape[-1]), given, weight]
    return sketch.add("torch.addmm({0}, {1}, {2})", arguments, made)


@operator(weight=2.5, symbolic=True)
def max_pool2d(sketch: Sketch) -> bool:
    # Now and then without a batch, which is a tensor of rank 3.
    given = sketch.floats(3) if not sketch.symbolic and sketch.chance.happens(0.1) else sketch.floats(4)
    if given is None:
        return False
    windows = [_window(sketch.chance, size) for size in given.shape[-2:]]
    kernels, strides, paddings, dilations, made = zip(*windows, strict=True)
    text = f"{FUNCTIONAL}.max_pool2d({{0}}, {kernels}, stride={strides}, padding={paddings}, dilation={dilations})"
    return sketch.add(text, [given], (*given.shape[:-2], *made))


@operator(weight=2.5, symbolic=True)
def avg_pool2d(sketch: Sketch) -> bool:
    given = sketch.floats(4)
    if given is None:
        return False
    chance = sketch.chance
    made, kernels, strides, paddings = [], [], [], []
    for size in given.shape[2:]:
        kernel, stride = chance.between(1, min(4, size)), chance.one((1, 2, 3))
        padding = chance.between(0, kernel // 2)
        kernels.append(kernel)
        strides.append(stride)
        paddings.append(padding)
        made.append((size + 2 * padding - kernel) // stride + 1)
    included = chance.happens(0.5)
    text = (
        f"{FUNCTIONAL}.avg_pool2d({{0}}, {tuple(kernels)}, stride={tuple(strides)}, padding={tuple(paddings)}, "
        f"count_include_pad={included})"
    )
    return sketch.add(text, [given], (*given.shape[:2], *made))


@operator(symbolic=True)
def adaptive_avg_pool2d(sketch: Sketch) -> bool:
    given = sketch.floats(4)
    if given is None:
        return False
    made = tuple(
        sketch.chance.one([n for n in range(1, size + 1) if size % n == 0]) for size in given.shape[2:]
    )
    return sketch.add(f"{FUNCTIONAL}.adaptive_avg_pool2d({{0}}, {made})", [given], (*given.shape[:2], *made))


@operator(weight=2.0, symbolic=True)
def batch_norm(sketch: Sketch) -> bool:
    given = sketch.floats(2, 3, 4)
    if given is None:
        return False
    channels = given.shape[1]
    arguments = [
        given,
        sketch.constant(channels),
        sketch.positive(channels),
        sketch.positive(channels),
        sketch.constant(channels),
    ]
    return sketch.add(f"{FUNCTIONAL}.batch_norm({{0}}, {{1}}, {{2}}, {{3}}, {{4}})", arguments, given.shape)


@operator(weight=1.5, symbolic=True)
def layer_norm(sketch: Sketch) -> bool:
    given = sketch.pick(
        lambda value: (
            value.dtype == "float32" and len(value.shape) > int(sketch.symbolic) and value.shape[-1] > 1
        )
    )
    if given is None:
        return False
    size = given.shape[-1]
    if sketch.chance.happens(0.4):
        return sketch.add(f"{FUNCTIONAL}.layer_norm({{0}}, ({size},))", [given], given.shape)
    arguments = [given, sketch.positive(size), sketch.constant(size)]
    return sketch.add(f"{FUNCTIONAL}.layer_norm({{0}}, ({size},), {{1}}, {{2}})", arguments, given.shape)


@operator(symbolic=True)
def group_norm(sketch: Sketch) -> bool:
    given = sketch.pick(
        lambda value: (
            value.dtype == "float32"
            and len(value.shape) in (3, 4)
            and value.size > 2 * value.shape[0] * value.shape[1]
        )
    )
    if given is None:
        return False
    channels = given.shape[1]
    groups = sketch.chance.one([number for number in range(1, channels + 1) if channels % number == 0])
    arguments = [given, sketch.positive(channels), sketch.constant(channels)]
    return sketch.add(f"{FUNCTIONAL}.group_norm({{0}}, {groups}, {{1}}, {{2}})", arguments, given.shape)


@operator(symbolic=True)
def prelu(sketch: Sketch) -> bool:
    given = sketch.floats(2, 3, 4)
    if given is None:
        return False
    slopes = sketch.constant(given.shape[1] if sketch.chance.happens(0.6) else 1)
    return sketch.add(f"{FUNCTIONAL}.prelu({{0}}, {{1}})", [given, slopes], given.shape)


@operator(symbolic=True)
def glu(sketch: Sketch) -> bool:
    given = sketch.pick(
        lambda value: (
            value.dtype == "float32" and len(value.shape) > int(sketch.symbolic) and value.shape[-1] % 2 == 0
        )
    )
    if given is None:
        return False
    return sketch.add(f"{FUNCTIONAL}.glu({{0}}, -1)", [given], (*given.shape[:-1], given.shape[-1] // 2))


@operator(symbolic=True)
def interpolate(sketch: Sketch) -> bool:
    """Resize by a factor or to a size, by the nearest or bilinear."""
    given = sketch.floats(4)
    if given is None:
        return False
    chance = sketch.chance
    mode = chance.one(
        ('mode="nearest"', 'mode="bilinear", align_corners=False', 'mode="bilinear", align_corners=True')
    )
    made = tuple(size * 2 for size in given.shape[2:])
    text = f"{FUNCTIONAL}.interpolate({{0}}, size={made}, {mode})"
    return sketch.add(text, [given], (*given.shape[:2], *made))


@operator(weight=0.7)
def attention(sketch: Sketch) -> bool:
    given = sketch.floats(3, 4)
    if given is None:
        return False
    arguments = [given, sketch.like(given), sketch.like(given)]
    return sketch.add(
        f"{FUNCTIONAL}.scaled_dot_product_attention({{0}}, {{1}}, {{2}})", arguments, given.shape
    )
