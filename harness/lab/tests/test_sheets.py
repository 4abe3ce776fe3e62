"""Sheets of samples of PyTorch's database of operators: how samples are drawn, chosen, written, packed and split."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
import torch

from executorch_goldens.exporting.data import Data
from lab.guests import listing, sheets
from lab.guests.opinfo import Call, NotTakenError, Reader, chosen, samples_of, tables_of_release
from lab.guests.settling import masked
from lab.guests.sheets import HELD, INPUT, Sample, Tensor
from tests import REPOSITORY

ZOO = "torch-ops"


@pytest.fixture(scope="module")
def entries() -> dict[str, Any]:
    """Return the entries of the installed torch's ``op_db`` by name."""
    with pytest.MonkeyPatch.context() as patch:
        # It imports setuptools, which does not go beside the distutils that another test has imported.
        patch.setenv("SETUPTOOLS_USE_DISTUTILS", "stdlib")
        from torch.testing._internal.common_methods_invocations import op_db

    return {entry.name: entry for entry in op_db if not entry.variant_test_name}


@pytest.fixture(scope="module")
def tables() -> frozenset[str]:
    return tables_of_release()


# Drawing


def test_samples_have_every_form_of_a_call(entries: dict[str, Any], tables: frozenset[str]) -> None:
    made = [sample.call for sample in samples_of(entries["clamp"], tables) if sample.group == "float32"]
    for head in ("torch.clamp(", "{0}.clamp(", "{0}.clone().clamp_(", "torch.clip("):
        assert any(call.startswith(head) for call in made), head


def test_the_rest_of_a_layers_tensors_is_held(entries: dict[str, Any], tables: frozenset[str]) -> None:
    made = list(samples_of(entries["nn.functional.conv2d"], tables))
    assert made
    for sample in made:
        kinds = [tensor.kind for tensor in sample.tensors]
        assert kinds == [INPUT, *(HELD for _ in kinds[1:])]


def test_of_others_every_second_sample_takes_all_tensors_as_inputs(
    entries: dict[str, Any], tables: frozenset[str]
) -> None:
    kinds = {
        sample.tensors[-1].kind for sample in samples_of(entries["sub"], tables) if len(sample.tensors) > 1
    }
    assert kinds == {INPUT, HELD}


@pytest.mark.parametrize("name", ["bernoulli", "fft.fft", "linalg.eigvals"])
def test_what_is_random_complex_or_in_no_table_is_left_out(
    name: str, entries: dict[str, Any], tables: frozenset[str]
) -> None:
    assert not list(samples_of(entries[name], tables))


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(0, 3),
        torch.tensor([float("nan")]),
        torch.zeros(50, 50),
        torch.zeros(2, dtype=torch.cfloat),
    ],
    ids=["empty", "not-finite", "large", "complex"],
)
def test_a_tensor_that_is_not_taken(value: torch.Tensor) -> None:
    with pytest.raises(NotTakenError):
        Reader().call([value], {})


def test_arguments_are_read_as_python() -> None:
    x = torch.ones(2, 3)
    call = Reader().call([x, [x, 2], (1,), None, ...], {"dtype": torch.int64, "b": -0.5})
    text = call.text("torch.f")
    assert text == "torch.f({0}, [{0}, 2], (1,), None, ..., b=-0.5, dtype=torch.int64)"
    assert "1.0 is tensor 0" in call.facts


def test_what_adds_most_pairs_of_facts_is_chosen_first() -> None:
    def call(*facts: str) -> Call:
        return Call(("{0}",), (), (Tensor("float32", (2,), 0, 1),), frozenset(facts))

    calls = [call("a"), call("a", "b", "c"), call("b"), call("d"), call("a", "d")]
    assert chosen(calls, 9) == [calls[1], calls[4]]
    assert chosen(calls, 1) == [calls[1]]


# Samples and sheets


def test_samples_are_read_as_they_were_written() -> None:
    text = "".join(f"{sample.line()}\n" for sample in sheets.samples(ZOO))
    assert text == sheets.path_of(ZOO).read_text(encoding="utf-8")
    names = [sample.name for sample in sheets.samples(ZOO)]
    assert len(names) == len(set(names))


def test_each_sample_is_in_one_sheet_of_each_target_or_left_out_by_name() -> None:
    there = sheets.samples(ZOO)
    for release in ("1.3.1", "1.5.1"):
        listed = listing.read(ZOO).for_release(release)
        found = Counter(
            (entry.kinds[0], int(number)) for entry in listed.entries for number in entry.node.split(",")
        )
        found.update(
            (left.reason.partition(":")[0], int(left.test.partition("::")[2].split(" ")[0]))
            for left in listed.omitted
        )
        wanted = Counter(
            (target, number) for number, sample in enumerate(there) for target in sheets.TARGETS[sample.group]
        )
        assert found == wanted


def test_whole_sheets_keep_operators_together_and_are_small() -> None:
    there = sheets.samples(ZOO)
    for entry in sheets.whole(ZOO, ("1.5.1",)):
        of = [there[int(number)] for number in entry.node.split(",")]
        assert len(of) <= sheets.SIZE or len({sample.operator for sample in of}) == 1
        assert {sample.group for sample in of} == {entry.file}


def test_a_sheet_gives_the_outputs_of_each_of_its_samples() -> None:
    tensor = Tensor("float32", (2, 3), -4, 4)
    of = [
        Sample(
            "add-float32-0", "torch.add({0}, {1}, alpha=2)", (tensor, Tensor("float32", (3,), -1, 1, HELD))
        ),
        Sample("max-float32-0", "*torch.max({0}, 1)", (tensor,)),
    ]
    example = sheets.example(of)
    assert len(example.inputs) == 2
    total, values, indices = example.module(*example.inputs)
    assert torch.equal(total, torch.add(example.inputs[0], example.module.x0_1, alpha=2))
    assert torch.equal(values, example.inputs[1].max(1).values)
    assert indices.dtype == torch.int64


@pytest.mark.parametrize(("low", "high"), [(-9, 9), (0, 1), (0.5, 0.5625)])
def test_floats_are_in_their_range_different_and_off_its_steps(low: float, high: float) -> None:
    values = sheets.floats(Data("x").generator("0"), low, high, 12)
    assert len(set(values)) == 12
    assert low < values.min() <= values.max() < high
    if high - low >= 1:
        assert not any((16 * value).is_integer() for value in values.tolist())


def test_integers_are_in_their_range() -> None:
    sample = Sample("x-int8-0", "{0}.abs()", (Tensor("int8", (50,), -3, 4),))
    values = sheets.filled(sample, 0)
    assert values.dtype == torch.int8
    assert (int(values.min()), int(values.max())) == (-3, 4)


# Splitting


def test_causes_are_the_same_for_messages_that_differ_in_names_and_numbers() -> None:
    one = "aten.any.dim: Expected x2_0 to be 3.5, got DType.INT8 [a, b]\nmore"
    other = "aten.any.dim: Expected x13_0 to be 4, got DType.INT8 [c, d, e]"
    assert masked(one) == masked(other)
    assert "aten.any.dim" in masked(one)
    assert masked(other.replace("INT8", "INT32")) != masked(one)


def test_a_result_of_another_shape_is_a_different_cause_than_one_of_another_dtype() -> None:
    """The first hid a replicate pad that does not cut off, as that of a product with a number."""
    shape, other, dtype = (
        f"corrupt: output {at}: is {made}, expected {expected}"
        for at, made, expected in (
            (0, "float32[1, 3, 5, 5]", "float32[1, 3, 3, 4]"),
            (3, "float32[2, 7]", "float32[2]"),
            (4, "float32[]", "float16[]"),
        )
    )
    assert masked(shape) == masked(other) != masked(dtype)


SPLIT = """
import json
from executorch_goldens.toolchains.toolchain import here
from lab.guests import ZOOS, sheets
from lab.guests.settling import Settler
from lab.guests.sheets import Sample, Tensor

x = (Tensor("int8", (2, 3), 0, 1),)
wrong = "torch.any({0}, 1)"
made = [("abs", "torch.clone({0})"), ("any", wrong), ("twice", wrong), ("not", "{0}.clone()")]
sheets.samples = lambda zoo: tuple(Sample(f"{name}-int8-0", call, x) for name, call in made)
settler = Settler(ZOOS["torch-ops"], here().release, "tosa-fp")
split = settler.split("integers", [0, 1, 2, 3], 0)
print(json.dumps([[entry.node for entry in split.entries], [left.reason for left in split.omitted]]))
"""


@pytest.mark.slow
def test_of_samples_that_are_wrong_for_one_cause_the_first_is_alone_and_others_are_left_out() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPLIT], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    nodes, reasons = json.loads(done.stdout.splitlines()[-1])
    assert nodes == ["0,3", "1"]
    (reason,) = reasons
    assert reason.startswith("tosa-fp: as any-int8-0: lower ")
