"""Runs over a budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from executorch_goldens.goldens.decisions import BUDGET, FILE, Decision, write
from executorch_goldens.goldens.quantities import BudgetLimits
from tests.conftest import Artifacts
from tests.support.runner import Runner

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
