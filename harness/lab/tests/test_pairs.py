"""The matrix of situations: its array, its models, its zoo."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import torch

from executorch_goldens import cli
from executorch_goldens.zoo.targets import TARGETS
from lab.__main__ import main
from lab.pairs import rows, text, wider
from lab.pairs.factors import FACTORS, OPERATORS, RULES, Row
from lab.pairs.wider import SYMBOLIC

ROWS = rows.read()


def run(row: Row) -> None:
    """Run a model, and export it where a size is symbolic."""
    made: dict[str, Any] = {}
    exec(text.source(row), made)
    outputs = made["Model"]()(*made["inputs"])
    if row.sized in SYMBOLIC:
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


WIDER = rows.read(rows.WIDER)


def test_the_wider_matrix_has_every_target_dtype_and_operator_and_follows_its_rules() -> None:
    for row in WIDER.values():
        assert all(holds(row._asdict()) for _, holds in wider.RULES)
    assert {row.target for row in WIDER.values()} == {*TARGETS}
    assert {row.dtype for row in WIDER.values()} == {*wider.DTYPES}
    assert {row.operator for row in WIDER.values()} == {*wider.OPERATORS}
    of_both = {(row.operator, row.target) for row in WIDER.values()}
    assert len(of_both) > 0.85 * len(wider.OPERATORS) * len(TARGETS)


@pytest.mark.parametrize("name", list(WIDER)[::101])
def test_a_model_of_the_wider_matrix_is_python_that_torch_runs(name: str) -> None:
    run(WIDER[name])


def test_factors_of_the_wider_matrix_are_seen_in_the_text() -> None:
    row = Row(
        "add", 0, "float32", 4, "tosa-fp", "same view", "detach", "constant", "contiguous", "one", "plain"
    )
    assert "x = given.reshape(given.shape)" in text.source(row)
    assert "after = made.detach()" in text.source(row)
    held = {name: text.source(row._replace(held=name)) for name in wider.HELD}
    assert 'register_buffer("constant"' in held["buffer"]
    assert "self.constant = (" in held["literal"]
    assert ").transpose(0, -1).contiguous().transpose(0, -1))" in held["permuted buffer"]
    assert "channels_last" in held["channels-last buffer"]
    assert ".chunk(2, -1)[1])" in held["part of a buffer"]
    assert ".reshape((1, 4, 1, 5))" in text.source(row._replace(sized="ones"))
    assert "again = torch.add(x, y)" in text.source(row._replace(users="computed twice"))
    assert "return after, after" in text.source(row._replace(users="returned twice"))
    apart = row._replace(shared="apart")
    assert "dynamic_shapes = ({3: last}, {3: last}, )" in text.source(apart._replace(sized="last"))
    assert "dynamic_shapes = ({0: first, 3: last}, {3: last}, )" in text.source(
        apart._replace(sized="first and last", shared="broadcast")
    )
    assert "torch.int32" in text.source(apart._replace(shared="another type"))
    assert ".reshape(())" in text.source(row._replace(shared="scalar"))
