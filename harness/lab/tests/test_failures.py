"""The table of failures: one line per cause, from goldens alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.cli import ERROR, SAME
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.causes import cause
from executorch_goldens.goldens.decisions import KNOWN, Decision, write
from executorch_goldens.goldens.record import FAILURE, Record
from lab.__main__ import main
from lab.failures.command import table

TEXT = """\
stage: lower
type: torch._export.verifier.SpecViolationError
pass: SomePass
function: executorch.exir.f
message: Input spec name _lifted_tensor_constant2 does not match
  a second line: with a colon
"""


def test_a_cause_has_no_names_and_one_line() -> None:
    assert cause(TEXT) == ("lower, SomePass", "SpecViolationError: Input spec name … does not match")
    assert cause(TEXT) == cause(TEXT.replace("constant2", "constant7"))


def test_a_cause_without_a_pass_is_a_stage() -> None:
    assert cause(TEXT.replace("SomePass", "-")).where == "lower"


def test_cells_of_one_cause_share_a_line(tmp_path: Path) -> None:
    for version, case in [("1.1.0", "one"), ("1.5.1", "one"), ("1.5.1", "two")]:
        record = Record({"variations": "seed0-heap0 seed4-heap1"}, {FAILURE: TEXT})
        golden.write(tmp_path / version / "tosa-fp" / f"{case}.txt", record)
    (line,) = [line for line in table(tmp_path) if "SpecViolationError" in line]
    assert line.endswith("| tosa-fp/one (1.1.0, 1.5.1); tosa-fp/two (1.5.1) |")


def test_in_another_repository_it_speaks_of_the_defects_that_this_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "goldens").mkdir()
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.goldens]\nmodels = ["firmware"]\n')
    monkeypatch.chdir(tmp_path)
    assert main(["failures"]) == SAME
    assert capsys.readouterr().out.splitlines()[2:] == []
    defect = Decision(KNOWN, "corrupt", why="ours", releases=("1.4.1",), cells=("tosa-fp/net",))
    write(tmp_path / "goldens", [defect])
    assert main(["failures"]) == SAME
    assert capsys.readouterr().out.splitlines()[2:] == ["| known: corrupt | ours | tosa-fp/net (1.4.1) |"]


def test_a_root_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["failures", "--goldens", "/nowhere"]) == ERROR
    assert "/nowhere is not a folder" in capsys.readouterr().err
