"""Exports that several files look at, each made once."""

from __future__ import annotations

import pytest
import torch

from executorch_goldens.artifact import Artifact, Lowered
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.zoo.registry import Case, load
from executorch_goldens.zoo.targets import TARGETS
from tests.support.making import lowered_by
from tests.support.runner import made_once


def exported(module: torch.nn.Module, *inputs: torch.Tensor, target: str = "tosa-fp") -> Artifact:
    def build(data: Data) -> Example:
        return Example(module, inputs, fill=False)

    return export(Case("some-case", "tests", "something", build), target)


#: A target of each backend, and both kinds; the rest is exported by ``nox -s goldens`` as well, and here every week.
QUICK_TARGETS = ("tosa-int", "xnnpack-dynamic", "xnnpack-fp32")


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(name, marks=[] if name in QUICK_TARGETS else pytest.mark.slow)
        for name in sorted(TARGETS)
    ],
)
def linear(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, own_flatc: None
) -> tuple[str, Lowered]:
    """A target and its program of a linear layer."""
    case = load(("models",))["linear"]
    made = made_once(
        tmp_path_factory,
        f"linear-{request.param}",
        lambda folder: lowered_by(export(case, request.param)),
    )
    return request.param, made
