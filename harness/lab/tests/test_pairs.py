"""The matrix of situations: its array, its models, its zoo."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import torch

from executorch_goldens import cli
from lab.__main__ import main
from lab.pairs import rows, text
from lab.pairs.factors import FACTORS, OPERATORS, RULES, Row

ROWS = rows.read()


def run(row: Row) -> None:
    """Run a model, and export it where a size is symbolic."""
    made: dict[str, Any] = {}
    exec(text.source(row), made)
    outputs = made["Model"]()(*made["inputs"])
    if row.sized == "symbolic":
        torch.export.export(made["Model"](), made["inputs"], dynamic_shapes=made["dynamic_shapes"])
    assert all(each.numel() and bool(torch.isfinite(each.float()).all()) for each in outputs)


def test_every_row_follows_the_rules_and_comes_once() -> None:
    for row in ROWS.values():
        assert all(holds(row._asdict()) for _, holds in RULES)
    assert max(Counter(ROWS.values()).values()) == 1


def test_nearly_every_pair_of_values_that_fit_is_in_some_row() -> None:
    wanted, lacking = 0, []
    for one, other in itertools.combinations(FACTORS, 2):
        rules = [holds for fields, holds in RULES if {one, other} == {*fields}]
        found = {(getattr(row, one), getattr(row, other)) for row in ROWS.values()}
        for pair in itertools.product(FACTORS[one], FACTORS[other]):
            values = dict(zip((one, other), pair, strict=True))
            if all(holds(values) for holds in rules):
                wanted += 1
                lacking += [values] if pair not in found else []
    # Those that are lacking go only with a third that excludes them, or PyTorch does not run their rows.
    assert len(lacking) < wanted * 0.08, lacking


@pytest.mark.parametrize("name", list(ROWS)[::37])
def test_a_model_is_python_that_torch_runs(name: str) -> None:
    run(ROWS[name])


def test_factors_are_seen_in_the_text() -> None:
    plain = Row("add", 0, "float32", 3, "tosa-fp", "permute", "cat", "apart", "contiguous", "one", "plain")
    said = text.source(plain)
    assert "x = given.permute(2, 0, 1)" in said
    assert "made = torch.add(x, y)" in said
    assert "after = torch.cat((made, made), -1)" in said
    assert "y = x\n" in text.source(plain._replace(shared="one twice"))
    assert "self.state.add_(x)" in text.source(plain._replace(shared="state"))
    assert "torch.export.Dim" in text.source(plain._replace(sized="symbolic", before="nothing"))


def test_every_operator_is_on_most_targets() -> None:
    of_operator = Counter(row.operator for row in ROWS.values())
    assert {*of_operator} == {*OPERATORS}
    assert min(of_operator.values()) >= 4


def test_the_command_shows_a_model_and_refuses_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pairs", "--show", "pairs-0001"]) == cli.SAME
    made: dict[str, Any] = {}
    exec(capsys.readouterr().out, made)
    assert {"Model", "inputs"} <= {*made}
    assert main(["pairs", "--show", "pairs-9999"]) == cli.ERROR
    assert "'pairs-9999'" in capsys.readouterr().err
