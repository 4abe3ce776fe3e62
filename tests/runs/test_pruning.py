"""Stale goldens: when they are reported, and when they are pruned."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Artifacts
from tests.runs.conftest import TARGETS, UPDATE, WHOLE
from tests.support.runner import Runner

STALE = {f"{target}/beta" for target in TARGETS}


@pytest.mark.parametrize("asked", [(), (UPDATE,)], ids=["reading", "updating"])
def test_a_stale_golden_is_reported_and_fails_a_whole_run(shrunk: Runner, asked: tuple[str, ...]) -> None:
    before = shrunk.files()
    finished = shrunk(*WHOLE, *asked)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert set(finished.verdicts().values()) == {"stable"}
    for cell in STALE:
        assert f"stale: {shrunk.root / cell}: a golden with no matching cell" in finished.output
    again = (
        f"--goldens={shrunk.goldens} --sweeps={shrunk.folder / 'sweeps'} {' '.join(WHOLE)} {UPDATE} --prune"
    )
    assert again in finished.output
    assert shrunk.files() == before


def test_a_whole_green_update_prunes_what_is_stale_and_nothing_else(shrunk: Runner) -> None:
    shutil.copytree(shrunk.root, shrunk.goldens / "1.0.0")
    before = shrunk.files()
    finished = shrunk(*WHOLE, UPDATE, "--prune")
    assert finished.code == 0, finished.output
    assert shrunk.recorded() == {f"{target}/alpha" for target in TARGETS}
    for cell in STALE:
        assert f"prune: {shrunk.root / cell}" in finished.output
    after = shrunk.files()
    gone = {name for name in before if name.startswith(f"{shrunk.release}/") and "/beta/" in name}
    assert after == {name: file for name, file in before.items() if name not in gone}
    assert shrunk(*WHOLE).code == 0


def test_pruning_is_refused_to_a_run_that_only_reads(shrunk: Runner) -> None:
    before = shrunk.files()
    shrunk(*WHOLE, "--prune").refused("--prune", UPDATE)
    assert shrunk.files() == before


def test_what_is_no_golden_is_never_deleted(shrunk: Runner) -> None:
    foreign = shrunk.root / "tosa-fp" / "notes"
    foreign.mkdir()
    edited = shrunk.root / "tosa-fp" / "beta"
    for file in (
        *(
            shrunk.root / ".DS_Store",
            shrunk.root / "tosa-fp" / ".DS_Store",
            shrunk.root / "tosa-fp" / "mine.txt",
        ),
        *(foreign / "graph.txt", edited / "notes.txt"),
    ):
        file.write_text("mine")
    before = shrunk.files()
    finished = shrunk(*WHOLE, UPDATE, "--prune")
    assert finished.code == 0, finished.output
    for path in (foreign, edited):
        assert f"not a golden: {path}: " in finished.output
    after = shrunk.files()
    gone = {str(Path(name).parent) for name in before.keys() - after.keys()}
    assert gone == {f"{shrunk.release}/{cell}" for cell in STALE if cell != "tosa-fp/beta"}
    assert after.items() <= before.items()


@pytest.mark.parametrize(
    "limited",
    [
        ("-k", "tosa"),
        ("--cell", "tosa-fp/*"),
        ("--deselect", "harness/executorch_goldens/running/cells.py::test_golden[tosa-fp/alpha]"),
        ("--collect-only",),
        ("--snapshot-update", "--maxfail", "1", "-k", "int8"),
    ],
    ids=["-k", "--cell", "--deselect", "--collect-only", "--maxfail"],
)
def test_a_run_that_does_not_see_every_cell_prunes_nothing(shrunk: Runner, limited: tuple[str, ...]) -> None:
    before = shrunk.files()
    finished = shrunk(*WHOLE, UPDATE, "--prune", *limited)
    assert finished.code == 0, finished.output
    assert "prune: " not in finished.output
    assert shrunk.files() == before


@pytest.mark.parametrize("stop", [(), ("-x",)], ids=["to the end", "-x"])
def test_a_failing_cell_forbids_pruning(shrunk: Runner, artifacts: Artifacts, stop: tuple[str, ...]) -> None:
    before = shrunk.files()
    shrunk.answers({"xnnpack-int8/alpha": artifacts["wrong"], "alpha": artifacts["steady"]})
    finished = shrunk(*WHOLE, UPDATE, "--prune", *stop)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert "prune: " not in finished.output
    assert "nothing was pruned" in finished.output
    assert shrunk.files() == before
