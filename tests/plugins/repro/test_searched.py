"""What a search found, as a module of a zoo."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from executorch_goldens.artifact import Cell
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.zoo.registry import Case, load
from executorch_goldens_plugins.compare.searching import Try
from executorch_goldens_plugins.repro.reproduction import program_of
from executorch_goldens_plugins.repro.searched import zoo_of

X = torch.arange(6.0).reshape(2, 3)


def test_a_program_is_a_case_for_the_target_that_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(
        name="sums",
        family="small",
        guards="a sum",
        build=lambda data: Example(torch.nn.Softmax(1), (X,)),
        quantization="histogram",
        sqnr={"tosa-int16": float("-inf")},
    )
    model = Try(case, ("rotated",), "tosa-int16")
    assert model.cell == Cell("tosa-int16", "sums-x-rotated")
    (tmp_path / "found.py").write_text(zoo_of(program_of(case, "tosa-fp", "example"), model))
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = load(["found"]).values()
    monkeypatch.delitem(sys.modules, "found")
    assert (found.name, found.backends, found.also) == ("sums-x-rotated", ("tosa-int16",), ("tosa-int16",))
    assert (found.quantization, found.sqnr) == ("histogram", case.sqnr)
    example = found.build(Data("sums"))
    (output,) = example.module(*example.inputs)
    assert torch.equal(output, torch.softmax(X, 1))
