"""Tensors hold exact bytes; what crosses between processes is plain and comes back equal."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from harness.artifact import Cell, Failure, Lowered, Sample, Tensor


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, -0.0], [np.nan, np.inf]], np.float32),
        np.array(-7, np.int8),
        np.zeros((0, 3), np.int32),
        np.array([True, False]),
        np.arange(6, dtype=np.int64).reshape(2, 3).T,
    ],
    ids=["float32", "scalar", "empty", "bool", "transposed"],
)
def test_a_tensor_gives_back_the_array_it_was_made_of_bit_for_bit(array: np.ndarray) -> None:
    tensor = Tensor.of(array)
    back = tensor.array()
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert pickle.loads(pickle.dumps(tensor)) == tensor


def test_a_tensor_with_too_few_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"int32\[2, 2\] takes 16 bytes, not 15"):
        Tensor("int32", (2, 2), bytes(15))


def test_zeros_of_either_sign_are_different_tensors() -> None:
    assert Tensor.of(np.float32([0.0])) != Tensor.of(np.float32([-0.0]))


def test_equal_values_of_another_dtype_are_a_different_tensor() -> None:
    assert Tensor.of(np.int8([1])) != Tensor.of(np.uint8([1]))


def tolerances(bound: float, *samples: list[float], scale: float = 0.0) -> list[float]:
    """Return the tolerance of the one output of each sample, the example first."""
    run = tuple(Sample(str(n), (Tensor.of(np.float32(values)),), ()) for n, values in enumerate(samples))
    lowered = Lowered(graph="", delegates=(), pte=b"", samples=run, bound=bound, schemas=(), scales=(scale,))
    return [lowered.tolerance(sample, 0) for sample in run]


def test_the_tolerance_is_a_part_of_the_largest_absolute_value() -> None:
    assert tolerances(0.25, [-8.0, 2.0]) == [2.0]
    assert tolerances(0.0, [-8.0]) == [0.0]
    assert tolerances(0.25, []) == [0.0]


def test_the_tolerance_of_a_sample_is_at_least_the_examples() -> None:
    assert tolerances(0.25, [-8.0, 2.0], [1.0], [16.0]) == [2.0, 2.0, 4.0]


def test_a_quantized_output_may_be_off_by_one_code() -> None:
    (tolerance,) = tolerances(0.25, [2.0], scale=1.0)
    assert 1.0 < tolerance < 1.01
    assert tolerances(0.25, [8.0], scale=1.0) == [pytest.approx(2.0, rel=0.01)]


def test_what_is_not_finite_does_not_make_every_difference_tolerable() -> None:
    assert tolerances(0.25, [-np.inf, np.nan, 4.0]) == [1.0]


def moved(spread: list[float], bound: float = 0.0, scale: float = 0.0) -> list[float]:
    """Return the tolerance of each element of an output that rounding moves by `spread`; its largest value is 8."""
    values = Tensor.of(np.float32([8.0] * len(spread)))
    sample = Sample("example", (values,), (), (Tensor.of(np.float32(spread)),))
    lowered = Lowered(
        graph="", delegates=(), pte=b"", samples=(sample,), bound=bound, schemas=(), scales=(scale,)
    )
    return np.broadcast_to(lowered.tolerance(sample, 0), len(spread)).tolist()  # type: ignore[no-any-return]


def test_an_element_may_be_off_by_three_times_what_rounding_moves_it() -> None:
    assert moved([3.0, 3.0]) == [9.0, 9.0]


def test_an_element_that_was_not_seen_to_move_may_be_off_as_those_around_it() -> None:
    assert moved([4.0, 3.0, 5.0, 0.0]) == pytest.approx([12.2474, 12.2474, 15.0, 12.2474], rel=1e-4)
    # One that may be anything says nothing of the others.
    assert moved([math.inf, 3.0, 3.0]) == [math.inf, 9.0, 9.0]


def test_a_quantized_output_of_which_nothing_moves_further_may_be_off_by_a_code() -> None:
    assert moved([1.0, 1.0, 0.0], scale=1.0) == pytest.approx([1.0, 1.0, 1.0], rel=0.01)
    assert moved([2.0, 2.0], scale=1.0) == pytest.approx([6.0, 6.0], rel=0.01)


def test_a_quantized_output_may_be_off_by_whole_codes() -> None:
    # 3.3 codes, and 1.94 of those that moved less.
    assert moved([1.1] + [0.5] * 5, scale=1.0) == pytest.approx([4.0] + [2.0] * 5, rel=0.01)
    assert moved([1.1] + [0.5] * 5)[0] == pytest.approx(3.3)


def test_what_elements_move_on_another_sample_counts() -> None:
    values = Tensor.of(np.float32([8.0]))
    samples = tuple(
        Sample(name, (values,), (), (Tensor.of(np.float32([spread])),))
        for name, spread in (("example", 1.0), ("zeros", 7.0))
    )
    lowered = Lowered(graph="", delegates=(), pte=b"", samples=samples, bound=0.0, schemas=(), scales=(1.0,))
    assert [lowered.tolerance(sample, 0).tolist() for sample in samples] == [
        [pytest.approx(15.0, rel=0.01)],
        [pytest.approx(21.0, rel=0.01)],
    ]


def test_what_rounding_touches_may_be_off_by_a_code_and_by_the_bound() -> None:
    assert moved([1e-30], scale=1.0) == [pytest.approx(1.0, rel=0.01)]
    assert moved([1e-30], bound=0.25, scale=1.0) == [pytest.approx(2.0, rel=0.01)]


def test_what_no_rounding_touches_is_exact_whatever_the_bound() -> None:
    assert moved([0.0, 0.0], bound=0.25, scale=1.0) == [0.0, 0.0]


def test_a_failure_records_all_but_its_traceback() -> None:
    failure = Failure("lower", "KeyError", "'x'", None, None, "Traceback …")
    assert dict(failure.facts()) == {
        "stage": "lower",
        "type": "KeyError",
        "pass": "-",
        "function": "-",
        "message": "'x'",
    }


def test_cells_are_named_and_sorted_by_target_then_case() -> None:
    cells = [Cell("tosa-int", "a"), Cell("tosa-fp", "b"), Cell("tosa-fp", "a")]
    assert [str(cell) for cell in sorted(cells)] == ["tosa-fp/a", "tosa-fp/b", "tosa-int/a"]
