"""Proposals of runs, their grouping by cause, and the records and refusals of a review."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import filelock
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli
from executorch_goldens.artifact import Artifact
from executorch_goldens.causes.groups import BARRED, PENDING, UNDECIDED, Group, grouped, read_members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.diff.difference import Difference
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden, rendering, roots
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import GRAPH, MANIFEST
from executorch_goldens.judging.verdict import Doubt
from executorch_goldens.results import merging, proposals, provenance
from executorch_goldens.results import rows as results
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.results.rows import lock
from executorch_goldens.review import recording
from executorch_goldens.review.listing import ALTHOUGH
from executorch_goldens.review.recording import record
from executorch_goldens.settings import releases
from executorch_goldens.settings.config import Config
from executorch_goldens.words.refusals import doubt
from executorch_goldens.zoo import targets
from tests import REPOSITORY
from tests.commands.review.conftest import (
    RUN,
    TARGETS,
    Artifacts,
    Review,
    cells,
    edit,
    found,
    measured_before,
    path_of,
    proposal_of,
    shown,
    titled,
)
from tests.support import replay
from tests.support.making import golden_of, lowered, with_texts, wrong
from tests.support.runner import Runner
from tests.support.screens import screen

# What a run proposes


def test_a_run_proposes_each_cell_that_is_not_as_it_should_be(proposed: Runner) -> None:
    there = {str(proposal.cell): proposal for proposal in proposals.find(proposed.folder / "sweeps")}
    assert set(there) == {
        *(f"{target}/alpha" for target in TARGETS),
        *("xnnpack-fp32/beta", "xnnpack-int8/beta"),
        *("tosa-fp/gamma", "tosa-int/gamma", "xnnpack-fp32/gamma"),
    }
    recordable = {cell for cell, proposal in there.items() if proposal.content is not None}
    assert recordable == {cell for cell in there if not cell.endswith("gamma")}
    one = there["tosa-fp/alpha"]
    standing = golden.read(golden.file_of(proposed.root, one.cell))
    assert one.replaces == standing.digest
    assert one.content == one.proposed().digest != one.replaces
    assert one.commit == provenance.commit(REPOSITORY)
    assert one.settings["environment"]["ATEN_CPU_CAPABILITY"] == "default"


def test_a_cell_that_is_stable_again_proposes_nothing(proposed: Runner, artifacts: Artifacts) -> None:
    proposed.answers({"*": artifacts["hashed-constant"][0]})
    assert proposed(*RUN, "--cell", "tosa-fp/alpha").code == 0
    assert proposal_of(proposed, "tosa-fp/alpha") is None
    assert proposal_of(proposed, "tosa-int/alpha") is not None


def test_one_variation_proposes_nothing_that_could_be_recorded(proposed: Runner) -> None:
    finished = proposed(*RUN, "--variations", "4,", "--cell", "tosa-fp/alpha")
    assert finished.verdicts() == {"tosa-fp/alpha": "changed"}
    made = proposal_of(proposed, "tosa-fp/alpha")
    assert made is not None
    assert made.content is None


def test_proposals_of_shards_are_merged_with_their_results(
    proposed: Runner, tmp_path: Path, review: Review
) -> None:
    parts = merging.find([proposed.folder / "sweeps"])
    (merged,) = merging.of_releases(parts, tmp_path / "merged")
    assert merged.wrong()
    listed = review()
    assert review(f"--sweeps={tmp_path / 'merged'}") == listed
    assert listed.code == cli.SAME


# Groups


def test_cells_with_the_same_edit_by_the_same_pass_are_one_group(
    proposed: Runner, snapshot: SnapshotAssertion
) -> None:
    groups = list(found(proposed).values())
    assert [(group.state, len(group.members)) for group in groups] == [
        (BARRED, 2),
        (BARRED, 1),
        (PENDING, 4),
        (PENDING, 2),
    ]
    corrupt, order, constant, fails = groups
    assert cells(constant) == {f"{target}/alpha" for target in TARGETS}
    assert constant.title == snapshot
    assert cells(fails) == {"xnnpack-fp32/beta", "xnnpack-int8/beta"}
    assert fails.title.startswith("fails: emit")
    assert cells(corrupt) == {"tosa-fp/gamma", "tosa-int/gamma"}
    assert corrupt.title.startswith("corrupt: ")
    assert order.title.startswith("order-only: ")


@pytest.fixture
def other(proposed: Runner) -> Runner:
    """The same results and goldens once more, as those of a second release."""
    version = next(version for version in releases.load().releases if version != proposed.release)
    shutil.copytree(proposed.root, proposed.goldens / version)
    shutil.copytree(proposed.sweeps, proposed.sweeps.parent / version)
    other = replace(proposed, release=version)
    for path in other.sweeps.glob(f"*/*/{proposals.FILE}"):
        settings = json.loads(path.read_text())["proposal"]["settings"]
        settings["patches"] = list(releases.load().release(version).patches)
        edit(other, str(path.parent.relative_to(other.sweeps)), release=version, settings=settings)
    return other


def test_releases_join_a_group_and_a_pass_divides_one(
    proposed: Runner, other: Runner, snapshot: SnapshotAssertion
) -> None:
    assert titled(proposed, "constants with different values").extent == snapshot
    edit(other, "tosa-fp/alpha", blamed="SomePass")
    groups = [group for title, group in found(proposed).items() if "constants with" in title]
    assert {group.title: group.extent for group in groups if "SomePass" in group.title} == snapshot
    assert sorted(len(group.members) for group in groups) == [1, 7]


def made_wrong(runner: Runner, *cells: str) -> Group:
    """Let one pass have made cells of alpha corrupt and have changed the others; return the cause."""
    for target in TARGETS:
        edit(runner, f"{target}/alpha", blamed="SomePass")
    for cell in cells:
        edit(runner, cell, verdict="corrupt", content=None)
    return titled(runner, "constants with different values")


def test_what_is_wrong_is_one_cause_with_what_the_same_pass_only_changed(
    proposed: Runner, snapshot: SnapshotAssertion
) -> None:
    group = made_wrong(proposed, "tosa-fp/alpha")
    assert group.head == snapshot
    assert group.state == PENDING
    assert [str(member.proposal.cell) for member in group.wrong] == ["tosa-fp/alpha"]
    assert len(group.recordable) == 3


def test_a_new_program_without_delegates_is_called_so_where_its_target_makes_some(
    proposed: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare = replace(targets.TARGETS["xnnpack-fp32"], name="bare", delegates=False)
    monkeypatch.setattr("executorch_goldens.zoo.targets.available", lambda: {**targets.TARGETS, "bare": bare})
    texts = golden_of(lowered())
    (there,) = (
        each for each in proposals.find(proposed.folder / "sweeps") if str(each.cell) == "xnnpack-fp32/alpha"
    )
    titles = []
    for target in ("xnnpack-fp32", "bare"):
        proposal = replace(there, target=target, content=texts.digest, folder=tmp_path / target)
        golden.write(proposal.folder / proposals.GOLDEN, texts, kept=True)
        titles.append([str(edit) for each in read_members([proposal], tmp_path) for edit in each.edits])
    assert titles == [["NO DELEGATE; no golden"], ["no golden"]]


def test_a_run_prints_the_message_of_the_cell_that_a_cause_makes_wrong(
    proposed: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    made = artifacts["hashed-constant"][1]
    assert isinstance(made, Artifact)
    proposed.answers({"tosa-int/alpha": wrong(made), "*": made})
    assert proposed(*RUN, "--cell", "*/alpha").printed() == snapshot


def test_accepting_a_part_of_what_is_corrupt_elsewhere_takes_a_second_word(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    name = made_wrong(proposed, "tosa-fp/alpha").name
    assert shown(proposed, review().out) == snapshot
    before = proposed.files()
    review("--accept", name).refused("nothing was recorded", "tosa-fp/alpha (corrupt)", ALTHOUGH)
    assert proposed.files() == before
    said = review("--accept", name, ALTHOUGH)
    assert said.code == cli.SAME
    assert shown(proposed, said.out) == snapshot
    written = {path for path, now in proposed.files().items() if before.get(path) != now}
    assert {path.split("/")[1] for path in written} == {"tosa-int", "xnnpack-fp32", "xnnpack-int8"}


def test_a_rejection_is_of_all_cells_of_a_cause_whatever_their_verdict(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    name = made_wrong(proposed, "tosa-fp/alpha").name
    assert shown(proposed, review("--reject", name, "--reason", "a sign").out) == snapshot
    # By now another cell shows it, and the reason that is kept is enough.
    again = made_wrong(proposed, "tosa-int/alpha").name
    assert again != name
    assert shown(proposed, review().out) == snapshot
    assert shown(proposed, review("--reject", again).out) == snapshot


def test_the_error_against_eager_is_shown_before_and_after_where_the_golden_has_it(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    measured = {"error": 0.125, "tolerance": 0.25, "used": 0.5}
    for target in TARGETS:
        edit(proposed, f"{target}/alpha", accuracy=measured)
        measured_before(proposed, f"{target}/alpha", 0.5)
    edit(proposed, "tosa-int/alpha", accuracy={**measured, "used": 0.999})
    measured_before(proposed, "tosa-int/alpha", 0.25)
    group = titled(proposed, "constants with different values")
    (line,) = (line for line in group.amounts() if line.startswith("error"))
    assert line == snapshot
    assert "tosa-int/alpha" in {str(member.proposal.cell) for member in group.specimens}
    assert f"cells: {proposed.release} tosa-int/alpha, " in review().out


def test_accepting_over_two_releases_writes_both(proposed: Runner, other: Runner, review: Review) -> None:
    assert review("--accept", titled(proposed, "constants with different values").name).code == cli.SAME
    for runner in (proposed, other):
        for target in TARGETS:
            assert proposal_of(runner, f"{target}/alpha") is None
            assert golden.read(runner.root / target / "alpha.txt") is not None


def test_a_group_says_how_much_more_there_is_and_which_cells_are_unlike_the_others(
    proposed: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    folders = [proposed.sweeps / target / "alpha" for target in TARGETS]
    before = golden.read(proposed.root / "tosa-fp" / "alpha.txt")
    assert before is not None
    for number, folder in enumerate(folders):
        texts = golden.read(folder / proposals.GOLDEN)
        # Three programs are 16 bytes longer, the fourth is 1,600 bytes shorter.
        size = int(re.search(r"^pte: (\d+)", before.texts()[MANIFEST], re.MULTILINE)[1])  # type: ignore[index]
        manifest = re.sub(
            r"^pte: \d+",
            f"pte: {size + (16 if number < 3 else -1600)}",
            texts.texts()[MANIFEST],
            flags=re.MULTILINE,
        )
        made = with_texts(texts, {MANIFEST: manifest})
        golden.write(folder / proposals.GOLDEN, made)
        edit(proposed, f"{TARGETS[number]}/alpha", content=made.digest)
    group = titled(proposed, "constants with different values")
    assert list(group.amounts())[-1] == snapshot
    (unlike,) = group.unlike.items()
    assert shown(proposed, unlike) == snapshot
    assert str(group.specimen.proposal.cell) != "xnnpack-int8/alpha"


def test_quantities_count_operators_and_bytes_with_their_direction(artifacts: Artifacts) -> None:
    old, new = (
        rendering.render(artifacts[case][0], rendering.MadeWith({}, (), Numerics()))
        for case in ("steady", "hashed-constant")
    )
    found = Difference(old, new)
    more = found.quantities
    assert more.operators == {"XNNAdd": 1, "XNNFullyConnected": -1}
    # Weights of 3 x 4 and a bias of 3 are gone, float32; the 32 added bytes are listed beside it.
    assert more.constants == -4 * (12 + 3) + 32
    assert Difference(new, old).quantities.constants == -more.constants
    assert {str(each) for each in found.edits} >= {"XNNAdd gained", "XNNFullyConnected lost"}


# The list


def test_the_list_shows_each_cause_with_one_specimen_and_exits_with_0(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    said = review()
    assert (said.code, said.err) == (cli.SAME, "")
    assert shown(proposed, said.out) == snapshot


# What is accepted


def test_accepting_a_group_records_what_was_proposed_and_nothing_else(
    proposed: Runner, review: Review, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    group = titled(proposed, "constants with different values")
    wanted = {str(member.proposal.cell): member.proposal.content for member in group.members}
    before = proposed.files()
    said = review("--accept", group.name)
    assert said.code == cli.SAME, said.err
    assert shown(proposed, said.out) == snapshot
    after = proposed.files()
    touched = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert touched == {f"{proposed.release}/{cell}.txt" for cell in wanted}
    for cell, content in wanted.items():
        texts = golden.read(proposed.root / f"{cell}.txt")
        assert texts.digest == content
        assert proposal_of(proposed, cell) is None
    # What --snapshot-update writes is the same, and the cells are green.
    proposed.answers({"*": artifacts["hashed-constant"][1]})
    assert proposed(*RUN, "--cell", "*/alpha", "--snapshot-update").verdicts() == dict.fromkeys(
        wanted, "stable"
    )
    assert proposed.files() == after


def test_the_message_of_the_commit_names_causes_and_cells(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    group = titled(proposed, "constants with different values")
    said = review("--accept", group.name)
    file = proposed.sweeps.parent / "commit.txt"
    assert shown(proposed, said.out) == snapshot
    _, *rest = file.read_text().splitlines()
    assert shown(proposed, file.read_text()) == snapshot
    assert [line for line in rest if line.startswith("- ")] == [
        f"- {member.proposal.name}" for member in group.members
    ]
    assert max(map(len, rest)) <= 72
    failing = titled(proposed, "fails: ")
    threads = recording.message([failing], [], {failing.cause: "a pass loses its input (#21480)"})
    assert threads.endswith("\n\nhttps://github.com/pytorch/executorch/issues/21480\n")


def test_what_is_accepted_is_what_an_update_records(proposed: Runner, review: Review, tmp_path: Path) -> None:
    shutil.copytree(proposed.folder, tmp_path / "updated")
    answers = {replay.VARIABLE: str(tmp_path / "updated" / "answers")}
    updated = Runner(tmp_path / "updated", proposed.release, answers)
    updated(*RUN, "--snapshot-update")
    for group in [group for group in found(proposed).values() if group.state == PENDING]:
        assert review("--accept", group.name).code == cli.SAME
    contents = [{name: file[0] for name, file in runner.files().items()} for runner in (proposed, updated)]
    assert contents[0] == contents[1]


def test_several_groups_are_accepted_together_or_not_at_all(proposed: Runner, review: Review) -> None:
    before = proposed.files()
    fails, constant = titled(proposed, "fails: "), titled(proposed, "constants with different values")
    (proposed.sweeps / "xnnpack-int8" / "beta" / proposals.GOLDEN).write_text("another\n")
    review("--accept", constant.name, "--accept", fails.name).refused("xnnpack-int8/beta", "begins with")
    assert proposed.files() == before


# What is refused


@pytest.mark.parametrize("text", ["corrupt: ", "order-only: "])
def test_what_is_wrong_or_disagrees_cannot_be_accepted(proposed: Runner, review: Review, text: str) -> None:
    before = proposed.files()
    group = titled(proposed, text)
    review("--accept", group.name).refused("nothing was recorded", "gamma", "may not be recorded", text)
    assert proposed.files() == before


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"commit": "0" * 40}, ["made at commit 000000000000", "run the cell again"]),
        ({"commit": None}, ["made at commit none", "run the cell again"]),
        ({"changes": "0" * 64}, ["other uncommitted changes (now: ", "run the cell again"]),
        ({"settings": {"patches": []}}, ["patches none", "--snapshot-update"]),
        ({"models": ["other_zoo"]}, ["holds the goldens of zoo_three", "other_zoo"]),
    ],
    ids=["commit", "no-commit", "changes", "patches", "zoo"],
)
def test_a_proposal_made_otherwise_is_refused(
    proposed: Runner, review: Review, fields: dict[str, Any], facts: list[str]
) -> None:
    before = proposed.files()
    name = titled(proposed, "constants with different values").name
    for target in TARGETS:
        edit(proposed, f"{target}/alpha", **fields)
    review("--accept", name).refused("nothing was recorded", "/alpha", *facts)
    listed = review()
    assert listed.out.count("  out of date: run the cells again\n") == 1
    for fact in facts:
        assert fact in listed.out
    assert proposed.files() == before


def test_a_proposal_has_to_have_the_patches_that_the_repository_sets(proposed: Runner) -> None:
    patched = proposal_of(proposed, "tosa-fp/alpha")
    assert patched is not None
    plain = replace(patched, settings={**patched.settings, "patches": []})
    assert patched.settings["patches"]

    def objection(proposal: Proposal, patches: str) -> str:
        repository = Config(REPOSITORY, proposed.goldens, proposed.folder, patches=patches)
        return Standing(repository, proposed.goldens).objection(proposal)

    assert objection(patched, "auto") == objection(plain, "none") == ""
    assert "patches none, and now partition-order" in objection(plain, "auto")
    assert ", and now none" in objection(patched, "none")


def test_what_a_killed_review_has_recorded_does_not_keep_the_rest_from_being_accepted(
    proposed: Runner, review: Review
) -> None:
    group = titled(proposed, "constants with different values")
    one, *others = (member.proposal for member in group.members)
    golden.write(golden.file_of(proposed.root, one.cell), one.proposed())
    (left,) = (each for each in found(proposed).values() if each.title == group.title)
    assert [member.proposal.name for member in left.members] == [each.name for each in others]
    assert review("--accept", left.name).code == 0


def test_a_proposal_whose_golden_has_changed_is_refused(proposed: Runner, review: Review) -> None:
    group = titled(proposed, "constants with different values")
    one = group.members[0].proposal
    other = with_texts(one.proposed(), {GRAPH: "another graph\n"})
    golden.write(golden.file_of(proposed.root, one.cell), other)
    before = proposed.files()
    review("--accept", group.name).refused("no group is called", group.name)
    (outdated,) = (each for each in found(proposed).values() if each.state == "out of date")
    review("--accept", outdated.name).refused(
        str(one.cell), "was compared with a different golden than the one in", "run the cell again"
    )
    assert proposed.files() == before


def test_a_damaged_golden_is_not_overwritten(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    group = titled(proposed, "constants with different values")
    path = proposed.root / "tosa-fp" / "alpha.txt"
    path.write_text(path.read_text() + "edited\n")
    before = proposed.files()
    assert shown(proposed, review().out) == snapshot
    assert review("--accept", group.name).code == cli.ERROR
    assert proposed.files() == before


def test_a_damaged_golden_is_no_known_defect(proposed: Runner, review: Review) -> None:
    for file in proposed.sweeps.glob("tosa-*/gamma/cell.json"):
        file.write_text(file.read_text().replace('"corrupt"', '"damaged-golden"', 1))
    (line,) = (line for line in review().out.splitlines() if line.endswith("2 damaged-golden"))
    rejecting = ("--reject", line.partition(" ")[0], "--known", "--reason", "ours")
    review(*rejecting).refused("is no known defect")


def test_a_damaged_golden_is_not_taken_for_none(proposed: Runner, review: Review) -> None:
    damaged = [proposed.root / "tosa-int" / name for name in ("alpha.txt", "gamma.txt")]
    for path in damaged:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    out = review().out
    assert "no golden" not in out
    assert "only in now" not in out
    for path in damaged:
        assert out.count(f"{path}: has CRLF line ends") == 1


def test_what_fewer_variations_agree_on_is_recorded_only_where_that_is_said(
    proposed: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    """The golden of one cell of a group was confirmed by a third variation."""
    path = proposed.root / "tosa-fp" / "alpha.txt"
    texts = golden.read(path)
    more = texts.texts()[MANIFEST].replace("seed4-heap1", "seed4-heap1 seed27-heap2")
    golden.write(path, with_texts(texts, {MANIFEST: more}))
    edit(proposed, "tosa-fp/alpha", replaces=golden.read(path).digest)
    before = proposed.files()
    assert shown(proposed, review().out) == snapshot
    standing = Standing(
        Config(REPOSITORY, proposed.goldens, proposed.folder, patches="auto"), proposed.goldens
    )
    every = list(proposals.find(proposed.folder / "sweeps"))
    (partly,) = (
        each for each in grouped(read_members(every, proposed.goldens, standing)) if "constants" in each.title
    )
    undecided = [member for member in partly.members if member.state == UNDECIDED]
    assert [str(member.proposal.cell) for member in undecided] == ["tosa-fp/alpha"]
    with pytest.raises(
        UsageError, match=r"tosa-fp/alpha .* --variations full, or let goldens review accept it with"
    ):
        record(undecided, proposed.sweeps.parent, proposed.goldens, standing)
    assert proposed.files() == before
    groups = grouped(read_members(every, proposed.goldens, replace(standing, fewer=True)))
    (whole,) = (each for each in groups if each.title.startswith("constants with different values"))
    assert len(whole.recordable) == len(TARGETS)
    assert review("--accept", whole.name, "--fewer-variations").code == cli.SAME
    assert golden.read(path).facts["variations"] == "seed0-heap0 seed4-heap1"


def test_what_has_been_proposed_anew_since_it_was_reviewed_is_refused(proposed: Runner) -> None:
    standing = Standing(
        Config(REPOSITORY, proposed.goldens, proposed.folder, patches="auto"), proposed.goldens
    )
    group = titled(proposed, "constants with different values")
    edit(proposed, "tosa-int/alpha", proof="without it the artifact is right")
    before = proposed.files()
    with pytest.raises(UsageError, match="proposed otherwise than it was reviewed"):
        record(group.members, proposed.sweeps.parent, proposed.goldens, standing)
    assert proposed.files() == before


@pytest.mark.parametrize("held", ["results", "goldens"])
def test_nothing_is_recorded_while_a_run_works_there(proposed: Runner, review: Review, held: str) -> None:
    name = titled(proposed, "constants with different values").name
    its_lock: filelock.BaseFileLock = (
        lock(proposed.sweeps) if held == "results" else roots.lock(proposed.goldens, proposed.release)
    )
    with its_lock:
        review("--accept", name).refused(its_lock.lock_file)
    assert review("--accept", name).code == cli.SAME


def test_accepting_is_refused_where_ci_is_set(
    proposed: Runner, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = proposed.files()
    monkeypatch.setenv("CI", "true")
    review("--accept", titled(proposed, "fails: ").name).refused("review --accept", "CI is set")
    assert proposed.files() == before
    assert review().code == cli.SAME


def test_a_group_is_shown_with_every_cell_the_largest_growth_of_the_error_first(
    review: Review, proposed: Runner
) -> None:
    measured = {"error": 0.125, "tolerance": 0.25, "used": 0.5, "sqnr": 41.0}
    edit(proposed, "tosa-int/alpha", accuracy=measured)
    group = titled(proposed, "constants with different values")
    head, *lines = review("--show", group.name).out.splitlines()
    assert head.split("  ")[0] == "cell"
    assert [line.split()[1] for line in lines[: len(TARGETS)]] == [
        "tosa-int/alpha",
        *(f"{target}/alpha" for target in TARGETS if target != "tosa-int"),
    ]
    assert "-> 0.5" in lines[0]
    assert "? -> 41.0" in lines[0]
    for target in TARGETS:
        shown = lines.index(f"{proposed.release} {target}/alpha:")
        assert lines[shown + 1].startswith("  ")


# Nothing to do


def test_nothing_to_review_is_a_sentence_and_no_error(
    review: Review, proposed: Runner, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    nothing = review("--sweeps", str(tmp_path))
    assert nothing.code == cli.SAME
    assert screen(nothing.out, {tmp_path: "TMP"}) == snapshot
    (tmp_path / proposed.release).mkdir()
    shutil.copy(proposed.sweeps / results.FILE, tmp_path / proposed.release)
    green = review("--sweeps", str(tmp_path))
    assert green.code == cli.SAME
    assert screen(green.out, {tmp_path: "TMP"}) == snapshot


# Bad input


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["--accept", "01234567"], ["'01234567'", "goldens review shows the names"]),
        (["--show", "01234567"], ["'01234567'", "goldens review shows the names"]),
        (["--reject", "01234567", "--reason", "no"], ["'01234567'", "goldens review shows the names"]),
        (["--reject", "01234567"], ["--reason TEXT"]),
        (["--reject", "01234567", "--reason", " "], ["--reason TEXT"]),
        (["--reason", "no"], ["--reason goes with --accept with --expect and --reject"]),
        (["--known"], ["--known goes with --reject"]),
        (["--sweeps", "no-such-folder"], ["no cell proposes anything", "no-such-folder", "goldens run"]),
    ],
    ids=" ".join,
)
def test_a_wrong_command_is_one_clear_error(review: Review, words: list[str], facts: list[str]) -> None:
    review(*words).refused(*facts)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", ["is damaged", "JSONDecodeError"]),
        ("[]", ["is damaged"]),
        ('{"format": 9}', ["its format is not 3"]),
        ('{"format": 3, "proposal": {}}', ["is damaged", "release"]),
    ],
)
def test_a_damaged_proposal_is_one_clear_error(
    proposed: Runner, review: Review, text: str, facts: list[str]
) -> None:
    path = path_of(proposed, "tosa-fp/alpha")
    path.write_text(text)
    review().refused(str(path), "Run its cell again", *facts)


def test_a_golden_to_be_that_is_not_what_was_proposed_is_one_clear_error(
    proposed: Runner, review: Review
) -> None:
    one = proposed.sweeps / "tosa-fp" / "alpha" / proposals.GOLDEN
    texts = golden.read(one)
    assert texts is not None
    golden.write(one, with_texts(texts, {"graph": "another\n"}))
    review().refused(str(one), "does not have the digest in", "Run its cell again")
    one.unlink()
    review().refused(str(one), "does not have the digest in")


def test_a_proposal_in_the_folder_of_another_cell_or_release_is_one_clear_error(
    proposed: Runner, review: Review
) -> None:
    edit(proposed, "tosa-fp/alpha", release="1.1.0")
    review().refused("is of ExecuTorch 1.1.0")
    edit(proposed, "tosa-fp/alpha", release=proposed.release, case="../../elsewhere")
    review().refused("../../elsewhere", "cannot be the name")
    edit(proposed, "tosa-fp/alpha", case="beta")
    review().refused("tosa-fp/beta", "another cell")


# The commit


@dataclass
class Clone:
    """A git checkout with goldens."""

    folder: Path

    def git(self, *words: str) -> str:
        command = (
            "git",
            "-c",
            "user.name=tests",
            "-c",
            "user.email=tests@localhost",
            "-C",
            str(self.folder),
            *words,
        )
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "tests")
        return self.git("rev-parse", "HEAD")

    def objection(self, proposal: Proposal) -> str:
        goldens = self.folder / "goldens"
        repository = Config(self.folder, goldens, self.folder, patches="auto")
        return Standing(repository, goldens).objection(proposal)


def test_goldens_may_be_committed_between_two_reviews_and_nothing_else(
    proposed: Runner, tmp_path: Path
) -> None:
    clone = Clone(tmp_path / "clone")
    shutil.copytree(proposed.goldens, clone.folder / "goldens")
    (clone.folder / "models.py").write_text("one\n")
    clone.git("init", "--quiet")
    commit = clone.commit()
    found = proposal_of(proposed, "tosa-fp/alpha")
    assert found is not None
    made = replace(found, commit=commit, changes="")
    assert clone.objection(made) == ""
    shutil.copytree(clone.folder / "goldens" / proposed.release, clone.folder / "goldens" / "1.0.0")
    later = clone.commit()
    assert clone.objection(made) == ""
    (clone.folder / "models.py").write_text("two\n")
    assert f"was made at commit {commit[:12]}, and {later[:12]} is checked out" in clone.objection(made)
    clone.commit()
    assert "is checked out" in clone.objection(made)
    (clone.folder / "models.py").write_text("one\n")
    assert clone.objection(made) == ""
    elsewhere = replace(made, commit="0" * 40)
    assert "made at commit 000000000000" in clone.objection(elsewhere)


@pytest.mark.slow
def test_an_update_records_nothing_of_a_cause_that_makes_other_cells_wrong(
    proposed: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    made = artifacts["hashed-constant"][1]
    assert isinstance(made, Artifact)
    update = (*RUN, "--snapshot-update", "--cell")
    before = proposed.files()
    proposed.answers({"tosa-int/alpha": wrong(made), "*": made})
    finished = proposed(*update, "*/alpha")
    assert finished.printed() == snapshot
    assert (finished.code, proposed.files()) == (1, before)
    assert not any(row["recorded"] for row in finished.rows.values())
    # Nor of the cells that are right by themselves, as long as nobody has run the other again.
    alone = proposed(*update, "tosa-fp/alpha")
    assert alone.printed() == snapshot
    assert (alone.code, proposed.files()) == (1, before)
    proposed.answers({"*": made})
    finished = proposed(*update, "*/alpha")
    assert finished.printed() == snapshot
    assert finished.code == 0, finished.output
    assert all(row["recorded"] and row["accepted"] for row in finished.rows.values())
    written = {path.split("/")[1] for path, now in proposed.files().items() if before.get(path) != now}
    assert written == set(TARGETS)


def test_an_update_that_ends_early_replaces_no_golden(proposed: Runner, artifacts: Artifacts) -> None:
    before = proposed.files()
    constants, steady = artifacts["hashed-constant"], artifacts["steady"][0]
    assert isinstance(steady, Artifact)
    proposed.answers({"alpha": constants[1], "*": wrong(steady)})
    finished = proposed(*RUN, "--snapshot-update", "-x")
    assert doubt(Doubt()) in finished.output
    assert proposed.files() == before
