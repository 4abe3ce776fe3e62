"""Cells that differ from their goldens in names alone: one cause in a review, a summary, a merge and a report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli
from executorch_goldens.causes.groups import PENDING
from executorch_goldens.commands.merge import parts_of, rows
from executorch_goldens.goldens import golden
from executorch_goldens.review.summary import ReviewSummary
from tests.commands.review.conftest import RUN, Artifacts, Review, cells, edit, found, shown, titled
from tests.support.making import renamed, with_texts
from tests.support.runner import Runner

NAMES = "executorch_call_delegate -> delegated"


@pytest.fixture
def renaming(proposed: Runner, artifacts: Artifacts) -> Runner:
    """Of the three cases on four targets, a constant differs in alpha, and names alone in beta and gamma."""
    constants, steady = artifacts["hashed-constant"], artifacts["steady"][0]
    proposed.answers({"alpha": constants[1], "*": renamed(steady)})
    assert proposed(*RUN).code == 1
    # Each may have been named by a different pass.
    for number, cell in enumerate(("tosa-fp/beta", "xnnpack-fp32/beta", "tosa-int/gamma")):
        edit(proposed, cell, blamed=f"Pass{number}")
    return proposed


@pytest.mark.slow
def test_names_alone_are_one_cause_and_one_accept_whichever_pass_gave_them(
    renaming: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    groups = found(renaming)
    names = titled(renaming, "names alone")
    assert len(groups) == 2
    assert [names.title, names.head] == snapshot
    assert (names.state, names.wrong, dict(names.unlike)) == (PENDING, (), {})
    listed = review()
    assert names.head in listed.out
    said = review("--accept", names.name)
    assert said.code == cli.SAME, said.err
    assert list(found(renaming)) == [title for title in groups if title != names.title]
    assert set(renaming(*RUN).verdicts().values()) == {"changed", "stable"}


def test_names_alone_are_accepted_as_one_cause(
    renaming: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    accepted = review("--accept", titled(renaming, "names alone").name)
    assert shown(renaming, accepted.out) == snapshot


def test_variations_that_differ_in_names_alone_are_no_such_cause(
    renaming: Runner, artifacts: Artifacts
) -> None:
    steady = artifacts["steady"][0]
    renaming.answers({"*": (steady, renamed(steady, "executorch_call_delegate_7"))})
    assert renaming(*RUN, "--cell", "tosa-*/gamma").code == 1
    assert len(titled(renaming, "names alone").members) == 6
    assert cells(titled(renaming, "order-only")) == {"tosa-fp/gamma", "tosa-int/gamma"}


def test_a_golden_that_has_changed_since_is_no_longer_one_of_other_names(renaming: Runner) -> None:
    path = renaming.root / "tosa-fp/beta.txt"
    texts = golden.read(path)
    graph = texts.texts()["graph"].replace("getitem", "given")
    golden.write(path, with_texts(texts, {"graph": graph}))
    names = titled(renaming, "names alone")
    assert (len(names.members), len(found(renaming))) == (7, 3)


def test_the_summary_of_renames_is_to_be_decided_and_allowed_ones_are_counted_apart(
    renaming: Runner, snapshot: SnapshotAssertion
) -> None:
    made = [row for row in rows(parts_of([renaming.folder / "sweeps"])) if row.case != "alpha"]
    red = ReviewSummary(made, [titled(renaming, "names alone")])
    assert red.state == "changed"
    assert shown(renaming, red.markdown()) == snapshot(name="red")
    allowed = ReviewSummary([msgspec.structs.replace(row, accepted=True) for row in made], [])
    assert shown(renaming, allowed.markdown()) == snapshot(name="allowed")
    recorded = ReviewSummary([msgspec.structs.replace(row, accepted=True, recorded=True) for row in made], [])
    assert shown(renaming, recorded.markdown()) == snapshot(name="recorded")


@pytest.mark.parametrize(
    ("allowed", "word"), [(False, "renamed"), pytest.param(True, "allowed rename", marks=pytest.mark.slow)]
)
def test_merged_results_and_a_report_count_renames(
    renaming: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: bool, word: str
) -> None:
    if allowed:
        text = renaming.results.read_text()
        lines = [
            line.replace('"accepted": false', '"accepted": true') if '"renamed"' in line else line
            for line in text.splitlines()
        ]
        renaming.results.write_text("\n".join(lines) + "\n")
        for cell in renaming.sweeps.glob("*/*"):
            if cell.name != "alpha":
                (cell / "cell.json").unlink(missing_ok=True)
    merged, file = tmp_path / "merged", tmp_path / "report.html"
    words = ("merge", str(renaming.sweeps), f"--goldens={renaming.goldens}", "--into", str(merged))
    assert cli.main([*words]) == cli.DIFFERENT
    assert f"8 {word}" in capsys.readouterr().out
    assert cli.main(["report", str(merged), f"--goldens={renaming.goldens}", "--html", str(file)]) == cli.SAME
    assert f"8 {word}" in capsys.readouterr().out
