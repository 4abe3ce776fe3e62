"""The mutants over the core: the order of cells, results kept of a stopped session, and the committed table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.running import core
from executorch_goldens.settings import releases
from lab.mutants import MUTANTS, Edit, page
from lab.mutants.over_core import (
    Found,
    Kept,
    is_enough,
    likeliest_first,
    passes_and_operators,
    shuffled,
    summary,
)
from tests import REPOSITORY

GOLDENS = REPOSITORY / "goldens" / releases.load().default

LINEAR, ADD, OTHER = Cell("tosa-int", "linear"), Cell("tosa-fp", "add"), Cell("xnnpack-fp32", "linear")
BUILT = Cell("built", "decoder")
TEXTS = {LINEAR: "fuseconstantargspass conv2d", ADD: "add", OTHER: "fuseconstantargspass conv2d", BUILT: ""}


def with_edit(function: str) -> Any:
    return replace(MUTANTS[0], edits=(Edit(function, "a", "b"),))


@pytest.mark.parametrize(
    ("function", "order"),
    [
        ("executorch.backends.arm._passes.fuse:FuseConstantArgsPass.call", [LINEAR, ADD, OTHER]),
        ("executorch.backends.arm.operators.op_tosa_conv2d:Conv2dVisitor.define_node", [LINEAR, ADD, OTHER]),
        ("executorch.backends.xnnpack.operators.op_conv2d:Conv2d.define_node", [OTHER, ADD, LINEAR]),
        ("executorch.exir.delegate:get_lowered_module_name", [ADD, LINEAR, OTHER]),
        ("torchao.quantization.pt2e.observer:Observer.forward", [LINEAR, ADD, OTHER]),
    ],
)
def test_cells_that_have_what_is_edited_come_first_and_none_is_left_out(
    function: str, order: list[Cell]
) -> None:
    assert likeliest_first(with_edit(function), [ADD, LINEAR, OTHER, BUILT], TEXTS) == [*order, BUILT]


def test_a_golden_says_its_passes_and_operators() -> None:
    words = passes_and_operators(GOLDENS, LINEAR).split()
    assert {"fuseconstantargspass", "conv2d", "rescale"} <= set(words)


def test_the_order_of_mutants_is_the_same_each_time_and_ends_with_the_declared_survivors() -> None:
    survivor = replace(MUTANTS[0], name="survivor", caught_by="a second export")
    every = (survivor, *MUTANTS)
    order = shuffled(every)
    assert order == shuffled(every)
    assert set(order) == set(every)
    assert order != list(every)
    assert order[-1] == survivor


FOUND = Found(MUTANTS[0].name, "tosa-fp/two-delegates", "corrupt", "pte", 3)


def kept(tmp_path: Path, text: str = "a core", variations: str = "two") -> Kept:
    (tmp_path / core.FILE).write_text(text)
    run: Any = SimpleNamespace(root=tmp_path, variations=variations)
    return Kept(tmp_path / "build" / "core.jsonl", run)


def test_what_a_stopped_session_found_is_read_again(tmp_path: Path) -> None:
    assert kept(tmp_path).read(MUTANTS) == {}
    kept(tmp_path).add(MUTANTS[0], FOUND)
    assert kept(tmp_path).read(MUTANTS) == {FOUND.mutant: FOUND}
    assert kept(tmp_path).read(MUTANTS[1:]) == {}


def test_what_was_found_with_another_core_mutant_or_seed_is_not_read(tmp_path: Path) -> None:
    kept(tmp_path).add(MUTANTS[0], FOUND)
    assert kept(tmp_path, text="another core").read(MUTANTS) == {}
    assert kept(tmp_path, variations="four").read(MUTANTS) == {}
    assert kept(tmp_path).read([replace(MUTANTS[0], edits=())]) == {}


def test_a_mutant_that_was_not_tried_is_not_detected() -> None:
    found = [replace(FOUND, mutant=mutant.name) for mutant in MUTANTS]
    few = len(MUTANTS) // 10
    assert is_enough(found, MUTANTS)
    assert not is_enough(found[few:], MUTANTS)
    assert not is_enough([replace(each, cell="") for each in found[:few]] + found[few:], MUTANTS)
    assert summary(found[few:], MUTANTS).startswith(
        f"{len(MUTANTS) - few} of {len(MUTANTS)} mutants were tried;"
    )


def test_what_is_committed_is_of_the_committed_core_and_is_enough() -> None:
    found = page.found()
    assert {each.cell for each in found if each.cell} <= set(map(str, core.read(GOLDENS / core.FILE)))
    assert is_enough(found, MUTANTS)
