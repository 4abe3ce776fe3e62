"""Exceptions of the harness's own code: the cell's verdict names the harness, and the run continues."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from executorch_goldens.exporting import running
from executorch_goldens.exporting.blame import OwnError
from executorch_goldens.exporting.numerics import arithmetic
from tests.exports.conftest import exported
from tests.support.runner import Runner

pytestmark = pytest.mark.usefixtures("own_flatc")

BROKEN = "tosa-fp/broken-judge"
STEADY = ("tosa-fp/a-steady-one", "tosa-fp/one-more-steady-one")


@pytest.mark.slow
def test_an_error_of_the_harness_costs_its_cell_and_the_run_goes_on(tmp_path: Path, release: str) -> None:
    runner = Runner(tmp_path, release)
    cells = [word for cell in (BROKEN, *STEADY) for word in ("--cell", cell)]
    finished = runner(
        "--models", "tests.support.zoo_judge", *cells, "--variations", "0,4", "--snapshot-update"
    )
    assert finished.code == pytest.ExitCode.TESTS_FAILED, finished.output
    assert finished.verdicts() == {STEADY[0]: "new", BROKEN: "crashed", STEADY[1]: "new"}
    # Neither recorded nor known, and the others are.
    assert [finished.rows[cell]["recorded"] for cell in STEADY] == [True, True]
    assert not any(finished.rows[BROKEN][name] for name in ("recorded", "known"))
    assert not any("broken-judge" in path.read_text() for path in runner.goldens.rglob("*.t*"))
    raised = "seed0-heap0: the harness itself failed (stage run): RuntimeError: permute"
    assert finished.reason(BROKEN).startswith(raised)
    shown, *_ = (line for line in finished.output.splitlines() if line.startswith(f"crashed: {BROKEN}"))
    assert raised in shown
    assert "exporting/numerics/programs.py, line " in shown
    assert shown.endswith("please report it as a defect of the harness")
    folder = runner.sweeps / BROKEN
    assert f"  files:  {folder}" in finished.output.splitlines()
    log = (folder / "log-seed0-heap0.txt").read_text()
    assert log.startswith("what the harness found out before\n")
    assert "\nTraceback (most recent call last):\n" in log
    assert log.splitlines()[-1].startswith("OwnError: ")


def test_what_only_moved_roundings_raise_is_the_harness_in_torchs_own_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eager computes the model: that the harness takes it apart so that torch refuses is no failure of its export."""
    monkeypatch.setitem(arithmetic.FORMULAS, "cosh", lambda x: -(x > 0))  # type: ignore[index]
    with pytest.raises(OwnError) as raised:
        exported(Cosh(), torch.linspace(-1.0, 1.0, 6))
    assert raised.value.casualty.stage == "export"
    assert "Negation, the `-` operator, on a bool tensor is not supported" in raised.value.casualty.error
    assert "exporting/numerics/rounding.py, line " in raised.value.casualty.where


def test_what_the_harness_raises_once_the_program_ran_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "lost", lambda *_: {}["nothing"])
    with pytest.raises(OwnError, match="KeyError: 'nothing'"):
        exported(Cosh(), torch.linspace(-1.0, 1.0, 6))


def test_memory_that_is_not_given_once_the_program_ran_is_no_error_of_the_harness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")

    monkeypatch.setattr(running, "lost", lost)
    with pytest.raises(MemoryError):
        exported(Cosh(), torch.linspace(-1.0, 1.0, 6))


class Cosh(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cosh()
