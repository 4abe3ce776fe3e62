"""The tables of what the zoo reaches: rendered, committed, and true to the goldens beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from executorch_goldens import releases
from executorch_goldens.artifact import Artifact, Casualty, Cell, Failure, Outcome, PassRun, Watched
from lab.coverage.visits import (
    TABLES,
    VISITORS,
    Coverage,
    CoverageError,
    reasons,
    share,
    table,
    values,
    visited,
    visits,
)
from tests import DATA, GOLDENS

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
    return table("9.9.9", coverage, {"tosa": ["tosa.ADD", "tosa.SUB"]}, WHY)


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


def test_a_table_with_each_kind_of_row_is_as_committed() -> None:
    """``tests/data/tables/everything.md`` was written by the generator that was there before the template."""
    visitors = {"tosa": ["tosa.SUB", "tosa.ADD", "Fold"], "xnnpack": ["aten.add.Tensor"], "none": []}
    expected = (DATA / "tables" / "everything.md").read_text(encoding="utf-8")
    assert table("9.9.9", everything(), visitors, WHY) == expected


def test_a_pass_counts_where_it_ran_and_where_it_changed_something() -> None:
    text = rendered(
        outcome(ONE, PassRun("arm backend", "Fold", "a", False), PassRun("arm backend", "Fuse", "b", True)),
        outcome(TWO, PassRun("arm backend", "Fold", "a", False), PassRun("arm backend", "Fuse", "b", False)),
    )
    assert "1 of 2 (50.0%) change a graph in some cell." in text
    assert "| Fold | 2 | 0 | folds what is not there |" in text
    assert "| Fuse | 2 | 1 | tosa-fp/one |" in text


def test_a_pass_that_works_in_another_pipeline_says_where() -> None:
    text = rendered(
        outcome(ONE, PassRun("arm annotation", "Fuse", "a", True), PassRun("arm backend", "Fuse", "b", False))
    )
    assert "| Fuse | 1 | 0 | none here; in another pipeline tosa-fp/one |" in text
    assert "at annotation or in the backend | 1 of 1 (100.0%)" in text


def test_a_visitor_that_is_never_used_is_listed() -> None:
    text = rendered(outcome(ONE, visitors=("tosa tosa.ADD",)))
    assert "1 of 2 (50.0%) serialize a node in some cell." in text
    assert "| tosa.ADD | 1 | tosa-fp/one |" in text
    assert "| tosa.SUB | 0 | - |" in text


def test_a_crash_reports_nothing_that_it_reached() -> None:
    text = rendered(Outcome(ONE, "seed0-heap0", Casualty("crashed", "SIGSEGV"), 1.0, 1.0))
    assert "0 of 2 (0.0%) serialize" in text


def test_shares_and_values_are_short() -> None:
    assert share([], []) == "none"
    assert values({"b", "a|c"}) == "a\\|c, b"
    assert values({str(n) for n in range(7)}) == "7 values"


def serialized(version: str, kind: str) -> set[str]:
    """Return the operators of a kind that the committed table says were serialized."""
    text = (TABLES / f"{version}.md").read_text(encoding="utf-8")
    section = text.partition(f"## Serialized: {kind}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| (\w+) \|", section, re.MULTILINE)) - {"operator"}


@pytest.mark.parametrize("kind", ["tosa", "xnnpack"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_committed_table_names_the_operators_of_the_committed_goldens(version: str, kind: str) -> None:
    found: set[str] = set()
    for path in (GOLDENS / version).glob(f"*/*/delegate_*.{kind}.txt"):
        found |= set(re.findall(r"^ *operator (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    # Beside these the table may name operators of cells that are known to be wrong: they have no golden.
    assert found <= serialized(version, kind), f'run nox -s "lab({version})" -- coverage --update'


def test_the_visitors_of_each_cell_are_read_as_they_were_written(tmp_path: Path) -> None:
    coverage = everything()
    coverage.visitors["tosa of.a.patch"] = {ONE}
    text = visits(coverage, {"tosa": ["tosa.SUB", "tosa.ADD"], "xnnpack": ["aten.add.Tensor"]})
    assert text == "tosa-fp/one\ttosa tosa.ADD\txnnpack aten.add.Tensor\ntosa-fp/two\ttosa tosa.ADD\n"
    file = tmp_path / "visitors.tsv"
    file.write_text(text)
    assert visited(file) == everything().visitors
    file.write_text(text.replace("/two", ""))
    with pytest.raises(
        CoverageError, match=r"visitors\.tsv: line 2 begins with 'tosa-fp', which is no cell; bring it back"
    ):
        visited(file)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_committed_table_counts_the_cells_that_are_listed(version: str) -> None:
    listed = visited(TABLES / VISITORS.format(version))
    sections = (TABLES / f"{version}.md").read_text(encoding="utf-8").split("\n## Node visitors: ")[1:]
    rows = {
        f"{section.partition(chr(10))[0]} {name}": (int(count), example)
        for section in sections
        for name, count, example in re.findall(
            r"^\| (\S+) \| ([1-9]\d*) \| (\S+) \|$", section.partition("\n## ")[0], re.MULTILINE
        )
    }
    assert rows == {visitor: (len(cells), str(min(cells))) for visitor, cells in listed.items()}


#: A row of a pass of Arm's, or of a visitor, that counts nothing, and what stands where an example would.
UNREACHED_ROW = re.compile(r"^\| (\S+) \|(?: \d+ \|)? 0 \| (.*) \|$", re.MULTILINE)


def unreached(version: str) -> set[tuple[str, str]]:
    """Return the passes of Arm's and the visitors that a release's table counts nothing for, with the reasons given."""
    text = (TABLES / f"{version}.md").read_text(encoding="utf-8")
    sections = [part for part in text.split("\n## ") if part.startswith(("Passes: arm", "Node visitors"))]
    return {row for part in sections for row in UNREACHED_ROW.findall(part)}


def stale(given: Mapping[str, str]) -> list[str]:
    """Return the names whose reason no release's table gives for them."""
    rows = set().union(*map(unreached, VERSIONS))
    return [name for name, reason in given.items() if (name, reason) not in rows]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_pass_of_arm_and_every_visitor_that_is_not_reached_has_its_reason(version: str) -> None:
    found = unreached(version)
    assert found
    assert [name for name, said in found if said == "-"] == []


def test_no_reason_is_left_of_what_is_reached_by_now() -> None:
    assert stale(reasons()) == []


def test_a_stale_name_does_not_hide_behind_another_with_the_same_reason() -> None:
    given = reasons()
    _, shared = next(iter(given.items()))
    assert stale({**given, "GonePass": shared}) == ["GonePass"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_zoo_reaches_what_it_is_wide_for(version: str) -> None:
    text = (TABLES / f"{version}.md").read_text(encoding="utf-8")
    shares = [float(share) for share in re.findall(r"^\| (?:Arm|node) .* \((.*)%\) \|$", text, re.MULTILINE)]
    assert len(shares) == 3
    assert all(found >= least for found, least in zip(shares, (90.0, 85.0, 85.0), strict=True))
