"""Shards: each cell in one, balanced, the same everywhere, and unmoved by new cases."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executorch_goldens.artifact import Cell
from executorch_goldens.sweep.seconds import Seconds
from executorch_goldens.sweep.shards import Shard, split

CELLS = [Cell("tosa-fp", f"case-{number}") for number in range(200)]
NEW = [Cell("tosa-int", f"new-{number}") for number in range(40)]
#: Most cells take two seconds, a few take many.
KNOWN = Seconds({cell: 2.0 + 40.0 * (number % 50 == 7) for number, cell in enumerate(CELLS)})


def loads(seconds: Seconds, count: int) -> list[float]:
    return [sum(map(seconds.expected, shard)) for shard in split(CELLS, seconds, count)]


# A busy machine is no failure.
@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(CELLS), st.none() | st.floats(0.1, 60.0)), unique_by=lambda x: x[0]),
    st.integers(1, 9),
)
def test_each_cell_is_in_one_shard(cells: list[tuple[Cell, float | None]], count: int) -> None:
    seconds = Seconds({cell: value for cell, value in cells if value is not None})
    names = [cell for cell, _ in cells]
    shards = [Shard(number, count).select(names, seconds) for number in range(1, count + 1)]
    assert sorted(cell for shard in shards for cell in shard) == sorted(names)


@pytest.mark.parametrize("count", [2, 5, 8])
def test_shards_are_balanced_by_what_is_known(count: int) -> None:
    assert max(loads(KNOWN, count)) - min(loads(KNOWN, count)) <= max(KNOWN.measured.values())
    assert max(loads(KNOWN, 3)) - min(loads(KNOWN, 3)) <= 2.0


def test_a_new_case_moves_no_other() -> None:
    before, after = split(CELLS, KNOWN, 5), split([*NEW, *reversed(CELLS)], KNOWN, 5)
    for one, other in zip(before, after, strict=True):
        assert set(one) == set(other) - set(NEW)
        assert set(other) & set(NEW)
    fewer = split([*NEW[:20], *CELLS], KNOWN, 5)
    for one, other in zip(fewer, after, strict=True):
        assert set(one) <= set(other)


def test_shards_do_not_follow_the_hash_seed() -> None:
    # Where they were on another machine.
    shards = split(NEW[:8], Seconds({}), 5)
    found = [number for cell in NEW[:8] for number in range(5) if cell in shards[number]]
    assert found == [3, 0, 4, 2, 2, 3, 4, 3]
