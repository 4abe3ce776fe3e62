"""A case whose own code raises: the verdict names its line, and no golden holds one."""

from __future__ import annotations

import pytest

from tests.support.runner import Finished, Runner

pytestmark = [pytest.mark.usefixtures("own_flatc"), pytest.mark.slow]

ZOO = """
import torch
from executorch_goldens import Data, Example, case


class Narrow(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.linear(x, torch.ones(2, 5))


@case(guards="its build raises")
def builds(data: Data) -> Example:
    raise KeyError("no weights")


@case(guards="torch raises in its forward")
def computes(data: Data) -> Example:
    return Example(Narrow(), (data.tensor("x", 1, 4),))


@case(guards="it does not raise")
def steady(data: Data) -> Example:
    return Example(torch.nn.ReLU(), (data.tensor("x", 1, 4),))
"""
CELLS = ("tosa-fp/builds", "tosa-fp/computes", "tosa-fp/steady")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, release: str) -> Finished:
    runner = Runner(tmp_path_factory.mktemp("raising"), release)
    (runner.folder / "zoo_raising.py").write_text(ZOO)
    cells = [word for cell in CELLS for word in ("--cell", cell)]
    return runner(
        "--models", "zoo_raising", *cells, "--variations", "0,4,5", "--jobs", "1", "-v", "--snapshot-update"
    )


def line_of(text: str) -> int:
    return ZOO.splitlines().index(text) + 1


def test_the_line_of_the_case_that_raises_is_named_whoever_raises(finished: Finished) -> None:
    assert finished.verdicts() == {
        "tosa-fp/builds": "failed",
        "tosa-fp/computes": "failed",
        "tosa-fp/steady": "new",
    }
    for cell, function, text in (
        ("tosa-fp/builds", "builds", '    raise KeyError("no weights")'),
        ("tosa-fp/computes", "forward", "        return torch.nn.functional.linear(x, torch.ones(2, 5))"),
    ):
        _, _, shown = finished.output.partition(f"failed: {cell} on ExecuTorch ")
        place = f"zoo_raising.py, line {line_of(text)}, in {function}, under "
        assert place in shown.partition("again:")[0]
        # Where a line stands is no part of the cause.
        assert ", line " not in finished.reason(cell)


def test_a_case_that_raised_under_one_variation_is_exported_under_no_other(finished: Finished) -> None:
    assert finished.output.count(", under 1 variation") == 2
    counts = {cell: len(row["variations"]) for cell, row in finished.rows.items()}
    assert counts == {"tosa-fp/builds": 1, "tosa-fp/computes": 1, "tosa-fp/steady": 3}
