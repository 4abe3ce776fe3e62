"""The table of threads upstream: the state in each golden, failure and known defect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import KNOWN, Decision, Decisions
from executorch_goldens.goldens.record import GRAPH, Record
from executorch_goldens.settings import releases
from executorch_goldens.zoo import registry
from executorch_goldens.zoo.targets import TARGETS
from lab import findings
from lab.threads import Thread, cell_state, load, state

ZOO = registry.load(("models",))

RELEASE = releases.load().releases["1.5.1"]
DEFECT = Decision(KNOWN, "corrupt", why="is wrong (#7)", releases=("1.5.1",), cells=("tosa-fp/known",))
DECIDED = Decisions(Path(), "1.5.1", (DEFECT,))
FAILURE = "stage: lower\ntype: KeyError\npass: SomePass\nfunction: -\nmessage: a cycle\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Goldens of two cells: one that lowers, one that fails."""
    for case, texts in {"right": {GRAPH: "graph():\n"}, "fails": {"failure": FAILURE}}.items():
        whole = Record({"variations": "seed0-heap0 seed4-heap1"}, texts)
        golden.write(golden.file_of(tmp_path, Cell("tosa-fp", case)), whole)
    return tmp_path


@pytest.mark.parametrize(
    ("cell", "sign", "says"),
    [
        ("tosa-fp/right", "", "no"),
        ("tosa-fp/fails", "", "shows (fails)"),
        ("tosa-fp/fails", "cycle", "shows (fails)"),
        ("tosa-fp/fails", "circle", "other: lower, SomePass fails"),
        ("tosa-fp/known", "#7", "shows (corrupt)"),
        ("tosa-fp/known", "#8", "other: is wrong (#7)"),
        ("tosa-fp/absent", "", "not recorded"),
    ],
)
def test_a_cell_says_whether_it_shows_the_defect(root: Path, cell: str, sign: str, says: str) -> None:
    assert cell_state(root, RELEASE, DECIDED, cell, sign) == says


def test_a_target_that_the_release_lacks_cannot_show_it(root: Path) -> None:
    release = replace(RELEASE, unsupported={"tosa-fp": "no"})
    assert cell_state(root, release, DECIDED, "tosa-fp/right", "") == "cannot be reached: no tosa-fp"


def test_one_cell_that_shows_a_defect_is_enough(root: Path) -> None:
    entry = Thread((7,), "x", ("tosa-fp/right", "tosa-fp/fails"))
    assert state(root, RELEASE, DECIDED, entry) == "shows (fails)"
    assert state(root, RELEASE, DECIDED, replace(entry, cells=entry.cells[:1])) == "no"


def test_every_cell_is_one_of_the_zoo() -> None:
    for entry in load():
        for name in entry.cells:
            target, _, case = name.partition("/")
            assert not TARGETS[target].opt_in or target in ZOO[case].also


def test_no_thread_is_that_of_a_finding_as_well() -> None:
    of_findings = {number for finding in findings.load().values() for number in finding.threads}
    assert not of_findings & {number for thread in load() for number in thread.numbers}
