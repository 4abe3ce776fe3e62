"""Cases that make their whole programs by themselves: their runs, their references, their messages."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Mapping

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from syrupy.assertion import SnapshotAssertion
from torch import nn
from torch.utils import _pytree as pytree

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered
from executorch_goldens.decode import DecodeError, decode
from executorch_goldens.diff.difference import Difference
from executorch_goldens.exporting.building import Build
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.goldens import equality, unchecked
from executorch_goldens.goldens.findings import OfBuild, WrongValues
from executorch_goldens.goldens.record import MANIFEST, MODEL
from executorch_goldens.judging.comparison import compare
from executorch_goldens.judging.rightness import wrongs
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings.releases import load as load_releases
from executorch_goldens.zoo.registry import Case, Registry, ZooError, load, takes_build
from tests.support import zoo_builds
from tests.support.making import golden_of, objection, outcomes
from tests.support.screens import of_verdict

Function = Callable[[torch.Tensor], object]

pytestmark = pytest.mark.usefixtures("own_flatc")
ZOO = "tests.support.zoo_builds"

_MADE: dict[str, Artifact] = {}


def artifact_of(name: str) -> Artifact:
    """Export a case, once for all tests of this file."""
    if name not in _MADE:
        _MADE[name] = export(load((ZOO,))[name], "built")
    return _MADE[name]


def made(name: str) -> Lowered:
    result = artifact_of(name).result
    assert isinstance(result, Lowered), result
    return result


def test_builds_are_cells_of_one_target_and_of_no_other(release: str) -> None:
    cells = load_cells((ZOO,), load_releases().release(release))
    assert {cell.target for cell in cells} == {"built"}
    assert len(cells) == len(load((ZOO,)))
    of_zoo = load(("models",))
    assert all(
        (cell.target == "built") == of_zoo[cell.case].is_build
        for cell in load_cells(("models",), load_releases().release(release))
    )


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "external", "file"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("int8", "in-place", "int8-for-tosa", "language-model")
        ),
    ],
)
def test_a_build_is_run_and_right(name: str) -> None:
    lowered = made(name)
    assert lowered.not_run == ""
    assert lowered.samples
    assert list(wrongs(lowered)) == []


def test_a_build_has_the_bytes_that_its_function_made() -> None:
    lowered = made("plain")
    assert [(delegate.name, delegate.backend_id) for delegate in lowered.delegates] == [
        ("lowered_module_0", "XnnpackBackend")
    ]
    assert "executorch_call_delegate" in lowered.graph
    assert [sample.name for sample in lowered.samples] == ["example", "zeros", "extremes", "drawn"]


def test_weights_that_are_not_the_models_are_wrong() -> None:
    found, *_ = wrongs(made("other-weights"))
    assert isinstance(found, WrongValues)
    assert (found.output, found.values.differing, found.values.size) == (0, 5, 5)


def test_a_quantized_build_is_held_to_its_quantized_module_and_near_the_float_one() -> None:
    lowered = made("int8")
    assert lowered.scales[0] > 0
    assert all(sample.floats and sample.floats != sample.expected for sample in lowered.samples)
    assert "accuracy 0: sqnr" in golden_of(lowered).texts()[MANIFEST]


def test_what_is_quantized_in_place_is_not_taken_for_the_float_model() -> None:
    assert all(sample.floats != sample.expected for sample in made("in-place").samples)


@pytest.mark.slow
def test_a_quantized_build_of_which_nothing_is_said_names_the_way_out() -> None:
    first, *_, last = wrongs(made("int8-unnamed"))
    assert isinstance(first, WrongValues)
    assert last == OfBuild("forward")


def test_methods_are_judged_alone_and_in_order() -> None:
    lowered = made("language-model")
    names = {sample.name for sample in lowered.samples}
    assert {"prefill: example", "decode: third step", "prefill, decode: drawn"} <= names
    assert "prefill, decode, decode: example" in names
    assert [delegate.name for delegate in lowered.delegates] == [
        "decode.lowered_module_0",
        "prefill.lowered_module_0",
    ]
    assert lowered.graph.startswith("method decode:\n")
    texts = golden_of(lowered)
    assert "prefill held to its eager module; decode held to its eager module" in texts.texts()[MANIFEST]


def test_outputs_of_methods_are_numbered_by_method() -> None:
    lowered = made("language-model")
    prefill, decode = lowered.by_method()
    assert {len(sample.expected) for sample in prefill.samples} == {1}
    assert {len(sample.expected) for sample in decode.samples} == {2}


@pytest.mark.slow
def test_a_recorded_run_is_held_to_the_bound_of_its_own_method() -> None:
    def build(build: Build) -> object:
        program = zoo_builds.language_model(build)
        for name, bound in (("prefill", 0.5), ("decode", 2.0**-10)):
            example = build.methods[name].example
            inputs = build.data.all_like(example.tensors, "drawn")
            with torch.no_grad():
                given = copy.deepcopy(example.module)(*inputs)
            outputs = tuple(1.25 * each for each in pytree.tree_leaves(given))
            build.recorded(inputs, outputs, name, bound=bound)
        return program

    result = export(Case("any", "any", "any", build, is_build=True), "built").result
    assert isinstance(result, Lowered), result
    assert dict(result.bounds) == {"prefill": 0.5, "decode": 2.0**-10}
    assert {each.sample for each in wrongs(result) if isinstance(each, WrongValues)} == {"decode: recorded"}


@pytest.mark.slow
def test_state_that_does_not_reach_the_next_method_is_wrong_and_named() -> None:
    first, *_, last = wrongs(made("forgetful"))
    assert isinstance(first, WrongValues)
    assert first.sample == "prefill, decode: example"
    assert last == OfBuild()


def test_a_data_file_is_part_of_the_golden() -> None:
    lowered = made("external")
    texts = golden_of(lowered)
    assert "data _default_external_constant: 904 bytes sha256 " in texts.texts()[MANIFEST]
    text = texts.texts()["data__default_external_constant.ptd"]
    assert text.startswith("ptd 904 bytes\n")
    assert "data 0.weight: FLOAT[4,4]" in text


@pytest.mark.parametrize("length", [0, 7, 20, 48, 200, 500, 520, 903])
def test_a_truncated_data_file_is_one_error(length: int) -> None:
    ((_, content),) = made("external").data
    with pytest.raises(DecodeError):
        decode(content[:length])


def test_a_file_that_nothing_here_emitted_has_no_graph_and_is_run() -> None:
    lowered = made("file")
    assert lowered.graph == ""
    assert [delegate.backend_id for delegate in lowered.delegates] == ["XnnpackBackend"]
    assert [sample.name for sample in lowered.samples] == ["recorded"]
    assert (
        "forward held to recorded runs; not known: the graph, as the program came as bytes" in lowered.recipe
    )


def test_what_is_no_program_is_a_failure_that_says_what_to_return() -> None:
    result = artifact_of("mistake").result
    assert isinstance(result, Failure)
    assert result.stage == "build"
    assert "gives a list, and no program: return the result of to_executorch()" in result.message


def test_a_changed_weight_is_named_and_no_pass_is_blamed(release: str) -> None:
    before = artifact_of("plain")
    assert isinstance(before.result, Lowered)
    reviewed = golden_of(before.result)

    def build(build: Build) -> object:
        model = build.data.fill(zoo_builds.network())
        with torch.no_grad():
            model[0].weight[1, 2] += 0.25
        inputs = (build.data.tensor("x", 1, 8, 8, 8),)
        return zoo_builds.to_xnnpack(build.method(model, inputs), inputs)

    made = export(Case("plain", "any", "any", build, is_build=True), "built")
    found = compare(Cell("built", "plain"), outcomes(made, made), reviewed, load_releases().release(release))
    assert found.verdict.name == "changed"
    assert found.verdict.divergence.weights == ("0.weight",)
    assert found.verdict.divergence.name == "model"
    assert (
        next(map(str, Difference(reviewed, found.record).edits))
        == "weights that are not the golden's: 0.weight"
    )


def drawn(build: Build) -> object:
    inputs = (build.data.tensor("x", 1, 8, 8, 8),)
    return zoo_builds.to_xnnpack(build.method(zoo_builds.network(), inputs), inputs)


NEXT = itertools.count()


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.full((4,), float(next(NEXT))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.offset


def drawn_case(data: Data) -> Example:
    return Example(Counted(), (data.tensor("x", 2, 4),))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "target", "why"),
    [
        (
            Case("any", "any", "any", drawn, is_build=True),
            "built",
            "its weights differ before anything is lowered (0.",
        ),
        (
            Case("any", "any", "any", drawn_case),
            "xnnpack-fp32",
            "its model differs before anything is lowered, and ",
        ),
    ],
    ids=["build", "case"],
)
def test_a_case_that_draws_its_weights_each_time_is_the_cause_and_no_pass_is_named(
    release: str, case: Case, target: str, why: str
) -> None:
    cell = Cell(target, "any")
    judged = compare(
        cell, outcomes(*(export(case, target) for _ in range(2))), None, load_releases().release(release)
    ).verdict
    assert judged.name == "unstable"
    assert f": the case is the cause: {why}" in of_verdict(judged)
    assert of_verdict(judged).endswith(
        "give it the same each time: draw from `data`, or after torch.manual_seed"
    )
    assert judged.blames_case


# What a build is given wrongly


@pytest.mark.slow
def test_inputs_that_the_program_takes_otherwise_are_an_error_of_the_declaration(release: str) -> None:
    def build(build: Build) -> object:
        taken = (torch.ones(1, 4, dtype=torch.int8),)
        program = zoo_builds.to_xnnpack(torch.nn.ReLU(), taken)
        build.method(torch.nn.ReLU(), (torch.ones(1, 4),))
        return bytes(program.buffer)

    made = export(Case("any", "any", "any", build, is_build=True), "built")
    judged = compare(Cell("built", "any"), outcomes(made), None, load_releases().release(release)).verdict
    assert of_verdict(judged).endswith(
        "ZooError: case 'any' declares input 0 of forward as float32[1, 4], and the program takes int8[1, 4]; a "
        "program with quantized inputs is declared by what it takes: build.recorded(inputs, outputs)"
    )


@pytest.mark.parametrize("content", [b"", b"any bytes at all, and no program", b"PK\x03\x04" + bytes(60)])
def test_bytes_that_are_no_program_are_one_error(content: bytes) -> None:
    def build(build: Build) -> bytes:
        return content

    result = export(Case("any", "any", "any", build, is_build=True), "built").result
    assert isinstance(result, Failure)
    assert result.message.startswith("case 'any': its bytes are no program (.pte): ")


def test_a_build_refuses_what_is_no_module_no_tensor_or_said_twice() -> None:
    build, inputs = Build("any"), (torch.ones(1),)
    with pytest.raises(ZooError, match=r"build.method\('forward'\): an int is no torch.nn.Module"):
        build.method(1, inputs)  # type: ignore[arg-type]
    with pytest.raises(ZooError, match="inputs are a tuple: write"):
        build.method(torch.nn.ReLU(), [torch.ones(1)])  # type: ignore[arg-type]
    build.method(torch.nn.ReLU(), inputs)
    with pytest.raises(ZooError, match="has its module already"):
        build.method(torch.nn.ReLU(), inputs)
    with pytest.raises(ZooError, match="name the float module first"):
        build.quantized(torch.nn.ReLU(), "other")
    build.recorded(inputs, inputs)
    with pytest.raises(ZooError, match="there is a sample 'recorded' already"):
        build.recorded(inputs, inputs)
    for bound in (1e30, float("nan"), -1.0, True):
        with pytest.raises(ZooError, match="bound is a part of the largest value"):
            build.recorded(inputs, inputs, sample="other", bound=bound)


def test_fields_that_speak_to_targets_are_refused_of_a_build() -> None:
    def any_build(build: Build) -> None: ...

    assert takes_build(any_build)
    with pytest.raises(ZooError, match="backends: a build lowers by itself, for 'built' alone"):
        Registry().add(Case("any", "any", "any", any_build, backends=("tosa",), is_build=True))


def test_an_order_of_methods_without_a_module_names_the_one() -> None:
    def build(build: Build) -> bytes:
        build.in_order("forward", "backward")
        return zoo_builds.PROGRAM.read_bytes()

    result = export(Case("any", "any", "any", build, is_build=True), "built").result
    assert isinstance(result, Failure)
    assert "'forward' has no module: build.method(..., 'forward')" in result.message


def test_a_golden_names_the_parameters_of_the_model() -> None:
    lowered = made("plain")
    lines = golden_of(lowered).texts()[MODEL].splitlines()
    assert [line.split(" ")[:3] for line in lines] == [
        ["forward", "0.weight", "float32[4,"],
        ["forward", "0.bias", "float32[4]"],
        ["forward", "3.weight", "float32[5,"],
        ["forward", "3.bias", "float32[5]"],
    ]
    other = dataclasses.replace(
        lowered, model=(*lowered.model[:1], "forward 0.bias float32[4] sha256 0", *lowered.model[2:])
    )
    assert not equality.equal(golden_of(lowered), golden_of(other))
    # What was recorded before there was such is the same.
    assert equality.equal(golden_of(dataclasses.replace(lowered, model=())), golden_of(lowered))


class Computing(nn.Module):
    """Computes a function of one input."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> object:
        return self.function(x)


def unchecked_build(held: Mapping[str, Function], **methods: Function) -> Lowered:
    """Return a program of `methods`, of which those in `held` are held to other functions."""
    inputs = (torch.arange(8.0) - 3,)

    def build(build: Build) -> object:
        for name, function in held.items():
            build.method(Computing(function), inputs, name)
        programs = {
            name: torch.export.export(Computing(function), inputs, strict=True)
            for name, function in methods.items()
        }
        return to_edge_transform_and_lower(programs, compile_config=zoo_builds.CONFIG).to_executorch()

    result = export(Case("any", "any", "any", build, is_build=True), "built").result
    assert isinstance(result, Lowered), result
    return result


@pytest.mark.parametrize("held", [(), ("forward",)])
def test_methods_without_a_reference_are_recorded_only_if_a_person_says_so(held: tuple[str, ...]) -> None:
    methods: dict[str, Function] = {"forward": lambda x: x + 1, "other": lambda x: x / (x - x)}
    references = {name: methods[name] for name in held}
    left = [name for name in methods if name not in held]
    made = unchecked_build(references, **methods)
    found = unchecked.objection(made)
    assert (found.methods, found.outputs) == (tuple(left), ())
    assert unchecked.objection(made, left) is None
    listed = "; ".join(f"method {name}" for name in left)
    assert f"\nunchecked: {listed}\n" in golden_of(made).texts()[MANIFEST]


@pytest.mark.parametrize(
    ("function", "is_what"),
    [
        (lambda x: (x - x) / (x - x), "NaN in every element"),
        (lambda x: 1 / (x - x).abs(), "infinite or NaN in every element"),
        (lambda x: x[:0] * 2, "empty"),
        (lambda x: x * 0 + 3, "3.0 in every element"),
    ],
)
def test_outputs_that_show_no_error_are_recorded_only_if_a_person_says_so(
    function: Function, is_what: str, snapshot: SnapshotAssertion
) -> None:
    lowered = unchecked_build({"forward": function}, forward=function)
    assert list(wrongs(lowered)) == []
    judged = objection(lowered)
    assert of_verdict(judged) == snapshot
    assert unchecked.objection(lowered, ["output 0"]) is None
    assert f"\nunchecked: output 0 is {is_what}\n" in golden_of(lowered).texts()[MANIFEST]


def test_an_output_that_shows_no_error_beside_one_that_does_is_counted_and_recorded() -> None:
    def function(x: torch.Tensor) -> object:
        return x + 1, x * 0 + 3

    lowered = unchecked_build({"forward": function}, forward=function)
    assert unchecked.objection(lowered) is None
    assert unchecked.listed(lowered) == ("output 1 is 3.0 in every element",)
    assert "unchecked:" not in golden_of(made("plain")).texts()[MANIFEST]
