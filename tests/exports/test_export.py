"""Exports for each target in the installed release."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
import torch
from executorch.backends.arm._passes.replace_inf_and_limit_values_pass import ReplaceInfAndLimitValuesPass
from syrupy.assertion import SnapshotAssertion
from torchao.quantization.pt2e import allow_exported_model_train_eval

from executorch_goldens.artifact import Artifact, Cell, Lowered, Tensor
from executorch_goldens.decode import Schemas, decode
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.trace import Given
from executorch_goldens.judging.comparison import compare
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import SAMPLES, Case, load
from executorch_goldens.zoo.targets import TARGETS
from tests.exports.conftest import exported
from tests.support.making import lowered_by, objection, outcome
from tests.support.screens import measured, of_verdict

ZOO = load(("models",))
RELEASE = releases.load().release(version("executorch"))

BACKENDS = {"tosa": "TOSABackend", "xnnpack": "XnnpackBackend"}

pytestmark = pytest.mark.usefixtures("own_flatc")


@pytest.mark.slow
def test_a_lowered_case_has_one_delegate_of_the_targets_backend(linear: tuple[str, Lowered]) -> None:
    target, made = linear
    (delegate,) = made.delegates
    assert (delegate.name, delegate.backend_id) == ("lowered_module_0", BACKENDS[target.partition("-")[0]])
    assert f"get_attr[target={delegate.name}]" in made.graph
    decoded = decode(delegate.payload, named_data=dict(delegate.named_data))
    assert decoded.kind == target.partition("-")[0]
    assert made.schemas == tuple(map(str, Schemas.installed().places))
    assert made.pte_sha256 == hashlib.sha256(made.pte).hexdigest()
    assert b"ET" in made.pte[:8]


def test_a_quantized_target_holds_integer_constants(linear: tuple[str, Lowered]) -> None:
    target, made = linear
    (delegate,) = made.delegates
    text = decode(delegate.payload, named_data=dict(delegate.named_data)).text().lower()
    assert ("int8" in text) == TARGETS[target].is_quantized


def test_outputs_are_eagers_within_the_targets_bound(linear: tuple[str, Lowered]) -> None:
    _, made = linear
    assert [sample.name for sample in made.samples] == list(SAMPLES)
    for sample in made.samples:
        (expected,), (actual,) = sample.expected, sample.outputs
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape) == ("float32", (3, 8))
        assert np.abs(expected.array()).max() > 0.25
        assert (np.abs(actual.array() - expected.array()) <= made.tolerance(sample, 0)).all()


def test_folded_constants_are_noted_where_every_output_is_one() -> None:
    made = lowered_by(export(ZOO["cat-h-h"], "tosa-int"))
    (codes,) = made.codes
    assert (codes.dtype, codes.shape) == ("int8", (1, 2, 4, 5))
    assert codes.array()[0, 0, 0].tolist() == [-102, -51, 0, 51, 102]


def test_patches_are_noted_in_the_artifact() -> None:
    assert export(ZOO["linear"], "xnnpack-fp32", ["some-patch"]).patches == ("some-patch",)


class Masked(torch.nn.Module):
    """A softmax under a mask of infinities, with states that it writes to."""

    mask: torch.Tensor
    seen: torch.Tensor
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))
        self.register_buffer("seen", torch.zeros(4, 4))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x)
        # Folding constants runs this once more than calibrating does.
        self.calls.add_(1.0)
        return torch.softmax(x + self.mask, dim=-1) + self.seen


def masked(data: Data) -> Example:
    return Example(Masked(), (data.tensor("x", 4, 4),), fill=False)


MASKED = Case("masked", "tests", "something", masked)


@pytest.mark.slow
def test_what_lowering_writes_to_the_model_that_it_is_given_is_told_with_the_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ExecuTorch 1.1.0 does this, before pytorch/executorch#17901."""
    assert lowered_by(export(MASKED, "tosa-int")).altered == ()
    into_a_copy = ReplaceInfAndLimitValuesPass.call

    def in_place(self: Any, graph_module: torch.fx.GraphModule) -> Any:
        for _, buffer in graph_module.named_buffers():
            buffer[buffer == float("-inf")] = -255
        return into_a_copy(self, graph_module)

    monkeypatch.setattr(ReplaceInfAndLimitValuesPass, "call", in_place)
    artifact = export(MASKED, "tosa-int")
    (altered,) = lowered_by(artifact).altered
    assert (altered.name, altered.writer) == ("mask", "ReplaceInfAndLimitValuesPass")
    assert altered.before.array().min() == float("-inf")
    assert altered.after.array().min() == -255
    cell = Cell("tosa-int", "masked")
    found = compare(cell, [outcome(artifact, cell)], None, RELEASE).verdict
    assert (found.name, found.divergence and found.divergence.name) == ("corrupt", altered.writer)
    assert (
        "lowering changed mask of the model that it was given, in ReplaceInfAndLimitValuesPass"
        in of_verdict(found)
    )
    assert "  mask float32[4, 4]: 6 of 16 values differ, max inf" in of_verdict(found)


def test_states_that_cannot_be_compared_are_left_out() -> None:
    module = torch.nn.Linear(2, 2)
    with torch.inference_mode():
        module.register_buffer("made_in_inference", torch.zeros(2))
    module.register_buffer("sparse", torch.eye(2).to_sparse())
    module.register_buffer("nowhere", torch.empty(2, device="meta"))
    module.register_buffer("counted", torch.zeros(2))
    given = Given(module, states={"counted"})
    for buffer in module.buffers():
        if not buffer.is_inference():
            buffer.zero_()
    with torch.no_grad():
        module.bias.fill_(0.5)
    given.note("SomePass")
    assert [(each.name, each.writer) for each in given.altered()] == [("bias", "SomePass")]


def test_a_scale_is_folded_into_the_weights_of_the_model_that_was_given() -> None:
    """Finding folded-scales, in 1.4.1 and 1.5.1: the declared patch corrects it, and the goldens are with it."""
    published = lowered_by(export(ZOO["conv2d-depthwise-scaled"], "tosa-int"))
    assert [(each.name, each.writer) for each in published.altered] == [
        ("pointwise.weight", "FoldScalarMulIntoConvPass"),
        ("pointwise.bias", "FoldScalarMulIntoConvPass"),
    ]


class Several(torch.nn.Module):
    """Tensors, numbers, sizes and None, nested."""

    def forward(self, x: torch.Tensor) -> Any:
        return {"x": x + 1, "rest": [None, 3, (True, 0.5, x.shape[0]), x * 2]}


@pytest.mark.parametrize("target", ["tosa-int", pytest.param("xnnpack-int8", marks=pytest.mark.slow)])
def test_outputs_that_are_no_tensors_are_compared_as_what_they_are(
    target: str, snapshot: SnapshotAssertion
) -> None:
    made = lowered_by(exported(Several(), torch.ones(4, 3), target=target))
    for sample in made.samples:
        assert [each.kind for each in sample.outputs] == ["", "None", "int", "bool", "float", "int", ""]
        assert [each.array().tolist() for each in sample.outputs[1:6]] == [[], 3, True, 0.5, 4]
    assert objection(Artifact(made, ())) is None
    (example, *others) = made.samples
    for number, kind, wrong in ((2, "", 3), (2, "int", 4), (3, "int", 1), (1, "int", 0)):
        outputs = list(example.outputs)
        outputs[number] = Tensor.from_array(np.array(wrong), kind)
        altered = replace(made, samples=(replace(example, outputs=tuple(outputs)), *others))
        judged = objection(Artifact(altered, ()))
        assert measured(of_verdict(judged)) == snapshot


def test_a_size_that_follows_an_input_is_an_output() -> None:
    def build(data: Data) -> Example:
        rows = torch.export.Dim("rows", min=2, max=8)
        return Example(Several(), (data.tensor("x", 4, 3),), fill=False, dynamic_shapes=({0: rows},))

    made = lowered_by(export(Case("sizes", "tests", "something", build), "xnnpack-fp32"))
    sizes = {sample.name: sample.outputs[5].array().item() for sample in made.samples}
    assert (sizes["example"], sizes["least"], sizes["largest"]) == (4, 2, 8)
    assert objection(Artifact(made, ())) is None


def test_an_output_that_is_neither_is_refused_with_what_can_be(snapshot: SnapshotAssertion) -> None:
    class Words(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x + 1, "words"

    judged = objection(exported(Words(), torch.ones(2)))
    assert of_verdict(judged) == snapshot


@pytest.mark.slow
def test_a_module_that_torch_export_made_stays_as_it_is_given() -> None:
    def build(data: Data, wrap: Callable[[torch.nn.Module], torch.nn.Module]) -> Example:
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.ReLU()).eval()
        inputs = (data.tensor("x", 2, 3),)
        made = torch.export.export(module, inputs, strict=True).module()
        return Example(wrap(made), inputs, fill=False)

    def allowed(module: Any) -> torch.nn.Module:
        # Its eval() returns None, and rewrites the graph.
        allow_exported_model_train_eval(module)
        return module  # type: ignore[no-any-return]

    for wrap in (lambda module: module, allowed, lambda module: torch.nn.Sequential(torch.nn.ReLU(), module)):
        case = Case("made", "tests", "something", lambda data, wrap=wrap: build(data, wrap))  # type: ignore[misc]
        assert objection(export(case, "tosa-int" if wrap is allowed else "xnnpack-fp32")) is None


def test_an_input_beyond_what_memory_was_planned_for_says_to_declare_a_bound(
    snapshot: SnapshotAssertion,
) -> None:
    class Rows(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, 0) + 1

    def build(data: Data) -> Example:
        return Example(Rows(), (data.tensor("x", 4, 3),), dynamic_shapes=({0: torch.export.Dim("rows")},))

    judged = objection(export(Case("rows", "tests", "something", build), "xnnpack-fp32"))
    assert of_verdict(judged) == snapshot
