"""Right or corrupt: outputs, constants and slots of a program, and the text that a person sees."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import (
    IMPRECISE,
    Altered,
    Beginning,
    Cell,
    FirstDeparture,
    Lowered,
    Sample,
    Tensor,
)
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.goldens.rendering import decode_delegates
from executorch_goldens.judging import rightness, verdict
from executorch_goldens.judging.exports import Exports
from executorch_goldens.words.findings import miswired
from tests.support.making import (
    CELL,
    DUPLICATE_OUTPUTS,
    GRAPH,
    MISWIRED,
    PAYLOADS,
    WRONG_CAT,
    judged,
    lowered,
    outcomes,
    tosa,
)
from tests.support.screens import of_findings, of_verdict, screen

#: The codes that issue #18971 expects of its cat, shape (1, 2, 4, 5): two ramps in steps of 1/127.
RAMPS = np.stack(np.broadcast_arrays(np.int8([-102, -51, 0, 51, 102]), np.int8([-95, -32, 32, 95])[:, None]))[
    None
]


def with_output(expected: np.ndarray, actual: np.ndarray, bound: float = 0.0) -> Lowered:
    sample = Sample("example", (Tensor.from_array(expected),), (Tensor.from_array(actual),))
    return replace(lowered(), samples=(sample,), bound=bound)


def test_a_wrong_output_is_corrupt_with_its_figures(snapshot: SnapshotAssertion) -> None:
    expected = np.arange(12, dtype=np.float32).reshape(3, 4)
    actual = expected.copy()
    actual[1, 2] += 3.0
    actual[2, 3] -= 9.0
    found = judged(with_output(expected, actual))
    assert of_verdict(found) == snapshot


def altered(writer: str = "SomePass", to: float = -255.0) -> Lowered:
    before, after = (Tensor.from_array(np.float32([0.0, least])) for least in (-np.inf, to))
    return replace(lowered(), altered=(Altered("mask", before, after, writer),))


@pytest.mark.parametrize("writer", ["SomePass", ""])
def test_a_program_that_is_right_is_corrupt_if_lowering_wrote_to_the_model(
    writer: str, snapshot: SnapshotAssertion
) -> None:
    found = judged(altered(writer))
    assert (found.name, found.excess) == ("corrupt", None)
    assert of_verdict(found) == snapshot


def test_what_is_written_to_the_model_under_some_variations_only_is_unstable(
    snapshot: SnapshotAssertion,
) -> None:
    found = judged(altered(), lowered())
    assert of_verdict(found) == snapshot


def test_the_imaginary_part_of_an_output_counts(snapshot: SnapshotAssertion) -> None:
    expected = np.complex64([1 + 2j, 3 - 4j])
    assert verdict.objection(CELL, outcomes(with_output(expected, expected))) is None
    assert of_verdict(judged(with_output(expected, expected + np.complex64([0, 2j])))) == snapshot
    bounded = with_output(expected, expected, bound=0.1)
    assert bounded.tolerance(Sample("", (Tensor.from_array(expected),), ()), 0).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("shift", [0.5, 0.1234, 1e-4, 3.0])
def test_the_bound_that_a_corrupt_cell_is_told_accepts_it_and_one_a_tenth_smaller_does_not(
    shift: float,
) -> None:
    expected = np.float32([8.0, -1.0])
    wrong = replace(with_output(expected, expected + np.float32([0.0, shift]), bound=1e-6), limit=1.0)
    found = judged(wrong).excess
    assert (found.wrong, found.right) == (("example",), ())
    assert verdict.objection(CELL, outcomes(replace(wrong, bound=found.bound))) is None
    assert judged(replace(wrong, bound=found.bound * 0.9)).excess == found


@pytest.mark.parametrize(
    "wrong",
    [
        with_output(np.float32([1.0]), np.int32([1])),
        replace(lowered(), samples=(Sample("example", (Tensor.from_array(np.float32([1])),), ()),)),
        MISWIRED,
    ],
    ids=["dtype", "too few", "miswired"],
)
def test_no_bound_is_told_for_what_no_tolerance_is_for(wrong: Lowered) -> None:
    assert judged(wrong).excess is None


def test_no_bound_is_told_where_no_rounding_touches_an_output() -> None:
    found = judged(sampled(1.0, 2.5)).excess
    assert found.bound == np.inf


def test_a_corrupt_cell_is_told_on_which_samples_it_is_right() -> None:
    found = judged(replace(sampled(1.0, 2.5), bound=1e-6)).excess
    assert found == rightness.Excess(0.5, ("zeros",), ("example",))
    missing = judged(replace(sampled(1.0, np.nan), bound=1e-6)).excess
    assert missing.bound == np.inf


@pytest.mark.parametrize(
    ("where", "is_outside"),
    [
        (Beginning("", "after them"), True),
        (Beginning("", "it is not told", is_outside=False), False),
        (None, False),
    ],
)
def test_a_corrupt_cell_is_told_whether_it_is_wrong_outside_of_delegates(
    where: Beginning | None, is_outside: bool
) -> None:
    begins = FirstDeparture("zeros", where) if where is not None else None
    found = judged(replace(sampled(1.0, 2.5), bound=1e-6, begins=begins)).excess
    assert found.is_outside is is_outside


def test_a_build_that_is_wrong_on_recorded_runs_alone_is_not_told_to_declare_a_quantized_module(
    snapshot: SnapshotAssertion,
) -> None:
    recorded = replace(sampled(1.0, 2.5), bound=1e-6, recipe="the case's own")
    assert not list(rightness.of_a_build(recorded))
    exact = (Tensor.from_array(np.float32([0.0])),)
    measured = tuple(replace(each, spreads=exact) for each in recorded.samples)
    assert of_findings(rightness.of_a_build(replace(recorded, samples=measured))) == snapshot


def test_only_the_first_indices_are_shown(snapshot: SnapshotAssertion) -> None:
    assert of_verdict(judged(with_output(np.zeros(100, np.int32), np.ones(100, np.int32)))) == snapshot


@pytest.mark.parametrize(("shift", "right"), [(0.5, True), (0.75, False)])
def test_a_difference_counts_beyond_the_targets_tolerance(
    shift: float, right: bool, snapshot: SnapshotAssertion
) -> None:
    expected = np.float32([8.0, -1.0])
    found = verdict.objection(
        CELL, outcomes(with_output(expected, expected + np.float32([0.0, shift]), 0.0625))
    )
    assert (found is None) == right
    assert of_verdict(found) == snapshot


@pytest.mark.parametrize(
    ("expected", "actual", "right"),
    [
        ([1.0, np.nan], [1.0, np.nan], True),
        ([1.0, 2.0], [1.0, np.nan], False),
        ([1.0, np.nan], [1.0, 2.0], False),
        ([np.inf, -np.inf, 1.0], [np.inf, -np.inf, 1.0], True),
        ([np.inf, 1.0], [-np.inf, 1.0], False),
        ([1.0, 1.0], [np.inf, 1.0], False),
        ([np.nan, 1.0], [np.nan, 2.0], False),
        ([np.inf, 1.0], [np.inf, 2.0], False),
    ],
    ids=str,
)
def test_nan_and_infinity_differ_from_numbers_and_not_from_themselves(
    expected: list[float], actual: list[float], right: bool, snapshot: SnapshotAssertion
) -> None:
    made = with_output(np.float32(expected), np.float32(actual), bound=1e-3)
    found = verdict.objection(CELL, outcomes(made))
    assert (found is None) == right
    assert of_verdict(found) == snapshot


def test_zeros_of_either_sign_are_one_output_and_two_constants() -> None:
    # ReLU, abs and sums give either sign by kernel; a constant is stored with the one or the other.
    plus, minus = np.float32([0.0]), np.float32([-0.0])
    assert verdict.objection(CELL, outcomes(with_output(plus, minus))) is None
    assert Tensor.from_array(plus) != Tensor.from_array(minus)


@pytest.mark.parametrize(
    "actual",
    [np.float64([1.0, 2.0]), np.float32([[1.0, 2.0]]), np.int32([1, 2])],
    ids=["wider", "reshaped", "integers"],
)
def test_equal_values_of_another_dtype_or_shape_are_corrupt(
    actual: np.ndarray, snapshot: SnapshotAssertion
) -> None:
    found = judged(with_output(np.float32([1.0, 2.0]), actual, bound=1.0))
    assert of_verdict(found) == snapshot


def test_an_output_too_few_is_corrupt(snapshot: SnapshotAssertion) -> None:
    sample = Sample("example", (Tensor.from_array(np.float32([1])),), ())
    found = judged(replace(lowered(), samples=(sample,)))
    assert of_verdict(found) == snapshot


def test_a_program_wrong_on_other_inputs_than_the_example_is_corrupt_and_says_on_which(
    snapshot: SnapshotAssertion,
) -> None:
    one, two = Tensor.from_array(np.float32([1.0])), Tensor.from_array(np.float32([2.0]))
    samples = (Sample("example", (one,), (one,)), Sample("zeros", (one,), (two,)))
    found = judged(replace(lowered(), samples=samples))
    assert of_verdict(found) == snapshot


def rounded(spread: float, limit: float = IMPRECISE) -> Lowered:
    """A right program whose second element rounding alone may move by `spread`; its largest value is 8."""
    values = Tensor.from_array(np.float32([8.0, 1.0]))
    samples = tuple(
        Sample(name, (values,), (values,), (Tensor.from_array(np.float32([0.0, each])),))
        for name, each in (("example", spread / 4), ("zeros", spread))
    )
    return replace(lowered(), samples=samples, limit=limit)


def test_a_program_of_which_rounding_leaves_little_is_imprecise_and_says_what_decides_less(
    snapshot: SnapshotAssertion,
) -> None:
    found = judged(rounded(0.5))
    assert (found.name, found.recordable, found.accepted) == ("imprecise", False, False)
    assert of_verdict(found) == snapshot


def test_a_quantized_target_is_offered_to_be_judged_by_its_sqnr(snapshot: SnapshotAssertion) -> None:
    assert of_verdict(verdict.objection(INT8, outcomes(rounded(1.0), cell=INT8))) == snapshot


INT8 = Cell("tosa-int", "some-case")
SEEN: tuple[tuple[str, str], ...] = ()


def quantized(unseen: tuple[tuple[str, str], ...], shift: float = 0.1, error: float = 0.0) -> Lowered:
    """A quantized program whose outputs rounding may move by more than is accepted, and its mean by `shift`."""
    program = replace(rounded(1.0), scales=(0.25,), unseen=unseen)
    samples = tuple(
        replace(
            each,
            outputs=(Tensor.from_array(each.expected[0].array() + np.float32(error)),),
            shifts=(shift,),
        )
        for each in program.samples
    )
    return replace(program, samples=samples)


def test_a_quantized_program_whose_operators_are_right_is_judged_whatever_rounding_adds_up_to() -> None:
    assert verdict.objection(CELL, outcomes(quantized(SEEN))) is None
    assert verdict.objection(CELL, outcomes(quantized(SEEN, error=0.25))) is None
    found = judged(replace(quantized(SEEN), scales=()))
    assert found.name == "imprecise"


def test_a_quantized_program_of_which_an_operator_is_not_seen_is_imprecise_and_says_why(
    snapshot: SnapshotAssertion,
) -> None:
    found = judged(quantized((("lowered_module_1", "it took too long"),)))
    assert of_verdict(found) == snapshot


def test_differences_that_all_go_one_way_are_no_rounding(snapshot: SnapshotAssertion) -> None:
    found = judged(quantized(SEEN, error=0.5))
    assert (found.name, found.recordable) == ("corrupt", False)
    assert of_verdict(found) == snapshot


@pytest.mark.parametrize("program", [rounded(0.25), rounded(1.0, limit=0.42)], ids=["little", "accepted"])
def test_a_program_is_precise_enough_where_rounding_moves_little_or_its_case_accepts_it(
    program: Lowered,
) -> None:
    assert verdict.objection(CELL, outcomes(program)) is None


def test_what_may_be_anything_cannot_be_accepted(snapshot: SnapshotAssertion) -> None:
    found = judged(rounded(math.inf))
    assert of_verdict(found) == snapshot


def test_a_wrong_element_is_corrupt_though_another_may_be_off_further(snapshot: SnapshotAssertion) -> None:
    program = rounded(0.25)
    example, zeros = program.samples
    wrong = replace(zeros, outputs=(Tensor.from_array(np.float32([8.625, 1.5])),))
    found = judged(replace(program, samples=(example, wrong)))
    assert of_verdict(found) == snapshot


def sampled(*outputs: float, expected: float = 1.0) -> Lowered:
    """A program run on the example and on zeros, which has given `outputs`; eager gives `expected` on both."""
    right = (Tensor.from_array(np.float32([expected, 3.0])),)
    given = [(Tensor.from_array(np.float32([output, 3.0])),) for output in outputs]
    samples = tuple(Sample(name, right, got) for name, got in zip(("example", "zeros"), given, strict=True))
    return replace(lowered(), samples=samples)


def test_equal_programs_that_are_wrong_in_some_variations_are_unstable_and_name_sample_and_variations(
    snapshot: SnapshotAssertion,
) -> None:
    found = judged(sampled(1.0, 1.0), *[sampled(1.0, 2.5)] * 3)
    assert of_verdict(found) == snapshot


def test_equal_programs_that_give_different_outputs_are_unstable_though_all_are_within_the_tolerance(
    snapshot: SnapshotAssertion,
) -> None:
    found = judged(*(replace(sampled(1.0, output), bound=0.5) for output in (1.0, 1.25)))
    assert of_verdict(found) == snapshot


def test_equal_outputs_that_are_wrong_in_some_variations_are_unstable(snapshot: SnapshotAssertion) -> None:
    found = judged(sampled(1.0, 1.0), sampled(1.0, 1.0, expected=2.0))
    assert of_verdict(found) == snapshot


def test_equal_programs_that_are_judged_on_other_samples_are_unstable(snapshot: SnapshotAssertion) -> None:
    judged_on_both = sampled(1.0, 1.0)
    on_one = replace(
        judged_on_both, samples=judged_on_both.samples[:1], unjudged=(("zeros", "eager is not finite"),)
    )
    found = judged(judged_on_both, on_one)
    assert of_verdict(found) == snapshot
    assert verdict.objection(CELL, outcomes(on_one, on_one)) is None


def test_equal_programs_that_are_wrong_in_every_variation_are_corrupt() -> None:
    assert judged(*[sampled(1.0, 2.5)] * 4).name == "corrupt"


def test_outputs_that_differ_in_the_sign_of_zero_or_hold_a_nan_agree() -> None:
    one, other = sampled(0.0, np.nan, expected=0.0), sampled(-0.0, np.nan, expected=0.0)
    right = replace(one.samples[0], expected=(Tensor.from_array(np.float32([np.nan, 3.0])),), name="zeros")
    results = [
        replace(made, samples=(made.samples[0], replace(right, outputs=made.samples[1].outputs)))
        for made in (one, other)
    ]
    assert Exports(outcomes(*results)).groups == [outcomes(*results)]


def test_a_payload_that_writes_no_output_is_corrupt_whatever_the_memory_holds(
    snapshot: SnapshotAssertion,
) -> None:
    garbage = [replace(sampled(1.0, output), delegates=MISWIRED.delegates) for output in (2.5, 3.5)]
    found = judged(*garbage)
    assert of_verdict(found) == snapshot


def test_a_tensor_deviates_where_it_differs_beyond_the_tolerance() -> None:
    one, other = Tensor.from_array(np.int8([1])), Tensor.from_array(np.int8([2]))
    assert not Deviation(one, one).exceeds_tolerance()
    assert Deviation(one, other).exceeds_tolerance()
    assert not Deviation(one, other, tolerance=1.0).exceeds_tolerance()


def test_output_slots_that_collapsed_are_corrupt_in_a_real_payload(snapshot: SnapshotAssertion) -> None:
    found = judged(lowered(GRAPH, tosa(DUPLICATE_OUTPUTS)))
    assert of_verdict(found) == snapshot


def test_the_body_of_a_loop_may_hand_on_its_input_in_a_real_payload(snapshot: SnapshotAssertion) -> None:
    payload = (PAYLOADS / "loop-1.4.1.tosa").read_bytes()
    body = decode_delegates(lowered(GRAPH, tosa(payload)))[0].graphs[2]
    assert screen(map(miswired, rightness.miswired_outputs(body))) == snapshot
    assert verdict.objection(CELL, outcomes(lowered(GRAPH, tosa(payload)))) is None


def test_an_output_that_the_payload_does_not_declare_is_a_line_of_the_verdict(
    snapshot: SnapshotAssertion,
) -> None:
    graph = decode_delegates(lowered(GRAPH, tosa(DUPLICATE_OUTPUTS)))[0].graphs[0]
    undeclared = replace(graph, outputs=(*graph.outputs[:2], "nowhere"))
    assert screen(map(miswired, rightness.miswired_outputs(undeclared))) == snapshot


def test_a_constant_folded_wrongly_is_corrupt_in_a_real_payload(snapshot: SnapshotAssertion) -> None:
    found = judged(replace(lowered(GRAPH, tosa(WRONG_CAT)), codes=(Tensor.from_array(RAMPS),)))
    assert of_verdict(found) == snapshot


def test_a_constant_that_is_held_in_another_order_of_dimensions_is_right() -> None:
    held = np.where(RAMPS == -95, -127, RAMPS)
    held = np.where((np.arange(2) == 1)[None, :, None, None], np.sign(RAMPS) * 127, held).astype(np.int8)
    found = verdict.objection(
        CELL, outcomes(replace(lowered(GRAPH, tosa(WRONG_CAT)), codes=(Tensor.from_array(held),)))
    )
    assert found is None


def test_a_constant_that_no_delegate_holds_in_its_shape_is_corrupt(snapshot: SnapshotAssertion) -> None:
    codes = (Tensor.from_array(np.zeros((7,), np.int8)),)
    assert of_verdict(judged(replace(lowered(GRAPH, tosa(WRONG_CAT)), codes=codes))) == snapshot
