"""What an export makes on each target in the installed release, and how its failures are described."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import numpy as np
import pytest

from harness.artifact import Artifact, Failure, Lowered
from harness.decode import Schemas, decode
from harness.exporting.data import Data, Example
from harness.exporting.export import export, failure, normalise
from harness.registry import SAMPLES, Case, load
from harness.targets import TARGETS
from tests import GOLDENS

ZOO = load(("models",))

BACKENDS = {"tosa": "TOSABackend", "xnnpack": "XnnpackBackend"}

pytestmark = pytest.mark.usefixtures("own_flatc")


def lowered(artifact: Artifact) -> Lowered:
    assert isinstance(artifact.result, Lowered), artifact.result
    return artifact.result


@pytest.fixture(scope="module", params=sorted(TARGETS))
def linear(request: pytest.FixtureRequest, own_flatc: None) -> tuple[str, Lowered]:
    """A target and what it makes of a linear layer."""
    return request.param, lowered(export(ZOO["linear"], request.param))


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
        tolerance = made.tolerance(sample, 0)
        np.testing.assert_allclose(actual.array(), expected.array(), rtol=0, atol=tolerance)


def test_folded_constants_are_noted_where_every_output_is_one() -> None:
    made = lowered(export(ZOO["cat-h-h"], "tosa-int"))
    (codes,) = made.codes
    assert (codes.dtype, codes.shape) == ("int8", (1, 2, 4, 5))
    assert codes.array()[0, 0, 0].tolist() == [-102, -51, 0, 51, 102]


def test_patches_are_noted_in_the_artifact() -> None:
    assert export(ZOO["linear"], "xnnpack-fp32", ["some-patch"]).patches == ("some-patch",)


# Failures


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


def test_a_real_failure_names_stage_pass_and_function(artifacts: Mapping[str, tuple[Artifact, ...]]) -> None:
    for artifact in artifacts["does-not-lower"]:
        result = artifact.result
        assert isinstance(result, Failure)
        assert (result.stage, result.type, result.pass_name) == ("emit", "RuntimeError", "ToOutVarPass")
        assert result.function is not None
        assert result.function.startswith("executorch.exir.passes")
        assert "zoo::opaque" in result.message


@pytest.mark.parametrize(
    ("stage", "target", "function"),
    [
        ("export", "xnnpack-fp32", "harness.exporting.export.torch.export.export"),
        ("quantize", "xnnpack-int8", "harness.exporting.export.prepare_pt2e"),
        ("lower", "xnnpack-fp32", "harness.exporting.export.to_edge_transform_and_lower"),
        ("emit", "xnnpack-fp32", "executorch.exir.EdgeProgramManager.to_executorch"),
        ("run", "xnnpack-fp32", "harness.exporting.export.numerics.in_runtime"),
        ("run", "tosa-fp", "harness.exporting.export.numerics.in_reference_model"),
    ],
)
def test_what_raises_is_a_failure_of_its_stage(
    monkeypatch: pytest.MonkeyPatch, stage: str, target: str, function: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise LookupError(stage)

    monkeypatch.setattr(function, stop)
    artifact = export(ZOO["linear"], target)
    assert isinstance(artifact.result, Failure)
    assert (artifact.result.stage, artifact.result.message) == (stage, stage)


@pytest.mark.parametrize(
    ("message", "normalised"),
    [
        ('File "/home/a b/models/cat.py", line 3, in forward', 'File "…/cat.py", line …, in forward'),
        ('File "<eval_with_key>.3425", line 12', 'File "<eval_with_key>", line …'),
        ("<Pass object at 0x7f0123456789>", "<Pass object at 0x…>"),
        ("cannot open /opt/env/lib/python3.11/x.py:12", "cannot open …/x.py:…"),
        ('File "/opt/env/x.py", line 345, in f', 'File "…/x.py", line …, in f'),
        ("node id=140737488355328", "node id=…"),
        ("  trailing  \n\n lines \n", "trailing\n\n lines"),
        ("shape (1, 2) of aten.add_1 at 0x2 and a/b", "shape (1, 2) of aten.add_1 at 0x2 and a/b"),
        ("only int8/int16/int32, see backends/arm/x.py", "only int8/int16/int32, see backends/arm/x.py"),
        ("'/opt/env/x.py':/opt/env/y.py", "'…/x.py':…/y.py"),
        ("path=/opt/env/x.py (/opt/env/y.py) [/opt/env/z.py]", "path=…/x.py (…/y.py) […/z.py]"),
        ("/opt/env/x.so: not found\n/opt/env/y.so", "…/x.so: not found\n…/y.so"),
        ("see https://github.com/pytorch/tlparse?tab=readme", "see https:/…/tlparse?tab=readme"),
    ],
)
def test_messages_lose_what_varies_and_nothing_else(message: str, normalised: str) -> None:
    assert normalise(message) == normalised


def test_the_messages_of_committed_goldens_are_normalised_as_they_were() -> None:
    recorded = [path.read_text(encoding="utf-8") for path in GOLDENS.glob("*/*/*/failure.txt")]
    assert len(recorded) > 100
    for text in recorded:
        # Lines without anything are indented as the rest of their field.
        assert normalise(text) == "\n".join(line.rstrip() for line in text.strip().splitlines())


def raised_by(code: str, module: str) -> BaseException:
    """Return what `code` raises when it runs as the module named."""
    try:
        exec(code, {"__name__": module})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


CHAIN = """
class PassBase:
    pass

class FoldPass(PassBase):
    def call(self):
        try:
            {}["/opt/env/lib/x.py:7"]
        except KeyError as error:
            raise ValueError(f"no entry of {self} in /opt/env/lib/x.py:7") from error

class Manager:
    def run(self):
        try:
            FoldPass().call()
        except ValueError as error:
            raise RuntimeError("An error occurred when running the 'FoldPass' pass") from error

Manager().run()
"""


def test_the_first_cause_is_described_and_the_innermost_pass_named() -> None:
    found = failure("lower", raised_by(CHAIN, "executorch.backends.some"))
    assert (found.type, found.message) == ("KeyError", "'…/x.py:…'")
    assert found.pass_name == "FoldPass"
    assert found.function == "executorch.backends.some.call"
    assert "An error occurred" in found.traceback


def test_frames_outside_executorch_name_no_pass() -> None:
    found = failure("lower", raised_by(CHAIN, "somewhere.else"))
    assert found.pass_name is None
    assert found.function is None


def test_the_same_failure_has_the_same_facts_wherever_it_is_raised() -> None:
    one = failure("lower", raised_by(CHAIN, "executorch.backends.some"))
    other = failure(
        "lower", raised_by("\n\n" + CHAIN.replace("/opt/env", "/home/me"), "executorch.backends.some")
    )
    assert one.facts() == other.facts()
    for _, value in one.facts():
        assert not re.search(r"0x[0-9a-f]{6}|/opt|line \d", value)
