"""Guest zoos: their listings, the models of upstream's tests, and what they show."""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.decisions import KNOWN, Decision
from executorch_goldens.running.options import Options
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import EXPORT_TIMEOUT
from executorch_goldens.toolchains import locking
from executorch_goldens.toolchains.environments import Environments, Layer
from executorch_goldens.toolchains.naming import Name
from executorch_goldens.zoo.registry import NAME_PATTERN, ZooError
from lab import known, tables
from lab.guests import ZOOS, cases, command, layer, listing, one, triage
from lab.guests.listing import Entry, Listing, Omitted, names_of
from lab.guests.one import KNOWN_ZOOS
from lab.supply import locks
from tests import REPOSITORY

RELEASES = tuple(releases.load().releases)
INSTALLED = metadata.version("executorch").partition("+")[0]
LISTED = [name for name in ZOOS if listing.path_of(name).is_file()]


#: A file of tests as upstream writes them, in each way that upstream does.
TESTS = """
import unittest

import pytest
import torch
from executorch.backends.test.harness.tester import Tester

NOISE = torch.randn(3)


class Dialect:
    def __getattr__(self, name):
        return Dialect()


#: As exir's dialects, it has an attribute of every name, and cannot be called.
edge = Dialect()


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))

    def forward(self, x, factor=1.0):
        x = x[0] + x[1] if isinstance(x, list) else x
        return x * factor * self.weight


@pytest.mark.parametrize("size", [pytest.param(2, id="two"), pytest.param(3, id="three")])
@pytest.mark.parametrize("dtype", [torch.float32], ids=lambda each: str(each)[6:])
def test_sizes(size, dtype):
    Tester(Scale(), (torch.randn(size, 3, dtype=dtype),)).export()


@pytest.mark.parametrize("flag, text", [(True, "a"), (False, "b")])
def test_flags(flag, text):
    Tester(Scale(), (torch.randn(1, 3),)).quantize().export()


@pytest.fixture(scope="module")
def scale():
    return Scale()


@pytest.fixture
def scales(scale):
    return lambda: scale


def test_fixtures(scales, scale):
    assert scales() is scale
    Tester(scale, (torch.randn(1, 3),)).export()


@pytest.fixture
def folders(tmp_path):
    return tmp_path


def test_folders(folders):
    Tester(Scale(), (torch.randn(1, 3),)).export()


@pytest.mark.skip(reason="not now")
def test_skipped():
    Tester(Scale(), (torch.randn(1, 3),)).export()


def test_temporary(tmp_path):
    Tester(Scale(), (torch.randn(1, 3),)).export()


def test_by_itself():
    torch.export.export(Scale(), (torch.randn(1, 3),))


def test_runner(test_runner):
    test_runner.lower_and_run_model(Scale(), (torch.randn(1, 3),))


class TestLoop(unittest.TestCase):
    def test_loop(self):
        for size in (1, 2, 3):
            x = torch.randn(size, 3)
            Tester(Scale(), ([x, x], 2.0) if size == 3 else (x,)).export().to_edge()
"""


# Listings


@pytest.mark.parametrize("zoo", LISTED)
def test_each_case_of_a_listing_has_a_name_of_its_own_on_each_release(zoo: str) -> None:
    listed = listing.read(zoo)
    for release in RELEASES:
        names = [entry.name for entry in listed.entries if release in entry.releases]
        assert len(names) == len(set(names))
    assert all(NAME_PATTERN.fullmatch(entry.name) for entry in listed.entries)


@pytest.mark.parametrize("zoo", LISTED)
def test_a_listing_is_read_as_it_was_written(zoo: str) -> None:
    text = listing.path_of(zoo).read_text(encoding="utf-8")
    assert listing.read(zoo).text() == text
    assert listing.read(zoo).joined(Listing(), RELEASES).text() == text


@pytest.mark.parametrize("zoo", LISTED)
def test_what_is_left_out_says_why(zoo: str) -> None:
    for left in listing.read(zoo).omitted:
        assert left.reason.strip()
        assert left.releases


def test_the_core_of_a_guest_zoo_is_one_case_of_each_test() -> None:
    core = listing.core("arm-ops", INSTALLED)
    there = {entry.name: entry for entry in listing.read("arm-ops").entries if INSTALLED in entry.releases}
    assert core < set(there)
    assert {entry.file for entry in there.values()} == {there[name].file for name in core}
    assert "abs-full" in core
    assert "abs-zeros" in there
    assert "abs-zeros" not in core


def test_the_core_of_the_suite_is_one_case_of_each_operator() -> None:
    core = listing.core("suite-ops", INSTALLED)
    files = [entry.file for entry in listing.read("suite-ops").entries if entry.name in core]
    assert len(files) == len(set(files)) == len(core)
    assert {each.file for each in listing.read("suite-ops").entries if INSTALLED in each.releases} == set(
        files
    )


@pytest.mark.parametrize("zoo", ["arm-models", "suite-models", "xnnpack-models"])
def test_the_core_of_models_is_every_case_that_is_not_too_large(zoo: str) -> None:
    for release in RELEASES:
        there = {each.name for each in listing.read(zoo).entries if release in each.releases}
        assert listing.core(zoo, release) == {name for name in there if not listing.too_large(zoo, name)}
    if zoo == "arm-models":
        assert len({name for name in there if name.startswith("nn-functional-")}) > 1


def test_each_pattern_of_what_is_too_large_names_a_case_and_says_why() -> None:
    for zoo, patterns in listing.large().items():
        names = {entry.name for entry in listing.read(zoo).entries}
        for pattern, why in patterns.items():
            assert fnmatch.filter(names, pattern), f"{zoo}: {pattern} names no case"
            assert why.strip()
    assert listing.too_large("arm-models", "resnet8") == ""


def test_a_release_is_listed_anew_without_touching_what_others_have() -> None:
    both = Entry("abs-one", "test_abs.py", "test_abs[one]", 0, ("float",), ("1.4.1", "1.5.1"))
    gone = Omitted("test_vit.py", "needs the package torchvision", ("1.5.1",))
    before = Listing((both,), (gone,))
    now = replace(both, name="abs-two", node="test_abs[two]", releases=("1.5.1",))
    after = before.without("1.5.1").joined(Listing((now,)), RELEASES)
    assert after == Listing((replace(both, releases=("1.4.1",)), now))


@pytest.mark.parametrize(
    ("file", "node", "name"),
    [
        ("test_abs.py", "test_abs_tosa_FP[randn_1d]", "abs-randn-1d"),
        ("test_abs.py", "test_abs_tosa_INT[randn_1d]", "abs-randn-1d"),
        ("test_cat.py", "TestCat::test_fp16_cat2", "cat-fp16-cat2"),
        ("Gemma3n/test_attention.py", "test_rope", "gemma3n-attention-rope"),
        ("Qwen3_VL/test_qwen3_vl_layers.py", "test_qwen3_vl_tosa_INT[mlp]", "qwen3-vl-layers-mlp"),
    ],
)
def test_the_name_of_a_case_is_that_of_its_test_without_the_flow(file: str, node: str, name: str) -> None:
    assert names_of(file, node, 0)[0] == name


def test_names_that_are_too_long_are_cut_and_stay_apart() -> None:
    names = {names_of("test_linear.py", f"test_linear[{'long_' * 20}{end}]", 0)[0] for end in "ab"}
    assert len(names) == 2
    assert all(NAME_PATTERN.fullmatch(name) for name in names)


def test_a_line_that_is_none_of_a_listing_is_an_error_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(listing, "FOLDER", tmp_path)
    (tmp_path / "arm-ops.txt").write_text("abs  test_abs.py::test_abs\n")
    with pytest.raises(listing.ListingError, match=f"no line of a listing: .*{listing.UPDATE}"):
        listing.read("arm-ops")


# What is taken from a test


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> object:
    """`TESTS`, imported."""
    folder = tmp_path_factory.mktemp("upstream")
    (folder / "test_upstream.py").write_text(TESTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        import test_upstream

        yield test_upstream


def test_tests_are_found_and_named_as_pytest_does(module: object) -> None:
    from lab.guests.tests import tests_of

    file = Path(module.__file__)  # type: ignore[attr-defined]
    collected = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--collect-only",
            "-p",
            "no:cacheprovider",
            "-c",
            "/dev/null",
            file,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    theirs = re.findall(r"test_upstream\.py::(\S+)", collected)
    assert len(theirs) == 11
    assert [test.node for test in tests_of(module)] == theirs  # type: ignore[arg-type]


def test_every_model_that_a_test_hands_over_is_taken(module: object) -> None:
    from lab.guests.capture import CaptureError, Recorder, run
    from lab.guests.tests import tests_of

    found: dict[str, object] = {}
    for test in tests_of(module):  # type: ignore[arg-type]
        recorder = Recorder(None)
        try:
            run(test, recorder, "any")
            found[test.node] = [given.quantized for given in recorder.taken]
        except CaptureError as error:
            found[test.node] = str(error)
    assert found == {
        "test_sizes[float32-two]": [False],
        "test_sizes[float32-three]": [False],
        "test_flags[True-a]": [True],
        "test_flags[False-b]": [True],
        "test_fixtures": [False],
        "test_folders": "needs the fixture folders",
        "test_skipped": "skipped upstream: not now",
        "test_temporary": "needs the fixture tmp_path",
        "test_by_itself": "exports by itself",
        "test_runner": [None],
        "TestLoop::test_loop": [False, False, False],
    }


def test_a_model_that_does_not_run_on_its_inputs_says_so() -> None:
    import torch

    from lab.guests.capture import HandedOver, not_running

    class Named(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> str:
            return "x"

    model = torch.nn.Linear(3, 2)
    assert not_running(HandedOver(model, (torch.ones(1, 3),), None, "")) == ""
    why = not_running(HandedOver(model, (torch.ones(1, 4),), None, ""))
    assert why.startswith("does not run on its inputs: RuntimeError: mat1 and mat2")
    why = not_running(HandedOver(Named(), (torch.ones(1),), None, ""))
    assert why.startswith("does not run on its inputs: ZooError: output 0 is a str")


def test_a_model_that_holds_one_element_with_any_stride_has_a_digest() -> None:
    import torch

    from lab.guests.capture import digest_of

    column = torch.ones(2, 5)[:1, 0]
    assert column.stride() == (5,)
    assert digest_of(torch.nn.Identity(), (column,), None) != digest_of(
        torch.nn.Identity(), (2 * column,), None
    )


def test_weights_and_inputs_follow_the_name_of_the_case_alone(module: object) -> None:
    import torch

    from lab.guests.capture import Recorder, as_example, run
    from lab.guests.tests import tests_of

    def made(name: str) -> list[torch.Tensor]:
        (test,) = (test for test in tests_of(module) if test.node == "TestLoop::test_loop")  # type: ignore[arg-type]
        recorder = Recorder(2)
        run(test, recorder, name)
        example = as_example(recorder.taken[2])
        # Inputs that are no tensors are held by the model; one that is given twice stays one.
        assert len(example.inputs) == 2
        assert example.inputs[0] is example.inputs[1]
        assert example.module(*example.inputs).shape == (3, 3)
        return [example.module.get_parameter("module.weight"), example.inputs[0]]

    first = made("one")
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    assert all(torch.equal(a, b) for a, b in zip(first, made("one"), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, made("other"), strict=True))
    assert torch.equal(before, torch.random.get_rng_state())


def test_memory_that_a_test_leaves_as_it_is_is_filled() -> None:
    import torch

    from lab.guests.capture import seeded

    with seeded("any"):
        assert torch.IntTensor(5).tolist() == [torch.iinfo(torch.int32).max] * 5
        assert torch.empty(3).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_model_whose_trained_weights_need_a_network_keeps_what_it_was_made_with() -> None:
    import torch

    from lab.guests.capture import Untrained, untrained

    model, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    before = model.weight.clone()
    with untrained():
        model.load_state_dict(Untrained())
        assert torch.equal(model.weight, before)
        # All else is loaded, and refused, as ever.
        with pytest.raises(RuntimeError, match="Missing key"):
            model.load_state_dict({})
        model.load_state_dict(other.state_dict())
        assert torch.equal(model.weight, other.weight)
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(Untrained())


def test_attributes_are_put_back_whatever_happens() -> None:
    from lab.guests.capture import replaced

    one = SimpleNamespace(a=1, b=2)

    def fail() -> None:
        assert vars(one) == {"a": 3, "b": 4}
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"), replaced((one, "a", 3), (one, "b", 4)):
        fail()
    assert vars(one) == {"a": 1, "b": 2}


def test_weights_that_nobody_writes_are_drawn_and_others_stay() -> None:
    import torch

    from lab.guests.capture import draw_unwritten, seeded

    def made(name: str) -> torch.nn.Module:
        with seeded(name):
            model = torch.nn.LayerNorm(4)
            model.weight = torch.nn.Parameter(torch.empty(4, dtype=torch.float16))
            draw_unwritten(model)
        return model

    assert made("one").weight.isfinite().all()
    assert made("one").bias.tolist() == [0.0] * 4
    assert torch.equal(made("one").weight, made("one").weight)
    assert not torch.equal(made("one").weight, made("other").weight)


@pytest.mark.parametrize(
    ("dtype", "held", "found"),
    [
        ("float32", "float32", ""),
        ("float32", "bfloat16", "bfloat16"),
        ("float8_e5m2", "float8_e5m2", "float8_e5m2"),
        ("float8_e5m2", "bfloat16", ""),
    ],
)
def test_a_model_that_holds_or_takes_another_dtype_is_for_the_target_of_that(
    dtype: str, held: str, found: str
) -> None:
    import torch

    from lab.guests.capture import HandedOver, narrow_dtype

    model = torch.nn.Linear(3, 2).to(getattr(torch, held))
    assert narrow_dtype(HandedOver(model, (torch.ones(1, 3).to(getattr(torch, dtype)),), None, "")) == found


@pytest.mark.parametrize(
    ("zoo", "kinds", "targets"),
    [
        ("arm-ops", ("float", "quantized"), ("tosa-fp", "tosa-int")),
        ("arm-ops", ("bfloat16",), ("tosa-bf16",)),
        ("suite-ops", ("bfloat16",), ("tosa-bf16", "xnnpack-fp32")),
        ("xnnpack-ops", ("float16",), ("xnnpack-fp32",)),
        ("xnnpack-models", ("float",), ("xnnpack-fp32",)),
    ],
)
def test_targets_follow_how_upstream_lowers_a_case(
    zoo: str, kinds: tuple[str, ...], targets: tuple[str, ...]
) -> None:
    from lab.guests.cases import case_of

    entry = Entry("abs-one", "test_abs.py", "test_abs[one]", 0, kinds, ("1.4.1",))
    case = case_of(ZOOS[zoo], [entry])
    assert case.backends == targets
    assert set(case.also) == {target for target in targets if target == "tosa-bf16"}
    assert case.run_on == ZOOS[zoo].run_on


# Runs


def test_the_workflow_runs_each_guest_zoo_on_each_release_that_was_tried_and_nothing_else() -> None:
    workflow = (REPOSITORY / ".github" / "workflows" / "goldens.yml").read_text(encoding="utf-8")
    (line,) = (line.strip() for line in workflow.splitlines() if 'echo "guests=' in line)
    line = line.replace("python -c", f"{sys.executable} -c").replace('"$GITHUB_OUTPUT"', "/dev/stdout")
    printed = subprocess.run(
        ["bash", "-c", line], cwd=REPOSITORY, check=True, text=True, stdout=subprocess.PIPE
    )
    listed = json.loads(printed.stdout.removeprefix("guests="))
    assert {*listed} >= {f"arm-ops/{release}" for release in releases.load().releases}
    assert {tuple(each.split("/")) for each in listed} <= set(
        itertools.product(ZOOS, releases.load().releases)
    )


def asked(*words: str) -> Options:
    """Return the options of a run that words name; of a toolchain, so that none is made."""
    parser = argparse.ArgumentParser()
    one.add_to(parser.add_subparsers())
    options = parser.parse_args(["guest", *words, "--toolchain", sys.executable])
    return one.asked(KNOWN_ZOOS[options.zoo], options)


@pytest.mark.parametrize("zoo", LISTED)
def test_a_guest_has_its_own_place_and_longer_where_its_models_are_large(zoo: str) -> None:
    own = asked(zoo)
    assert own.models == (ZOOS[zoo].module,)
    assert own.goldens == KNOWN_ZOOS[zoo].folder
    assert own.variations == "quick"
    assert own.export_timeout == (ZOOS[zoo].export_timeout or EXPORT_TIMEOUT)
    assert asked(zoo, "--export-timeout", "7").export_timeout == 7
    assert asked(zoo, "--update").no_shortcuts


def test_models_that_need_packages_are_exported_in_the_layer_of_the_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[tuple[str, Layer]] = []

    def make(self: Environments, name: Name, layer: Layer) -> Path:
        made.append((name.word, layer))
        return tmp_path

    monkeypatch.setattr(Environments, "made", make)
    assert layer.python_of("1.5.1") == tmp_path / "bin" / "python"
    assert made == [("1.5.1", Layer(locks=("guests-1.5.1",)))]
    monkeypatch.setattr(locking, "FOLDER", tmp_path)
    assert layer.python_of("1.5.1") is None
    monkeypatch.setattr(layer, "python_of", lambda version: Path("layer", version))
    assert one.layered(ZOOS["suite-models"]) == f"layer/{INSTALLED}"
    assert one.layered(ZOOS["arm-ops"]) is one.layered(None) is None


def test_the_listing_of_models_is_found_in_the_layer_of_the_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$PYTHONPATH: $@"\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(layer, "python_of", lambda version: python)
    asked = argparse.Namespace(zoo=["suite-models"], update=True)
    assert command.run(asked) == 1
    assert capfd.readouterr().out == f"{REPOSITORY / 'harness'}: -m lab guests --zoo suite-models --update\n"


def test_a_layer_changes_nothing_that_a_release_has() -> None:
    """torch, numpy and the rest of a release are not installed again in another version."""
    for version, release in releases.load().releases.items():
        lock = layer.lock_of(version)
        held = set(locks.read(locking.FOLDER, lock))
        assert not held & set(locks.with_what_it_is_over(locking.FOLDER, "", locks.Wanted((), release)))
        if (locking.FOLDER / f"{lock}.txt").exists():
            assert "torchvision" in held


def test_a_guest_zoo_whose_every_test_is_left_out_says_where_the_reasons_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(listing, "FOLDER", tmp_path)
    (tmp_path / "suite-models.txt").write_text("-  test_vit.py  needs the package torchvision  1.4.1\n")
    with pytest.raises(ZooError, match=r"every test of suite-models is left out.*suite-models\.txt says why"):
        cases.register("suite-models")


# What they show


def test_every_guest_that_is_wrong_is_explained() -> None:
    found = [each for _, those in triage.recorded() for each in those]
    assert len(found) > 100
    assert all(each.why for each in found)


def test_what_nothing_explains_is_counted_and_each_verdict_has_its_column(tmp_path: Path) -> None:
    row = {"zoo": "arm-ops", "release": INSTALLED, "tier": "core", "cells": 8, "right": 3}
    tables.write(tmp_path / known.TRIED, known.COLUMNS, [row, {**row, "zoo": "options"}])
    defects = {
        "abs": ("imprecise", "right within rounding"),
        "add": ("corrupt", ""),
        "mul": ("crashed", ""),
        "sub": ("unstable", "an order"),
        "div": ("failed", "a limit"),
    }
    decided = [
        Decision(
            KNOWN,
            verdict,
            finding={"kind": "imprecise"},
            why=why,
            releases=(INSTALLED,),
            cells=(f"tosa-int/{name}",),
        )
        for name, (verdict, why) in defects.items()
    ]
    decisions.write(tmp_path / "arm-ops", decided)
    lines = list(triage.tables(tmp_path))
    assert f"| arm-ops | {INSTALLED} | 8 | 3 | 1 | 1 | 1 | 1 | 1 | 2 |" in lines
    assert f"| corrupt | {triage.UNEXPLAINED} | arm-ops | {INSTALLED}: 1 |" in lines
    assert not any("options" in line for line in lines)
