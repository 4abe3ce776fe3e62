"""The tables of the zoo's coverage: rendered, committed, and true to the goldens beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from executorch_goldens.artifact import Artifact, Casualty, Cell, Failure, Outcome, PassRun, Watched
from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.settings import releases
from lab.coverage.command import all_visitors
from lab.coverage.page import NO_REASON, STATES, judged, lines, reasons, share
from lab.coverage.visits import Coverage, Reached, cells_of, table_of, values, visited
from lab.tables import TableError
from tests import GOLDENS

VERSIONS = list(releases.load().releases)

FAILURE = Failure("lower", "KeyError", "'x'", None, None, "")
ONE, TWO = Cell("tosa-fp", "one"), Cell("tosa-fp", "two")


def outcome(cell: Cell, *passes: PassRun, visitors: tuple[str, ...] = ()) -> Outcome:
    artifact = Artifact(FAILURE, (), 1.0, Watched(passes, visitors))
    return Outcome(cell, "seed0-heap0", artifact, 1.0, 1.0)


WHY = {"Fold": "folds what is not there"}


def rendered(*outcomes: Outcome) -> str:
    coverage = Coverage()
    for each in outcomes:
        coverage.add(each)
    return "\n".join(lines("9.9.9", Reached.of(coverage, {"tosa": ["tosa.ADD", "tosa.SUB"]}), WHY))


def everything() -> Coverage:
    """Return a coverage that has each kind of row a table can have."""
    coverage = Coverage()
    coverage.add(
        outcome(
            ONE,
            PassRun("exir", "SpecPropPass", "a", True),
            PassRun("arm backend", "Fold", "a", False),
            PassRun("arm backend", "Fuse", "b", False),
            PassRun("arm annotation", "Fuse", "b", True),
            PassRun("arm annotation", "Cast", "c", False),
            PassRun("xnnpack", "Fuse", "b", False),
            visitors=("tosa tosa.ADD", "xnnpack aten.add.Tensor"),
        )
    )
    coverage.add(
        outcome(
            TWO,
            PassRun("arm backend", "Decompose", "d", True),
            PassRun("arm backend", "Fold", "d", False),
            visitors=("tosa tosa.ADD",),
        )
    )
    coverage.attributes["xnnpack", "XNNAdd"]["flags"] |= {"0"}
    coverage.attributes["tosa", "TABLE"] = {}
    coverage.attributes["tosa", "CONV2D"]["pad"] |= {f"[{n}]" for n in range(7)}
    coverage.attributes["tosa", "CONV2D"]["acc_type"] |= {"INT32", "FP|32", '<INT48> & "x"'}
    return coverage


def test_a_pass_counts_where_it_ran_and_where_it_changed_something() -> None:
    text = rendered(
        outcome(ONE, PassRun("arm backend", "Fold", "a", False), PassRun("arm backend", "Fuse", "b", True)),
        outcome(TWO, PassRun("arm backend", "Fold", "a", False), PassRun("arm backend", "Fuse", "b", False)),
    )
    assert "1 of 2 (50.0%) change a graph in some cell." in text
    assert "| Fold | 2 | folds what is not there |" in text
    assert "Fuse" not in text


def test_a_pass_that_works_in_another_pipeline_says_where() -> None:
    text = rendered(
        outcome(ONE, PassRun("arm annotation", "Fuse", "a", True), PassRun("arm backend", "Fuse", "b", False))
    )
    assert "| Fuse | 1 | none here; in another pipeline tosa-fp/one |" in text
    assert "at annotation or in the backend | 1 of 1 (100.0%)" in text


def test_a_visitor_that_is_never_used_is_listed() -> None:
    text = rendered(outcome(ONE, visitors=("tosa tosa.ADD",)))
    assert "1 of 2 (50.0%) serialize a node in some cell." in text
    assert "tosa.ADD" not in text
    assert "| tosa.SUB | - |" in text


def test_a_crash_reports_nothing_that_it_reached() -> None:
    text = rendered(Outcome(ONE, "seed0-heap0", Casualty("crashed", "SIGSEGV"), 1.0, 1.0))
    assert "0 of 2 (0.0%) serialize" in text


def test_shares_and_values_are_short() -> None:
    assert share([], []) == "none"
    assert values({"b", "a|c"}) == "a|c, b"
    assert values({str(n) for n in range(7)}) == "7 values"


@pytest.mark.parametrize("kind", ["tosa", "xnnpack"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_committed_table_names_the_operators_of_the_committed_goldens(version: str, kind: str) -> None:
    found: set[str] = set()
    for path in (GOLDENS / version).glob(f"*/*/delegate_*.{kind}.txt"):
        found |= set(re.findall(r"^ *operator (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    # Beside these the table may name operators of cells that are known to be wrong: they have no golden.
    assert found <= set(Reached.read(version).operators[kind]), (
        f'run nox -s "lab({version})" -- coverage --update'
    )


def test_what_was_reached_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.coverage.visits.REACHED", tmp_path)
    coverage = everything()
    coverage.visitors["tosa of.a.patch"] = {ONE}
    reached = Reached.of(coverage, {"tosa": ["tosa.SUB", "tosa.ADD"], "xnnpack": ["aten.add.Tensor"]})
    assert reached.visited == everything().visitors
    table, cells = reached.texts()
    assert cells == (
        "cell\tvisitors\ntosa-fp/one\ttosa tosa.ADD; xnnpack aten.add.Tensor\ntosa-fp/two\ttosa tosa.ADD\n"
    )
    table_of("9.9.9").write_text(table)
    cells_of("9.9.9").write_text(cells)
    assert Reached.read("9.9.9") == reached
    cells_of("9.9.9").write_text(cells.replace("/two", ""))
    with pytest.raises(
        TableError, match=r"9\.9\.9-cells\.tsv names 'tosa-fp', which is no cell; bring it back"
    ):
        visited(cells_of("9.9.9"))


def unreached(version: str) -> set[str]:
    """Return the passes of Arm's and the visitors that a release's zoo does not reach."""
    reached = Reached.read(version)
    elsewhere = {row.name for row in reached.passes if row.changed}
    passes = {row.name for row in reached.passes if row.pipeline.startswith("arm ")} - elsewhere
    return passes | {
        name
        for backend, names in reached.visitors.items()
        for name in names
        if f"{backend} {name}" not in reached.visited
    }


def stale(given: Mapping[str, str]) -> list[str]:
    """Return the names that every release's zoo reaches completely."""
    return sorted(given.keys() - set().union(*map(unreached, VERSIONS)))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_pass_of_arm_and_every_visitor_that_is_not_reached_has_its_reason(version: str) -> None:
    found = unreached(version)
    assert found
    given = reasons()
    assert [name for name in sorted(found) if given.get(name, NO_REASON) == NO_REASON] == []


def test_no_reason_is_left_of_what_is_reached_by_now() -> None:
    assert stale(reasons()) == []
    assert stale({**reasons(), "GonePass": "why not"}) == ["GonePass"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_zoo_reaches_what_it_is_wide_for(version: str) -> None:
    reached = Reached.read(version)
    of_arm = {row.name for row in reached.passes if row.pipeline.startswith("arm ")}
    changed = {row.name for row in reached.passes if row.pipeline.startswith("arm ") and row.changed}
    assert len(changed) >= 0.9 * len(of_arm)
    for backend, names in reached.visitors.items():
        assert len([name for name in names if f"{backend} {name}" in reached.visited]) >= 0.85 * len(names)


def test_what_further_cells_reach_is_as_if_all_had_been_counted_together() -> None:
    first, second, both = Coverage(), Coverage(), Coverage()
    runs = (PassRun("exir", "SpecPropPass", "a", True), PassRun("arm backend", "Fold", "b", False))
    more = (*runs, PassRun("arm backend", "Fuse", "c", True))
    halves = ((first, outcome(TWO, *runs, visitors=("tosa tosa.ADD",))), (second, outcome(ONE, *more)))
    for half, each in halves:
        half.add(each)
        both.add(each)
    for coverage in (first, both):
        coverage.attributes["tosa", "PAD"]["shape"] |= {"[1, 2]", "[3]"}
        coverage.attributes["tosa", "TABLE"] = {}
    for coverage in (second, both):
        coverage.attributes["tosa", "PAD"]["shape"] |= {"[1, 2]", "[4, 5]"}
        coverage.attributes["tosa", "ADD"]["axis"] |= {"0"}
    visitors = {"tosa": ["tosa.ADD"]}
    joined = Reached.of(first, visitors).joined(Reached.of(second, visitors))
    assert joined.texts() == Reached.of(both, visitors).texts()
    assert joined.counted() == {TWO}


def test_values_that_were_only_counted_stay_counted() -> None:
    many, one = everything(), Coverage()
    one.attributes["tosa", "CONV2D"]["pad"] |= {"[99]"}
    joined = Reached.of(many, {}).joined(Reached.of(one, {}))
    assert "pad: 7 values" in joined.operators["tosa"]["CONV2D"]


def test_the_visitors_of_the_installed_release_are_those_of_its_table() -> None:
    committed = Reached.read(installed_release()).visitors
    assert {backend: tuple(sorted(names)) for backend, names in all_visitors().items()} == committed


def test_a_page_counts_kept_cells_that_are_judged_and_those_that_are_not(tmp_path: Path) -> None:
    kept = {
        "1.5.1/tosa-fp/a/manifest.txt": "numerics: outputs against eager equal to the last bit\n",
        "1.5.1/tosa-fp/b/manifest.txt": "numerics: none: lowering fails\n",
        "situations/1.5.1/tosa-fp/c/manifest.txt": "numerics: not run: no rule gives the sizes\n",
        "pairs/1.5.1/tosa-int.cells.txt": "  numerics: not run: no rule\n  numerics: outputs against eager\n",
        "1.4.1/tosa-fp/a/manifest.txt": "numerics: not run: no rule\n",
    }
    for name, text in kept.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {target: dict(zip(STATES, numbers, strict=True)) for target, numbers in judged("1.5.1", tmp_path)}
    assert list(found) == ["tosa-fp", "tosa-int", "all"]
    assert list(found["tosa-fp"].values()) == [1, 1, 1]
    assert list(found["tosa-int"].values()) == [1, 0, 1]
    assert list(found["all"].values()) == [2, 1, 2]
