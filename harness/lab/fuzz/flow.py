"""State that a model keeps from one call to the next, and control flow."""

from __future__ import annotations

from lab.fuzz.sketch import Sketch, operator

#: Computations in the branches of a condition; none may return its argument unchanged.
BRANCHES = ("x * 2", "x.sin()", "x - 1", "torch.relu(x) + 1", "-x")


@operator(weight=0.8)
def accumulate(sketch: Sketch) -> bool:
    """Add to a buffer and go on with its new value."""
    given = sketch.floats()
    if given is None:
        return False
    state = sketch.buffer(*given.shape)
    return sketch.add("{0}.add_({1})", [state, given], given.shape, writes=True)


@operator(weight=0.5)
def replace(sketch: Sketch) -> bool:
    """Read a buffer, then let it hold something else."""
    given = sketch.floats()
    if given is None:
        return False
    state = sketch.buffer(*given.shape)
    return sketch.add("{0} + {1}", [state, given], given.shape) and sketch.add(
        "{0}.copy_({1})", [state, given], given.shape, writes=True
    )


@operator(weight=0.5)
def write_row(sketch: Sketch) -> bool:
    """Write one row of a buffer, as a cache does."""
    given = sketch.floats(1, 2)
    if given is None:
        return False
    state = sketch.buffer(3, *given.shape)
    row = sketch.indices(3, 1)
    text = "{0}.index_copy_(0, {1}, {2}.unsqueeze(0))"
    return sketch.add(text, [state, row, given], state.shape, writes=True)


@operator(weight=0.6)
def condition(sketch: Sketch) -> bool:
    given = sketch.floats()
    if given is None:
        return False
    one, other = sketch.chance.one(BRANCHES), sketch.chance.one(BRANCHES)
    text = f"torch.cond({{0}}.sum() > 0.3, lambda x: {one}, lambda x: {other}, ({{0}},))"
    return sketch.add(text, [given], given.shape)
