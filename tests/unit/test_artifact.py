"""Tensors hold exact bytes; messages between processes are plain and come back equal."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from executorch_goldens.artifact import (
    AnyCasualty,
    Casualty,
    Cell,
    Failure,
    Lowered,
    Sample,
    Tensor,
    TimedOut,
    died,
)
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.judging.rightness import excess, wrong_outputs


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
    tensor = Tensor.from_array(array)
    back = tensor.array()
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert pickle.loads(pickle.dumps(tensor)) == tensor


def test_a_tensor_with_too_few_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"int32\[2, 2\] takes 16 bytes, not 15"):
        Tensor("int32", (2, 2), bytes(15))


def test_zeros_of_either_sign_are_different_tensors() -> None:
    assert Tensor.from_array(np.float32([0.0])) != Tensor.from_array(np.float32([-0.0]))


def test_equal_values_of_another_dtype_are_a_different_tensor() -> None:
    assert Tensor.from_array(np.int8([1])) != Tensor.from_array(np.uint8([1]))


def tolerances(bound: float, *samples: list[float], scale: float = 0.0) -> list[float]:
    """Return the tolerance of the one output of each sample, the example first."""
    tensors = [Tensor.from_array(np.float32(values)) for values in samples]
    run = tuple(Sample(str(n), (tensor,), ()) for n, tensor in enumerate(tensors))
    lowered = Lowered(graph="", delegates=(), pte=b"", samples=run, bound=bound, schemas=(), scales=(scale,))
    found = [lowered.tolerance(sample, 0) for sample in run]
    assert all((each == each.max(initial=0.0)).all() for each in found)
    return [float(each.max(initial=0.0)) for each in found]


def test_the_tolerance_is_a_part_of_the_largest_absolute_value() -> None:
    assert tolerances(0.25, [-8.0, 2.0]) == [2.0]
    assert tolerances(0.0, [-8.0]) == [0.0]
    assert tolerances(0.25, []) == [0.0]
    assert tolerances(0.25, [0.0]) == [0.0]


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
    values = Tensor.from_array(np.float32([8.0] * len(spread)))
    sample = Sample("example", (values,), (), (Tensor.from_array(np.float32(spread)),))
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
    values = Tensor.from_array(np.float32([8.0]))
    samples = tuple(
        Sample(name, (values,), (), (Tensor.from_array(np.float32([spread])),))
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


# Numbers of different sizes in one output


def joined(*parts: tuple[float, float, int], axis: int, samples: int = 2, bound: float = 0.0) -> Lowered:
    """Return a program whose output joins parts, each of a size, a spread and a number of slices, along an axis."""
    generator = np.random.default_rng(0)

    def drawn(least: float, most: float, slices: int) -> np.ndarray:
        return np.moveaxis(generator.uniform(least, most, (slices, 3, 5)), 0, axis)

    run = []
    for number in range(samples):
        values = np.concatenate([drawn(size / 2, size, slices) for size, _, slices in parts], axis)
        spreads = np.concatenate([drawn(spread / 2, spread, slices) for _, spread, slices in parts], axis)
        expected = Tensor.from_array(values.astype(np.float32))
        spread = Tensor.from_array(spreads.astype(np.float32))
        run.append(Sample(str(number), (expected,), (expected,), (spread,)))
    return Lowered(graph="", delegates=(), pte=b"", samples=tuple(run), bound=bound, schemas=())


def sliced(lowered: Lowered, axis: int) -> list[float]:
    """Return the largest tolerance in each slice along an axis, on the last sample."""
    found = lowered.tolerance(lowered.samples[-1], 0)
    return [float(each.max()) for each in np.moveaxis(found, axis, 0)]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_small_numbers_beside_large_ones_have_a_tolerance_of_their_own(axis: int) -> None:
    boxes, scores = (640.0, 2.0, 4), (1.0, 0.004, 3)
    found = sliced(joined(boxes, scores, axis=axis), axis)
    assert all(3.0 < each <= 6.0 for each in found[:4])
    assert all(0.006 < each <= 0.012 for each in found[4:])
    # As much as the boxes alone would be allowed, or less.
    assert max(found[:4]) <= max(sliced(joined(boxes, axis=axis), axis)) * 1.01


def test_several_sizes_lie_in_any_order_along_an_axis() -> None:
    found = sliced(joined((640.0, 2.0, 1), (1.0, 0.004, 2), (640.0, 2.0, 1), (0.01, 4e-5, 2), axis=1), 1)
    assert [each > 1.0 for each in found] == [True, False, False, True, False, False]
    assert [each < 2e-4 for each in found] == [False, False, False, False, True, True]


def test_sizes_may_be_apart_along_two_axes() -> None:
    wide, narrow = (joined((640.0, 2.0, 4), (1.0, 0.004, 3), axis=0) for _ in range(2))
    parts = [
        (
            np.concatenate((one.expected[0].array(), other.expected[0].array() / 1024), axis=2),
            np.concatenate((one.spreads[0].array(), other.spreads[0].array() / 1024), axis=2),
        )
        for one, other in zip(wide.samples, narrow.samples, strict=True)
    ]
    samples = tuple(
        Sample(
            str(number),
            (Tensor.from_array(values),),
            (Tensor.from_array(values),),
            (Tensor.from_array(spreads),),
        )
        for number, (values, spreads) in enumerate(parts)
    )
    found = replace(wide, samples=samples).tolerance(samples[0], 0)
    assert found[:4, :, :5].min() > 3.0
    assert found[4:, :, :5].max() < 0.02
    assert found[:4, :, 5:].max() < 0.02
    assert found[4:, :, 5:].max() < 2e-5


def test_a_bound_is_a_part_of_the_largest_of_numbers_of_one_size() -> None:
    lowered = joined((640.0, 1e-6, 4), (1.0, 1e-6, 3), axis=1, bound=0.25)
    found = sliced(lowered, 1)
    assert min(found[:4]) > 100.0
    assert max(found[4:]) <= 0.25
    assert lowered.imprecision(lowered.samples[0], 0) == pytest.approx(0.25)


def test_small_numbers_of_which_rounding_leaves_nothing_are_no_size_of_their_own() -> None:
    # Differences of large ones: nothing is known of them but that they are small.
    noise = joined((640.0, 2.0, 4), (0.5, 2.0, 3), axis=1)
    assert noise.imprecision(noise.samples[0], 0) < 0.011
    # A few that were seen to move little may move further.
    few = joined((640.0, 2.0, 4), (1.0, 0.004, 1), axis=1, samples=1)
    many = joined((640.0, 2.0, 4), (1.0, 0.004, 1), axis=1, samples=4)
    assert sliced(few, 1)[4] > sliced(many, 1)[4]


def test_scores_that_move_far_are_imprecise_however_large_the_boxes_are() -> None:
    lowered = joined((640.0, 2.0, 4), (1.0, 0.2, 3), axis=1)
    assert lowered.imprecision(lowered.samples[0], 0) > 0.3
    assert Accuracy.measure(lowered).tolerance > 0.3


def test_an_error_of_a_small_number_is_measured_by_its_size() -> None:
    lowered = joined((640.0, 2.0, 4), (1.0, 0.004, 3), axis=1)
    first, *others = lowered.samples
    wrong = first.expected[0].array().copy()
    wrong[:, 4:] += np.float32(0.5)
    lowered = replace(lowered, samples=(replace(first, outputs=(Tensor.from_array(wrong),)), *others))
    assert 0.5 <= Accuracy.measure(lowered).error < 0.6
    found = excess(lowered, tuple(wrong_outputs(lowered)))
    assert 0.5 <= found.bound <= 0.6


def test_codes_are_as_much_everywhere() -> None:
    lowered = replace(joined((640.0, 2.0, 4), (1.0, 2.0, 3), axis=1), scales=(5.0,))
    assert sliced(lowered, 1) == [pytest.approx(5.0, rel=0.01)] * 7


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


#: An export that computed up to its limit, and one that slept.
HUNG, SLEPT = TimedOut(60.0, 60.1, 31.0, 0.5), TimedOut(60.0, 0.3, 61.0, 60.2, tail=("waiting",))


@pytest.mark.parametrize("casualty", [HUNG, SLEPT, died(-6, tail=("one", "two")), died(1)])
def test_a_casualty_is_read_back_as_it_was(casualty: Casualty) -> None:
    assert msgspec.json.decode(msgspec.json.encode(casualty), type=AnyCasualty) == casualty


def test_a_casualty_is_known_again_by_what_does_not_vary() -> None:
    assert HUNG.key() == {"kind": "timed-out", "hanging": True}
    assert SLEPT.key() == {"kind": "timed-out", "hanging": False}
    assert (
        died(-6, tail=("one",)).key()
        == died(-6, tail=("two",)).key()
        == {"kind": "killed", "signal": "SIGABRT"}
    )
    assert died(0).key() == {"kind": "exited", "status": 0}
    assert died(-9, template="hung", silent=60.0).key() == {
        "kind": "killed",
        "signal": "SIGKILL",
        "template": "hung",
    }
