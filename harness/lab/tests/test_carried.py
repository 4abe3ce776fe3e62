"""Which commit a release carries no more, with as few exports as a bisection needs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lab.carried import first_beyond


@given(st.data(), st.integers(1, 3000))
def test_it_is_found_wherever_it_is_and_whatever_is_tried_first(data: st.DataObject, number: int) -> None:
    first = data.draw(st.integers(1, number))
    places = data.draw(st.lists(st.integers(-1, number + 1), max_size=4))
    asked: list[int] = []

    def is_carried(place: int) -> bool:
        asked.append(place)
        return place < first

    assert first_beyond(number, is_carried, places) == first
    # Nothing twice, and neither the branch point nor what is not there.
    assert len({*asked}) == len(asked) <= len(places) + 1 + number.bit_length()
    assert all(0 < place < number for place in asked)


def test_a_right_guess_spares_the_bisection() -> None:
    asked: list[int] = []

    def is_carried(place: int) -> bool:
        asked.append(place)
        return place < 382

    assert first_beyond(427, is_carried, [382, 381, 383]) == 382
    assert asked == [382, 381]
