"""Modules that a build gives in training mode: they stay as they are, and the reference is in eval mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from torch import nn

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered
from executorch_goldens.exporting.building import Build
from executorch_goldens.exporting.data import Data
from executorch_goldens.exporting.entry import export
from executorch_goldens.goldens.record import MANIFEST
from executorch_goldens.judging.rightness import wrongs
from executorch_goldens.judging.verdict import objection
from executorch_goldens.zoo.registry import Case
from tests.support import zoo_builds
from tests.support.making import golden_of, outcome
from tests.support.screens import measured, of_verdict

pytestmark = pytest.mark.usefixtures("own_flatc")


class Noisy(nn.Module):
    """Adds to its input in training only."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if self.inner.training else x * 2


class Merging(nn.Module):
    """Writes to its weights as it is put into eval mode, as an adapter that is merged does."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def train(self, mode: bool = True) -> Merging:
        if self.training and not mode:
            self.weight.data = self.weight.data + 1
        return super().train(mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def built(module: nn.Module, before: Callable[[nn.Module], object] = lambda module: module) -> Artifact:
    """Return the program of a build that names `module`, does something with it and exports it."""

    def build(build: Build) -> object:
        inputs = (build.data.tensor("x", 2, 4),)
        modes = [each.training for each in module.modules()]
        state = {name: value.clone() for name, value in module.state_dict().items()}
        assert build.method(module, inputs) is module
        assert [each.training for each in module.modules()] == modes
        assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
        before(module)
        return zoo_builds.to_xnnpack(module, inputs)

    return export(Case("any", "tests", "something", build, is_build=True), "built")


@pytest.mark.parametrize("module", [Noisy(), Merging()], ids=["branches", "writes"])
def test_a_module_in_training_mode_stays_so_and_its_program_is_held_to_eval_mode(
    module: nn.Module, snapshot: SnapshotAssertion
) -> None:
    artifact = built(module)
    found = objection(Cell("built", "any"), [outcome(artifact)])
    assert measured(of_verdict(found)) == snapshot


def test_a_program_that_is_right_says_in_its_golden_that_the_module_was_in_training_mode() -> None:
    module = Noisy().eval()
    module.inner.train()
    made = built(module, lambda module: module.eval()).result
    assert isinstance(made, Lowered), made
    assert list(wrongs(made)) == []
    recipe = "forward held to its eager module in eval mode, given with inner in training mode;"
    assert recipe in golden_of(made).texts()[MANIFEST]


def test_a_mode_that_changes_nothing_is_not_mentioned() -> None:
    made = built(nn.Linear(4, 4)).result
    assert isinstance(made, Lowered), made
    assert made.training == ()
    assert "forward held to its eager module;" in made.recipe


def test_a_script_that_does_not_lower_by_itself_does_not_lower_here() -> None:
    result = built(nn.BatchNorm1d(4)).result
    assert isinstance(result, Failure)
    assert result.stage == "build"


@pytest.mark.parametrize("fill", [Data.fill, Data.fill_normal])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_filling_a_model_leaves_its_dtypes(
    fill: Callable[[Data, nn.Module], nn.Module], dtype: torch.dtype
) -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).to(dtype)
    fill(Data("any"), model)
    assert {each.dtype for each in model.state_dict().values() if each.is_floating_point()} == {dtype}
