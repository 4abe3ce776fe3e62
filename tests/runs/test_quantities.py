"""Runs over a budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.goldens.decisions import BUDGET, FILE, Decision, Decisions, write
from executorch_goldens.goldens.quantities import BudgetLimits, measured
from executorch_goldens.judging.comparison import compare
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from lab.mutants.mutant import Mutated
from tests.conftest import Artifacts
from tests.support.runner import RUN_LIMIT, Runner
from tests.support.screens import of_verdict

UPDATE = "--snapshot-update"


@pytest.mark.slow
def test_a_run_fails_over_a_budget_and_records_nothing_there(runner: Runner, artifacts: Artifacts) -> None:
    own = replace(runner, directory=runner.folder)
    own.zoo("own_zoo", "alpha")
    own.answers({"alpha": artifacts["steady"][0]})

    table = '[tool.goldens]\nmodels = ["own_zoo"]\ntargets = ["xnnpack-fp32"]\n'
    (own.folder / "pyproject.toml").write_text(table)
    own.goldens.mkdir()
    write(own.goldens, [Decision(BUDGET, limits=BudgetLimits(program=10), cells=("*/alpha",))])
    for words in ((), (UPDATE,)):
        finished = own(*words)
        assert finished.code == 1, finished.output
        assert set(finished.verdicts().values()) == {"over-budget"}
        assert "bytes of the program, and 10 are in the budget (*/alpha: program)" in finished.output
    assert not list(own.root.glob("*/*"))
    write(own.goldens, [Decision(BUDGET, limits=BudgetLimits(program=1000000), cells=("*/alpha",))])
    assert set(own(UPDATE).verdicts().values()) == {"new"}
    assert set(own().verdicts().values()) == {"stable"}


@pytest.mark.parametrize(
    ("cell", "near"), [("tosa-int/alhpa", "tosa-int/alpha"), ("tosa-itn/alpha", "tosa-int/alpha")]
)
def test_a_decision_about_no_cell_is_refused_also_where_others_are_run(
    runner: Runner, cell: str, near: str
) -> None:
    own = replace(runner, directory=runner.folder)
    own.zoo("own_zoo", "alpha")
    (own.folder / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["own_zoo"]\n')
    own.know({cell: "corrupt: an issue"})
    fact = f'{own.goldens / FILE}: what = "known": {cell!r} is of no cell (did you mean {near!r}?)'
    own("--cell", "tosa-fp/alpha").refused(fact)


def test_a_budget_of_no_cell_is_refused(runner: Runner) -> None:
    own = replace(runner, directory=runner.folder)
    own.zoo("own_zoo", "alpha")
    (own.folder / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["own_zoo"]\n')
    own.decide(Decision(BUDGET, limits=BudgetLimits(memory=1), cells=("*/alhpa",)))
    own().refused(f"{own.goldens / FILE}: what = \"budget\": '*/alhpa' is of no cell")


@pytest.mark.slow
def test_a_fix_taken_back_that_costs_memory_and_makes_nothing_wrong_is_over_budget(release: str) -> None:
    masks = Cell("tosa-fp", "masks")
    taken_back = Mutated(masks.target, masks.case, "masks-outside")
    matrix = releases.load().release(release)
    settings = Settings(default_interpreter(), ("tests.support.zoo_masks",), matrix.patches, 1, RUN_LIMIT)
    with Sweep(
        [masks, taken_back], variations((0,)), settings, further_patches={taken_back: ("masks-outside",)}
    ) as sweep:
        sound, worse = sweep.outcomes(masks), sweep.outcomes(taken_back)
    recorded = compare(masks, sound, None, matrix).record
    memory = measured(recorded.inventory)["memory"]

    def judge(outcomes: Sequence[Outcome], most: int) -> Verdict:
        budget = Decision(BUDGET, limits=BudgetLimits(memory=most), cells=("*/masks",))
        return compare(masks, outcomes, recorded, matrix, Decisions(stated=(budget,))).verdict

    assert judge(sound, memory).name == "stable"
    over = judge(worse, memory)
    assert over.name == "over-budget"
    (more,) = re.findall(
        rf": ([\d,]+) bytes of planned memory, and {memory:,} are in the budget", of_verdict(over)
    )
    # Within a higher budget it is right and differs from its golden; one that needs less is never over it.
    within = judge(worse, int(more.replace(",", "")))
    assert within.name == "changed"
    assert f"\nworse: {memory:,} -> {more} bytes of planned memory" in of_verdict(within)
    assert judge(sound, 10**9).name == "stable"
