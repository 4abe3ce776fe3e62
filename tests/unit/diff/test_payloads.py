"""Structural differences: each kind of change has its name, and nothing else is reported."""

from __future__ import annotations

import hashlib
import random
import re
import time

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.decode import Decoded, decode
from executorch_goldens.diff import payloads
from executorch_goldens.diff.changes import (
    AttributeChanged,
    BoundaryChanged,
    ConstantChanged,
    EdgeRewired,
    LayoutChanged,
    OperatorAdded,
    OperatorRemoved,
    OperatorReplaced,
    Renamed,
    Reordered,
)
from executorch_goldens.diff.graphs import Pairing
from executorch_goldens.diff.payloads import Differences
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.outline import OutlineError, outline
from tests import GOLDENS
from tests.support.decoding.payloads import FIXTURES, PAYLOADS, SCHEMAS, identify, load
from tests.support.screens import screen

NAME = "1.5.1/tosa-int-0.tosa"
PAYLOAD = (FIXTURES / NAME).read_bytes()
TEXT = load(NAME).text()


def compare(before: Decoded | str, after: Decoded | str) -> Differences:
    return payloads.compare(outline(before), outline(after))


def blocks(text: str, keyword: str) -> list[str]:
    """Return the lines of each operator or value of a text, as one string each."""
    return re.findall(rf"^  {keyword} .*\n(?:    .*\n)*", text, re.MULTILINE)


def operator(type_: str, text: str = TEXT) -> str:
    return next(block for block in blocks(text, "operator") if block.startswith(f"  operator {type_}\n"))


@pytest.mark.parametrize("path", PAYLOADS, ids=identify)
def test_a_payload_is_the_same_as_itself_and_as_its_golden(path: object) -> None:
    decoded = load(identify(path))  # type: ignore[arg-type]
    for other in (decoded, decoded.text()):
        differences = compare(decoded, other)
        assert differences.same
        assert list(differences.lines()) == ["same"]


def test_a_new_name_is_one_line() -> None:
    differences = compare(TEXT, TEXT.replace("tosa_conv2d_default", "another_name"))
    assert differences.verdict == "renamed only"
    assert differences.order_only
    (renamed,) = differences.changes
    assert isinstance(renamed, Renamed)
    assert renamed.count == TEXT.count("  value tosa_conv2d_default")


def test_a_shift_of_a_thousand_numbers_is_one_line(snapshot: SnapshotAssertion) -> None:
    operators = "".join(
        f"  operator ADD\n    input v{at}\n    input v0\n    output v{at + 1}: FP32[1]\n"
        for at in range(1000)
    )
    values = "".join(f"  value v{at}: FP32[1]\n" for at in range(1001))
    before = (
        f"tosa 99 bytes\ngraph main/main\n  input v0: FP32[1]\n  output v1000: FP32[1]\n{values}{operators}"
    )
    after = re.sub(r"\bv(\d+)", lambda match: f"v{int(match[1]) + 1}", before)
    started = time.process_time()
    differences = compare(before, after)
    assert screen(differences.lines()) == snapshot
    assert time.process_time() - started < 2


def test_a_different_order_of_operators_is_order_only() -> None:
    first, second = blocks(TEXT, "operator")[:2]
    differences = compare(TEXT, TEXT.replace(first + second, second + first))
    assert differences.verdict == "order only"
    (moved,) = differences.changes
    assert isinstance(moved, Reordered)
    assert (moved.what, len(moved.moved)) == ("operators", 1)


def test_a_different_order_of_values_is_order_only() -> None:
    first, second = blocks(TEXT, "value")[:2]
    differences = compare(TEXT, TEXT.replace(first + second, second + first))
    assert differences.verdict == "order only"
    assert [change.what for change in differences.changes if isinstance(change, Reordered)] == ["values"]


def test_a_changed_attribute_is_reported_before_and_after() -> None:
    differences = compare(TEXT, TEXT.replace("pad = [1, 1, 1, 1]", "pad = [0, 0, 1, 1]"))
    assert differences.verdict == "different"
    (change,) = differences.changes
    assert isinstance(change, AttributeChanged)
    assert (change.owner, change.name) == ("CONV2D tosa_conv2d_default", "pad")
    assert (change.before, change.after) == ("[1, 1, 1, 1]", "[0, 0, 1, 1]")


def test_a_changed_constant_is_compared_element_by_element() -> None:
    before = load(NAME)
    name, weight = max(before.constants().items(), key=lambda item: item[1].size)
    mutated = bytearray(PAYLOAD)
    at = PAYLOAD.index(bytes(weight.data))
    mutated[at + 10] ^= 0x01
    mutated[at + 20] ^= 0x02
    differences = compare(before, decode(bytes(mutated), schemas=SCHEMAS))
    (change,) = differences.changes
    assert isinstance(change, ConstantChanged)
    assert change.owner == name
    assert (change.difference.differing, change.difference.size) == (2, weight.size)
    assert (change.difference.largest, change.difference.mean) == (2.0, 3 / weight.size)


@pytest.mark.parametrize("as_text", [False, True])
def test_complex_constants_are_read_and_compared_in_both_parts(
    as_text: bool, snapshot: SnapshotAssertion
) -> None:
    data = (FIXTURES / "1.5.1/complex.pte").read_bytes()
    kinds = {"COMPLEXHALF": "<f2", "COMPLEXFLOAT": "<f4", "COMPLEXDOUBLE": "<f8"}
    before = decode(data, schemas=SCHEMAS)
    for kind, part in kinds.items():
        (name,) = (name for name, constant in before.constants().items() if constant.dtype == kind)
        constant = before.constants()[name]
        assert constant.array()[0] == 1 + 2j
        assert np.isnan(constant.array()[1])
        old, new = (np.array([1, imaginary], part).tobytes() for imaginary in (2, 3.5))
        assert data.count(old) == 1
        after = decode(data.replace(old, new), schemas=SCHEMAS)
        differences = compare(before.text(), after.text()) if as_text else compare(before, after)
        (change,) = differences.changes
        assert isinstance(change, ConstantChanged)
        assert screen(change.lines()) == snapshot(name=kind)


def test_goldens_of_small_constants_are_compared_element_by_element() -> None:
    (shifts,) = [block for block in blocks(TEXT, "value") if "_shifts: " in block]
    numbers = re.search(r"values (\d+) (\d+) (\d+) (\d+)\n", shifts)
    changed = shifts.replace(numbers[0], f"values {numbers[1]} {numbers[2]} 99 {numbers[4]}\n")
    changed = re.sub(r"sha256 \w+", f"sha256 {'0' * 64}", changed)
    (change,) = compare(TEXT, TEXT.replace(shifts, changed)).changes
    assert isinstance(change, ConstantChanged)
    assert change.difference.first == (((2,), numbers[3], "99"),)


def test_goldens_of_large_constants_are_compared_by_their_facts() -> None:
    changed = re.sub(r"sha256 \w{8}(\w+)\n(\s+)min -127", r"sha256 00000000\1\n\2min -120", TEXT, count=1)
    (change,) = compare(TEXT, changed).changes
    assert isinstance(change, ConstantChanged)
    assert change.difference is None
    assert [name for name, _, _ in change.facts] == ["sha256", "min"]


def test_a_removed_and_an_added_operator() -> None:
    """The last TRANSPOSE goes: its input becomes the output."""
    transpose = blocks(TEXT, "operator")[-1]
    source = re.search(r"input (\S+)", transpose)
    output = re.search(r"output (\S+):", transpose)
    shorter = TEXT.replace(transpose, "")
    shorter = re.sub(rf"  output {output[1]}: \S+", f"  output {source[1]}: INT8[1,8,8,4]", shorter)
    shorter = re.sub(rf"  value {output[1]}: \S+\n", "", shorter)
    changes = compare(TEXT, shorter).changes
    assert {type(change) for change in changes} == {OperatorRemoved, BoundaryChanged}
    changes = compare(shorter, TEXT).changes
    assert {type(change) for change in changes} == {OperatorAdded, BoundaryChanged}


def test_an_operator_inserted_into_an_edge_is_only_added() -> None:
    rescale = operator("RESCALE")
    clamp = "  operator CLAMP\n    input tosa_conv2d_default\n    output new: INT32[1,8,8,4]\n"
    changed = TEXT.replace(rescale, clamp + rescale.replace("input tosa_conv2d_default\n", "input new\n"))
    first_operator = changed.index("  operator ")
    changed = changed[:first_operator] + "  value new: INT32[1,8,8,4]\n" + changed[first_operator:]
    (change,) = compare(TEXT, changed).changes
    assert isinstance(change, OperatorAdded)
    assert change.inputs == ("tosa_conv2d_default",)


def test_an_operator_of_another_type_in_the_same_place_is_replaced() -> None:
    text = TEXT.replace("operator CONV2D", "operator DEPTHWISE_CONV2D")
    (change,) = compare(TEXT, text).changes
    assert isinstance(change, OperatorReplaced)
    assert change.before == "CONV2D tosa_conv2d_default"
    assert change.after == "DEPTHWISE_CONV2D tosa_conv2d_default"


def test_an_edge_from_elsewhere_is_rewired() -> None:
    conv = operator("CONV2D")
    swapped = conv.replace("_input_zp", "_X").replace("_weight_zp", "_input_zp").replace("_X", "_weight_zp")
    changes = compare(TEXT, TEXT.replace(conv, swapped)).changes
    assert {type(change) for change in changes} == {EdgeRewired}
    assert len(changes) == 2


def test_outputs_in_a_different_order() -> None:
    text = TEXT.replace(
        "graph main/main\n", "graph main/main\n  output tosa_conv2d_default: INT32[1,8,8,4]\n", 1
    )
    outputs = re.findall(r"^  output .*\n", text, re.MULTILINE)
    turned = text.replace(outputs[0], "", 1).replace(outputs[1], outputs[1] + outputs[0], 1)
    (change,) = compare(text, turned).changes
    assert isinstance(change, BoundaryChanged)
    assert change.order_only
    assert change.content


@pytest.fixture
def two_inputs() -> str:
    """An XNNPACK payload of a subtraction whose two inputs are bound by external ids 0 and 1."""
    values = "".join(f"  value %{at}: fp32[2]\n    external_id = {at}\n" for at in range(3))
    return (
        "xnnpack 99 bytes\ngraph XNNGraph\n  input %0: fp32[2]\n  input %1: fp32[2]\n  output %2: fp32[2]\n"
        f"{values}  operator XNNSubtract\n    input1 %0\n    input2 %1\n    output %2: fp32[2]\n    debug_handle = 4\n"
    )


def test_xnnpack_inputs_are_those_of_their_external_ids_in_whatever_order_they_are_listed(
    two_inputs: str,
) -> None:
    first, second = blocks(two_inputs, "value")[:2]
    moved = two_inputs.replace(first + second, second + first)
    moved = re.sub(r"%([01])", lambda name: f"%{1 - int(name[1])}", moved)
    inputs = re.findall(r"^  input .*\n", moved, re.MULTILINE)
    listed = moved.replace("".join(inputs), "".join(sorted(inputs)))
    assert listed != moved
    assert compare(two_inputs, listed).order_only


def test_external_ids_that_change_places_are_inputs_that_do(
    two_inputs: str, snapshot: SnapshotAssertion
) -> None:
    turned = re.sub(r"external_id = ([01])", lambda number: f"external_id = {1 - int(number[1])}", two_inputs)
    (change,) = (change for change in compare(two_inputs, turned).changes if change.content)
    assert screen(change.lines()) == snapshot


def test_inputs_that_kept_their_places_did_not_move(two_inputs: str) -> None:
    turned = re.sub(r"input([12]) %([01])", lambda name: f"input{name[1]} %{1 - int(name[2])}", two_inputs)
    assert {type(change) for change in compare(two_inputs, turned).changes} == {EdgeRewired}


def test_another_index_alone_is_content(two_inputs: str) -> None:
    indexed = two_inputs.replace("debug_handle = 4", "delegate_index = 0")
    assert (
        compare(indexed, indexed.replace("delegate_index = 0", "delegate_index = 1")).verdict == "different"
    )


def test_other_labels_alone_are_layout(two_inputs: str, snapshot: SnapshotAssertion) -> None:
    numbered = two_inputs.replace("debug_handle = 4", "debug_handle = 7")
    assert screen(compare(two_inputs, numbered).lines()) == snapshot
    longer = numbered.replace("external_id = 2\n", "external_id = 2\n    flags = 0\n")
    assert compare(two_inputs, longer).verdict == "different"


def test_sizes_that_follow_are_layout() -> None:
    differences = compare(TEXT, TEXT.replace("tosa 3464 bytes", "tosa 3472 bytes"))
    assert differences.verdict == "layout only"
    assert [type(change) for change in differences.changes] == [LayoutChanged]


def test_delegates_of_a_program_are_compared_inside() -> None:
    golden = load("1.5.1/xnnpack-int4.pte").text()
    (change,) = compare(golden, golden.replace("num_nonbatch_dims = 1", "num_nonbatch_dims = 2")).changes
    assert isinstance(change, AttributeChanged)
    assert change.where == "delegate forward/0 XNNGraph"


def test_xnnpack_keys_are_names_and_their_digests_are_contents() -> None:
    golden = load("1.5.1/xnnpack-fp32-0.xnnpack").text()
    key = re.search(r"missing = (\w+)", golden)
    assert compare(golden, golden.replace(key[1], "w_" + key[1])).verdict == "renamed only"
    assert compare(golden, golden.replace(key[1], "0" * 64)).verdict == "different"


def test_a_text_that_is_no_golden_is_refused_with_its_line() -> None:
    with pytest.raises(OutlineError) as caught:
        outline(TEXT.replace("  operator CONV2D", "  surprise CONV2D"))
    assert "surprise" in caught.value.text
    assert caught.value.line > 10


def test_the_report_can_be_cut(snapshot: SnapshotAssertion) -> None:
    text = TEXT.replace("pad = [1, 1, 1, 1]", "pad = [0]").replace("stride = [1, 1]", "stride = [2]")
    assert screen(compare(TEXT, text).lines(limit=1)) == snapshot


@pytest.mark.parametrize(("case", "seed"), [("two-products", 11), ("self-attention", 3)])
def test_operators_are_matched_by_their_place_where_all_zero_points_change(case: str, seed: int) -> None:
    """Equal numbers in two places do not make their operators the same; what comes last differs as well."""
    record = golden.read(golden.file_of(GOLDENS / "1.5.1", Cell("tosa-int", case)))
    text = record.sections["delegate_0.tosa"]
    zero_point = re.compile(r"(value \w+_zp: INT8\[1\]\n    sha256 )\w+(\n    values )-?\d+")
    drawn = random.Random(seed)

    def another(found: re.Match[str]) -> str:
        value = drawn.randint(-20, 20)
        digest = hashlib.sha256(value.to_bytes(1, "little", signed=True)).hexdigest()
        return f"{found[1]}{digest}{found[2]}{value}"

    before, after = (zero_point.sub(another, text) for _ in range(2))
    after = re.sub(r"(.*  rounding_mode = )\w+", r"\1INEXACT_ROUND", after, flags=re.DOTALL)
    ((one,), (other,)) = (outline(each).graphs for each in (before, after))
    matched = Pairing(one, other).matching.forth
    computing = [at for at, operator in enumerate(one.operators) if operator.inputs]
    assert [matched.get(at) for at in computing] == computing
