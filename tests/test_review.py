"""Review: what runs propose, how it is grouped by cause, what is recorded of it and what is refused.

The exports are real ones made once (`conftest.exports`) and put in the place of the sweep (`replay`).
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import filelock
import pytest

from harness import cli, config, releases
from harness.artifact import Artifact, Lowered, Tensor
from harness.commands.summary import rows as rows_of
from harness.config import Config
from harness.judging import golden, roots
from harness.releases import MATRIX
from harness.results import lock
from harness.review import listing, proposals
from harness.review.declaring import DeclaringError, declare
from harness.review.edits import edits, quantities
from harness.review.groups import BARRED, PENDING, Group, grouped
from harness.review.proposals import Proposal
from harness.review.recording import RefusedError, record
from harness.review.session import Session
from harness.review.standing import Standing
from harness.review.summary import MARK, Row, Summary, marks
from harness.sharding import merging, provenance
from tests import REPOSITORY, replay
from tests.conftest import DROPPED, RUN_LIMIT, Runner

Artifacts = Mapping[str, tuple[Artifact, ...]]

RUN = ("--hash-seeds", "0,4", "--models", "zoo_three", "--factors", "0", "--omissions", "0")
TARGETS = ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")


def wrong(artifact: Artifact) -> Artifact:
    """Return an artifact whose program gives an output that is off by one."""
    assert isinstance(artifact.result, Lowered)
    example, *others = artifact.result.samples
    off = replace(example, outputs=(Tensor.of(example.expected[0].array() + 1),))
    return replace(artifact, result=replace(artifact.result, samples=(off, *others)))


@pytest.fixture(scope="module")
def proposing(tmp_path_factory: pytest.TempPathFactory, release: str, artifacts: Artifacts) -> Runner:
    """A runner whose goldens are recorded, and whose last run found three causes.

    A constant differs in every cell of alpha. Lowering fails in those of beta on XNNPACK. Of those of gamma, two are
    wrong and one differs between its variations.
    """
    runner = Runner(tmp_path_factory.mktemp("proposing"), release)
    runner.zoo("zoo_three", "alpha", "beta", "gamma")
    constants, steady = artifacts["hashed-constant"], artifacts["steady"][0]
    runner.answers({"alpha": constants[0], "*": steady})
    finished = runner(*RUN, "--snapshot-update")
    assert finished.code == 0, finished.output
    runner.answers(
        {
            "alpha": constants[1],
            **dict.fromkeys(("xnnpack-fp32/beta", "xnnpack-int8/beta"), artifacts["does-not-lower"][0]),
            **dict.fromkeys(("tosa-fp/gamma", "tosa-int/gamma"), wrong(steady)),
            "xnnpack-fp32/gamma": artifacts["set-of-strings"],
            "*": steady,
        }
    )
    finished = runner(*RUN)
    assert sorted(finished.verdicts().values()) == [
        *["changed"] * 4,
        *["corrupt"] * 2,
        *["failed"] * 2,
        "order-only",
        *["stable"] * 3,
    ]
    return runner


@pytest.fixture
def proposed(proposing: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A copy of `proposing` of its own, in a checkout that nobody calls CI."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(REPOSITORY)
    shutil.copytree(proposing.folder, tmp_path / "own")
    return Runner(tmp_path / "own", proposing.release, {replay.VARIABLE: str(tmp_path / "own" / "answers")})


@dataclass(frozen=True)
class Said:
    """What a command ended with and printed."""

    code: int
    out: str
    err: str

    def refused(self, *facts: str) -> None:
        """Assert one line of an error that states `facts`."""
        assert self.code == cli.ERROR
        assert self.out == ""
        assert len(self.err.splitlines()) == 1, self.err
        for fact in facts:
            assert fact in self.err, self.err


Review = Callable[..., Said]


@pytest.fixture
def review(proposed: Runner, capsys: pytest.CaptureFixture[str]) -> Review:
    """``python -m harness review`` over the results of `proposed`."""

    def call(*words: str) -> Said:
        folders = (f"--goldens={proposed.goldens}", f"--sweeps={proposed.folder / 'sweeps'}")
        code = cli.main(["review", *folders, *words])
        printed = capsys.readouterr()
        return Said(code, printed.out, printed.err)

    return call


def found(runner: Runner) -> dict[str, Group]:
    """Return the groups of what `runner` proposes, by title."""
    standing = Standing(Config(REPOSITORY, runner.goldens, runner.folder), runner.goldens.resolve(), MATRIX)
    groups = grouped(proposals.find(runner.folder / "sweeps"), runner.goldens, standing)
    assert len({group.title for group in groups}) == len(groups)
    return {group.title: group for group in groups}


def titled(runner: Runner, text: str) -> Group:
    """Return the one group whose title has `text` in it."""
    (group,) = (group for title, group in found(runner).items() if text in title)
    return group


def cells(group: Group) -> set[str]:
    return {str(member.proposal.cell) for member in group.members}


def path_of(runner: Runner, cell: str) -> Path:
    return runner.sweeps / cell / proposals.FILE


def edit(runner: Runner, cell: str, **fields: Any) -> None:
    """Change fields of the proposal of a cell."""
    path = path_of(runner, cell)
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


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
    standing = golden.read(golden.directory(proposed.root, one.cell))
    assert standing is not None
    assert one.replaces == golden.digest(standing)
    assert one.content == golden.digest(one.texts()) != one.replaces
    assert one.commit == provenance.commit(REPOSITORY)
    assert one.settings["environment"]["ATEN_CPU_CAPABILITY"] == "default"


def test_a_cell_that_is_stable_again_proposes_nothing(proposed: Runner, artifacts: Artifacts) -> None:
    proposed.answers({"*": artifacts["hashed-constant"][0]})
    assert proposed(*RUN, "--cell", "tosa-fp/alpha").code == 0
    assert not path_of(proposed, "tosa-fp/alpha").exists()
    assert path_of(proposed, "tosa-int/alpha").exists()


def test_one_variation_proposes_nothing_that_could_be_recorded(proposed: Runner) -> None:
    finished = proposed(*RUN, "--hash-seeds", "4", "--cell", "tosa-fp/alpha")
    assert finished.verdicts() == {"tosa-fp/alpha": "changed"}
    assert Proposal.read(path_of(proposed, "tosa-fp/alpha")).content is None


def test_proposals_of_shards_are_merged_with_their_results(
    proposed: Runner, tmp_path: Path, review: Review
) -> None:
    parts = merging.find([proposed.folder / "sweeps"])
    (merged,) = merging.of_releases(parts, tmp_path / "merged")
    assert merged.wrong()
    listed = review("--list")
    assert review(f"--sweeps={tmp_path / 'merged'}", "--list") == listed
    assert listed.code == cli.SAME


# Groups


def test_cells_with_the_same_edit_by_the_same_pass_are_one_group(proposed: Runner) -> None:
    groups = list(found(proposed).values())
    assert [(group.state, len(group.members)) for group in groups] == [
        (PENDING, 4),
        (PENDING, 2),
        (BARRED, 2),
        (BARRED, 1),
    ]
    constant, fails, corrupt, order = groups
    assert cells(constant) == {f"{target}/alpha" for target in TARGETS}
    assert constant.title == "constants with different values, of the program in torch.export"
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
        settings = json.loads(path.read_text())["settings"]
        settings["patches"] = list(releases.load().release(version).patches)
        edit(other, str(path.parent.relative_to(other.sweeps)), release=version, settings=settings)
    return other


def test_releases_join_a_group_and_a_pass_divides_one(proposed: Runner, other: Runner) -> None:
    assert titled(proposed, "constants with different values").extent == "8 cells, 2 releases"
    edit(other, "tosa-fp/alpha", blamed="SomePass")
    groups = [group for title, group in found(proposed).items() if title.startswith("constants with")]
    assert {group.title.rpartition(" ")[2]: group.extent for group in groups if "after" in group.title} == {
        "SomePass": "1 cell, 1 release"
    }
    assert sorted(len(group.members) for group in groups) == [1, 7]


def test_accepting_over_two_releases_writes_both(proposed: Runner, other: Runner, review: Review) -> None:
    assert review("--accept", titled(proposed, "constants with different values").name).code == cli.SAME
    for runner in (proposed, other):
        for target in TARGETS:
            assert not path_of(runner, f"{target}/alpha").exists()
            assert golden.read(runner.root / target / "alpha") is not None


def test_a_group_says_how_much_more_there_is_and_which_cells_are_unlike_the_others(
    proposed: Runner, artifacts: Artifacts
) -> None:
    folders = [proposed.sweeps / target / "alpha" for target in TARGETS]
    before = golden.read(proposed.root / "tosa-fp" / "alpha")
    assert before is not None
    for number, folder in enumerate(folders):
        texts = golden.read(folder / proposals.FOLDER)
        assert texts is not None
        # Three programs are 16 bytes longer, the fourth is 1,600 bytes shorter.
        size = int(re.search(r"^pte: (\d+)", before[golden.MANIFEST], re.MULTILINE)[1])  # type: ignore[index]
        manifest = re.sub(
            r"^pte: \d+",
            f"pte: {size + (16 if number < 3 else -1600)}",
            golden.unsealed(texts)[golden.MANIFEST],
            flags=re.MULTILINE,
        )
        made = golden.sealed({**texts, golden.MANIFEST: manifest})
        golden.write(folder / proposals.FOLDER, made)
        edit(proposed, f"{TARGETS[number]}/alpha", content=golden.digest(made))
    group = titled(proposed, "constants with different values")
    assert list(group.amounts()) == [".pte: -1,552 bytes (3 grow, 1 shrinks)"]
    assert group.unlike == {
        f"{proposed.release} xnnpack-int8/alpha": ".pte bytes -1,600 where the median is +16"
    }
    assert str(group.specimen.proposal.cell) != "xnnpack-int8/alpha"


def test_quantities_count_operators_and_bytes_with_their_direction(artifacts: Artifacts) -> None:
    old, new = (
        golden.render(artifacts[case][0], golden.Origin({}, (), "")) for case in ("steady", "hashed-constant")
    )
    more = quantities(old, new)
    assert more.operators == {"XNNAdd": 1, "XNNFullyConnected": -1}
    # Weights of 3 x 4 and a bias of 3 are gone, float32; the 32 bytes that are added stand beside it.
    assert more.constants == -4 * (12 + 3) + 32
    assert quantities(new, old).constants == -more.constants
    assert {str(each) for each in edits(old, new)} >= {"XNNAdd gained", "XNNFullyConnected lost"}


# The list


def test_the_list_shows_each_cause_with_one_specimen_and_exits_with_0(
    proposed: Runner, review: Review
) -> None:
    said = review("--list")
    assert said.code == cli.SAME
    assert said.err == ""
    assert "to review: 2 causes, 6 cells" in said.out
    assert "cannot be recorded: these are not right, or do not repeat: 2 causes, 3 cells" in said.out
    for title, group in found(proposed).items():
        assert f"\n{group.name}  {title}: {group.extent}\n" in said.out
    assert said.out.count("for example ") == 4


def test_the_differences_of_a_specimen_are_shown_by_what_they_are_of(proposed: Runner) -> None:
    specimen = titled(proposed, "constants with different values").specimen
    assert any("constant" in line for line in listing.constants(specimen))
    assert not any("constant" in line for line in listing.graph(specimen))
    shown = list(listing.trace(specimen))
    assert {line.partition(" ")[2][:1] for line in shown} >= {"-", "+"}


# What is accepted


def test_accepting_a_group_records_what_was_proposed_and_nothing_else(
    proposed: Runner, review: Review, artifacts: Artifacts
) -> None:
    group = titled(proposed, "constants with different values")
    wanted = {str(member.proposal.cell): member.proposal.content for member in group.members}
    before = proposed.files()
    said = review("--accept", group.name)
    assert said.code == cli.SAME, said.err
    assert f"recorded: {group.title}: 4 cells, 1 release" in said.out
    after = proposed.files()
    touched = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {str(Path(name).parent) for name in touched} == {f"{proposed.release}/{cell}" for cell in wanted}
    for cell, content in wanted.items():
        texts = golden.read(proposed.root / cell)
        assert texts is not None
        assert golden.digest(texts) == content
        assert not path_of(proposed, cell).exists()
    # What --snapshot-update writes is the same, and the cells are green.
    proposed.answers({"*": artifacts["hashed-constant"][1]})
    assert proposed(*RUN, "--cell", "*/alpha", "--snapshot-update").verdicts() == dict.fromkeys(
        wanted, "stable"
    )
    assert proposed.files() == after


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
    (proposed.sweeps / "xnnpack-int8" / "beta" / proposals.FOLDER / "failure.txt").write_text("another\n")
    review("--accept", constant.name, "--accept", fails.name).refused("xnnpack-int8/beta", "by hand")
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
        ({"changes": "0" * 64}, ["other uncommitted changes than there are now (", "run the cell again"]),
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
    listed = review("--list")
    assert "out of date: run these cells again: 1 cause, 4 cells" in listed.out
    for fact in facts:
        assert fact in listed.out
    assert proposed.files() == before


def test_what_a_killed_review_has_recorded_does_not_keep_the_rest_from_being_accepted(
    proposed: Runner, review: Review
) -> None:
    group = titled(proposed, "constants with different values")
    one, *others = (member.proposal for member in group.members)
    golden.write(golden.directory(proposed.root, one.cell), one.texts())
    (left,) = (each for each in found(proposed).values() if each.title == group.title)
    assert [member.proposal.name for member in left.members] == [each.name for each in others]
    assert review("--accept", left.name).code == 0


def test_a_proposal_whose_golden_has_changed_is_refused(proposed: Runner, review: Review) -> None:
    group = titled(proposed, "constants with different values")
    one = group.members[0].proposal
    other = {**one.texts(), golden.GRAPH: "another graph\n"}
    golden.write(golden.directory(proposed.root, one.cell), golden.sealed(golden.unsealed(other)))
    before = proposed.files()
    review("--accept", group.name).refused("no group is called", group.name, "--list")
    (outdated,) = (each for each in found(proposed).values() if each.state == "out of date")
    review("--accept", outdated.name).refused(
        str(one.cell), "another golden than stands in", "run the cell again"
    )
    assert proposed.files() == before


def test_a_damaged_golden_is_not_overwritten(proposed: Runner, review: Review) -> None:
    group = titled(proposed, "constants with different values")
    (proposed.root / "tosa-fp" / "alpha" / "graph.txt").write_text("edited\n")
    before = proposed.files()
    assert "is damaged or was edited by hand" in review("--list").out
    assert review("--accept", group.name).code == cli.ERROR
    assert proposed.files() == before


def test_what_has_been_proposed_anew_since_it_was_reviewed_is_refused(proposed: Runner) -> None:
    standing = Standing(Config(REPOSITORY, proposed.goldens, proposed.folder), proposed.goldens, MATRIX)
    group = titled(proposed, "constants with different values")
    edit(proposed, "tosa-int/alpha", reason="differs again")
    before = proposed.files()
    with pytest.raises(RefusedError, match="proposed otherwise than it was reviewed"):
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
    assert review("--list").code == cli.SAME


# Rejections


def test_a_rejection_is_kept_and_shown_until_its_cause_is_accepted(proposed: Runner, review: Review) -> None:
    before = proposed.files()
    group = titled(proposed, "constants with different values")
    said = review("--reject", group.name, "--reason", "  ask in the tracker ")
    assert (said.code, said.out) == (0, f"rejected: {group.title}: 4 cells, 1 release: ask in the tracker\n")
    assert proposed.files() == before
    # The next run proposes the same cause in other words and on fewer cells.
    edit(proposed, "tosa-int/alpha", reason="differs in something")
    shutil.rmtree(proposed.sweeps / "tosa-fp" / "alpha")
    assert review("--list").out.count("  rejected: ask in the tracker\n") == 1
    again = titled(proposed, "constants with different values")
    assert again.name != group.name
    assert review("--accept", again.name).code == cli.SAME
    assert "ask in the tracker" not in review("--list").out


KNOWN = """\
# Ours.
[releases."1.0.0".known]
# Reported.
"tosa-fp/a" = "corrupt: one" # by us
"tosa-fp/c" = "crashed: three"

[releases."1.0.0"]
patches = []
"""


def test_known_defects_are_written_in_place_and_all_else_stays(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(KNOWN)
    before = {"tosa-fp/b": 'corrupt: "two" \\\\', "tosa-fp/c": "corrupt: 3", "xnnpack-int8/d": "corrupt: 4"}
    declare(file, {"1.0.0": before, "2.0.0": {"tosa-fp/a": "unstable: five"}})
    assert (
        file.read_text()
        == KNOWN.replace(
            '"tosa-fp/c" = "crashed: three"\n',
            '"tosa-fp/b" = "corrupt: \\"two\\" \\\\\\\\"\n"tosa-fp/c" = "corrupt: 3"\n'
            '"xnnpack-int8/d" = "corrupt: 4"\n',
        )
        + '\n[releases."2.0.0".known]\n"tosa-fp/a" = "unstable: five"\n'
    )
    known = releases.known_defects(file)
    assert known["1.0.0"]["tosa-fp/a"] == releases.KnownDefect("corrupt", "one")
    assert {cell: str(known["1.0.0"][cell].reason) for cell in before} == {
        cell: text.partition(": ")[2] for cell, text in before.items()
    }
    declare(tmp_path / "new.toml", {"1.0.0": {"tosa-fp/a": "corrupt: one"}})
    assert releases.known_defects(tmp_path / "new.toml")["1.0.0"].keys() == {"tosa-fp/a"}


@pytest.mark.parametrize(
    "text", ['[releases."1.0.0"]\nknown = { "tosa-fp/a" = "corrupt: one" }\n', "[releases", "releases = 1\n"]
)
def test_a_file_of_known_defects_that_cannot_be_edited_stays_and_the_lines_are_said(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    for place, why in ((file, f"{file} cannot be edited"), (None, "names no file")):
        with pytest.raises(DeclaringError) as refused:
            declare(place, {"1.0.0": {"tosa-fp/b": "corrupt: two"}})
        assert why in str(refused.value)
        assert '[releases."1.0.0".known]; "tosa-fp/b" = "corrupt: two"' in str(refused.value)
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_a_cause_that_is_wrong_can_be_declared_as_known(
    proposed: Runner, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = proposed.folder / "known.toml"
    repository = replace(config.load(), known_defects=file)
    monkeypatch.setattr(config, "load", lambda *_: repository)
    wrong_cells = titled(proposed, "corrupt: ")
    said = review("--reject", wrong_cells.name, "--reason", "a sign\n is lost", "--known")
    assert said.code == cli.SAME, said.err
    assert f"declared as known: 2 cells, in {file}" in said.out
    assert file.read_text() == (
        f'[releases."{proposed.release}".known]\n'
        '"tosa-fp/gamma" = "corrupt: a sign is lost"\n"tosa-int/gamma" = "corrupt: a sign is lost"\n'
    )
    changed = titled(proposed, "constants with different values")
    review("--reject", changed.name, "--reason", "no", "--known").refused("is no known defect")
    assert proposed.release in releases.known_defects(file)
    assert len(file.read_text().splitlines()) == 3


# Bad input


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["--accept", "01234567"], ["'01234567'", "--list"]),
        (["--reject", "01234567", "--reason", "no"], ["'01234567'", "--list"]),
        (["--reject", "01234567"], ["--reason TEXT"]),
        (["--reject", "01234567", "--reason", " "], ["--reason TEXT"]),
        (["--list", "--reason", "no"], ["--reject"]),
        (["--list", "--known"], ["--known takes --reject GROUP"]),
        (
            ["--list", "--sweeps", "no-such-folder"],
            ["no cell proposes anything", "no-such-folder", "harness run"],
        ),
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
        ('{"format": 9}', ["its format is not 1"]),
        ('{"format": 1}', ["is damaged", "release"]),
    ],
)
def test_a_damaged_proposal_is_one_clear_error(
    proposed: Runner, review: Review, text: str, facts: list[str]
) -> None:
    path = path_of(proposed, "tosa-fp/alpha")
    path.write_text(text)
    review("--list").refused(str(path), "Run its cell again", *facts)


def test_a_golden_to_be_that_is_not_what_was_proposed_is_one_clear_error(
    proposed: Runner, review: Review
) -> None:
    one = proposed.sweeps / "tosa-fp" / "alpha" / proposals.FOLDER
    texts = golden.read(one)
    assert texts is not None
    golden.write(one, golden.sealed({**golden.unsealed(texts), "graph.txt": "another\n"}))
    review("--list").refused(str(one), "by digest", "Run its cell again")
    shutil.rmtree(one)
    review("--list").refused(str(one), "by digest")


def test_a_proposal_in_the_folder_of_another_cell_or_release_is_one_clear_error(
    proposed: Runner, review: Review
) -> None:
    edit(proposed, "tosa-fp/alpha", release="1.1.0")
    review("--list").refused("is of ExecuTorch 1.1.0")
    edit(proposed, "tosa-fp/alpha", release=proposed.release, case="../../elsewhere")
    review("--list").refused("../../elsewhere", "cannot be the name")
    edit(proposed, "tosa-fp/alpha", case="beta")
    review("--list").refused("tosa-fp/beta", "another cell")


def test_damaged_rejections_are_one_clear_error(proposed: Runner, review: Review) -> None:
    (proposed.sweeps.parent / "rejected.json").write_text("{}")
    review("--list").refused("rejected.json", "is damaged", "delete it")


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
        return Standing(Config(self.folder, goldens, self.folder), goldens, MATRIX).objection(proposal)


def test_goldens_may_be_committed_between_two_reviews_and_nothing_else(
    proposed: Runner, tmp_path: Path
) -> None:
    clone = Clone(tmp_path / "clone")
    shutil.copytree(proposed.goldens, clone.folder / "goldens")
    (clone.folder / "models.py").write_text("one\n")
    clone.git("init", "--quiet")
    commit = clone.commit()
    made = replace(Proposal.read(path_of(proposed, "tosa-fp/alpha")), commit=commit, changes="")
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


# In a terminal


@pytest.fixture
def session(proposed: Runner) -> Session:
    return Session(list(found(proposed).values()), {})


def pressed(session: Session, keys: str) -> bool:
    """Send keys to the screen of a review, which they end; return whether it is to be written."""
    pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from harness.review.terminal import Screen

    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        return Screen(session).run()


LEFT, RIGHT, TAB = "\x1b[D", "\x1b[C", "\t"


@pytest.mark.parametrize(
    ("keys", "cells", "reasons", "written"),
    [
        ("q", 0, [], False),
        ("aay", 6, [], True),
        ("aan", 6, [], False),
        ("aqy", 4, [], True),
        ("aq\x03", 4, [], False),
        ("saqy", 2, [], True),
        ("cqy", 1, [], True),
        ("cccc" + "ay", 6, [], True),
        (TAB + "cqy", 1, [], True),
        ("sa" + LEFT + LEFT + "rtoo large\ry", 2, ["too large"], True),
        ("a" + LEFT + "rtoo large\rqy", 0, ["too large"], True),
        ("rtoo large\r" + LEFT + "aay", 6, [], True),
        ("r\rq", 0, [], False),
        ("auq", 0, [], False),
        ("acuqy", 4, [], True),
        ("aaby", 6, [], False),
        (RIGHT + RIGHT + "acq", 0, [], False),
        (RIGHT + RIGHT + "rreported upstream\rqy", 0, ["reported upstream"], True),
        ("gvtg\x1b[B\x1b[Asuq", 0, [], False),
    ],
)
def test_keys_decide_and_nothing_is_written_without_a_y(
    session: Session, keys: str, cells: int, reasons: list[str], written: bool
) -> None:
    # A key that stands behind the end of a sequence would be left over: each sequence ends the review.
    assert pressed(session, keys if written or keys[-1] in "qn\x03" else f"{keys}\x03") == written
    assert len(session.said.accepted) == cells
    assert list(session.said.rejected.values()) == reasons


@pytest.mark.parametrize(
    ("keys", "known"),
    [
        (RIGHT + RIGHT + "ka sign\rqy", 1),
        (RIGHT + RIGHT + "ka sign\r" + LEFT + "ra sign\rqy", 0),
        (RIGHT + RIGHT + "ka sign\ruq", 0),
        (RIGHT + RIGHT + "k\x1bra sign\rqy", 0),
        ("ka sign\r\x03", 0),
    ],
)
def test_a_key_declares_only_what_cannot_be_recorded(session: Session, keys: str, known: int) -> None:
    pressed(session, keys)
    assert len(session.said.known) == known
    assert ("  known defect: a sign" in list(session.conclusion())) == bool(known)


def test_one_key_accepts_a_cause_and_one_writes_all(proposed: Runner, session: Session) -> None:
    assert pressed(session, "aay")
    standing = Standing(Config(REPOSITORY, proposed.goldens, proposed.folder), proposed.goldens, MATRIX)
    accepted = list(session.said.accepted.values())
    written = record(accepted, proposed.sweeps.parent, proposed.goldens, standing)
    assert {path.relative_to(proposed.root) for path in written} == {
        *(Path(target, "alpha") for target in TARGETS),
        *(Path(target, "beta") for target in ("xnnpack-fp32", "xnnpack-int8")),
    }


def test_what_is_shown_of_a_cell_is_what_a_key_asks_for(session: Session) -> None:
    pressed(session, "vq")
    name = session.member.proposal.name
    assert f"{name} (cell 1 of 4), constants:" in list(session.lines())
    pressed(session, TAB + "vtq")
    assert f"{session.member.proposal.name} (cell 2 of 4), trace:" in list(session.lines())
    assert session.member.proposal.name != name


def test_what_was_rejected_before_is_shown(proposed: Runner) -> None:
    groups = list(found(proposed).values())
    session = Session(groups, {groups[0].cause: "too large"})
    assert next(iter(session.lines())) == "rejected: too large"


def test_what_is_written_is_shown_before_it_is(session: Session) -> None:
    pressed(session, "arfor the backend\rn")
    first, second = session.groups[:2]
    assert list(session.conclusion()) == [
        f"accepted: {first.title}: 4 cells, 1 release",
        f"rejected: {second.title}: 2 cells, 1 release",
        "  for the backend",
        "",
        "write 4 goldens of 1 release, and keep 1 reason?",
    ]


class Terminal:
    """A terminal with ``python -m harness review`` in it."""

    def __init__(self, runner: Runner) -> None:
        pytest.importorskip("prompt_toolkit")
        pyte = pytest.importorskip("pyte")
        self.screen = pyte.Screen(120, 40)
        self.stream = pyte.ByteStream(self.screen)
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 120))
        environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "harness", "review"),
                *(f"--goldens={runner.goldens}", f"--sweeps={runner.sweeps.parent}"),
            ],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=REPOSITORY,
            env=environment | {"TERM": "xterm", "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
            start_new_session=True,
        )
        os.close(slave)

    def shows(self, text: str) -> None:
        """Read until some line of the screen has `text`."""
        while not any(text in line for line in self.screen.display):
            assert select.select([self.master], [], [], RUN_LIMIT)[0], "\n".join(self.screen.display)
            self.stream.feed(os.read(self.master, 65536))

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self) -> int:
        """Read to the end, and return the exit code."""
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65536):
                self.stream.feed(data)
        os.close(self.master)
        return self.process.wait(RUN_LIMIT)


def test_in_a_real_terminal_groups_are_shown_accepted_rejected_and_written(proposed: Runner) -> None:
    constant, fails, *_ = found(proposed).values()
    terminal = Terminal(proposed)
    terminal.shows(f"1/4  {constant.title}: 4 cells, 1 release")
    terminal.shows("a accept group")
    terminal.press("a")
    terminal.shows("2/4")
    terminal.press("r")
    terminal.shows("reason: ")
    terminal.press("\x1b")
    terminal.shows("a accept group")
    terminal.press("rfor the backend\r")
    terminal.shows("write 4 goldens of 1 release, and keep 1 reason?")
    assert all(path_of(proposed, f"{target}/alpha").exists() for target in TARGETS)
    terminal.press("y")
    assert terminal.ended() == 0
    terminal.shows("rejected: fails: ")
    assert not any(path_of(proposed, f"{target}/alpha").exists() for target in TARGETS)
    assert next(iter(found(proposed).values())).cause == fails.cause


def test_without_a_terminal_the_way_out_is_said(review: Review) -> None:
    review().refused("no terminal", "--list", "--accept GROUP")


# The summary


def summed(runner: Runner, base: Sequence[Row] | None = None, link: str = "") -> Summary:
    return Summary(rows_of([runner.folder / "sweeps"]), list(found(runner).values()), base, link)


def test_the_summary_has_counts_causes_and_what_got_worse_in_ten_lines(proposed: Runner) -> None:
    base = [(release, {**row, "accepted": True}) for release, row in rows_of([proposed.folder / "sweeps"])]
    made = summed(proposed, base, "https://example.org/report")
    lines = list(made.markdown())
    assert len(lines) <= 10
    assert lines[0] == MARK
    assert lines[1].startswith("**Goldens: broken.** 4 changed, 2 ")
    assert lines[1].endswith("; 3 cells as they should be, on 1 release.")
    # What may not be recorded comes first.
    assert "corrupt: output" in lines[2]
    assert any("4 cells, 1 release: constants with different values" in line for line in lines)
    assert "not so in the base: " in lines[-2]
    assert lines[-2].endswith("and 6 more")
    assert lines[-1].startswith("[the whole report](https://example.org/report); ")
    without = list(summed(proposed).markdown())
    assert not any("base" in line for line in without)


def test_the_summary_of_a_green_run_is_a_line(proposed: Runner, artifacts: Artifacts) -> None:
    proposed.answers({"alpha": artifacts["hashed-constant"][0], "*": artifacts["steady"][0]})
    assert proposed(*RUN).code == 0
    assert list(summed(proposed).markdown()) == [
        MARK,
        "**Goldens: green.** 12 cells as they should be, on 1 release.",
    ]


def test_what_is_only_to_be_decided_is_not_broken(proposed: Runner) -> None:
    made = summed(proposed)
    kept = [(release, row) for release, row in made.rows if row["verdict"] in ("changed", "stable")]
    assert replace(made, rows=kept).state == "changed"


def test_the_words_of_a_model_are_text_in_the_summary(proposed: Runner) -> None:
    for cell in ("tosa-fp/gamma", "tosa-int/gamma"):
        edit(proposed, cell, reason="<script>alert(1)</script> @everyone [x](y)\n# head")
    (line,) = [line for line in summed(proposed).markdown() if "script" in line]
    assert "&lt;script&gt;" in line
    assert "<script" not in line
    assert "@everyone" not in line
    assert "\\[x\\](y) \\# head" in line


def test_changed_goldens_are_marked_at_their_first_line_that_differs(proposed: Runner) -> None:
    groups = list(found(proposed).values())
    commands = list(marks(groups, "goldens"))
    assert len(commands) == len(set(commands)) <= 10
    one = next(command for command in commands if "xnnpack-fp32/alpha" in command)
    match = re.fullmatch(
        r"::error file=goldens/(\S+)/xnnpack-fp32/alpha/(\S+),line=(\d+),title=changed::.+", one
    )
    assert match is not None, one
    standing = (proposed.root / "xnnpack-fp32" / "alpha" / match[2]).read_text().splitlines()
    (member,) = [
        each for group in groups for each in group.members if str(each.proposal.cell) == "xnnpack-fp32/alpha"
    ]
    now = (member.after or {})[match[2]].splitlines()
    line = int(match[3])
    assert standing[: line - 1] == now[: line - 1]
    assert standing[line - 1] != now[line - 1]
    assert len(list(marks(groups, "goldens", most=2))) == 2


def test_the_summary_is_a_command(proposed: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["summary", f"--goldens={proposed.goldens}", str(proposed.folder / "sweeps")]
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith(MARK)
    assert cli.main([*words, "--annotations"]) == 0
    assert capsys.readouterr().out.startswith("::error file=")
    assert cli.main(["summary", str(proposed.folder / "zoo_three.py")]) == cli.ERROR
    assert "has no run.json" in capsys.readouterr().err
