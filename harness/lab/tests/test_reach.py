"""The map of reach: records that are gone on with, and the page that counts what nothing reaches."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import ERROR
from executorch_goldens.settings import config
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens_plugins.compare.reach import map as maps
from lab import GOLDENS, tables
from lab.__main__ import main
from lab.reach import building, command, owners, page, why
from tests.support.screens import screen

FILE = "executorch/backends/arm/_passes/fold.py"
FOLD_FILE = FILE.removeprefix(owners.PACKAGE)
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


def reasons(known: maps.ReachMap, *given: why.Reason) -> why.Reasons:
    return why.Reasons(why.Reading(known.release, given), known, page.left_of(known))


def reason(kind: str = "unused", **fields: Any) -> why.Reason:
    return why.Reason(**{"file": FOLD_FILE, "kind": kind, "why": "nobody asks", "owner": "Fold", **fields})


def test_the_page_counts_what_the_core_each_source_and_any_cell_reach(
    known: maps.ReachMap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(why, "SAMPLE", tmp_path / "sample.tsv")
    # Of eight: lines 3, 4, 5, 7, 10 and 14, and two conditions that may be false.
    assert screen(page.page(known, [CORE], reasons(known))) == snapshot


def test_an_owner_has_its_missing_lines_and_why(
    known: maps.ReachMap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(why, "FEW", 0)
    monkeypatch.setattr(why, "SAMPLE", tmp_path / "sample.tsv")
    row = {"file": FOLD_FILE, "function": "Fold.unused", "line": 10, "why": "nobody asks"}
    drawn = [("1", "cannot"), ("1", "can"), ("1", "can"), ("2", "cannot")]
    rows = [row | {"seed": seed, "verdict": verdict} for seed, verdict in drawn]
    tables.write(why.SAMPLE, why.COLUMNS, rows)
    only = building.build("9.9.9", "", "2026-01-01", records()[1:], tmp_path)
    given = reason(functions=("unused",)), reason(why.OPEN), reason("guard", lines="5 5- 7")
    assert screen(page.page(only, [], reasons(only, *given))) == snapshot


def test_on_another_release_a_reason_holds_for_the_same_code_and_for_functions_that_nothing_reaches(
    known: maps.ReachMap, tmp_path: Path
) -> None:
    given = reason(functions=("unused",)), reason("guard", lines="5-")
    only = building.build("9.9.9", "", "2026-01-01", records()[1:], tmp_path)
    read = reasons(only, *given)

    def explained(source: str) -> dict[str, dict[str, tuple[int, ...]]]:
        (tmp_path / FILE).write_text(source)
        ran = [replace(records()[1], lines={})]
        other = building.build("9.9.10", "", "2026-01-01", ran, tmp_path, [FILE])
        text = "\n".join(page.page(other, [], read))
        assert "sources of 9.9.9" in text
        assert "with the same code" in text
        assert why.SAMPLE.name not in text
        owner, counts = next(
            (own, counts) for own, counts in page.left_of(other).items() if own.name == "Fold"
        )
        return {
            each.kind: {function.name: lines for function, lines in functions.items()}
            for each, functions in read.by_reason(owner, counts).items()
            if each is not None
        }

    moved, unused = "\n" + FOLD.replace("dims):", "dims):\n        # Moved."), {"Fold.unused": (1,)}
    assert explained(moved) == {"unused": unused, "guard": {"Fold.call": (-5,)}}
    assert explained(FOLD.replace("dims is None", "not dims").replace("return 2", "return 3")) == {
        "unused": unused
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((reason("idle", functions=("*",)),), "'idle' is no kind"),
        ((reason(owner="Other", functions=("*",)),), "9.9.9 has no such owner"),
        ((reason(functions=("gone",)),), "it has no function 'gone'"),
        ((reason(lines="6"),), "it has no statement at '6'"),
        ((reason(functions=("call",)),), "Fold.call 3: tosa-int/linear reaches it: unused is wrong"),
        ((reason(functions=("unused",)), reason("guard", lines="10")), "Fold.unused 10: it has two reasons"),
        ((reason(),), "unused names no functions and no lines"),
        ((reason(lines="10"),), "Fold: lines 5-, 3-, 5, 7 have no reason"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_reason_that_does_not_hold_is_refused(
    known: maps.ReachMap,
    given: tuple[why.Reason, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(why, "FEW", 0)
    only = building.build("9.9.9", "", "2026-01-01", records()[1:], tmp_path)
    with pytest.raises(why.WhyError, match=re.escape(says)):
        reasons(only, *given)


def test_reasons_that_cannot_be_read_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(why, "WHY", tmp_path / "why.toml")
    why.WHY.write_text('release = "9.9.9"\nreasons = []\n')
    with pytest.raises(why.WhyError, match=r"why.toml: .* cannot be read: .*reasons"):
        why.read()


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
    gone = replace(linear, cell=Cell("tosa-fp", "no-such-case"))
    command.update(toolchain, [replace(linear, facts="new", lines={}), gone])
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
