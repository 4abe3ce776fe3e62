"""Decisions about cells: what they cover, their file, and how it is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import decisions, golden
from executorch_goldens.goldens.decisions import (
    BUDGET,
    FAILURE,
    FILE,
    IMPRECISE,
    KNOWN,
    NO_DELEGATE,
    Decision,
    DecisionError,
    Decisions,
)
from executorch_goldens.goldens.quantities import BudgetLimits
from executorch_goldens.goldens.record import Record
from executorch_goldens.words.refusals import refusal
from executorch_goldens.zoo.registry import RELEASE
from executorch_goldens.zoo.targets import TARGETS
from tests import REPOSITORY
from tests.support.making import DUPLICATE_OUTPUTS, GRAPH, failure, golden_of, lowered, tosa
from tests.support.screens import screen

CELL = Cell("tosa-int", "gate")
FAILS = golden_of(failure("no branch on 7 values", "export"))
NOTHING = golden_of(lowered())
DELEGATES = golden_of(lowered(GRAPH, tosa(DUPLICATE_OUTPUTS)))
CAUSE = "export, SomePass: ValueError: no branch on … values"
OUTSIDE = decisions.outside_of(NOTHING)


def decision(
    what: str = FAILURE, cause: str = CAUSE, *cells: str, on: Sequence[str] = ("1.5.1",), **more: Any
) -> Decision:
    return Decision(what, cause=cause, releases=tuple(on), cells=cells or (str(CELL),), **more)


def of_file(*stated: Decision, release: str = "1.5.1", of_zoo: bool = True) -> Decisions:
    return Decisions(Path("goldens"), release, stated, of_zoo)


@pytest.mark.parametrize(
    ("texts", "kind"), [(FAILS, "FAILURE"), (NOTHING, "NO DELEGATE"), (DELEGATES, "")], ids=str
)
def test_a_golden_is_one_only_where_it_is_expected(texts: Record, kind: str) -> None:
    assert decisions.kind(texts) == kind


@pytest.mark.parametrize("texts", [FAILS, NOTHING], ids=["failure", "undelegated"])
def test_what_nothing_expects_is_refused_with_the_table_to_write(
    texts: Record, snapshot: SnapshotAssertion
) -> None:
    recorded = of_file().missing(CELL, texts, recorded=True)
    of_another_root = of_file(of_zoo=False).missing(CELL, texts)
    found = (of_file().missing(CELL, texts), recorded, of_another_root)
    assert screen(refusal(each) for each in found if each is not None) == snapshot
    assert of_file(decisions.expected(CELL, "1.5.1", texts)).missing(CELL, texts) is None


def test_what_delegates_is_no_decision() -> None:
    assert of_file().missing(CELL, DELEGATES) is None


def test_what_delegates_nothing_is_none_where_its_target_has_no_delegates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = replace(TARGETS["xnnpack-int8"], name="bare", delegates=False)
    monkeypatch.setattr("executorch_goldens.zoo.targets.available", lambda: {**TARGETS, "bare": bare})
    assert of_file().missing(Cell("bare", "gate"), NOTHING) is None
    assert of_file().missing(Cell("bare", "gate"), FAILS) is not None
    assert of_file().missing(Cell("gone", "gate"), NOTHING) is not None


def test_a_decision_expects_one_failure_of_its_cells_on_its_releases() -> None:
    each = of_file(decision(FAILURE, CAUSE, "tosa-fp/gate", "tosa-int/gate", on=("1.4.1", "1.5.1")))
    assert each.missing(CELL, FAILS) is None
    assert each.missing(CELL, golden_of(failure("no branch on 12 values", "export"))) is None
    assert each.missing(CELL, golden_of(failure("no loop", "export"))) is not None
    assert each.missing(CELL, NOTHING) is not None
    assert each.missing(Cell("tosa-int16", "gate"), FAILS) is not None
    assert replace(each, release="1.3.1").missing(CELL, FAILS) is not None


def test_a_pattern_takes_failures_of_its_cause_and_of_no_other() -> None:
    by_cause = of_file(decision(FAILURE, CAUSE, "tosa-int/*"))
    assert by_cause.missing(CELL, FAILS) is None
    assert by_cause.missing(CELL, golden_of(failure("no loop", "export"))) is not None
    assert of_file(decision(NO_DELEGATE, "", "tosa-int/*")).missing(CELL, NOTHING) is None
    assert (
        of_file(decision(NO_DELEGATE, "", "tosa-int/*", outside=("aten.abs.default",))).missing(CELL, NOTHING)
        is not None
    )


def test_a_known_defect_names_the_whole_finding_or_some_of_it() -> None:
    whole = {
        "kind": "wrong-values",
        "dtype": "int8",
        "output": [0, 2],
        "begins": "TABLE (aten.elu)",
        "in": "T",
    }
    for finding in (whole, None, {"kind": "wrong-values"}, whole | {"begins": "TABLE (*)"}):
        assert defect(finding).is_about(whole), finding
    for finding in ({"kind": "wrong-type"}, whole | {"adding": True}, whole | {"output": 0}):
        assert not defect(finding).is_about(whole), finding


def defect(finding: dict[str, object] | None) -> Decision:
    return Decision(
        KNOWN, "corrupt", finding=finding, why="an issue", releases=("1.5.1",), cells=(str(CELL),)
    )


def test_budgets_and_what_is_accepted_unchecked_are_those_of_names_and_patterns() -> None:
    budgets = [
        Decision(BUDGET, limits=BudgetLimits(memory=size), cells=(name,))
        for size, name in enumerate(("*/gate", str(CELL)))
    ]
    accepted = Decision(IMPRECISE, unchecked=("output 0",), why="a mask", cells=(str(CELL),))
    found = of_file(*budgets, accepted)
    assert dict(found.budgets(CELL)) == {"*/gate": {"memory": 0}, str(CELL): {"memory": 1}}
    assert dict(found.budgets(Cell("tosa-fp", "gate"))) == {"*/gate": {"memory": 0}}
    assert (found.unchecked(CELL), found.unchecked(Cell("tosa-fp", "gate"))) == (("output 0",), ())


@pytest.mark.parametrize(
    "table",
    [
        pytest.param('what = "FAILURE"', id="kind"),
        pytest.param('what = "failure"\nreleases = ["1.5.1"]\ncells = ["a/b"]', id="no cause"),
        pytest.param('what = "failure"\ncause = "x"\ncells = ["a/b"]', id="no releases"),
        pytest.param(
            'what = "known"\nverdict = "corrupt"\nwhy = "x"\nreleases = ["1.5.1"]\ncells = ["a/*"]',
            id="pattern",
        ),
        pytest.param(
            'what = "known"\nverdict = "corrupt"\nreleases = ["1.5.1"]\ncells = ["a/b"]', id="no why"
        ),
        pytest.param('what = "rejected"\ncause = "x"\nwhy = "y"\ncells = ["a/b"]', id="cells"),
        pytest.param('what = "budget"\nlimits = { weight = 1 }\ncells = ["a/b"]', id="unknown limit"),
        pytest.param('what = "budget"\nlimits = { memory = -1 }\ncells = ["a/b"]', id="limit"),
        pytest.param('what = "rejected"\ncause = "x"\nwhy = "y"\nreason = "none"', id="unknown"),
        pytest.param('what = "rejected"\ncause = "x"\nwhyy = "y"', id="near key"),
        pytest.param('what = "budget"\nlimits = { memmory = 1 }\ncells = ["a/b"]', id="near limit"),
        pytest.param('what = "budget"\nlimits = { sqnr = -1 }\ncells = ["a/b"]', id="negative"),
        pytest.param('what = "budget"\nlimits = { sqnr = nan }\ncells = ["a/b"]', id="no number"),
        pytest.param('what = "budget"\nlimits = { memory = true }\ncells = ["a/b"]', id="boolean"),
        pytest.param(
            'what = "known"\nverdict = "corupt"\nwhy = "x"\nreleases = ["1.5.1"]\ncells = ["a/b"]',
            id="no verdict",
        ),
        pytest.param(
            'what = "known"\nverdict = "stable"\nwhy = "x"\nreleases = ["1.5.1"]\ncells = ["a/b"]',
            id="no defect",
        ),
        pytest.param(
            'what = "known"\nverdict = "corrupt"\nfinding = { kind = "wrong-value" }\nreleases = ["1.5.1"]\n'
            'cells = ["a/b"]',
            id="near finding",
        ),
        pytest.param(
            'what = "known"\nverdict = "corrupt"\nfinding = { kind = "wrong-values", outputs = 0 }\n'
            'releases = ["1.5.1"]\ncells = ["a/b"]',
            id="near field",
        ),
        pytest.param('what = "imprecise"\nunchecked = ["other"]\nwhy = "x"\ncells = ["*"]', id="every cell"),
        pytest.param(
            'what = "imprecise"\nunchecked = ["other"]\nwhy = "x"\ncells = ["a/[bc]"]', id="several cells"
        ),
        pytest.param('what = "undelegated"\nreleases = ["1.5.1"]\ncells = ["linear"]', id="no cell"),
    ],
)
def test_a_decision_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, table: str, snapshot: SnapshotAssertion
) -> None:
    sound = '[[decision]]\nwhat = "rejected"\ncause = "x"\nwhy = "y"\n'
    (tmp_path / FILE).write_text(f"{sound}\n[[decision]]\n{table}\n")
    with pytest.raises(DecisionError) as raised:
        decisions.read(tmp_path)
    assert screen(str(raised.value), {tmp_path: "ROOT"}) == snapshot


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("[[decision]]\nwhat = ", "Invalid value"),
        ("decision = 3\n", "expected tables [[decision]]"),
        ("[[expected]]\n", "expected: expected tables [[decision]]"),
        ("<<<<<<< ours\n", "was left by a merge"),
    ],
    ids=["no TOML", "no tables", "other tables", "conflict"],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, fact: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DecisionError) as raised:
        decisions.read(tmp_path)
    assert str(tmp_path / FILE) in str(raised.value)
    assert fact in str(raised.value)


def test_a_release_that_there_is_not_is_refused_with_the_nearest(tmp_path: Path) -> None:
    text = '[[decision]]\nwhat = "undelegated"\nreleases = ["1.5.1", "1.5.2"]\ncells = ["a/b"]\n'
    (tmp_path / FILE).write_text(text)
    with pytest.raises(
        DecisionError, match=r"\[\[decision\]\] 1 .*'1.5.2' is unknown \(did you mean '1.5.1'\?\)"
    ):
        decisions.read(tmp_path)
    # Of a toolchain that is in no matrix.
    (tmp_path / "1.5.2").mkdir()
    assert len(decisions.read(tmp_path)) == 1


PEOPLES = """\
# Ours.

# A branch.
[[decision]]
what = "failure"
cause = "export: one" # of torch's
releases = ["1.5.1"]
cells = [
    # The smallest.
    "a/a", # first
    "a/c",
]

# Asked upstream.
[[decision]]
what = "known"
verdict = "corrupt"
why = "an issue"
releases = ["1.5.1"]
cells = ["a/d"]
"""


def test_a_file_changes_by_a_line_for_each_cell_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(PEOPLES)
    stated = decisions.read(tmp_path)
    decisions.write(tmp_path, reversed(stated))
    assert path.read_text() == PEOPLES
    new = [
        decision(FAILURE, "export: one", "a/b"),
        decision(FAILURE, "lower: two", "a/b"),
        decision(NO_DELEGATE, "", "a/e"),
    ]
    decisions.write(tmp_path, [*stated, *new])
    two, nothing = (
        f'[[decision]]\nwhat = "{what}"\n{cause}releases = ["1.5.1"]\ncells = [\n    "{cell}",\n]\n'
        for what, cause, cell in (("failure", 'cause = "lower: two"\n', "a/b"), ("undelegated", "", "a/e"))
    )
    with_b = PEOPLES.replace('    "a/c",\n', '    "a/b",\n    "a/c",\n')
    assert path.read_text() == with_b.replace("# Asked", f"{two}\n# Asked") + f"\n{nothing}"
    gone = [each for each in decisions.read(tmp_path) if each.what == "known"]
    decisions.write(tmp_path, gone)
    assert path.read_text() == "# Ours.\n\n" + PEOPLES[PEOPLES.index("# Asked") :]
    decisions.write(tmp_path, [])
    assert not path.exists()


def test_a_file_stays_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).write_text(PEOPLES)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(golden.UnwritableError, match="No space left"):
        decisions.write(tmp_path, [decision()])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {FILE: PEOPLES}


def recorded(root: Path, cell: Cell, texts: Record, *releases: str) -> None:
    for release in releases:
        golden.write(golden.file_of(root / release, cell), texts)


def test_the_file_is_brought_up_to_date_with_the_goldens_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    recorded(tmp_path, CELL, FAILS, "1.4.1", "1.5.1")
    recorded(tmp_path, Cell("tosa-fp", "gate"), FAILS, "1.5.1")
    recorded(tmp_path, Cell("tosa-fp", "sum"), NOTHING, "1.5.1")
    recorded(tmp_path, Cell("tosa-fp", "net"), DELEGATES, "1.5.1")
    why = "branches on a value (#1234)"
    said = decision(why=why)
    gone = decision(FAILURE, CAUSE, "tosa-fp/net")
    other = decision(KNOWN, "", verdict="corrupt", why=why)
    decisions.write(tmp_path, [said, gone, other])
    found = decisions.update(tmp_path)
    assert (found.found, found.written, found.gone) == (4, 3, (("tosa-fp/net", "1.5.1"),))
    assert set(decisions.read(tmp_path)) == {
        decision(FAILURE, CAUSE, on=["1.4.1"]),
        decision(FAILURE, CAUSE, "tosa-fp/gate"),
        said,
        other,
        decision(NO_DELEGATE, "", "tosa-fp/sum", outside=OUTSIDE),
    }
    before = (tmp_path / FILE).read_bytes()
    again = decisions.update(tmp_path)
    assert (again.written, again.gone) == (0, ())
    assert (tmp_path / FILE).read_bytes() == before


def test_a_root_without_decisions_has_no_file(tmp_path: Path) -> None:
    recorded(tmp_path, CELL, DELEGATES, "1.5.1")
    decisions.update(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_every_golden_that_is_one_only_if_expected_is_expected_and_no_other() -> None:
    root = Path("goldens")
    stated, goldens = decisions.read(REPOSITORY / root), {}
    for folder in (path for path in (REPOSITORY / root).iterdir() if RELEASE.fullmatch(path.name)):
        here = Decisions(root, folder.name, stated)
        for cell in golden.recorded(folder):
            texts = goldens[str(cell), folder.name] = golden.read(golden.file_of(folder, cell))
            assert here.missing(cell, texts) is None, cell
    expected = [each for each in stated if each.what in decisions.EXPECTED.values()]
    assert expected
    unmet = [
        (name, on)
        for each in expected
        for name in each.cells
        for on in each.releases
        if not each.expects(goldens.get((name, on), Record({}, {})))
    ]
    assert not unmet
