"""Goldens of failures that a decision accepts, and how it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.judging import expectations
from executorch_goldens.judging.expectations import FILE, ExpectationError, Expectations, Expected
from executorch_goldens.review import expecting
from executorch_goldens.zoo.registry import RELEASE
from executorch_goldens.zoo.targets import TARGETS
from tests import REPOSITORY
from tests.support.making import DUPLICATE_OUTPUTS, GRAPH, failure, golden_of, lowered, tosa

CELL = Cell("tosa-int", "gate")
FAILS = golden_of(failure("no branch on 7 values", "export"))
NOTHING = golden_of(lowered())
DELEGATES = golden_of(lowered(GRAPH, tosa(DUPLICATE_OUTPUTS)))
CAUSE = "export, SomePass: ValueError: no branch on … values"


def of_file(*stated: Expected, release: str = "1.5.1", **fields: object) -> Expectations:
    return replace(Expectations(Path("goldens"), release, stated), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "kind"), [(FAILS, "FAILURE"), (NOTHING, "NO DELEGATE"), (DELEGATES, "")], ids=str
)
def test_a_golden_is_a_decision(texts: golden.Texts, kind: str) -> None:
    assert expectations.kind(texts) == kind


@pytest.mark.parametrize(("texts", "what"), [(FAILS, "FAILURE"), (NOTHING, "NO DELEGATE")], ids=str)
def test_what_nothing_expects_is_refused_with_the_lines_to_write(texts: golden.Texts, what: str) -> None:
    missing = of_file().missing(CELL, texts)
    assert missing.startswith(f"a {what} is recorded only if it is expected: in its @case, ")
    assert f'expects={{"tosa-int": {{"1.5.1": "{what}"}}}}' in missing
    assert f'with what = "{what}", releases = ["1.5.1"], cells = ["tosa-int/gate"]' in missing
    assert "goldens review --accept GROUP --expect" in missing
    recorded = of_file().missing(CELL, texts, recorded=True)
    assert recorded.endswith(" (goldens review --expect --goldens=goldens writes it)")
    of_test = of_file(of_zoo=False).missing(CELL, texts)
    assert "@case" not in of_test
    assert "goldens review" not in of_test


def test_what_delegates_is_no_decision() -> None:
    assert of_file().missing(CELL, DELEGATES) == ""


def test_what_delegates_nothing_is_none_where_its_target_has_no_delegates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = replace(TARGETS["xnnpack-int8"], name="bare", delegates=False)
    monkeypatch.setattr("executorch_goldens.zoo.targets.available", lambda: {**TARGETS, "bare": bare})
    assert of_file().missing(Cell("bare", "gate"), NOTHING) == ""
    assert of_file().missing(Cell("bare", "gate"), FAILS) != ""
    assert of_file().missing(Cell("gone", "gate"), NOTHING) != ""


def test_a_case_and_the_file_expect_a_kind_on_a_release() -> None:
    by_case = of_file(of_cases={"gate": {"tosa-int": {"1.5.1": "FAILURE"}}})
    in_file = of_file(Expected("FAILURE", ("1.4.1", "1.5.1"), ("tosa-fp/gate", "tosa-int/gate")))
    for each in (by_case, in_file):
        assert each.missing(CELL, FAILS) == ""
        assert each.missing(CELL, NOTHING) != ""
        assert each.missing(Cell("tosa-int16", "gate"), FAILS) != ""
        assert replace(each, release="1.3.1").missing(CELL, FAILS) != ""


def test_a_pattern_takes_failures_of_its_cause_and_of_no_other() -> None:
    by_cause = of_file(Expected("FAILURE", ("1.5.1",), ("tosa-int/*",), CAUSE))
    assert expectations.cause_of(FAILS) == CAUSE
    assert by_cause.missing(CELL, FAILS) == ""
    assert by_cause.missing(CELL, golden_of(failure("no branch on 12 values", "export"))) == ""
    assert by_cause.missing(CELL, golden_of(failure("no loop", "export"))) != ""
    nothing = of_file(Expected("NO DELEGATE", ("1.5.1",), ("tosa-int/*",)))
    assert nothing.missing(CELL, NOTHING) == ""


def test_what_is_no_longer_so_is_stale_where_it_names_the_cell() -> None:
    by_case = of_file(of_cases={"gate": {"tosa-int": {"1.5.1": "FAILURE"}}})
    assert by_case.stale(CELL, FAILS) == ""
    assert by_case.stale(CELL, DELEGATES) == "its @case expects FAILURE of it on 1.5.1: delete that"
    in_file = of_file(Expected("FAILURE", ("1.5.1",), ("tosa-int/gate",)))
    assert in_file.stale(CELL, FAILS) == ""
    assert "expected.toml expects FAILURE of it on 1.5.1" in in_file.stale(CELL, NOTHING)
    assert replace(in_file, release="1.4.1").stale(CELL, NOTHING) == ""
    assert of_file(Expected("FAILURE", ("1.5.1",), ("tosa-int/*",), CAUSE)).stale(CELL, DELEGATES) == ""


def test_what_is_expected_of_no_cell_is_named() -> None:
    stated = Expected("FAILURE", ("1.5.1",), ("tosa-int/gate", "tosa-int/gone", "tosa-fp/*"), CAUSE)
    ((name, why),) = of_file(stated).of_no_cell([CELL])
    assert name == "tosa-int/gone"
    assert "expects FAILURE of it, and it is no cell" in why
    assert not list(of_file(stated, release="1.4.1").of_no_cell([CELL]))


@pytest.mark.parametrize(
    ("table", "fact"),
    [
        ('what = "failure"\nreleases = ["1.5.1"]\ncells = ["a/b"]', "'failure', neither 'FAILURE'"),
        (
            'what = "FAILURE"\nreleases = ["1.5.1"]\ncells = ["a/*"]',
            "'a/*' takes every failure: name their cause",
        ),
        ('what = "FAILURE"\ncells = ["a/b"]', "releases"),
        ('what = "FAILURE"\nreleases = ["1.5.1"]\ncells = ["a/b"]\nreason = "none"', "reason"),
        ("what = ", "[[expected]]"),
        ("<<<<<<< ours", "was left by a merge"),
    ],
    ids=["kind", "pattern", "no releases", "unknown", "no TOML", "conflict"],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, table: str, fact: str) -> None:
    (tmp_path / FILE).write_text(f"[[expected]]\n{table}\n")
    with pytest.raises(ExpectationError) as raised:
        expectations.read(tmp_path)
    assert str(tmp_path / FILE) in str(raised.value)
    assert fact in str(raised.value)


def recorded(root: Path, cell: Cell, texts: golden.Texts, *releases: str) -> None:
    for release in releases:
        golden.write(golden.directory(root / release, cell), texts)


def test_the_file_is_brought_up_to_date_with_the_goldens_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    recorded(tmp_path, CELL, FAILS, "1.4.1", "1.5.1")
    recorded(tmp_path, Cell("tosa-fp", "gate"), FAILS, "1.5.1")
    recorded(tmp_path, Cell("tosa-fp", "sum"), NOTHING, "1.5.1")
    recorded(tmp_path, Cell("tosa-fp", "net"), DELEGATES, "1.5.1")
    why = "branches on a value (#1234)"
    said = Expected("FAILURE", ("1.5.1",), (str(CELL),), why=why)
    gone = Expected("FAILURE", ("1.5.1",), ("tosa-fp/net",))
    expectations.write(tmp_path, [said, gone])
    found = expecting.update(tmp_path)
    assert (found.found, found.written, found.gone) == (4, 3, (("tosa-fp/net", "1.5.1"),))
    assert expectations.read(tmp_path) == found.stated
    assert said in found.stated
    assert Expected("FAILURE", ("1.4.1",), (str(CELL),), why=CAUSE) in found.stated
    assert any(each.what == "NO DELEGATE" and each.cells == ("tosa-fp/sum",) for each in found.stated)
    before = (tmp_path / FILE).read_bytes()
    again = expecting.update(tmp_path)
    assert (again.written, again.gone) == (0, ())
    assert (tmp_path / FILE).read_bytes() == before


def test_a_root_without_decisions_has_no_file(tmp_path: Path) -> None:
    recorded(tmp_path, CELL, DELEGATES, "1.5.1")
    expecting.update(tmp_path)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("root", [Path("goldens"), Path("goldens/situations")], ids=str)
def test_every_golden_that_is_a_decision_is_expected_and_no_other(root: Path) -> None:
    stated = expectations.read(REPOSITORY / root)
    found = 0
    for folder in (path for path in (REPOSITORY / root).iterdir() if RELEASE.fullmatch(path.name)):
        here = Expectations(root, folder.name, stated)
        for cell in golden.recorded(folder):
            texts = golden.read(golden.directory(folder, cell))
            assert texts is not None
            assert here.missing(cell, texts) == here.stale(cell, texts) == "", cell
            found += bool(expectations.kind(texts))
    assert bool(found) == bool(stated)
