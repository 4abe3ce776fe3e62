"""Models that are no function of their inputs and their buffers: called again, they give something else."""

from __future__ import annotations

import itertools

import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from torch import nn

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered
from executorch_goldens.exporting.building import Build
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.judging.verdict import Verdict, objection
from executorch_goldens.zoo.registry import Case
from tests.support import zoo_builds
from tests.support.making import outcome
from tests.support.screens import measured, of_verdict

pytestmark = pytest.mark.usefixtures("own_flatc")


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + self.calls


class Draws(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(x.shape)


class Grows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(x)
        return torch.cat(self.seen).sum(0)


class Caches(nn.Module):
    """Keeps what its first input says for all others; called twice on the same, it gives the same."""

    def __init__(self) -> None:
        super().__init__()
        self.most: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.most is None:
            self.most = x.amax()
        return x - self.most


CALLS = itertools.count()


class CountsElsewhere(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * next(CALLS)


class Once(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.done = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.done:
            raise RuntimeError("once only")
        self.done = True
        return x + 1


def exported(model: type[nn.Module]) -> Artifact:
    def build(data: Data) -> Example:
        return Example(model(), (data.tensor("x", 2, 4),))

    return export(Case("any", "tests", "something", build), "xnnpack-fp32")


def judged(artifact: Artifact) -> Verdict | None:
    return objection(Cell("xnnpack-fp32", "any"), [outcome(artifact)])


@pytest.mark.parametrize("model", [Counts, Draws, Grows, Caches, CountsElsewhere])
def test_a_model_that_gives_something_else_when_called_again_is_the_cause_and_names_the_output(
    model: type[nn.Module], snapshot: SnapshotAssertion
) -> None:
    artifact = exported(model)
    assert isinstance(artifact.result, Failure)
    assert artifact.result.stage == "model"
    found = judged(artifact)
    assert found.name == "failed"
    assert not found.recordable
    assert measured(of_verdict(found)) == snapshot


def test_a_model_that_cannot_be_called_again_is_the_cause(snapshot: SnapshotAssertion) -> None:
    found = judged(exported(Once))
    assert of_verdict(found) == snapshot


def test_a_build_is_called_again_as_well() -> None:
    def build(build: Build) -> object:
        inputs = (build.data.tensor("x", 2, 4),)
        build.method(Counts(), inputs)
        return zoo_builds.PROGRAM.read_bytes()

    result = export(Case("any", "tests", "something", build, is_build=True), "built").result
    assert isinstance(result, Failure)
    assert result.message.startswith("its model gives other outputs when called again: output 0 (")


class Remembers(nn.Module):
    """Adds to a buffer in place, and keeps what follows from shapes alone."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2, 4))
        self.places: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.places is None:
            self.places = torch.arange(x.shape[-1], dtype=torch.float32)
        self.total.add_(x)
        return self.total + self.places


class Replaces(Remembers):
    """Puts another tensor in place of its buffer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total = self.total + x
        return self.total * 2


@pytest.mark.parametrize("model", [Remembers, Replaces])
def test_buffers_are_a_state_and_what_follows_from_shapes_may_be_kept(model: type[nn.Module]) -> None:
    assert isinstance(exported(model).result, Lowered)
