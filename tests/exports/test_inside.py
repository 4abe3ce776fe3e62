"""The operator that begins a departure from eager, and its message."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_goldens import Data, Example
from executorch_goldens.artifact import (
    Beginning,
    Delegate,
    Departure,
    FirstDeparture,
    Lowered,
    Sample,
    Tensor,
)
from executorch_goldens.decode import decode
from executorch_goldens.exporting import entry, program, recipe, running
from executorch_goldens.exporting.apart import ApartError, run_apart
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.inside import beginning as departure
from executorch_goldens.exporting.inside import xnnpack
from executorch_goldens.exporting.inside.beginning import AFTER, BEFORE, BEFORE_EMISSION, EMITTED
from executorch_goldens.exporting.inside.comparison import arrangements
from executorch_goldens.exporting.inside.evaluation import DelegateTensor, Opened, Values, exceeds
from executorch_goldens.exporting.inside.tosa import with_outputs
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.samples import samples_of
from executorch_goldens.exporting.program import ExportProgress, Request
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.goldens.findings import Begins, OfOutput, WrongValues, begins
from executorch_goldens.judging import rightness
from executorch_goldens.judging.rightness import judged_otherwise
from executorch_goldens.patches.guard import resolve
from executorch_goldens.settings import releases
from executorch_goldens.words import findings
from executorch_goldens.zoo.registry import Case, load
from lab.mutants.mutant import Edit, install
from tests import DATA
from tests.support.defects import DEFECTS

ZOO = load(("models",))
PAYLOADS = DATA / "payloads"


# Values inside a TOSA delegate


@pytest.mark.parametrize(
    ("name", "outputs", "all_tensors"), [("equal-buffers-1.2.0", 3, 6), ("loop-1.4.1", 1, 4)]
)
def test_every_tensor_of_a_tosa_payload_becomes_an_output_and_changes_none(
    name: str, outputs: int, all_tensors: int
) -> None:
    payload = (PAYLOADS / f"{name}.tosa").read_bytes()
    graph = decode(payload).graphs[0]
    inputs = [
        np.arange(np.prod(graph.values[name].shape or ()), dtype=np.float32).reshape(graph.values[name].shape)
        for name in graph.inputs
    ]
    changed, names = with_outputs(payload)
    assert decode(changed).graphs[0].outputs == tuple(names)
    assert names[:outputs] == list(graph.outputs)
    found = numerics.run_model(changed, inputs)
    assert len(found) == len(names) == all_tensors
    for before, now in zip(numerics.run_model(payload, inputs), found, strict=False):
        np.testing.assert_array_equal(before, now)
    assert [array.shape for array in found] == [graph.values[name].shape for name in names]


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(lambda x: x.permute(0, 2, 3, 1), id="channels last"),
        pytest.param(lambda x: x.reshape(6, 4, 5), id="dimensions joined"),
        pytest.param(
            lambda x: x.permute(0, 2, 3, 1).reshape(1, 2, 4, 5, 3), id="permuted, one dimension more"
        ),
    ],
)
def test_a_tensor_is_found_in_whatever_order_a_delegate_has_its_dimensions(
    stored: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    assert any(torch.equal(x, found) for found in arrangements(stored(x).contiguous(), x))


def test_a_tensor_of_another_dtype_or_size_is_no_arrangement() -> None:
    x = torch.arange(6).reshape(2, 3)
    assert not list(arrangements(x.to(torch.int8), x))
    assert not list(arrangements(x[:1], x))
    assert [found.dtype for found in arrangements(x.to(torch.int32), x)] == [torch.int64]


def test_what_eager_does_not_compute_as_a_number_is_not_expected() -> None:
    expected = np.array([-np.inf, np.nan, 1.0])
    assert not exceeds(expected, np.array([-3e38, 7.0, 1.0]), np.zeros(()))
    assert exceeds(expected, np.array([-np.inf, np.nan, np.nan]), np.array(1e9))
    assert exceeds(expected, np.array([-np.inf, np.nan, 2.0]), np.array([9.0, 9.0, 0.5]))


# The message

DEPARTURE = Departure(
    delegate="lowered_module_0",
    operator="CONV2D tosa_conv2d_default_2",
    node="aten.linear aten_linear_default_2",
    module="value",
    before=("aten.native_layer_norm",),
    unseen=(),
    agrees=True,
    alone=True,
    expected=Tensor.from_array(np.float32([1.0, 2.0])),
    actual=Tensor.from_array(np.float32([1.0, 2.5])),
    tolerance=Tensor.from_array(np.array(0.25)),
)


def said(where: Departure | Beginning) -> list[str]:
    one, other = Tensor.from_array(np.float32([1.0])), Tensor.from_array(np.float32([2.0]))
    samples = (Sample("extremes", (one,), (other,)),)
    begins = FirstDeparture("extremes", where)
    wrong = Lowered("", (), b"", samples, 0.0, (), begins=begins)
    found = (each for each in rightness.wrongs(wrong) if not isinstance(each, OfOutput))
    return [line for each in found for line in findings.lines(each)]


def test_the_operator_is_named_with_its_place_its_inputs_and_its_numbers() -> None:
    assert said(DEPARTURE) == [
        "begins at CONV2D tosa_conv2d_default_2 (aten.linear aten_linear_default_2 of value) in lowered_module_0, "
        "sample extremes",
        "  made from aten.native_layer_norm, which agrees with eager",
        "  its value float32[2]: 1 of 2 values differ, max 0.5, mean 0.25 (tolerance 0.25)",
        "    [1]: 2.5 where 2.0 was expected",
    ]


def place_of(where: Departure | Beginning) -> str:
    delegates = (Delegate("lowered_module_0", "TOSABackend", b""),)
    made = Lowered("", delegates, b"", (), 0.0, (), begins=FirstDeparture("extremes", where))
    return findings.place(begins(list(rightness.beginning(made))))


def test_a_place_is_named_by_types_alone_and_what_may_be_anywhere_is_none() -> None:
    assert place_of(DEPARTURE) == "CONV2D (aten.linear) in TOSABackend"
    assert place_of(msgspec.structs.replace(DEPARTURE, operator="")) == "aten.linear in TOSABackend"
    assert place_of(msgspec.structs.replace(DEPARTURE, alone=False)) == (
        "CONV2D (aten.linear) in TOSABackend, by differences that add up"
    )
    assert place_of(BEFORE) == "before the delegates"
    assert place_of(Beginning("in the state cache_1", "its first value")) == "in the state …"
    assert place_of(departure.in_plan("MemoryPlanningPass")) == "in MemoryPlanningPass"
    assert place_of(AFTER) == place_of(departure.unknown("KeyError: 'x'")) == ""
    assert [AFTER.is_outside, departure.unknown("KeyError: 'x'").is_outside] == [True, False]


def test_what_is_not_seen_and_what_adds_up_is_said() -> None:
    lines = said(
        msgspec.structs.replace(
            DEPARTURE, operator="", module="", unseen=("aten.permute_copy",), agrees=False
        )
    )
    assert lines[0] == "begins at aten.linear aten_linear_default_2 in lowered_module_0, sample extremes"
    assert lines[1].endswith("which departs already, and does not explain this value")
    assert lines[2] == "  or at one of these just before it, whose values are not seen: aten.permute_copy"
    assert said(msgspec.structs.replace(DEPARTURE, before=()))[1] == "  made from constants only"
    lines = said(msgspec.structs.replace(DEPARTURE, alone=False))
    assert lines[0].startswith("accumulates from CONV2D")
    assert lines[1].startswith("  no operator departs by itself")


def test_what_begins_in_no_delegate_is_one_line() -> None:
    assert said(Beginning("before the delegates", "so")) == [
        "where it begins (sample extremes): before the delegates: so"
    ]


# Where no delegate makes it


@dataclass(frozen=True)
class Ended:
    """An export at its end."""

    request: Request
    reached: ExportProgress

    @classmethod
    def export(cls, case: Case, target: str) -> Ended:
        request = Request(case, Lowering.named(target))
        *_, reached = recipe.stages(request)
        return cls(request, reached)

    @property
    def made(self) -> Lowered:
        assert self.reached.result is not None
        return self.reached.result

    def with_beginning(self, lowered: Lowered) -> Lowered:
        return running.with_beginning(self.request, self.reached, lowered, partial(entry.again, self.request))


@pytest.fixture(scope="module")
def linear(own_flatc: None) -> tuple[Ended, Lowered]:
    attempt = Ended.export(ZOO["linear"], "xnnpack-fp32")
    return attempt, attempt.made


def found(attempt: Ended, lowered: Lowered) -> FirstDeparture:
    begins = attempt.with_beginning(lowered).begins
    assert begins is not None
    return begins


def moved(tensor: Tensor) -> Tensor:
    return Tensor.from_array(tensor.array() + np.float32(1))


def imprecise(made: Lowered) -> Lowered:
    """Rounding may move the outputs by anything, so the verdict accepts them: only then operators are checked."""
    samples = tuple(
        replace(
            sample,
            spreads=tuple(
                Tensor.from_array(np.full(each.shape, 1e9, np.float32)) for each in sample.expected
            ),
        )
        for sample in made.samples
    )
    return replace(made, samples=samples)


def test_what_a_delegate_takes_may_be_a_parameter(linear: tuple[Ended, Lowered]) -> None:
    """A parameter that two delegates share is an input of both."""
    attempt, made = linear
    program = attempt.reached.program
    module = program.edge.methods["forward"].module
    (delegate,) = (each for each in module.children() if isinstance(each, LoweredBackendModule))
    (x,), *_ = attempt.reached.references[0].samples["example"]
    (again,) = xnnpack.run_delegate(delegate, [torch.nn.Parameter(x)])
    np.testing.assert_array_equal(again.numpy(), made.samples[0].outputs[0].array())


def test_a_program_that_is_right_begins_nowhere(linear: tuple[Ended, Lowered]) -> None:
    attempt, made = linear
    made = imprecise(made)
    assert departure.first_departing(made) is None
    judged = attempt.with_beginning(made)
    assert judged.begins is None
    assert judged.unseen == ()


def test_operators_are_not_looked_at_where_their_outputs_can_be_off_by_little(
    linear: tuple[Ended, Lowered], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, made = linear
    assert not made.moves_far()
    monkeypatch.setattr(departure, "looked_into", lambda *_: pytest.fail("each operator is looked at"))
    judged = attempt.with_beginning(made)
    assert (judged.begins, judged.unseen) == (None, None)


@pytest.mark.slow
def test_an_imprecise_program_whose_operators_are_right_is_judged_by_these(own_flatc: None) -> None:
    attempt = Ended.export(ZOO["linear"], "xnnpack-int8")
    judged = attempt.with_beginning(imprecise(attempt.made))
    assert judged.imprecision(judged.samples[0], 0) > judged.limit
    assert judged_otherwise(judged)
    assert not list(rightness.wrongs(judged))


def test_scales_that_a_delegate_computes_are_no_values_of_it(own_flatc: None) -> None:
    attempt = Ended.export(ZOO["linear"], "xnnpack-dynamic")
    assert judged_otherwise(attempt.with_beginning(imprecise(attempt.made)))


def test_what_cannot_be_looked_into_is_named_and_leaves_nothing_judged(
    linear: tuple[Ended, Lowered], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, made = linear
    monkeypatch.setattr(departure, "LOOKS", {})
    assert attempt.with_beginning(imprecise(made)).unseen == (
        ("lowered_module_0", "LookupError: no inspector for delegates of XnnpackBackend"),
    )


class Sums(torch.nn.Module):
    """A sum of three; TOSA's passes do not quantize the first."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x + y + z


def sums(last: Sequence[float], given: Sequence[float]) -> tuple[Ended, Lowered]:
    """The sum, whose first term and the first two together are calibrated from -1 to 1, run on other values as well."""

    def build(data: Data) -> Example:
        rows = ((1.0, -1.0, 0.0, 0.0), (0.0, 0.0, 0.37, -0.37), last)
        return Example(Sums(), tuple(torch.tensor(row) for row in rows))

    def more(*asked: Any, **kwargs: Any) -> dict[str, numerics.Steps]:
        return {
            **samples_of(*asked, **kwargs),
            "extremes": (tuple(torch.full((4,), value) for value in given),),
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "samples_of", more)
        attempt = Ended.export(Case("sums", "tests", "something", build, run_on=("example",)), "tosa-int")
    return attempt, attempt.made


def test_a_sum_that_is_not_cut_off_at_the_end_of_its_codes_is_told_as_that(own_flatc: None) -> None:
    attempt, made = sums((0.5, -0.5, 1.0, -1.0), (0.9, 0.37, -0.9))
    begins = attempt.with_beginning(imprecise(made)).begins
    assert isinstance(begins.where, Departure)
    assert begins.where.node.startswith("aten.add.Tensor ")
    assert begins.where.uncut
    (found,) = rightness.beginning(replace(made, begins=begins))
    assert isinstance(found, Begins)
    assert found.at.uncut


def test_a_sum_that_is_not_rounded_to_codes_is_no_departure(own_flatc: None) -> None:
    """A code of the first sum is ten of the whole one."""
    attempt, made = sums((-0.9, 0.9, -0.27, 0.27), (0.3, 0.0261, -0.3))
    (extremes,) = (sample for sample in made.samples if sample.name == "extremes")
    difference = np.abs(extremes.outputs[0].array() - extremes.expected[0].array()).max()
    assert difference > 2.0 * made.scales[0]
    assert attempt.with_beginning(imprecise(made)).begins is None


@pytest.mark.slow
def test_a_value_that_is_wrong_only_where_it_is_seen_is_no_departure(
    own_flatc: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XNNPACK's values are those of a program that was lowered to see them."""
    look = departure.LOOKS["XnnpackBackend"]

    def opened(lowered: LoweredBackendModule) -> Opened:
        run = look.opened(lowered)

        def off(inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Values]:
            outputs, values = run(inputs)
            first = next(iter(values))
            return outputs, {**values, first: [DelegateTensor("", values[first][0].value + 1.0)]}

        return off

    monkeypatch.setattr(departure, "LOOKS", {"XnnpackBackend": replace(look, opened=opened)})
    attempt = Ended.export(ZOO["self-attention"], "xnnpack-fp32")
    judged = attempt.with_beginning(imprecise(attempt.made))
    assert judged.begins is None
    assert judged.unseen is not None


@pytest.mark.slow
def test_a_delegate_is_given_its_inputs_as_they_lie_in_memory(own_flatc: None) -> None:
    attempt = Ended.export(ZOO["conv2d-grouped-dilated"], "xnnpack-int8")
    judged = attempt.with_beginning(imprecise(attempt.made))
    assert judged.begins is None
    assert judged.unseen == ()


# Numbers of different sizes in one output


class Head(torch.nn.Module):
    """Boxes in pixels and scores, joined."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return torch.cat((torch.tanh(boxes) * 640.0, torch.sigmoid(scores)), self.axis)


@pytest.mark.parametrize("axis", [1, -1])
def test_scores_that_are_inverted_beside_boxes_are_wrong(axis: int, own_flatc: None) -> None:
    def build(data: Data) -> Example:
        shapes = ((1, 4, 12), (1, 3, 12)) if axis == 1 else ((1, 12, 4), (1, 12, 3))
        return Example(Head(axis), tuple(data.tensor(str(shape), *shape) for shape in shapes))

    case = Case(f"head-{abs(axis)}", "tests", "scores beside boxes are judged", build)
    made = Ended.export(case, "tosa-bf16").made
    assert not list(rightness.wrongs(made))
    first, *others = made.samples
    outputs = np.moveaxis(first.outputs[0].array().copy(), axis, 0)
    outputs[4:] = 1.0 - outputs[4:]
    inverted = replace(first, outputs=(Tensor.from_array(np.moveaxis(outputs, 0, axis)),))
    (found, *_) = rightness.wrongs(replace(made, samples=(inverted, *others)))
    assert isinstance(found, WrongValues)
    assert (found.output, found.values.given.dtype, found.values.given.shape[0]) == (0, "float32", 1)


def test_a_graph_that_does_not_give_what_eager_gives_is_wrong_before_the_delegates(
    linear: tuple[Ended, Lowered],
) -> None:
    attempt, made = linear
    samples = tuple(replace(sample, expected=tuple(map(moved, sample.expected))) for sample in made.samples)
    assert found(attempt, replace(made, samples=samples)) == FirstDeparture("example", BEFORE)
    bare = replace(made, samples=samples, delegates=())
    assert found(attempt, bare) == FirstDeparture("example", BEFORE_EMISSION)


def test_a_program_that_does_not_give_what_its_delegates_give_is_wrong_outside_of_them(
    linear: tuple[Ended, Lowered],
) -> None:
    attempt, made = linear
    first, second, *rest = made.samples
    wrong = replace(second, outputs=tuple(map(moved, second.outputs)))
    assert found(attempt, replace(made, samples=(first, wrong, *rest))) == FirstDeparture(second.name, AFTER)
    bare = replace(made, samples=(first, wrong, *rest), delegates=())
    assert found(attempt, bare) == FirstDeparture(second.name, EMITTED), (
        "nothing is between delegates there are none of"
    )


class TwoBranches(torch.nn.Module):
    """The result of the first conditional stays where the second has its own: all five releases plan it so."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))
        second = torch.cond(x.mean() > 1, lambda x: x + 5, lambda x: x - 7, (x,))
        return first + second


def test_what_is_right_without_reuse_of_memory_begins_in_the_memory_plan(own_flatc: None) -> None:
    case = Case("branches", "tests", "", lambda _: Example(TwoBranches(), (torch.arange(6.0),), fill=False))
    attempt = Ended.export(case, "xnnpack-fp32")
    assert found(attempt, attempt.made).where == departure.in_plan("MemoryPlanningPass")


def test_what_cannot_be_looked_into_leaves_the_verdict_and_says_why(
    linear: tuple[Ended, Lowered], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, made = linear
    monkeypatch.setattr(departure, "LOOKS", {})
    samples = tuple(replace(sample, outputs=tuple(map(moved, sample.outputs))) for sample in made.samples)
    assert found(attempt, replace(made, samples=samples)).where == departure.unknown(
        "LookupError: no inspector for delegates of XnnpackBackend"
    )


def test_a_process_that_dies_or_hangs_while_it_looks_leaves_the_verdict(
    linear: tuple[Ended, Lowered], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, made = linear
    samples = tuple(replace(sample, outputs=tuple(map(moved, sample.outputs))) for sample in made.samples)
    wrong = replace(made, samples=samples)
    monkeypatch.setattr(departure, "beginning", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    said = "the process that looked into it died of SIGKILL"
    assert found(attempt, wrong) == FirstDeparture("example", departure.unknown(said))
    monkeypatch.setattr(departure, "beginning", lambda *_: time.sleep(60))
    monkeypatch.setattr("executorch_goldens.exporting.running.LOOKING", 0.1)
    assert found(attempt, wrong) == FirstDeparture(
        "example", departure.unknown("it was idle for more than 2 s")
    )
    monkeypatch.setattr(departure, "looked_into", lambda *_: time.sleep(60))
    unseen = attempt.with_beginning(imprecise(made)).unseen
    assert unseen == (("the program", "it was idle for more than 2 s"),)


def test_what_is_run_apart_is_limited_in_processor_time() -> None:
    def spin() -> None:
        while True:
            pass

    assert run_apart(lambda: time.sleep(0.5) or 1, 0.1) == 1
    # Of the wall time that it may take, 20 times as much, a busy machine gives it a part.
    with pytest.raises(ApartError, match=r"more than 0\.5 s of processor time"):
        run_apart(spin, 0.5)


def test_what_is_run_apart_comes_back_whole_and_what_it_raises_does_not() -> None:
    numbers = run_apart(lambda: [os.getpid(), *range(100_000)], 60.0)
    assert numbers[0] != os.getpid()
    assert numbers[1:] == list(range(100_000))
    with pytest.raises(ApartError, match="raises"):
        run_apart(lambda: 1 // 0, 60.0)


def test_outputs_in_another_order_are_no_departure_of_an_operator(
    own_flatc: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = departure.LOOKS["TOSABackend"]
    swapped = replace(look, run=lambda *given: look.run(*given)[::-1])
    monkeypatch.setattr(departure, "LOOKS", {"TOSABackend": swapped})
    attempt = Ended.export(ZOO["output-order"], "tosa-fp")
    made = attempt.made
    samples = tuple(replace(sample, outputs=sample.outputs[::-1]) for sample in made.samples)
    assert found(attempt, replace(made, samples=samples)).where == Beginning(
        "in lowered_module_0, which gives its outputs in a different order than its graph", "2, 1, 0"
    )


# For real: each defect is edited into the installed release

FUSE = "executorch.backends.arm._passes.fuse_constant_ops_pass:FuseConstantArgsPass._fuse_nodes"
SERIALIZE = "executorch.backends.xnnpack.operators.node_visitor:NodeVisitor.get_serialized_buffer_index"

#: A weight of the attention block's middle projection is folded, and serialized, upside down.
FOLDED = Edit(
    FUSE,
    "data = node.target(*new_args, **new_kwargs)",
    "data = node.target(*new_args, **new_kwargs)\n"
    "        if 'value' in str(node.meta.get('nn_module_stack')):\n"
    "            data = data.flip(0)",
)
SERIALIZED = Edit(
    SERIALIZE,
    "        const_val = const_val.contiguous()\n\n",
    "        const_val = const_val.contiguous()\n"
    "        if get_attr_node.name in ('p_value_weight', 'b__frozen_param2'):\n"
    "            const_val = const_val.flip(0).contiguous()\n\n",
)


@dataclass(frozen=True)
class Injected:
    """A defect, and where the harness is to say that it begins.

    Attributes
    ----------
    operator
        The beginning of `Departure.operator`.
    before
        Operators of `Departure.before`; an input of the delegate is ``input``.
    """

    cell: str
    edits: tuple[Edit, ...]
    operator: str
    node: str
    module: str
    before: tuple[str, ...]


LINEAR = "aten.linear aten_linear_default_2"
INJECTED = (
    Injected("tosa-fp/self-attention", (FOLDED,), "CONV2D ", LINEAR, "value", ("aten.native_layer_norm",)),
    Injected(
        *("tosa-int/self-attention", (FOLDED,), "CONV2D and RESCALE ", LINEAR, "value", ("aten.add.Tensor",))
    ),
    Injected("xnnpack-fp32/self-attention", (SERIALIZED,), "", LINEAR, "value", ("input",)),
    Injected("xnnpack-int8/self-attention", (SERIALIZED,), "", LINEAR, "value", ("input",)),
    # XNNPACK fuses it with the batch norm, whose value is not seen.
    Injected(
        "xnnpack-fp32/conv-bn-relu",
        DEFECTS["relu-without-its-bound"].edits,
        "",
        "aten.relu aten_relu_default",
        "",
        ("input",),
    ),
    # Its convolution has no value of its own: the activation is quantized in its place.
    Injected(
        "xnnpack-int8/conv-bn-relu",
        DEFECTS["bias-scaled-twice"].edits,
        "",
        "aten.relu aten_relu_default",
        "",
        ("input",),
    ),
    Injected(
        "tosa-fp/conv-bn-relu",
        DEFECTS["batch-norm-without-mean"].edits,
        "CONV2D ",
        "aten._native_batch_norm_legit_no_training aten__native_batch_norm_legit_no_training_default",
        "norm",
        ("input",),
    ),
    Injected(
        "tosa-int/gelu-tanh",
        DEFECTS["table-of-wrapped-codes"].edits,
        "TABLE tosa_table_default",
        "aten.gelu aten_gelu_default",
        "",
        ("input",),
    ),
)


@pytest.fixture
def injected(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, release: str) -> Injected:
    """A defect that this process has until the test ends."""
    if release != releases.load().default:
        pytest.skip("the edits are of the default release")
    defect: Injected = request.param
    for edit in defect.edits:
        function = resolve(edit.function)
        function = getattr(function, "__func__", function)
        # What is put back afterwards.
        monkeypatch.setattr(function, "__code__", function.__code__)
        install([edit])
    return defect


@pytest.mark.parametrize("injected", INJECTED, ids=lambda injected: injected.cell, indirect=True)
@pytest.mark.slow
def test_the_operator_that_begins_a_departure_is_named(injected: Injected, own_flatc: None) -> None:
    target, case = injected.cell.split("/")
    made = export(ZOO[case], target).result
    assert isinstance(made, Lowered)
    where = made.begins.where
    assert isinstance(where, Departure), where
    assert where.operator.startswith(injected.operator)
    assert bool(where.operator) == bool(injected.operator)
    assert (where.node, where.module) == (injected.node, injected.module)
    assert tuple(name.partition(" ")[0] for name in where.before) == injected.before
    assert (where.agrees, where.alone) == (True, True)
    (found,) = [each for each in rightness.wrongs(made) if isinstance(each, Begins)]
    assert (found.at.alone, found.at.node) == (True, injected.node)


@pytest.mark.parametrize("injected", INJECTED[:4], ids=lambda injected: injected.cell, indirect=True)
@pytest.mark.slow
def test_the_operator_is_named_where_rounding_hides_what_it_does(injected: Injected, own_flatc: None) -> None:
    target, case = injected.cell.split("/")
    attempt = Ended.export(ZOO[case], target)
    made = imprecise(attempt.made)
    assert departure.first_departing(made) is None
    judged = attempt.with_beginning(made)
    where = judged.begins.where
    assert isinstance(where, Departure), where
    assert (where.node, where.module, where.alone) == (injected.node, injected.module, True)
    # Whatever the case accepts.
    found, *_ = rightness.wrongs(replace(judged, limit=1e9))
    assert isinstance(found, Begins)
    assert (found.at.alone, found.at.node) == (True, injected.node)
