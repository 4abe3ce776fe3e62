"""Quantities with a direction: in the message of a change, and against budgets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness import releases
from harness.artifact import Artifact, Cell
from harness.drift.quantities import directions, measured, over
from harness.drift.reading import Reading, reading
from harness.judging import golden, verdict
from harness.judging.compact import compact
from tests.conftest import Runner

Artifacts = Mapping[str, tuple[Artifact, ...]]

CELL = Cell("xnnpack-fp32", "alpha")
UPDATE = "--snapshot-update"


@pytest.fixture
def texts(artifacts: Artifacts) -> dict[str, str]:
    return golden.render(artifacts["steady"][0], golden.Origin({}, ["seed0-heap0"], "equal"))


def planned(texts: Mapping[str, str], *arenas: int) -> dict[str, str]:
    """Return a golden whose program plans so many bytes in each arena."""
    sizes = ", ".join(map(str, (0, *arenas)))
    program = re.sub(
        r"non_const_buffer_sizes = \[.*\]", f"non_const_buffer_sizes = [{sizes}]", texts["pte.txt"]
    )
    return golden.sealed(golden.unsealed({**texts, "pte.txt": program}))


def test_what_is_measured_is_what_the_artifact_has(texts: dict[str, str], artifacts: Artifacts) -> None:
    result = artifacts["steady"][0].result
    found = measured(reading(texts))
    assert found["program"] == len(result.pte)  # type: ignore[union-attr]
    assert found["delegates"] == 1
    assert found["outside"] == 0
    # Weights of 3 x 4 and a bias of 3, float32.
    assert found["constants"] == 4 * (12 + 3)
    assert found["memory"] > 0


def test_a_compact_golden_has_the_same_quantities(texts: dict[str, str]) -> None:
    several = planned(texts, 64, 0, 8)
    assert measured(reading(compact(several))) == measured(reading(several))
    assert reading(compact(several)).memory == (64, 0, 8)


def test_what_became_worse_comes_before_what_became_better() -> None:
    before = Reading(None, size=1000, memory=(400,))
    before.delegates["XnnpackBackend"] = 2
    after = Reading(None, size=900, memory=(1200,))
    after.delegates["XnnpackBackend"] = 1
    after.outside.update({"aten.relu.default": 2})
    assert list(directions(before, after)) == [
        "worse: 0 -> 2 operators outside delegates: aten.relu.default +2",
        "worse: 400 -> 1,200 bytes of planned memory (3.00 times)",
        "worse: 0 -> 2 operators, in delegates and outside",
        "better: 1,000 -> 900 bytes of the program (0.90 times)",
        "better: 2 -> 1 delegates (0.50 times)",
    ]
    assert not list(directions(before, before))
    assert not list(directions(before, Reading("lower: no")))


def test_planned_memory_is_told_by_arena_where_there_are_several() -> None:
    (line,) = directions(Reading(None, memory=(64,)), Reading(None, memory=(64, 32)))
    assert line == "worse: 64 -> 96 bytes of planned memory (1.50 times): by arena 64 -> 64 + 32"


def test_a_change_begins_with_them(texts: dict[str, str]) -> None:
    before = measured(reading(texts))["memory"]
    found = verdict.changed(CELL, texts, planned(texts, 3 * before))
    assert found.detail[0] == f"worse: {before:,} -> {3 * before:,} bytes of planned memory (3.00 times)"
    assert "pte.txt" in found.reason
    assert any("pte.txt" in line for line in found.detail[1:])


@pytest.mark.parametrize(
    ("pattern", "most", "lines"),
    [
        (
            "xnnpack-*/alpha",
            99,
            ["100 bytes of planned memory, and 99 are in the budget (xnnpack-*/alpha: memory)"],
        ),
        ("xnnpack-*/alpha", 100, []),
        ("xnnpack-*/alpha", 10**9, []),
        ("tosa-*/alpha", 99, []),
    ],
    ids=["over", "at it", "under", "of other cells"],
)
def test_a_budget_fails_in_one_direction_only(
    texts: dict[str, str], pattern: str, most: int, lines: list[str]
) -> None:
    assert list(over(CELL, planned(texts, 100), {pattern: {"memory": most}})) == lines


# Runs


def test_a_run_fails_over_a_budget_and_records_nothing_there(runner: Runner, artifacts: Artifacts) -> None:
    own = replace(runner, directory=runner.folder)
    own.zoo("own_zoo", "alpha")
    own.answers({"alpha": artifacts["steady"][0]})

    def budget(text: str) -> None:
        table = f'[tool.goldens]\nmodels = ["own_zoo"]\ntargets = ["xnnpack-fp32"]\n{text}'
        (own.folder / "pyproject.toml").write_text(table)

    budget('budgets = { "*/alpha" = { program = 10 } }')
    for words in ((), (UPDATE,)):
        finished = own(*words)
        assert finished.code == 1, finished.output
        assert set(finished.verdicts().values()) == {"over-budget"}
        assert "bytes of the program, and 10 are in the budget (*/alpha: program)" in finished.output
    assert not list(own.root.glob("*/*"))
    budget('budgets = { "*/alpha" = { program = 1000000 } }')
    assert set(own(UPDATE).verdicts().values()) == {"new"}
    assert set(own().verdicts().values()) == {"stable"}


def test_a_budget_of_no_cell_is_refused(runner: Runner) -> None:
    own = replace(runner, directory=runner.folder)
    own.zoo("own_zoo", "alpha")
    (own.folder / "pyproject.toml").write_text(
        '[tool.goldens]\nmodels = ["own_zoo"]\nbudgets = { "*/alhpa" = { memory = 1 } }\n'
    )
    own().refused("[tool.goldens] budgets: '*/alhpa' is the pattern of no cell")


#: A case of the situations, and the fix that it is of taken back in whatever release is installed.
MASKS = """
from harness import case, patches
from harness.patches import Patch
from models.situations import float_types
from tests.mutants.history import FIXES

(FIX,) = [fix for fix in FIXES if fix.number == 17734]
patches.register(Patch("masks-outside", None, FIX.broke, {{{release!r}: {{}}}}, FIX.install))


@case(guards="truth values in a delegate need no memory", backends=("tosa-fp",))
def masks(data):
    return float_types.mask_logic(data)
"""


@pytest.mark.slow
def test_a_fix_taken_back_that_costs_memory_and_makes_nothing_wrong_is_over_budget(runner: Runner) -> None:
    own = replace(runner, directory=runner.folder)
    (own.folder / "masks_zoo.py").write_text(MASKS.format(release=own.release))
    declared = releases.load().release(own.release).patches
    taken_back = ("--patches", ",".join([*declared, "masks-outside"]), "--hash-seeds", "0")

    def budget(memory: int) -> None:
        table = '[tool.goldens]\nmodels = ["masks_zoo"]\ntargets = ["tosa-fp"]\n'
        limit = f'[tool.goldens.budgets]\n"tosa-fp/masks" = {{ memory = {memory} }}\n'
        (own.folder / "pyproject.toml").write_text(table + limit)

    # Two inputs and an output of eight float32.
    budget(96)
    assert own(UPDATE, "--hash-seeds", "0,4").verdicts() == {"tosa-fp/masks": "new"}
    finished = own(*taken_back)
    assert finished.code == 1, finished.output
    assert finished.verdicts() == {"tosa-fp/masks": "over-budget"}
    (more,) = re.findall(r"(\d+) bytes of planned memory, and 96 are in the budget", finished.output)
    # What is within the higher budget differs from its golden, and is right; with the fix there is less.
    budget(int(more))
    finished = own(*taken_back)
    assert finished.verdicts() == {"tosa-fp/masks": "changed"}
    assert f"worse: 96 -> {more} bytes of planned memory" in finished.output
    assert own("--hash-seeds", "0").verdicts() == {"tosa-fp/masks": "stable"}
