"""How near programs are to eager, how near they had to be, and the table of it."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.artifact import Lowered, Sample, Tensor
from harness.cli import main
from harness.commands.tolerances import PARTS, table
from harness.judging.accuracy import Accuracy
from harness.results import FILE
from tests.conftest import Artifacts, Runner


def program(actual: list[float], spread: list[float] | None = None) -> Lowered:
    """A program that should give 4 and 2, on the example alone."""
    values = (Tensor.of(np.float32([4.0, 2.0])),)
    spreads = (Tensor.of(np.float32(spread)),) if spread else ()
    sample = Sample("example", values, (Tensor.of(np.float32(actual)),), spreads)
    return Lowered("", (), b"", (sample,), 0.0, ())


def test_the_worst_element_counts_for_its_own_tolerance_and_not_for_the_widest() -> None:
    found = Accuracy.of(program([4.2, 2.1], [0.5, 0.1]))
    assert found.error == pytest.approx(0.05)
    assert found.tolerance == pytest.approx(1.5 / 4.0)
    # Three times the root mean square of the spreads is 1.08, and so is the second element's tolerance.
    assert found.used == pytest.approx(0.2 / 1.5, rel=1e-5)
    near = program([4.0, 2.1], [0.5, 0.1])
    assert Accuracy.of(near).used == pytest.approx(0.1 / (3.0 * math.sqrt((0.25 + 0.01) / 2)), rel=1e-5)


def test_what_is_exact_takes_nothing_and_what_may_not_move_takes_all() -> None:
    exact = program([4.0, 2.0], [0.0, 0.0])
    assert Accuracy.of(exact) == Accuracy(0.0, 0.0, 0.0)
    assert Accuracy.of(replace(program([4.0, 2.5], [0.0, 0.0]))).used == math.inf


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
    runner("--models", runner.zoo("one", "alpha"), "--cell", "xnnpack-fp32/alpha", "--hash-seeds", "0")
    results = shutil.copytree(runner.sweeps, tmp_path / "results")
    assert main(["tolerances", str(results)]) == 0
    assert f"| {release} | xnnpack-fp32 | 1 | 1 | - |" in capsys.readouterr().out
    file = results / FILE
    file.write_text(re.sub(r', "used": [^,]+', "", file.read_text()))
    assert main(["tolerances", str(results)]) == 2
    assert "earlier version" in capsys.readouterr().err
