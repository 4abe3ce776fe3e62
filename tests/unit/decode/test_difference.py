"""Differences of tensors: how many, by how much, where."""

from __future__ import annotations

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.decode import Constant
from executorch_goldens.decode.constant import CODECS
from executorch_goldens.decode.difference import PIECE, tensor_difference
from tests.support.screens import screen

TYPES = {"f4": "f32", "i1": "i8", "i4": "i32", "i8": "i64"}


def tensor(numbers: object, type_: str = "<f4") -> Constant:
    array = np.asarray(numbers, type_)
    codec = CODECS[TYPES[type_.strip("<")]]
    return Constant(codec.name, array.shape, array.tobytes(), codec)


def test_the_same_bits_are_no_difference() -> None:
    numbers = [1.0, np.nan, -0.0, np.inf]
    assert tensor_difference(tensor(numbers), tensor(numbers)) is None


@pytest.mark.parametrize(
    ("before", "after"), [(0.0, -0.0), (np.nan, 1.0), (1.0, np.nextafter(np.float32(1), np.float32(2)))]
)
def test_any_bit_is_a_difference(before: float, after: float) -> None:
    difference = tensor_difference(tensor([before]), tensor([after]))
    assert (difference.differing, difference.size) == (1, 1)


def test_nan_payloads_differ() -> None:
    before, after = (
        Constant("f32", (1,), code.to_bytes(4, "little"), CODECS["f32"]) for code in (0x7FC00000, 0x7FC00001)
    )
    difference = tensor_difference(before, after)
    assert difference.first == (((0,), "nan:0x7fc00000", "nan:0x7fc00001"),)
    assert (difference.largest, difference.mean) == (None, None)


def test_count_extremes_mean_and_first_indices(snapshot: SnapshotAssertion) -> None:
    before = np.arange(24).reshape(2, 3, 4)
    after = before.copy()
    after[0, 1, 2] += 3
    after[1, 0, 0] -= 1
    difference = tensor_difference(tensor(before, "<i4"), tensor(after, "<i4"))
    assert (difference.differing, difference.size) == (2, 24)
    assert (difference.largest, difference.mean) == (3.0, 4 / 24)
    assert difference.first == (((0, 1, 2), "6", "9"), ((1, 0, 0), "12", "11"))
    assert screen(difference.lines()) == snapshot


def test_only_the_first_three_are_shown_and_all_are_counted_across_pieces() -> None:
    before = np.zeros(2 * PIECE + 3, np.int8)
    after = before.copy()
    after[[1, PIECE - 1, PIECE, 2 * PIECE + 2]] = -128
    difference = tensor_difference(tensor(before, "i1"), tensor(after, "i1"))
    assert difference.differing == 4
    assert [index for index, _, _ in difference.first] == [(1,), (PIECE - 1,), (PIECE,)]
    assert difference.largest == 128.0


def test_another_shape_is_told_without_comparing(snapshot: SnapshotAssertion) -> None:
    difference = tensor_difference(tensor([1.0, 2.0]), tensor([[1.0, 2.0]]))
    assert difference.differing is None
    assert screen(difference.lines()) == snapshot


def test_another_type_of_the_same_numbers_is_a_difference() -> None:
    difference = tensor_difference(tensor([1, 2], "i1"), tensor([1, 2], "<i4"))
    assert difference.differing == 0
    assert difference.dtypes == ("i8", "i32")
