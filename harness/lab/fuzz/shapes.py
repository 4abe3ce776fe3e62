"""Operators that move values: views and their undoing, slices, concatenations, layouts."""

from __future__ import annotations

import functools
import math

from lab.fuzz.model import Value
from lab.fuzz.sketch import MOST_ELEMENTS, Sketch, operator


def _anything(sketch: Sketch, least_rank: int = 0) -> Value | None:
    return sketch.pick(lambda value: len(value.shape) >= least_rank)


def factors(sketch: Sketch, size: int) -> tuple[int, ...]:
    """Return a shape of `size` elements."""
    chance, left, found = sketch.chance, size, []
    for _ in range(chance.below(4)):
        divisors = [number for number in range(1, left + 1) if left % number == 0]
        found.append(chance.one(divisors))
        left //= found[-1]
    place = chance.below(len(found) + 1)
    return (*found[:place], left, *found[place:])


@operator(weight=2.0)
def reshape(sketch: Sketch) -> bool:
    """Reshape; sometimes with an open size, or as a view of a contiguous tensor, or to a scalar."""
    given = _anything(sketch)
    if given is None:
        return False
    shape = factors(sketch, given.size)
    if given.size == 1 and sketch.chance.happens(0.3):
        return sketch.add("{0}.reshape(())", [given], (), dtype=given.dtype)
    shown = list(shape)
    if sketch.chance.happens(0.4):
        shown[sketch.chance.below(len(shown))] = -1
    text = sketch.chance.one(("{0}.reshape(SHAPE)", "{0}.contiguous().view(SHAPE)"))
    return sketch.add(text.replace("SHAPE", str(tuple(shown))), [given], shape, dtype=given.dtype)


@operator(weight=2.0)
def permute(sketch: Sketch) -> bool:
    given = _anything(sketch, 2)
    if given is None:
        return False
    order = sketch.chance.permutation(len(given.shape))
    made = [given.shape[place] for place in order]
    return sketch.add(f"{{0}}.permute({order})", [given], made, dtype=given.dtype)


@operator(weight=1.5, symbolic=True)
def transpose(sketch: Sketch) -> bool:
    given = _anything(sketch, 3 if sketch.symbolic else 2)
    if given is None:
        return False
    start, rank = int(sketch.symbolic), len(given.shape)
    one, other = (sketch.chance.between(start, rank - 1) for _ in range(2))
    made = list(given.shape)
    made[one], made[other] = made[other], made[one]
    return sketch.add(f"{{0}}.transpose({one}, {other})", [given], made, dtype=given.dtype)


@operator(weight=1.5)
def view_and_back(sketch: Sketch) -> bool:
    """Permute or reshape, do something or nothing between, and undo it."""
    given = _anything(sketch, 2)
    if given is None:
        return False
    chance = sketch.chance
    between = (
        chance.one(("", ".clone()", ".contiguous()"))
        if given.dtype != "float32"
        else chance.one(("", ".clone()", ".relu()", ".contiguous()"))
    )
    if chance.happens(0.5):
        order = chance.permutation(len(given.shape))
        back = tuple(order.index(place) for place in range(len(order)))
        text = f"{{0}}.permute({order}){between}.permute({back})"
    else:
        text = f"{{0}}.reshape({factors(sketch, given.size)}){between}.reshape({given.shape})"
    return sketch.add(text, [given], given.shape, dtype=given.dtype)


@operator(symbolic=True)
def unsqueeze(sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: len(value.shape) < 5)
    if given is None:
        return False
    place = sketch.chance.between(int(sketch.symbolic), len(given.shape))
    made = (*given.shape[:place], 1, *given.shape[place:])
    return sketch.add(f"{{0}}.unsqueeze({place})", [given], made, dtype=given.dtype)


@operator(symbolic=True)
def squeeze(sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: 1 in value.shape)
    if given is None:
        return False
    if not sketch.symbolic and sketch.chance.happens(0.2):
        made = [size for size in given.shape if size != 1]
        return sketch.add("{0}.squeeze()", [given], made, dtype=given.dtype)
    place = sketch.chance.one([place for place, size in enumerate(given.shape) if size == 1])
    made = [*given.shape[:place], *given.shape[place + 1 :]]
    return sketch.add(f"{{0}}.squeeze({place})", [given], made, dtype=given.dtype)


@operator(symbolic=True)
def flatten(sketch: Sketch) -> bool:
    given = _anything(sketch, 2)
    if given is None:
        return False
    made = (given.shape[0], math.prod(given.shape[1:]))
    return sketch.add("{0}.flatten(1)", [given], made, dtype=given.dtype)


@operator()
def expand(sketch: Sketch) -> bool:
    """Expand dimensions of one, sometimes with new ones in front."""
    given = sketch.pick(lambda value: 1 in value.shape)
    if given is None:
        return False
    chance = sketch.chance
    made = [size if size != 1 or chance.happens(0.3) else chance.one((2, 3, 4)) for size in given.shape]
    if len(made) < 4 and chance.happens(0.3):
        made.insert(0, chance.one((1, 2, 3)))
    return sketch.add(f"{{0}}.expand({tuple(made)})", [given], made, dtype=given.dtype)


@operator()
def repeat(sketch: Sketch) -> bool:
    given = _anything(sketch, 1)
    if given is None:
        return False
    times = [sketch.chance.one((1, 1, 2, 3)) for _ in given.shape]
    made = [size * count for size, count in zip(given.shape, times, strict=True)]
    return sketch.add(f"{{0}}.repeat({tuple(times)})", [given], made, dtype=given.dtype)


@operator(weight=2.0, symbolic=True)
def slice_with_step(sketch: Sketch) -> bool:
    given = _anything(sketch, 1)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    size = given.shape[place]
    start = sketch.chance.below(size)
    end = sketch.chance.between(start + 1, size)
    step = sketch.chance.one((1, 1, 2, 3))
    whole = ", ".join([*([":"] * place), f"{start}:{end}:{step}"])
    made = list(given.shape)
    made[place] = len(range(start, end, step))
    return sketch.add(f"{{0}}[{whole}]", [given], made, dtype=given.dtype)


@operator(symbolic=True)
def select(sketch: Sketch) -> bool:
    given = _anything(sketch, 1)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    index = sketch.chance.between(-given.shape[place], given.shape[place] - 1)
    made = [*given.shape[:place], *given.shape[place + 1 :]]
    return sketch.add(f"{{0}}.select({place}, {index})", [given], made, dtype=given.dtype)


@operator(weight=1.5, symbolic=True)
def split(sketch: Sketch) -> bool:
    """Split into parts of one size; the last may be smaller."""
    given = _anything(sketch, 1)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    size = given.shape[place]
    part = sketch.chance.between((size + 2) // 3, size)
    sizes = [min(part, size - start) for start in range(0, size, part)]
    made = [(*given.shape[:place], each, *given.shape[place + 1 :]) for each in sizes]
    # One part still comes as a tuple.
    unpacked = "[0]" if len(made) == 1 else ""
    text = f"{{0}}.split({part}, {place}){unpacked}"
    return sketch.add(text, [given], *made, dtype=given.dtype)


@operator(symbolic=True)
def chunk(sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: any(size % 2 == 0 for size in value.shape[int(sketch.symbolic) :]))
    if given is None:
        return False
    even = [
        place for place, size in enumerate(given.shape) if size % 2 == 0 and place >= int(sketch.symbolic)
    ]
    place = sketch.chance.one(even)
    half = [*given.shape[:place], given.shape[place] // 2, *given.shape[place + 1 :]]
    return sketch.add(f"{{0}}.chunk(2, {place})", [given], half, half, dtype=given.dtype)


@operator(weight=3.0, symbolic=True)
def cat(sketch: Sketch) -> bool:
    """Concatenate two or three tensors that differ in one dimension at most, sometimes one of them twice."""
    given = _anything(sketch, 1)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False

    def fits(value: Value) -> bool:
        one, other = list(value.shape), list(given.shape)
        return (
            len(one) == len(other)
            and value.dtype == given.dtype
            and [*one[:place], *one[place + 1 :]] == [*other[:place], *other[place + 1 :]]
        )

    parts = [given, *(sketch.pick(fits) or given for _ in range(1 + sketch.chance.below(2)))]
    if not sketch.symbolic and sketch.chance.happens(0.2):
        parts[-1] = sketch.constant(*given.shape, dtype=given.dtype)
    made = list(given.shape)
    made[place] = sum(part.shape[place] for part in parts)
    names = ", ".join(f"{{{number}}}" for number in range(len(parts)))
    return sketch.add(f"torch.cat([{names}], dim={place})", parts, made, dtype=given.dtype)


@operator(symbolic=True)
def stack(sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: len(value.shape) < 4)
    if given is None:
        return False
    place = sketch.chance.between(int(sketch.symbolic), len(given.shape))
    made = (*given.shape[:place], 2, *given.shape[place:])
    return sketch.add(
        f"torch.stack([{{0}}, {{1}}], dim={place})", [given, sketch.like(given)], made, dtype=given.dtype
    )


@operator()
def unbind(sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: any(2 <= size <= 3 for size in value.shape))
    if given is None:
        return False
    place = sketch.chance.one([place for place, size in enumerate(given.shape) if 2 <= size <= 3])
    part = [*given.shape[:place], *given.shape[place + 1 :]]
    return sketch.add(f"{{0}}.unbind({place})", [given], *([part] * given.shape[place]), dtype=given.dtype)


@operator(symbolic=True)
def flip(sketch: Sketch) -> bool:
    given = _anything(sketch, 1)
    place = sketch.dimension(given) if given is not None else None
    return (
        given is not None
        and place is not None
        and sketch.add(f"{{0}}.flip({place})", [given], given.shape, dtype=given.dtype)
    )


@operator(symbolic=True)
def roll(sketch: Sketch) -> bool:
    given = _anything(sketch, 1)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    by = sketch.chance.between(-2, 2)
    return sketch.add(f"{{0}}.roll({by}, {place})", [given], given.shape, dtype=given.dtype)


@operator(weight=2.0, symbolic=True)
def pad(sketch: Sketch) -> bool:
    """Pad the last one or two dimensions: by nothing, unequally, or negatively."""
    given = sketch.floats(2, 3, 4)
    if given is None:
        return False
    chance = sketch.chance
    count = 1 + chance.below(2 if len(given.shape) > 2 else 1)
    mode = chance.weighted({"constant": 4.0, "reflect": 1.0, "replicate": 1.0})
    if mode != "constant":
        # These take one dimension of rank 2 and 3, two of rank 4.
        count = 2 if len(given.shape) == 4 else 1
    made, amounts = list(given.shape), []
    for place in range(len(made) - 1, len(made) - 1 - count, -1):
        least = -1 if mode == "constant" and made[place] > 2 and chance.happens(0.1) else 0
        most = min(2, made[place] - 1) if mode == "reflect" else 2
        before, after = (chance.between(least, most) for _ in range(2))
        amounts += [before, after]
        made[place] += before + after
    value = ", value=0.5" if mode == "constant" and chance.happens(0.4) else ""
    text = f'torch.nn.functional.pad({{0}}, {tuple(amounts)}, mode="{mode}"{value})'
    return sketch.add(text, [given], made)


@operator(symbolic=True)
def to_channels_last(sketch: Sketch) -> bool:
    given = sketch.floats(4)
    text = "{0}.to(memory_format=torch.channels_last)"
    return given is not None and sketch.add(text, [given], given.shape)


@operator(symbolic=True)
def pixel_shuffle(sketch: Sketch) -> bool:
    given = sketch.pick(
        lambda value: (
            len(value.shape) == 4
            and value.dtype == "float32"
            and (value.shape[1] % 4 == 0 or value.shape[2] % 2 == value.shape[3] % 2 == 0)
        )
    )
    if given is None:
        return False
    batch, channels, height, width = given.shape
    if channels % 4 == 0:
        made = (batch, channels // 4, 2 * height, 2 * width)
        return sketch.add("torch.nn.functional.pixel_shuffle({0}, 2)", [given], made)
    made = (batch, 4 * channels, height // 2, width // 2)
    return sketch.add("torch.nn.functional.pixel_unshuffle({0}, 2)", [given], made)


@operator()
def index_select(sketch: Sketch) -> bool:
    given = _anything(sketch, 1)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    count = sketch.chance.between(1, 4)
    indices = sketch.indices(given.shape[place], count)
    made = [*given.shape[:place], count, *given.shape[place + 1 :]]
    return sketch.add(f"{{0}}.index_select({place}, {{1}})", [given, indices], made, dtype=given.dtype)


@operator()
def gather(sketch: Sketch) -> bool:
    given = sketch.floats(1, 2, 3)
    if given is None or given.size > MOST_ELEMENTS // 2:
        return False
    place = sketch.chance.below(len(given.shape))
    indices = sketch.indices(given.shape[place], *given.shape)
    return sketch.add(f"{{0}}.gather({place}, {{1}})", [given, indices], given.shape)


@operator(weight=0.5)
def embedding(sketch: Sketch) -> bool:
    rows, width = sketch.chance.between(2, 9), sketch.chance.one((1, 3, 4, 8))
    indices = sketch.indices(rows, *((2, 3) if sketch.chance.happens(0.5) else (4,)))
    text = "torch.nn.functional.embedding({0}, {1})"
    return sketch.add(text, [indices, sketch.constant(rows, width)], (*indices.shape, width))


@operator(weight=0.7)
def tril(sketch: Sketch) -> bool:
    given = sketch.floats(2, 3)
    text = functools.partial("{{0}}.{}({})".format, sketch.chance.one(("tril", "triu")))
    return given is not None and sketch.add(text(sketch.chance.between(-1, 1)), [given], given.shape)
