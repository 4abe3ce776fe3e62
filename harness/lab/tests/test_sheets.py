"""Sheets of samples of PyTorch's database of operators: how samples are written and packed."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from executorch_goldens.exporting.data import Data
from lab.guests import listing, sheets
from lab.guests.sheets import HELD, Sample, Tensor

ZOO = "torch-ops"


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
