"""Sources without goldens: their content."""

from __future__ import annotations

from collections import Counter

import pytest

from executorch_goldens.exporting.data import Data
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import load
from executorch_goldens.zoo.targets import TARGETS
from lab.further import SOURCES, further, guests, turns
from lab.guests import modules, sheets
from lab.mutants.history import SINCE


@pytest.mark.parametrize("module", SOURCES.values())
def test_a_source_has_cells_on_each_release_that_a_fix_is_taken_back_in(module: str) -> None:
    for release in SINCE:
        assert len(load_cells((module,), releases.load().release(release))) > 100


def test_further_targets_are_those_that_a_case_must_ask_for() -> None:
    assert "tosa-u55-int16" in further(("tosa",), quantized=True)
    assert "tosa-bf16" in further(("tosa",), quantized=False)
    assert further(("xnnpack",), quantized=False) == ()
    assert not {"tosa-int", "xnnpack-int8"} & {*further(("tosa", "xnnpack"), quantized=True)}


def test_every_case_and_every_target_has_its_turn() -> None:
    assert list(turns(["a"], ["fp", "int"])) == [("a", "fp"), ("a", "int")]
    assert list(turns([], ["fp"])) == []
    assigned = guests.assigned("arm-ops")
    of_add = {target for name, targets in assigned.items() if name.startswith("add-") for target in targets}
    assert {*further(("tosa",), quantized=True)} <= of_add


def test_each_sample_is_a_case_and_targets_have_as_many_as_take_its_dtype() -> None:
    module = SOURCES["torch-ops-further"]
    cases = load([module])
    there = sheets.samples("torch-ops")
    narrowed = [case for name, case in cases.items() if "-bfloat16-" in name]
    assert len(narrowed) == sum(sample.group == "float32" for sample in there) == len(cases) - len(there)
    assert {case.backends[0] for case in narrowed} == {"tosa-bf16", "tosa-fp", "xnnpack-fp32"}
    of_target = Counter(case.backends[0] for case in cases.values())
    assert {*of_target} == {*TARGETS}
    halves = {case.backends[0] for case in cases.values() if "-float16-" in case.name}
    assert not any(TARGETS[target].is_quantized for target in halves)


def test_samples_of_modules_are_python_that_torch_runs() -> None:
    there = modules.samples()
    assert len({sample.name for sample in there}) == len(there) > 200
    for sample in there[::29]:
        example = modules.example(sample)
        outputs = example.module.eval()(*example.inputs)
        assert outputs is not None
    named = "\n".join(sample.made for sample in there)
    assert all(
        f"torch.nn.{name}(" in named for name in ("LSTM", "Conv2d", "MultiheadAttention", "BatchNorm2d")
    )


def test_a_sample_of_a_module_is_read_as_it_was_written() -> None:
    sample = modules.samples()[0]
    name, made, call, tensors = sample.line().split("  ")
    assert (name, made, call) == (sample.name, sample.made, sample.call)
    assert tensors.count("input") == len(sample.tensors)


def test_drawn_models_are_cases_for_all_targets_in_turn() -> None:
    cases = load([SOURCES["drawn"]])
    assert {target for case in cases.values() for target in case.backends} == {*TARGETS}
    example = cases["drawn-43-000007"].build(Data("drawn-43-000007"))
    assert example.module(*example.inputs) is not None
    # Results of a model count for no other.
    assert len({case.guards for case in cases.values()}) == len(cases)


def test_every_target_has_some_modules() -> None:
    cases = load([SOURCES["torch-modules"]])
    assert {target for case in cases.values() for target in case.backends} == {*TARGETS}


def test_upstreams_tests_of_passes_are_cases_for_the_common_targets_and_some_others() -> None:
    cases = load([SOURCES["unit-tests"]])
    of_passes = [case for case in cases.values() if case.name.startswith("arm-passes-")]
    assert len(of_passes) > 100
    assert all({"tosa-fp", "tosa-int"} < {*case.backends} for case in of_passes)
    assert {target for case in of_passes for target in case.backends} >= {*further(("tosa",), quantized=True)}
    assert any(case.name.startswith("xnnpack-passes-") for case in cases.values())


def test_a_case_of_the_zoo_comes_for_targets_that_it_does_not_ask_for() -> None:
    from lab.further.zoo import EACH, untaught

    # A build lowers by itself, for no target.
    own = {name: case for name, case in untaught().items() if not case.is_build}
    others = load([SOURCES["zoo-further"]])
    for name, case in others.items():
        assert not {*case.backends} & {*own[name].also}
        assert case.guards.startswith(own[name].guards)
    # One that does not come leaves out every target of its turn, or asks for it.
    targets = [name for name, target in TARGETS.items() if target.opt_in]
    turn = turns([name for name in own for _ in range(EACH)], targets)
    assert others.keys() == {
        name
        for name, target in turn
        if TARGETS[target].is_for(own[name].backends) and target not in own[name].also
    }
