"""Integers and booleans are compared as what they are, wherever values are subtracted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Tensor
from executorch_goldens.decode.difference import _gaps, distances
from executorch_goldens.exporting.inside.evaluation import exceeds
from executorch_goldens.exporting.numerics.rounding import distance
from executorch_goldens.goldens.accuracy import Nearness, text
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.words.findings import deviated
from tests.support.screens import screen

#: Neighbours that float64 does not tell apart.
ONE = np.arange(8, dtype=np.int64) + (2**53 + 1)
OTHER = np.arange(8, dtype=np.int64) + (2**53 + 2)


def test_eight_integers_that_differ_by_one_beyond_float64_are_eight(snapshot: SnapshotAssertion) -> None:
    deviation = Deviation(Tensor.from_array(ONE), Tensor.from_array(OTHER))
    assert deviation.exceeds_tolerance()
    assert screen(next(deviated("output 0", deviation.measured()))) == snapshot


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        (np.array([-(2**63)]), np.array([2**63 - 1]), 2.0**64),
        (np.array([2**64 - 1], np.uint64), np.array([0], np.uint64), 2.0**64),
        (np.array([2**64 - 2], np.uint64), np.array([2**64 - 1], np.uint64), 1.0),
        (np.array([-128], np.int8), np.array([127], np.int8), 255.0),
        (np.array([True]), np.array([False]), 1.0),
        (np.array([2**63], np.uint64), np.array([2**63 - 1]), 1.0),
        (np.array([1e308]), np.array([-1e308]), np.inf),
        (np.array([3 + 4j], np.complex64), np.array([0], np.complex64), 5.0),
    ],
)
def test_differences_at_the_ends_of_a_dtype_are_exact(
    one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], far: float
) -> None:
    assert distances(one, other).tolist() == distances(other, one).tolist() == [far]


def test_every_place_that_measures_a_distance_sees_neighbours_beyond_float64() -> None:
    assert _gaps(ONE, OTHER).tolist() == [1.0] * 8
    assert distance(ONE, OTHER).tolist() == [1.0] * 8
    assert exceeds(ONE, OTHER, np.zeros(8))
    assert text(Nearness.of_pairs([(Tensor.from_array(ONE), Tensor.from_array(OTHER))])) == "0 of 8 equal"
