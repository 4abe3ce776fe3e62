"""Operators that work along dimensions: sums and means, extremes and their places, softmax, cumulative sums, norms."""

from __future__ import annotations

import functools

from lab.fuzz.model import Value
from lab.fuzz.sketch import BOOLEAN, Sketch, operator, register

#: Of some dimensions, or of all.
REDUCTIONS = {
    "sum": "torch.sum({0}, ALONG)",
    "mean": "torch.mean({0}, ALONG)",
    "amax": "torch.amax({0}, ALONG)",
    "amin": "torch.amin({0}, ALONG)",
    "variance": "torch.var({0}, ALONG, correction=0)",
    "norm": "torch.linalg.vector_norm({0}, dim=ALONG)",
}
#: Of one dimension, which stays.
ALONG = {
    "softmax": "torch.softmax({0}, DIM)",
    "log-softmax": "torch.log_softmax({0}, DIM)",
    "cumsum": "torch.cumsum({0}, DIM)",
}


def reduced(given: Value, places: set[int], keep: bool) -> list[int]:
    if keep:
        return [1 if place in places else size for place, size in enumerate(given.shape)]
    return [size for place, size in enumerate(given.shape) if place not in places]


def reduction(text: str, sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: value.dtype == "float32" and len(value.shape) > int(sketch.symbolic))
    if given is None:
        return False
    chance = sketch.chance
    possible = range(int(sketch.symbolic), len(given.shape))
    places = {place for place in possible if chance.happens(0.5)} or {chance.one(possible)}
    keep = chance.happens(0.5)
    # Counted from the end as often as from the front.
    shown = sorted(place - len(given.shape) if chance.happens(0.5) else place for place in places)
    along = f"{tuple(shown)}, keepdim={keep}"
    return sketch.add(text.replace("ALONG", along), [given], reduced(given, places, keep))


def along_one(text: str, sketch: Sketch) -> bool:
    given = sketch.floats(1, 2, 3, 4)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    return sketch.add(text.replace("DIM", str(place)), [given], given.shape)


for _name, _text in REDUCTIONS.items():
    register(_name, functools.partial(reduction, _text), 0.8, symbolic=True)
for _name, _text in ALONG.items():
    register(_name, functools.partial(along_one, _text), 0.8, symbolic=True)


@operator(weight=0.8)
def whole(sketch: Sketch) -> bool:
    """Reduce everything to a scalar."""
    given = sketch.floats()
    text = sketch.chance.one(("{0}.sum()", "{0}.mean()", "{0}.max()", "{0}.min()"))
    return given is not None and sketch.add(text, [given], ())


def untied(given: Value, place: int) -> str:
    """Return `given` with hundredths added along a dimension: rounding would decide between equal sixteenths."""
    size = given.shape[place]
    along = ", ".join(["1"] * place + [str(size)] + ["1"] * (len(given.shape) - place - 1))
    return f"{{0}} + torch.arange({size}).reshape({along}) / 100"


@operator(symbolic=True)
def extreme(sketch: Sketch) -> bool:
    """The largest or smallest along one dimension, with its place."""
    given = sketch.floats(1, 2, 3, 4)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    keep = sketch.chance.happens(0.5)
    made = reduced(given, {place}, keep)
    text = f"torch.{sketch.chance.one(('max', 'min'))}({untied(given, place)}, {place}, keepdim={keep})"
    return sketch.add(text, [given], made, made, dtypes=("float32", "int64"))


@operator(symbolic=True)
def argmax(sketch: Sketch) -> bool:
    given = sketch.floats(1, 2, 3, 4)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    return sketch.add(
        f"torch.argmax({untied(given, place)}, {place})",
        [given],
        reduced(given, {place}, False),
        dtype="int64",
    )


@operator(weight=0.7, symbolic=True)
def any_along(sketch: Sketch) -> bool:
    given = sketch.pick(lambda value: value.dtype == BOOLEAN and len(value.shape) > 0)
    place = sketch.dimension(given) if given is not None else None
    if given is None or place is None:
        return False
    made = reduced(given, {place}, True)
    text = f"torch.{sketch.chance.one(('any', 'all'))}({{0}}, {place}, keepdim=True)"
    return sketch.add(text, [given], made, dtype=BOOLEAN)


@operator(weight=0.7)
def topk(sketch: Sketch) -> bool:
    given = sketch.floats(1, 2, 3)
    if given is None:
        return False
    count = sketch.chance.between(1, given.shape[-1])
    made = (*given.shape[:-1], count)
    return sketch.add(
        f"torch.topk({untied(given, len(given.shape) - 1)}, {count})",
        [given],
        made,
        made,
        dtypes=("float32", "int64"),
    )
