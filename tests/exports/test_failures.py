"""Exports that fail: which stage, which pass, whose words; and when it is the harness that failed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from executorch_goldens.artifact import DECLARATION, MACHINE, UNSTEADY_MODEL, Artifact, Cell, Failure
from executorch_goldens.exporting.blame import OwnError
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.judging import verdict
from executorch_goldens.judging.exports import Exports
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.registry import Case, UnsteadyError, ZooError, load
from executorch_goldens.zoo.variations import variations
from tests.support.making import outcome
from tests.support.modules import function

ZOO = load(("models",))
pytestmark = pytest.mark.usefixtures("own_flatc")


def raising(data: Data) -> Example:
    raise ValueError("no model")


def test_a_model_that_raises_is_a_failure_of_its_stage() -> None:
    artifact = export(Case("raising", "tests", "raises", raising), "xnnpack-fp32")
    assert isinstance(artifact.result, Failure)
    assert artifact.result.stage == "model"
    assert (artifact.result.type, artifact.result.message) == ("ValueError", "no model")
    assert artifact.result.pass_name is None
    assert artifact.result.function is None
    assert "Traceback" in artifact.result.traceback


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (OSError(28, "No space left on device"), MACHINE),
        (FileNotFoundError(2, "No such file or directory"), ""),
        (ZooError("no Example"), DECLARATION),
        (UnsteadyError("its model raises when called again"), UNSTEADY_MODEL),
        (ValueError("no model"), ""),
    ],
)
def test_a_failure_says_whose_fault_it_is(error: Exception, fault: str) -> None:
    def build(data: Data) -> Example:
        raise error

    result = export(Case("raising", "tests", "raises", build), "xnnpack-fp32").result
    assert isinstance(result, Failure)
    assert result.fault == fault


def test_what_a_case_raises_is_its_failure_whatever_its_class() -> None:
    class NoError(BaseException):
        """As of a library that wants to be caught by nobody."""

    def build(data: Data) -> Example:
        raise NoError("no model")

    result = export(Case("raising", "tests", "raises", build), "xnnpack-fp32").result
    assert isinstance(result, Failure)
    assert (result.stage, result.type.rpartition(".")[2], result.message) == ("model", "NoError", "no model")


@pytest.mark.slow
def test_a_real_failure_names_stage_pass_and_function(artifacts: Mapping[str, tuple[Artifact, ...]]) -> None:
    for artifact in artifacts["does-not-lower"]:
        result = artifact.result
        assert isinstance(result, Failure)
        assert (result.stage, result.type, result.pass_name) == ("emit", "RuntimeError", "ToOutVarPass")
        assert result.function.startswith("executorch.exir.passes")
        assert "zoo::opaque" in result.message


@pytest.mark.parametrize(
    ("stage", "target", "function"),
    [
        ("export", "xnnpack-fp32", "executorch_goldens.exporting.recipe.torch.export.export"),
        ("quantize", "xnnpack-int8", "executorch_goldens.exporting.numerics.quantizing.prepare_pt2e"),
        ("lower", "xnnpack-fp32", "executorch_goldens.exporting.targets.to_edge_transform_and_lower"),
        ("emit", "xnnpack-fp32", "executorch.exir.EdgeProgramManager.to_executorch"),
        ("run", "xnnpack-fp32", "executorch_goldens.exporting.running.numerics.run_methods"),
        ("run", "tosa-fp", "executorch_goldens.exporting.running.numerics.run_model"),
    ],
)
@pytest.mark.slow
def test_what_raises_is_a_failure_of_its_stage(
    monkeypatch: pytest.MonkeyPatch, stage: str, target: str, function: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise LookupError(stage)

    monkeypatch.setattr(function, stop)
    artifact = export(ZOO["linear"], target)
    assert isinstance(artifact.result, Failure)
    assert (artifact.result.stage, artifact.result.message) == (stage, stage)


def test_an_exception_of_the_harness_is_no_verdict_and_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example `Tensor.permute` with a dimension twice: the harness calls native code wrongly."""
    wrong = numerics.Layout(torch.float32, (0, 0))
    monkeypatch.setattr(numerics.Layout, "declared", lambda value: wrong)
    with pytest.raises(OwnError) as raised:
        export(ZOO["linear"], "tosa-fp")
    found = raised.value.casualty
    assert found.stage == "run"
    assert found.error.startswith("RuntimeError: permute")
    assert re.search(r"exporting/numerics/programs.py, line \d+, in ", found.where)
    assert str(raised.value).startswith("stage run: RuntimeError: permute")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("call", ["data.tensor('x', 2, 'three')", "data.generator('x').integers(3, 2)"])
def test_a_case_that_calls_the_harness_wrongly_does_not_run(call: str) -> None:
    build = function("models.some", f"def call(data): return {call}")
    artifact = export(Case("some-case", "tests", "raises", build), "xnnpack-fp32")  # type: ignore[arg-type]
    assert isinstance(artifact.result, Failure)
    assert artifact.result.stage == "model"


LINEAR = torch.nn.Linear(4, 4)
GIVEN = torch.zeros(2, 4)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda data: None, "gives None, and no Example"),
        (lambda data: (LINEAR, (GIVEN,)), "gives a tuple, and no Example"),
        (
            lambda data: Example(None, (GIVEN,)),
            "no torch.nn.Module but None: a function that changes a model in place",
        ),
        (lambda data: Example(None, (GIVEN,), fill=False), "no torch.nn.Module but None"),
        (lambda data: Example(torch.nn.Linear, (GIVEN,)), "no torch.nn.Module but a type"),
        (lambda data: Example(LINEAR, GIVEN), "no tuple but a Tensor: write (input,)"),
        (lambda data: Example(LINEAR, [GIVEN]), "no tuple but a list"),
        (lambda data: Example(LINEAR, (None,)), ""),
        (lambda data: Example(LINEAR, ({"x": object()},)), "an input of case 'some-case' of tests"),
        (lambda data: Example(LINEAR, ()), ""),
        (lambda data: Example(LINEAR, (GIVEN.to_sparse(),)), ""),
        (lambda data: Example(LINEAR, (GIVEN,), dynamic_shapes=({7: torch.export.Dim("n")},)), ""),
        (lambda data: Example(LINEAR, (GIVEN,), dynamic_shapes=5), ""),
        (lambda: Example(LINEAR, (GIVEN,)), "takes 0 positional arguments"),
        (5, "not callable"),
    ],
)
@pytest.mark.parametrize("target", ["tosa-fp", "xnnpack-int8"])
def test_what_is_wrong_with_one_case_is_the_verdict_of_its_cell(build: Any, said: str, target: str) -> None:
    case = Case("some-case", "tests", "gives what cannot be used", build)
    result = export(case, target).result
    assert isinstance(result, Failure)
    assert said in result.message
    cell = Cell(target, "some-case")
    artifact = Artifact(result, ())
    judged = verdict.objection(cell, [outcome(artifact, cell)])
    assert result.stage != "model" or (judged is not None and judged.name == "failed")


def test_a_program_that_the_runtime_refuses_has_the_runtimes_words(capfd: pytest.CaptureFixture[str]) -> None:
    """The runtime raises a number, and writes why to stderr."""
    print("[before.cpp:1] the export", file=sys.stderr)
    artifact = export(ZOO["one-channel-channels-last"], "xnnpack-fp32")
    assert isinstance(artifact.result, Failure)
    raised, _, said = artifact.result.message.partition("; ")
    assert raised == "Failed to execute method forward, error: 0x10"
    assert (
        said == "Attempted to resize a static tensor. Expected shape (1, 5, 7, 5), but received (1, 5, 1, 5)."
    )


def test_a_delegate_that_is_not_what_it_declares_is_a_program_that_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Releases lose output slots (issue #18866), and give outputs in another order than the graph has them."""
    run = numerics.run_model
    monkeypatch.setattr(numerics, "run_model", lambda *given: [output[None] for output in run(*given)])
    artifact = export(ZOO["linear"], "tosa-fp")
    assert isinstance(artifact.result, Failure)
    assert (artifact.result.stage, artifact.result.type) == ("run", "RuntimeError")
    assert re.match(r"a delegate has 3 dimensions where the program has 2", artifact.result.message)
    monkeypatch.setattr(numerics, "run_model", lambda *given: run(*given) * 2)
    artifact = export(ZOO["linear"], "tosa-fp")
    assert isinstance(artifact.result, Failure)
    assert artifact.result.message.startswith("a delegate gives 1 tensors where there are 2")


@pytest.mark.slow
def test_delegates_in_another_order_that_fail_alike_at_different_nodes_are_one_failure() -> None:
    """Without the patch partition-order; on 1.4.1 and 1.5.1 a pad by less than nothing does not lower."""
    cell = Cell("tosa-fp", "cropped")
    settings = Settings(default_interpreter(), ("tests.support.zoo_cropped",), (), 2, 120.0)
    with Sweep([cell], variations((3, 4)), settings) as sweep:
        made = sweep.outcomes(cell)
    failures = [outcome.result.result for outcome in made if isinstance(outcome.result, Artifact)]
    one, other = (failure for failure in failures if isinstance(failure, Failure))
    assert one.message != other.message
    assert ("in crop" in one.message) != ("in crop" in other.message)
    assert "^" not in one.message
    for outcomes in (made, made[::-1]):
        assert verdict.objection(cell, outcomes) is None
        agreed = Exports(outcomes).agreed.result
        assert isinstance(agreed, Failure)
        assert (agreed.stage, agreed.pass_name) == ("lower", "RewritePadPass")
        assert agreed.message == "Expected padding values to be non-negative, got 1 and -1"
