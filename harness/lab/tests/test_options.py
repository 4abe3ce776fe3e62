"""The matrix of options: its arrays, its releases, its errors, its programs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch_goldens import Build, cli
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.numerics import programs
from executorch_goldens.zoo.registry import load
from lab.__main__ import main
from lab.options import cases, factors, rows
from lab.options.command import counted
from lab.options.factors import LACKED, OPTIONS, RELEASES, Row
from lab.options.programs import WrongUseError, is_there, program

ROWS = cases.all_rows()


@pytest.mark.parametrize("array", cases.ARRAYS, ids=lambda array: array.name)
def test_no_row_is_lacking_for_a_pair_of_values_that_the_rules_allow(array: rows.Array) -> None:
    assert array.file.read_text(encoding="utf-8") == rows.text(array, rows.drawn(array))


def test_a_value_that_is_in_no_row_gets_some_and_the_others_stay(tmp_path: Path) -> None:
    (array, _), few = cases.ARRAYS, ("model", "scheme", "lowering")
    factors_of = {name: array.factors[name] for name in few}
    before = replace(array, file=tmp_path / "rows.tsv", factors=factors_of, rules=())
    before.file.write_text(rows.text(before, ()))
    every = rows.drawn(before)
    before.file.write_text(rows.text(before, every))
    assert rows.drawn(before) == every
    made = rows.drawn(replace(before, factors={**factors_of, "views": array.factors["views"]}))
    assert made[: len(every)] == every
    pairs = itertools.product(array.factors["model"], array.factors["views"])
    assert {(row.model, row.views) for row in made} == {*pairs}


@pytest.mark.parametrize("array", cases.ARRAYS, ids=lambda array: array.name)
def test_every_row_follows_the_rules_comes_once_and_is_for_some_release(array: rows.Array) -> None:
    found = list(rows.read(array).values())
    assert all(holds(row._asdict()) for row in found for _, holds in array.rules)
    assert len({*found}) == len(found)
    assert all(map(cases.releases_of, found))


def test_a_row_with_an_option_that_a_release_lacks_is_left_out_of_it() -> None:
    row = factors.row(model="attention", backend=factors.INT_TOSA, quantized="static", pipeline="infinities")
    assert cases.releases_of(row) == ("1.4.1", "1.5.1")
    zoo = load(["lab.options.zoo"])
    for release in RELEASES:
        there, lacking = counted(release)
        assert there == sum(release in case.releases for case in zoo.values())
        assert there + sum(lacking.values()) == len(zoo)


def test_the_releases_of_an_option_are_those_that_have_it() -> None:
    release = compat.installed_release()
    for name, values in OPTIONS.items():
        for value, option in values.items():
            has = all(map(is_there, option.needs))
            if option.needs and value != factors.LATER_TOSA:
                assert has == (release in option.releases), (name, value)
    assert not [says for says, need in LACKED.items() if is_there(need)]


def _program(**given: str) -> Any:
    return program(factors.row(**given), Build("options"))


def test_an_option_that_the_release_lacks_is_an_error_of_the_case() -> None:
    with pytest.raises(WrongUseError, match=r"lacks .*SDPASafeSoftmaxGuardPolicy\.REMOVE"):
        _program(model="linear", backend=factors.INT_TOSA, quantized="static", pipeline="guards")


def test_a_value_that_an_option_does_not_have_is_an_error_of_the_case() -> None:
    with pytest.raises(WrongUseError, match="grouping has no value 'by colour'"):
        _program(model="linear", grouping="by colour")


def test_a_wrong_use_that_the_release_refuses_is_an_error_of_the_case() -> None:
    # The operator that quantizes the input is in the delegate by then.
    with pytest.raises(WrongUseError, match=r"io 'int8' wrongly: .*not used by a quantize op") as raised:
        _program(model="linear", backend=factors.LATER_TOSA, quantized="static", scope="with io", io="int8")
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("name", ["xnnpack-0001", "tosa-0001"])
def test_a_program_of_a_row_is_lowered(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[name]
    # Where dumps go.
    monkeypatch.chdir(tmp_path)
    if compat.installed_release() in cases.releases_of(row):
        assert program(row, Build(name)).buffer


def test_the_options_of_a_row_reach_the_program() -> None:
    plain = _program(model="linear")
    padded = _program(model="linear", alignment="wider")
    assert len(padded.buffer) > len(plain.buffer)
    outside = _program(model="linear", precisions="class", quantized="dynamic", constants="outside")
    assert not plain._tensor_data
    assert outside.buffer


def test_a_program_of_uint8_gives_in_the_reference_model_what_eager_gives() -> None:
    # Far from 0 on both sides: as int8, half of them would be negative.
    build = Build("options")
    row = factors.row(
        model="convolution", backend=factors.INT_TOSA, quantized="static", scope="with io", io="uint8"
    )
    graph = program(row, build).exported_program().graph_module
    (lowered,) = (module for name, module in graph.named_children() if name.startswith("lowered_module"))
    method = build.methods["forward"]
    assert method.example is not None
    assert method.quantized is not None
    (made,) = programs.run_tosa(lowered, method.example.inputs)
    expected = method.quantized(*method.example.inputs)
    assert made.dtype == expected.dtype == torch.uint8
    assert (made.int() - expected.int()).abs().max() <= 1


def test_the_command_counts_what_is_left_out_and_shows_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["options"]) == cli.SAME
    assert "left out, by their first option that it lacks: " in capsys.readouterr().out
    assert main(["options", "--show", "tosa-0000"]) == cli.SAME
    assert "releases: " in capsys.readouterr().out
    assert main(["options", "--show", "tosa-9999"]) == cli.ERROR
    assert "'tosa-9999'" in capsys.readouterr().err


def test_defaults_are_the_first_values() -> None:
    assert factors.row(model="linear") == Row(model="linear", **factors.PLAIN)
