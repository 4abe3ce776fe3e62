"""The table of how much of their tolerances programs take."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from executorch_goldens.results.rows import FILE
from lab.__main__ import main
from lab.tolerances.command import PARTS, table
from tests.conftest import Artifacts
from tests.support.runner import Runner


def row(target: str, case: str, difference: float | None, used: float | None) -> dict[str, object]:
    return {"target": target, "case": case, "difference": difference, "tolerance": difference, "used": used}


def test_a_line_counts_cells_by_the_part_of_the_tolerance_that_they_take() -> None:
    rows = [
        row("tosa-int", "exact", 0.0, 0.0),
        row("tosa-int", "near", 0.01, 0.05),
        row("tosa-int", "far", 0.03, 0.95),
        row("tosa-int", "wrong", None, None),
        row("tosa-fp", "exact", 0.0, 0.0),
    ]
    head, _, fp, int8 = table(("1.4.1", each) for each in rows)
    assert head.count("|") == fp.count("|") == int8.count("|") == len(PARTS) + 8
    assert fp.split(" | ")[2:6] == ["1", "1", "-", "-"]
    counts = ["1", *("0" for _ in PARTS[1:-1]), "1"]
    assert int8.split(" | ")[2:] == ["3", "1", "2.0e-02, 3.0e-02", "2.0e-02, 3.0e-02", *counts, "far, 0.95 |"]


def test_results_of_an_earlier_version_are_refused(
    tmp_path: Path,
    runner: Runner,
    release: str,
    artifacts: Artifacts,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runner.answers({"alpha": artifacts["steady"][0]})
    runner("--models", runner.zoo("one", "alpha"), "--cell", "xnnpack-fp32/alpha", "--variations", "1")
    results = shutil.copytree(runner.sweeps, tmp_path / "results")
    assert main(["tolerances", str(results)]) == 0
    assert f"| {release} | xnnpack-fp32 | 1 | 1 | - |" in capsys.readouterr().out
    file = results / FILE
    file.write_text(re.sub(r', "used": [^,]+', "", file.read_text()))
    assert main(["tolerances", str(results)]) == 2
    assert "earlier version" in capsys.readouterr().err
