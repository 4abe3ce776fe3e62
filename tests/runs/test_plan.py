"""``goldens run --plan``: the plan of a run, printed; and ``--help-all``."""

from __future__ import annotations

import pytest

from executorch_goldens import cli
from executorch_goldens.judging.updating import UPDATE
from tests.support.runner import Runner

ZOO = """\
from executorch_goldens.registry import case


@case(guards="nothing", name="alpha")
def build(data):
    raise NotImplementedError
"""


@pytest.fixture
def planned(runner: Runner) -> Runner:
    (runner.folder / "zoo_alpha.py").write_text(ZOO)
    return runner


def test_a_plan_names_what_would_be_done_and_does_nothing(planned: Runner) -> None:
    finished = planned("--models", "zoo_alpha", "--cell", "tosa-fp/*", "--variations", "0,4", "--plan")
    assert finished.code == 0, finished.output
    lines = dict(line.split(":", 1) for line in finished.output.splitlines() if ":" in line)
    assert lines["release"].split()[0] == planned.release
    assert lines["variations"].split() == ["seed0-heap0", "seed4-heap1"]
    assert lines["goldens"].endswith("1 of these cells have none; none is written")
    assert lines["exports"].startswith("    2, ")
    assert finished.output.splitlines()[-1] == "  tosa-fp/alpha"
    assert not planned.goldens.exists()
    assert not planned.sweeps.exists()


def test_a_plan_says_what_would_be_recorded(planned: Runner) -> None:
    finished = planned("--models", "zoo_alpha", "--cell", "tosa-fp/*", UPDATE, "--plan")
    assert "have none; right cells are recorded" in finished.output
    assert not planned.goldens.exists()


def test_a_plan_of_what_there_is_not_is_refused(planned: Runner) -> None:
    planned("--models", "zoo_alpha", "--cell", "tosa-fp/beta", "--plan").refused(
        "unknown case 'beta'", "alpha"
    )


def test_the_first_help_leaves_out_what_the_other_has(capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for word in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            cli.main(["run", word])
        assert ended.value.code == 0
        said[word] = capsys.readouterr().out
    assert "--isolation" not in said["--help"]
    assert "--isolation" in said["--help-all"]
    assert all(
        line in said["--help-all"] for line in said["--help"].splitlines() if line.startswith("  --plan")
    )
