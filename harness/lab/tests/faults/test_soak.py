"""Measurements of the soaks: a soak that cannot see growth proves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens.sweep.folder import Folder
from lab.faults import cluster_soak
from lab.faults.cluster_soak import abandoned, parent
from lab.faults.place import Place
from lab.faults.soak import SLACK_MB, State, grown, some

SETTLED = State(minutes=1.0, turn=1, fault="none", memory_mb=100.0, descriptors=20, files=0, processes=0)


@pytest.mark.parametrize(
    "more", [{"descriptors": 21}, {"files": 1}, {"processes": 1}, {"memory_mb": 100.0 + SLACK_MB + 1}]
)
def test_what_there_is_more_of_in_the_end_has_grown(more: dict[str, int]) -> None:
    before = replace(SETTLED, turn=0, descriptors=99, memory_mb=500.0)
    assert grown([before, SETTLED, replace(SETTLED, turn=2)], 1) == []
    (line,) = grown([before, SETTLED, SETTLED, replace(SETTLED, turn=3, **more)], 1)  # type: ignore[arg-type]
    assert "turn 1" in line


def test_on_a_cluster_one_more_in_each_turn_has_grown_and_what_comes_and_goes_has_not() -> None:
    turns = [replace(SETTLED, turn=turn) for turn in range(9)]
    assert cluster_soak.grown([replace(turn, descriptors=20 + turn.turn % 3) for turn in turns]) == []
    assert len(cluster_soak.grown([replace(turn, descriptors=20 + turn.turn) for turn in turns])) == 1
    assert len(cluster_soak.grown([replace(turn, memory_mb=100.0 + 5 * turn.turn) for turn in turns])) == 1
    assert "too few" in cluster_soak.grown(turns[:5])[0]


def test_the_table_shows_the_last_turn() -> None:
    states = [replace(SETTLED, turn=turn) for turn in range(100)]
    assert [state.turn for state in some(states)][-2:] == [88, 99]


def test_files_of_a_living_sweep_are_not_abandoned_and_those_of_a_killed_one_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path).make()
    monkeypatch.setattr("tempfile.tempdir", str(place.temporary))
    (place.temporary / "dask-scratch-space").mkdir()
    with Folder.make() as held:
        held.path.joinpath("log").touch()
        code = "import os; from executorch_goldens.sweep.folder import Folder; f = Folder.make(); os._exit(0)"
        subprocess.run([sys.executable, "-c", code], env=place.environment(), check=True)
        (place.temporary / "more").touch()
        (left,) = {*place.temporary_files()} - {held.path.name, "dask-scratch-space", "more"}
        assert abandoned(place.temporary) == [left, "more"]


def test_a_process_has_the_parent_that_started_it_and_one_that_has_ended_has_none() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert parent(process.pid) == os.getpid()
        process.communicate(b"\n")
    assert parent(process.pid) == 0
