"""What an export makes on each target in the installed release, and how its failures are described."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import PathDistribution, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from executorch.backends.arm._passes.replace_inf_and_limit_values_pass import ReplaceInfAndLimitValuesPass
from torch._higher_order_ops.while_loop import while_loop
from torchao.quantization.pt2e import allow_exported_model_train_eval

from executorch_goldens import releases
from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered, Outcome, Tensor
from executorch_goldens.decode import Schemas, decode
from executorch_goldens.exporting import kernels, tosa_validation
from executorch_goldens.exporting.blame import OwnError, handed_on, own_error
from executorch_goldens.exporting.data import Data, Example, example_of
from executorch_goldens.exporting.export import export, failure, normalise
from executorch_goldens.exporting.given import Given
from executorch_goldens.exporting.numerics import loading
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.programs import without_meaning
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.judging import verdict
from executorch_goldens.judging.comparison import compare, numerics_line
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.programs.running import RUNNER
from executorch_goldens.registry import SAMPLES, Case, load
from executorch_goldens.targets import TARGETS
from tests import GOLDENS

ZOO = load(("models",))
RELEASE = releases.load().release(version("executorch"))

#: A payload of int8, in the fixtures of the decoder; the release whose tools read it is the default.
TOSA = Path(__file__).parent / "decode" / "fixtures" / "1.5.1" / "tosa-int-0.tosa"

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
        assert (np.abs(actual.array() - expected.array()) <= made.tolerance(sample, 0)).all()


def test_folded_constants_are_noted_where_every_output_is_one() -> None:
    made = lowered(export(ZOO["cat-h-h"], "tosa-int"))
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


def test_what_lowering_writes_to_the_model_that_it_is_given_is_told_with_the_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ExecuTorch 1.1.0 does, before pytorch/executorch#17901."""
    assert lowered(export(MASKED, "tosa-int")).altered == ()
    into_a_copy = ReplaceInfAndLimitValuesPass.call

    def in_place(self: Any, graph_module: torch.fx.GraphModule) -> Any:
        for _, buffer in graph_module.named_buffers():
            buffer[buffer == float("-inf")] = -255
        return into_a_copy(self, graph_module)

    monkeypatch.setattr(ReplaceInfAndLimitValuesPass, "call", in_place)
    artifact = export(MASKED, "tosa-int")
    (altered,) = lowered(artifact).altered
    assert (altered.name, altered.writer) == ("mask", "ReplaceInfAndLimitValuesPass")
    assert altered.before.array().min() == float("-inf")
    assert altered.after.array().min() == -255
    cell = Cell("tosa-int", "masked")
    found = compare(cell, [Outcome(cell, "seed0-heap0", artifact, 0.0, 0.0)], None, RELEASE).verdict
    assert (found.name, found.divergence and found.divergence.name) == ("corrupt", altered.writer)
    assert (
        found.reason
        == "lowering changed mask of the model that it was given, in ReplaceInfAndLimitValuesPass"
    )
    assert "  mask float32[4, 4]: 6 of 16 values differ, max inf" in found.detail[0]


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
    published = lowered(export(ZOO["conv2d-depthwise-scaled"], "tosa-int"))
    assert [(each.name, each.writer) for each in published.altered] == [
        ("pointwise.weight", "FoldScalarMulIntoConvPass"),
        ("pointwise.bias", "FoldScalarMulIntoConvPass"),
    ]


# Samples


class Acosh(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.acosh(x)


class Product(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x + y * z


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * scale, scale + 1.0


class Widened(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32) * 2.0


class Doubling(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2.0) + 1.0


class Tripling(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.mul_(3.0)
        return x + y


class Doubled(torch.nn.Module):
    """Doubles until it is large: never, if it is nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def is_small(x: torch.Tensor) -> torch.Tensor:
            return x.abs().sum() < 100.0

        return while_loop(is_small, lambda x: (x * 2.0,), (x,))[0]


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, (rows, columns), torch.tensor(1.0))


class Median(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2.0).median(dim=1).values


def exported(module: torch.nn.Module, *inputs: torch.Tensor, target: str = "tosa-fp") -> Artifact:
    def build(data: Data) -> Example:
        return Example(module, inputs, fill=False)

    return export(Case("some-case", "tests", "something", build), target)


def objection(artifact: Artifact) -> Verdict | None:
    cell = Cell("tosa-fp", "some-case")
    return verdict.objection(cell, [Outcome(cell, "seed0-heap0", artifact, 1.0, 1.0)])


DATA = Data("export-test")


def test_a_sample_that_the_model_has_no_meaning_for_is_not_judged_and_the_golden_says_so() -> None:
    # acosh(0) is no number: the reference model calls it unpredictable.
    artifact = exported(Acosh(), DATA.tensor("x", 2, 9).abs() + 1.5)
    made = lowered(artifact)
    assert [sample.name for sample in made.samples] == ["example", "extremes", "drawn"]
    assert made.unjudged == (("zeros", "eager is not finite"),)
    assert objection(artifact) is None
    assert numerics_line(artifact).endswith("; not judged on zeros: eager is not finite")


class Shifted(torch.nn.Module):
    def forward(self, x: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (x << (one + other)) + 1


class Root(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0.5, (x - 0.5).pow(0.5), x)


def test_a_sample_on_which_torch_leaves_open_what_comes_out_is_not_judged() -> None:
    one = torch.tensor([20, 1, 20, 2, 20, 3], dtype=torch.int32)
    artifact = exported(Shifted(), torch.arange(6, dtype=torch.int32), one, one.flip(0), target="tosa-int")
    made = lowered(artifact)
    why = "eager is undefined: aten.__lshift__.Tensor shifts by bits that an integer of 32 does not have"
    assert ("extremes", why) in made.unjudged
    assert "example" in {sample.name for sample in made.samples}
    assert objection(artifact) is None
    assert why in numerics_line(artifact)


def test_a_program_that_no_sample_can_be_judged_on_is_not_run_and_says_why() -> None:
    shifts = torch.full((6,), 40, dtype=torch.int32)
    artifact = exported(Shifted(), torch.arange(6, dtype=torch.int32), shifts, shifts, target="tosa-int")
    made = lowered(artifact)
    assert not made.samples
    assert made.not_run.startswith("eager is undefined: aten.__lshift__")


def test_a_sample_that_leaves_the_domain_of_an_operator_is_not_judged_where_tosa_leaves_it_open() -> None:
    artifact = exported(Root(), DATA.tensor("x", 2, 9).abs() + 0.5)
    made = lowered(artifact)
    (why,) = {why for _, why in made.unjudged}
    assert why.startswith("TOSA leaves open what comes out: aten.pow")
    assert [sample.name for sample in made.samples] == ["example", "extremes", "drawn"]
    assert objection(artifact) is None


def test_what_lowering_alone_leaves_open_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise RuntimeError("the TOSA reference model says GraphStatus.TOSA_UNPREDICTABLE")

    monkeypatch.setattr("executorch_goldens.exporting.numerics.programs.in_reference_model", run)
    found = objection(exported(torch.nn.ReLU(), DATA.tensor("x", 2, 9)))
    assert found is not None
    assert (found.name, "TOSA_UNPREDICTABLE" in found.reason) == ("corrupt", True)


def test_a_model_that_changes_its_input_gets_each_sample_as_it_is() -> None:
    x = DATA.tensor("x", 2, 9)
    before = x.clone()
    artifact = exported(Doubling(), x)
    assert objection(artifact) is None
    changed, expected = lowered(artifact).samples[0].expected
    assert np.array_equal(changed.array(), before.numpy() * 2.0)
    assert np.array_equal(expected.array(), before.numpy() * 2.0 + 1.0)
    assert torch.equal(x, before)


@pytest.mark.parametrize("target", ["tosa-fp", "xnnpack-fp32"])
def test_an_input_that_a_model_changes_is_an_output_ahead_of_the_others(target: str) -> None:
    artifact = exported(Tripling(), DATA.tensor("x", 2, 9), DATA.tensor("y", 2, 9), target=target)
    assert objection(artifact) is None
    made = lowered(artifact)
    (changed, _), (given, _) = made.samples[0].expected, made.samples[0].outputs
    assert np.array_equal(changed.array(), 3.0 * DATA.tensor("y", 2, 9).numpy())
    off = Tensor.of(given.array() + 1.0)
    first, *others = made.samples
    wrong = replace(first, outputs=(off, *first.outputs[1:]))
    found = objection(replace(artifact, result=replace(made, samples=(wrong, *others))))
    assert found is not None
    assert found.reason.startswith("output 0")


def test_a_sample_on_which_the_model_raises_is_not_judged() -> None:
    # Of a mask without a true value there are no rows for two columns.
    mask = torch.tensor([True, False, True])
    artifact = exported(Chosen(), DATA.tensor("x", 3, 4), mask, torch.tensor([0, 2]))
    made = artifact.result
    assert isinstance(made, Lowered), made
    assert ("zeros", "eager raises IndexError") in made.unjudged
    assert "example" in {sample.name for sample in made.samples}


def test_a_sample_on_which_the_model_does_not_end_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    # Beside this the example's time counts, a hundred times: a loop is compiled, once for each state of torch.
    monkeypatch.setattr("executorch_goldens.exporting.export.ENDLESS", 0.5)
    with torch.no_grad(), Lowering.named("tosa-fp+cf").eager():
        Doubled()(DATA.tensor("x", 2, 9))
    artifact = exported(Doubled(), DATA.tensor("x", 2, 9), target="tosa-fp+cf")
    made = lowered(artifact)
    assert [sample.name for sample in made.samples] == ["example", "extremes", "drawn"]
    assert made.unjudged == (("zeros", "eager does not end"),)
    assert numerics_line(artifact).endswith("; not judged on zeros: eager does not end")


def test_a_program_that_the_runtime_has_no_kernel_for_is_not_run_and_the_golden_says_so() -> None:
    artifact = exported(Median(), DATA.tensor("x", 2, 9), target="xnnpack-fp32")
    made = lowered(artifact)
    assert made.not_run == "the runtime has no kernel for aten::median.dim_values"
    assert not made.samples
    assert objection(artifact) is None
    not_run = "not run: the runtime has no kernel for aten::median.dim_values"
    assert numerics_line(artifact) == not_run
    cell = Cell("xnnpack-fp32", "some-case")
    outcomes = [Outcome(cell, "seed0-heap0", artifact, 0.0, 0.0)]
    assert compare(cell, outcomes, None, RELEASE).verdict.reason.endswith(f"; {not_run}")
    # Nor is what is known to be wrong said to be right.
    release = replace(RELEASE, known={str(cell): releases.KnownDefect("corrupt", "wrong where it is run")})
    judged = compare(cell, outcomes, None, release).verdict
    assert (judged.name, judged.reason, judged.known) == ("corrupt", "wrong where it is run", True)
    assert judged.detail == (not_run,)


def test_inputs_that_are_one_tensor_are_one_in_every_sample() -> None:
    x = DATA.tensor("x", 3, 6)
    artifact = exported(Product(), x, x, x)
    assert [sample.name for sample in lowered(artifact).samples] == list(SAMPLES)
    assert objection(artifact) is None


def test_a_tensor_without_dimensions_crosses_the_border_of_a_delegate() -> None:
    artifact = exported(Scaled(), DATA.tensor("x", 2, 9), torch.tensor(0.5))
    made = lowered(artifact)
    assert len(made.delegates) == 1
    assert made.samples[0].outputs[1].shape == ()
    assert objection(artifact) is None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_a_program_is_run_on_inputs_of_float8(dtype: torch.dtype) -> None:
    artifact = exported(Widened(), DATA.tensor("x", 2, 9).to(dtype))
    assert [sample.name for sample in lowered(artifact).samples] == list(SAMPLES)
    assert objection(artifact) is None


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({"example": [1.0, 2.0], "zeros": [np.nan, 2.0]}, ("zeros",)),
        ({"example": [1.0, 2.0], "zeros": [1.0, np.inf], "drawn": [0.0, 0.0]}, ("zeros",)),
        ({"example": [1.0, np.inf], "zeros": [1.0, np.nan]}, ()),
        ({"example": [1.0, np.inf], "zeros": [np.nan, 1.0]}, ("zeros",)),
        ({"example": [1.0, 2.0], "zeros": [np.nan]}, ("zeros",)),
        ({"example": [np.nan, 2.0], "zeros": [np.nan]}, ()),
        ({}, ()),
    ],
)
def test_a_sample_has_no_meaning_where_it_is_not_finite_and_the_example_is(
    outputs: dict[str, list[float]], expected: tuple[str, ...]
) -> None:
    given = {name: (Tensor.of(np.float32(values)),) for name, values in outputs.items()}
    assert without_meaning(given) == expected


# Failures


# What tosa-opt says of payloads


def test_every_tosa_payload_is_checked_against_its_specification(linear: tuple[str, Lowered]) -> None:
    target, made = linear
    if not target.startswith("tosa"):
        assert made.validation is None
        return
    assert made.validation is not None
    assert made.validation.summary() == f"by tosa-opt of tosa-tools {RELEASE.pins['tosa-tools']}"
    assert (made.validation.invalid, made.validation.unread) == ((), ())


@pytest.mark.parametrize(
    ("case", "target", "other", "said"),
    [
        ("linear", "tosa-int", "TOSA-1.0+FP", "'tosa.conv2d' op illegal: requires"),
        ("linear", "tosa-fp", "TOSA-1.0+INT", "'tosa.conv2d' op illegal: requires"),
        ("linear", "tosa-int16", "TOSA-1.0+INT", "'tosa.conv2d' op illegal: requires"),
        ("linear", "tosa-bf16", "TOSA-1.0+FP", "'tosa.conv2d' op illegal: requires"),
    ],
)
def test_a_payload_under_a_profile_that_it_is_not_of_is_corrupt(
    monkeypatch: pytest.MonkeyPatch, case: str, target: str, other: str, said: str
) -> None:
    monkeypatch.setattr(tosa_validation, "specification_of", lambda module: other)
    artifact = export(ZOO[case], target)
    verdict = objection(artifact)
    assert verdict is not None
    assert verdict.name == "corrupt"
    assert verdict.reason.startswith(f"invalid {other} in lowered_module_0: ")
    assert said in "\n".join((verdict.reason, *verdict.detail))


@pytest.mark.parametrize(
    ("payload", "specification", "why"),
    [
        (b"nothing", "TOSA-1.0+INT", "tosa-opt cannot read it: |tosa-opt died of SIG"),
        (b"", "TOSA-1.0+INT", "tosa-opt cannot read it: |tosa-opt died of SIG"),
        (None, "TOSA-1.0+INT+something", "tosa-opt cannot read it: .*something"),
        (None, "TOSA-9.0+INT", "tosa-opt cannot read it: .*9.0"),
    ],
)
def test_a_payload_that_cannot_be_checked_is_not_validated_and_said_to_be(
    payload: bytes | None, specification: str, why: str
) -> None:
    refused, unread = tosa_validation.checked(
        TOSA.read_bytes() if payload is None else payload, specification
    )
    assert refused == ()
    assert re.match(why, unread)
    assert tosa_validation.checked(TOSA.read_bytes(), "TOSA-1.0+INT") == ((), "")


def test_a_tosa_opt_that_cannot_be_run_is_said_and_fails_no_lowering(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where its loader is another machine's, or it is a script whose Python is elsewhere."""
    tool = tmp_path / "tosa-opt"
    tool.write_text("#!/no/such/python\n")
    tool.chmod(0o755)
    monkeypatch.setattr(PathDistribution, "locate_file", lambda *_: tool)
    refused, why = tosa_validation.checked(TOSA.read_bytes(), "TOSA-1.0+INT")
    assert refused == ()
    assert why == f"{tool} cannot be run: No such file or directory"


def test_a_payload_of_tosa_1_0_that_leaves_sizes_open_is_not_validated() -> None:
    payload = (TOSA.parent / "tosa-shape-0.tosa").read_bytes()
    assert tosa_validation.checked(payload, "TOSA-1.1+FP+shape") == ((), "")
    open_sizes = (
        "error: 'tosa.clamp' op failed level check: operand shape dimension cannot be dynamic when targeting"
    )
    other = "error: 'tosa.clamp' op illegal: requires [pro_int]"
    assert tosa_validation.verdict(1, open_sizes) == (
        (),
        "it leaves sizes open, and TOSA 1.0 has no form for that",
    )
    assert tosa_validation.verdict(1, f"{open_sizes}\n{other}") == (
        ("'tosa.clamp' op illegal: requires [pro_int]",),
        "",
    )


def test_what_could_not_be_checked_is_in_the_verdict_and_in_the_golden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tosa_validation, "specification_of", lambda module: "TOSA-1.0+INT+something")
    artifact = export(ZOO["linear"], "tosa-int")
    outcome = Outcome(Cell("tosa-int", "linear"), "seed0-heap0", artifact, 1.0, 1.0)
    compared = compare(outcome.cell, [outcome], None, RELEASE)
    assert "not validated: lowered_module_0: tosa-opt cannot read it" in compared.verdict.reason
    assert compared.texts is not None
    assert "\nvalidated: not validated: lowered_module_0: " in compared.texts["manifest.txt"]


# How a program is loaded


def test_a_program_that_gives_something_else_from_a_file_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a runtime that unmaps what it still reads."""
    assert lowered(export(ZOO["linear"], "xnnpack-fp32")).loads == ()
    way = "from a file that is mapped into memory, as a module"

    def off_by_a_bit(path: str, steps: numerics.Steps) -> list[Any]:
        (output,) = loading.run_module(path, steps)
        return [torch.nextafter(output, torch.tensor(9.0))]

    def dying(path: str, steps: numerics.Steps) -> list[Any]:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    def raising(path: str, steps: numerics.Steps) -> list[Any]:
        raise RuntimeError("not this way")

    for run, said in (
        (
            off_by_a_bit,
            "the program gives something else than from a buffer: output 0 (example) float32[3, 8]: 24 of 24",
        ),
        (dying, "the program does not run: the process that looked into it died of SIGSEGV"),
        (raising, "the program does not run: RuntimeError: not this way"),
    ):
        monkeypatch.setattr(loading, "WAYS", {way: run})
        judged = objection(export(ZOO["linear"], "xnnpack-fp32"))
        assert judged is not None
        assert judged.name == "corrupt"
        assert judged.reason.startswith(f"loaded {way}, {said}")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is mapped")
@pytest.mark.parametrize("load", ["_load_for_executorch", "_load_program"])
def test_the_runtime_maps_a_file_in_both_of_its_interfaces(tmp_path: Path, load: str) -> None:
    """Where a release reads it otherwise, `loading.WAYS` lacks a way."""
    from executorch.extension.pybindings import portable_lib

    file = tmp_path / "linear.pte"
    file.write_bytes(lowered(export(ZOO["linear"], "xnnpack-fp32")).pte)
    loaded = getattr(portable_lib, load)(str(file))
    if load == "_load_for_executorch":
        # A module is read when its method is.
        loaded.run_method("forward", example_of(ZOO["linear"]).inputs)
    assert str(file) in Path("/proc/self/maps").read_text()


def test_every_process_has_the_kernels_of_the_release() -> None:
    names = set(kernels.load())
    assert {"quantized_decomposed::quantize_per_tensor.out", "llama::update_cache.out"} <= names
    assert re.fullmatch(rf"{len(kernels.load())} operators sha256 [0-9a-f]{{64}}", kernels.summary())
    assert export(ZOO["linear"], "xnnpack-fp32").kernels == kernels.summary()
    # What thaws programs is a process of its own, which has nothing of this project.
    code = (
        "import importlib.util as i, sys; spec = i.spec_from_file_location('runner', sys.argv[1]); "
        "runner = i.module_from_spec(spec); spec.loader.exec_module(runner); runner.load('executorch'); "
        "from executorch.extension.pybindings import portable_lib; print(len(portable_lib._get_operator_names()))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", code, RUNNER], capture_output=True, text=True, check=True
    )
    assert run.stdout.split()[-1] == str(len(kernels.load()))


# Outputs that are no tensors, modules that are exported


class Several(torch.nn.Module):
    """Tensors, numbers, sizes and None, nested."""

    def forward(self, x: torch.Tensor) -> Any:
        return {"x": x + 1, "rest": [None, 3, (True, 0.5, x.shape[0]), x * 2]}


@pytest.mark.parametrize("target", ["tosa-int", "xnnpack-int8"])
def test_outputs_that_are_no_tensors_are_compared_as_what_they_are(target: str) -> None:
    made = lowered(exported(Several(), torch.ones(4, 3), target=target))
    for sample in made.samples:
        assert [each.kind for each in sample.outputs] == ["", "None", "int", "bool", "float", "int", ""]
        assert [each.array().tolist() for each in sample.outputs[1:6]] == [[], 3, True, 0.5, 4]
    assert objection(Artifact(made, (), 0.0)) is None
    (example, *others) = made.samples
    for number, kind, wrong in ((2, "", 3), (2, "int", 4), (3, "int", 1), (1, "int", 0)):
        outputs = list(example.outputs)
        outputs[number] = Tensor.of(np.array(wrong), kind)
        altered = replace(made, samples=(replace(example, outputs=tuple(outputs)), *others))
        judged = objection(Artifact(altered, (), 0.0))
        assert judged is not None
        assert judged.reason.startswith(f"output {number}")


def test_a_size_that_follows_an_input_is_an_output() -> None:
    def build(data: Data) -> Example:
        rows = torch.export.Dim("rows", min=2, max=8)
        return Example(Several(), (data.tensor("x", 4, 3),), fill=False, dynamic_shapes=({0: rows},))

    made = lowered(export(Case("sizes", "tests", "something", build), "xnnpack-fp32"))
    sizes = {sample.name: sample.outputs[5].array().item() for sample in made.samples}
    assert (sizes["example"], sizes["least"], sizes["largest"]) == (4, 2, 8)
    assert objection(Artifact(made, (), 0.0)) is None


def test_an_output_that_is_neither_is_refused_with_what_can_be() -> None:
    class Words(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x + 1, "words"

    judged = objection(exported(Words(), torch.ones(2)))
    assert judged is not None
    assert "output 1 is a str: let the model return tensors, numbers or None" in judged.reason


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


def test_an_input_beyond_what_memory_was_planned_for_says_to_declare_a_bound() -> None:
    class Rows(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, 0) + 1

    def build(data: Data) -> Example:
        return Example(Rows(), (data.tensor("x", 4, 3),), dynamic_shapes=({0: torch.export.Dim("rows")},))

    judged = objection(export(Case("rows", "tests", "something", build), "xnnpack-fp32"))
    assert judged is not None
    assert judged.name == "corrupt"
    assert "Attempted to resize a bounded tensor" in judged.reason
    assert judged.reason.endswith(
        "dimension 0 of input 0 (rows), which has no bound: declare max= for it in dynamic_shapes"
    )


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
        ("export", "xnnpack-fp32", "executorch_goldens.exporting.export.torch.export.export"),
        ("quantize", "xnnpack-int8", "executorch_goldens.exporting.export.prepare_pt2e"),
        ("lower", "xnnpack-fp32", "executorch_goldens.exporting.export.to_edge_transform_and_lower"),
        ("emit", "xnnpack-fp32", "executorch.exir.EdgeProgramManager.to_executorch"),
        ("run", "xnnpack-fp32", "executorch_goldens.exporting.export.numerics.in_runtime"),
        ("run", "tosa-fp", "executorch_goldens.exporting.export.numerics.in_reference_model"),
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
        ("FakeTensor(graph_id=140737488355328, u0)", "FakeTensor(graph_id=…, u0)"),
        ("      'seq_nr' = 301\n", "'seq_nr' = …"),
        ("  trailing  \n\n lines \n", "trailing\n\n lines"),
        ("shape (1, 2) of aten.add_1 at 0x2 and a/b", "shape (1, 2) of aten.add_1 at 0x2 and a/b"),
        ("only int8/int16/int32, see backends/arm/x.py", "only int8/int16/int32, see backends/arm/x.py"),
        ("'/opt/env/x.py':/opt/env/y.py", "'…/x.py':…/y.py"),
        ("path=/opt/env/x.py (/opt/env/y.py) [/opt/env/z.py]", "path=…/x.py (…/y.py) […/z.py]"),
        ("/opt/env/x.so: not found\n/opt/env/y.so", "…/x.so: not found\n…/y.so"),
        ("missing {'b::c', 'a::d'} of {'b': 2, 'a': 1}", "missing {'a::d', 'b::c'} of {'b': 2, 'a': 1}"),
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


def test_an_exception_of_the_harness_is_no_verdict_and_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `Tensor.permute` of a tensor that has not as many dimensions: native code that the harness calls wrongly."""
    monkeypatch.setattr(numerics, "_dim_order", lambda node: (0, 1, 2, 3, 4))
    with pytest.raises(OwnError) as raised:
        export(ZOO["linear"], "tosa-fp")
    assert raised.value.stage == "run"
    assert raised.value.error.startswith("RuntimeError: permute")
    assert re.search(r"exporting/numerics/programs.py, line \d+, in ", raised.value.where)
    assert str(raised.value).startswith("the harness itself failed (stage run): RuntimeError: permute")
    assert "\n" not in str(raised.value)


NUMBERS = itertools.count()
OWN = "def call(*others):\n    return others[0](*others[1:]) if others else {}['key']"


def function(name: str, code: str = OWN) -> Callable[..., object]:
    """Return a function that raises, or calls the next one, as if it stood in the module named."""
    namespace: dict[str, Any] = {"__name__": name}
    # Code of one file and line is equal, and would be handed on wherever one is.
    exec(compile(code, f"{name}-{next(NUMBERS)}.py", "exec"), namespace)
    made: Callable[..., object] = namespace["call"]
    return made


@pytest.mark.parametrize(
    ("modules", "own"),
    [
        (["executorch.exir"], False),
        (["executorch_goldens.exporting.numerics.programs"], True),
        (["torch.fx", "executorch_goldens.exporting.trace"], True),
        (["executorch_goldens.exporting.export", "executorch.exir"], False),
        (["executorch_goldens.exporting.export", "models.cat"], False),
        (["models.cat", "numpy.linalg"], False),
        (["executorch_goldens.exporting.numerics.programs", "numpy.linalg"], True),
        (["executorch_goldens.patches.partition_order"], False),
        (["executorch_goldens.patches.shortcuts.node_history"], False),
        (["harnesses.own"], False),
    ],
    ids=str,
)
def test_the_innermost_frame_says_whose_an_exception_is(modules: list[str], own: bool) -> None:
    first, *others = map(function, modules)
    with pytest.raises(KeyError) as raised:
        first(*others)
    found = own_error("lower", raised.value)
    assert (found is not None) == own
    if found is not None:
        assert found.error == "KeyError: 'key'"


@pytest.mark.parametrize(
    "modules",
    [["executorch_goldens.exporting.numerics.programs"], ["models.cat", "executorch_goldens.exporting.data"]],
    ids=" ".join,
)
def test_what_native_code_raises_is_handed_on(modules: list[str]) -> None:
    *others, last = map(function, modules)
    first, *others = [*others, handed_on(last), function("executorch_goldens.exporting.data")]
    with pytest.raises(KeyError) as raised:
        first(*others)
    assert own_error("run", raised.value) is None


@pytest.mark.parametrize("error", ["MemoryError()", "OSError(28, 'No space left on device')"])
def test_what_the_machine_has_too_little_of_is_no_defect_of_the_harness(error: str) -> None:
    with pytest.raises((MemoryError, OSError)) as raised:
        function("executorch_goldens.exporting.numerics.programs", f"def call(): raise {error}")()
    assert own_error("run", raised.value) is None


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
        (lambda data: Example(None, (GIVEN,)), "no torch.nn.Module but None: what changes a model in place"),
        (lambda data: Example(None, (GIVEN,), fill=False), "no torch.nn.Module but None"),
        (lambda data: Example(torch.nn.Linear, (GIVEN,)), "no torch.nn.Module but a type"),
        (lambda data: Example(LINEAR, GIVEN), "no tuple but a Tensor: write (input,)"),
        (lambda data: Example(LINEAR, [GIVEN]), "no tuple but a list"),
        (lambda data: Example(LINEAR, (None,)), "input 0 of case 'some-case' is no tensor but a NoneType"),
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
    artifact = Artifact(result, (), 1.0)
    judged = verdict.objection(cell, [Outcome(cell, "seed0-heap0", artifact, 1.0, 1.0)])
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
    assert re.match(r"a delegate has 3 dimensions where \w+ has 2", artifact.result.message)
    monkeypatch.setattr(numerics, "run_model", lambda *given: run(*given) * 2)
    artifact = export(ZOO["linear"], "tosa-fp")
    assert isinstance(artifact.result, Failure)
    assert artifact.result.message.startswith("a delegate gives 1 tensors where there are 2")


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
