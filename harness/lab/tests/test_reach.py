"""The map of reach: records that are gone on with, and the page that counts what nothing reaches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import ERROR
from executorch_goldens.reach import map as maps
from executorch_goldens.settings import config
from executorch_goldens.toolchains.toolchain import here
from lab import GOLDENS
from lab.__main__ import main
from lab.reach import building, command, page
from tests.support.screens import screen

FILE = "executorch/backends/arm/_passes/fold.py"
FOLD = """\
class Fold:
    def call(self, dims):
        if dims is None:
            return 1
        if len(dims) > 4:
            raise ValueError(dims)
        return dims

    def unused(self):
        return 2


def check(dim):
    return 0 if dim < 0 else 1
"""
CORE, OTHER = Cell("tosa-fp", "linear"), Cell("tosa-int", "linear")


def records() -> list[building.ReachRecord]:
    ran = {CORE: (3, -3, 5, -5, 7), OTHER: (3, 4, 14)}
    return [
        building.ReachRecord("models" if cell == CORE else "further", cell, 1.0, "f", {FILE: lines})
        for cell, lines in ran.items()
    ]


@pytest.fixture
def known(tmp_path: Path) -> maps.ReachMap:
    for name in (FILE, "executorch/exir/tests.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FOLD)
    further = ["executorch/exir/tests.py"]
    return building.build("9.9.9", "", "2026-01-01", records(), tmp_path, further)


def test_the_page_counts_what_the_core_each_source_and_any_cell_reach(
    known: maps.ReachMap, snapshot: SnapshotAssertion
) -> None:
    # Of eight: lines 3, 4, 5, 7, 10 and 14, and two conditions that may be false.
    assert screen(page.page(known, [CORE])) == snapshot


def test_an_owner_has_its_missing_lines_and_why(
    known: maps.ReachMap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "why.toml").write_text('Fold = "nobody asks"\n')
    monkeypatch.setattr(page, "WHY", tmp_path / "why.toml")
    assert screen(page.page(known, [CORE])) == snapshot
    only = building.build("9.9.9", "", "2026-01-01", records()[1:], tmp_path)
    assert screen(page.page(only, [])) == snapshot


def test_records_are_read_as_they_were_written_but_for_one_that_was_cut_off(tmp_path: Path) -> None:
    (one, other) = records()
    file = tmp_path / f"{one.source}.jsonl"
    file.write_text(building.encoded(one) + building.encoded(other)[:-5])
    assert list(building.read(file)) == [one]
    assert list(building.read(tmp_path / "none.jsonl")) == []


def test_without_a_record_the_map_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "RECORDS", tmp_path)
    assert main(["reach", "--so-far", "--update"]) == ERROR
    assert "is recorded: leave out --so-far" in capsys.readouterr().err


def test_what_was_recorded_is_put_into_the_map_and_the_rest_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain = here()
    release = toolchain.release.version
    known = maps.read(GOLDENS / release / maps.FILE)
    repository = replace(config.load(), goldens=tmp_path)
    monkeypatch.setattr(config, "load", lambda: repository)
    monkeypatch.setattr(command.pages, "update", lambda names: None)
    path = tmp_path / release / maps.FILE
    path.parent.mkdir()
    building.write(path, known)
    linear = next(each for each in building.records(known) if each.cell == Cell("tosa-fp", "linear"))
    command.update(toolchain, [replace(linear, facts="new", lines={})])
    made = {each.cell: each for each in building.records(maps.read(path))}
    assert made.pop(linear.cell) == replace(linear, facts="new", lines={})
    assert made == {each.cell: each for each in building.records(known) if each.cell != linear.cell}


def test_of_a_map_of_another_environment_nothing_stays(tmp_path: Path, known: maps.ReachMap) -> None:
    path = tmp_path / maps.FILE
    building.write(path, msgspec.structs.replace(known, lock="another"))
    assert list(command.kept_records(path, here())) == []


def test_a_source_that_there_is_not_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "RECORDS", tmp_path)
    assert main(["reach", "--source", "nowhere"]) == ERROR
    assert "--source nowhere: there is none" in capsys.readouterr().err


def test_a_cell_that_is_known_to_be_wrong_is_so_in_the_map_and_no_other_is() -> None:
    known = maps.read(GOLDENS / "1.5.1" / maps.FILE)
    wrong = {each.cell for each in known.cells if each.is_wrong}
    for cell, is_so in ((Cell("tosa-fp", "log1p"), True), (Cell("tosa-fp", "linear"), False)):
        record = building.ReachRecord("models", cell, 1.0, "f", {})
        assert command.is_wrong(record, "1.5.1") is is_so
        assert (cell in wrong) is is_so
