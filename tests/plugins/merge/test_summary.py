"""Findings of runs, in ten lines for a pull request."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import KNOWN, Decision
from executorch_goldens.review.decisions import ReviewDecisions
from executorch_goldens_plugins.merge.command import parts_of, rows
from executorch_goldens_plugins.merge.summary import MARK, ResultRow, ReviewSummary, marks
from tests.commands.review.conftest import RUN, Artifacts, Review, edit, found, shown, titled
from tests.support.rows import row
from tests.support.runner import Runner


def rows_of(runner: Runner) -> list[ResultRow]:
    return rows(parts_of([runner.folder / "sweeps"]))


def summed(runner: Runner, base: Sequence[ResultRow] | None = None, link: str = "") -> ReviewSummary:
    return ReviewSummary(rows_of(runner), list(found(runner).values()), base, link)


def test_the_summary_has_counts_causes_and_what_got_worse_in_ten_lines(
    proposed: Runner, snapshot: SnapshotAssertion
) -> None:
    base = [msgspec.structs.replace(row, accepted=True) for row in rows_of(proposed)]
    lines = list(summed(proposed, base, "https://example.org/report").markdown())
    assert len(lines) <= 10
    assert shown(proposed, lines) == snapshot(name="with a base")
    assert shown(proposed, summed(proposed).markdown()) == snapshot(name="without")


def test_the_summary_says_what_the_base_lacks_and_counts_what_was_not_run(
    proposed: Runner, snapshot: SnapshotAssertion
) -> None:
    run = rows_of(proposed)
    lacking = [row for row in run if row.target != "tosa-fp"]
    assert shown(proposed, summed(proposed, lacking).against()) == snapshot
    further = [*run, *(msgspec.structs.replace(row, case=f"other-{row.case}") for row in run)]
    assert shown(proposed, summed(proposed, further).against()) == snapshot


def test_the_summary_of_a_green_run_is_a_line(
    proposed: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    proposed.answers({"alpha": artifacts["hashed-constant"][0], "*": artifacts["steady"][0]})
    assert proposed(*RUN).code == 0
    assert list(summed(proposed).markdown()) == snapshot


def test_what_is_only_to_be_decided_is_not_broken(proposed: Runner) -> None:
    made = summed(proposed)
    kept = [row for row in made.rows if row.verdict in ("changed", "stable")]
    assert replace(made, rows=kept).state == "changed"


def test_the_summary_says_which_new_cells_fail_or_delegate_nothing(snapshot: SnapshotAssertion) -> None:
    made = ReviewSummary(
        [row(verdict="new", accepted=False, new=new) for new in ("FAILURE", "NO DELEGATE", "")], []
    )
    assert made.state == "changed"
    assert list(made.markdown()) == snapshot


def test_the_words_of_a_model_are_text_in_the_summary(proposed: Runner) -> None:
    for cell in ("tosa-fp/gamma", "tosa-int/gamma"):
        edit(proposed, cell, blamed="<script>alert(1)</script> @everyone [x](y)\n# head")
    (line,) = [line for line in summed(proposed).markdown() if "script" in line]
    assert "&lt;script&gt;" in line
    assert "<script" not in line
    assert "@everyone" not in line
    assert "\\[x\\](y) \\# head" in line


def test_changed_goldens_are_marked_at_their_first_line_that_differs(proposed: Runner) -> None:
    groups = list(found(proposed).values())
    commands = list(marks(groups, proposed.goldens, "goldens"))
    assert len(commands) == len(set(commands)) <= 10
    one = next(command for command in commands if "xnnpack-fp32/alpha" in command)
    match = re.fullmatch(
        r"::error file=goldens/(\S+)/xnnpack-fp32/alpha.txt,line=(\d+),title=changed%3A differs::.+", one
    )
    assert match is not None, one
    standing = (proposed.root / "xnnpack-fp32" / "alpha.txt").read_text().splitlines()
    (member,) = [
        each for group in groups for each in group.members if str(each.proposal.cell) == "xnnpack-fp32/alpha"
    ]
    now = member.after.text(golden.shared(proposed.root)).splitlines()
    line = int(match[2])
    facts = standing.index("== graph ==")
    assert line > facts
    assert standing[facts : line - 1] == now[facts : line - 1]
    assert standing[line - 1] != now[line - 1]
    assert len(list(marks(groups, proposed.goldens, "goldens", most=2))) == 2


def test_the_line_of_a_file_that_raised_is_marked(proposed: Runner) -> None:
    edit(proposed, "xnnpack-fp32/alpha", at={"file": "models/alpha.py", "line": 7, "function": "alpha"})
    commands = list(marks(list(found(proposed).values()), proposed.goldens, "goldens"))
    assert [command.partition(",title=")[0] for command in commands if "alpha.py" in command] == [
        "::error file=models/alpha.py,line=7"
    ]


def test_the_summary_is_a_command(proposed: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["merge", "--markdown", f"--goldens={proposed.goldens}", str(proposed.folder / "sweeps")]
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith(MARK)
    assert cli.main(["merge", "--annotations", *words[2:]]) == 0
    assert capsys.readouterr().out.startswith("::error file=")
    assert cli.main(["merge", "--markdown", str(proposed.folder / "zoo_three.py")]) == cli.ERROR
    assert "has no run.json" in capsys.readouterr().err


def test_the_summary_speaks_of_the_newest_run_and_not_of_what_earlier_ones_left(
    proposed: Runner, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    """A run of one cell leaves the proposals of the others where they are, for a review."""
    assert proposed(*RUN, "--cell", "tosa-fp/gamma").code == 1
    assert len(found(proposed)) > 1
    lines = merged(proposed, capsys, "--markdown")[1].splitlines()
    assert shown(proposed, lines) == snapshot
    assert "alpha" not in merged(proposed, capsys, "--annotations")[1]


# After a review, without a next run


def merged(runner: Runner, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.main(["merge", f"--goldens={runner.goldens}", str(runner.folder / "sweeps"), *words])
    return code, capsys.readouterr().out


def test_what_a_review_accepted_and_rejected_is_known_without_a_next_run(
    proposed: Runner, review: Review, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    constants, fails = titled(proposed, "constants"), titled(proposed, "fails: ")
    assert review("--accept", constants.name).code == 0
    assert review("--reject", fails.name, "--reason", "for the backend: [#21480]").code == 0
    code, out = merged(proposed, capsys, "--markdown")
    assert code == 0
    assert len(out.splitlines()) <= 10
    assert shown(proposed, out) == snapshot(name="for a pull request")
    # In a base where all is right, only what was not accepted is otherwise.
    base = proposed.folder / "base"
    shutil.copytree(proposed.folder / "sweeps", base)
    results = base / proposed.release / "results.jsonl"
    results.write_text(results.read_text().replace('"accepted": false', '"accepted": true'))
    against = merged(proposed, capsys, "--markdown", "--base", str(base))[1]
    assert shown(proposed, against) == snapshot(name="against a base")
    # Once joined, it is reported for each cell; an accepted cell passes.
    into = proposed.folder / "merged"
    shutil.copytree(proposed.folder / "sweeps", into)
    code, out = merged(proposed, capsys, "--into", str(into))
    assert code == cli.DIFFERENT
    assert shown(proposed, out) == snapshot(name="joined")


def test_what_is_accepted_is_what_stands_there(
    proposed: Runner, review: Review, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    before = {path: path.read_bytes() for path in proposed.goldens.rglob("*") if path.is_file()}
    assert review("--accept", titled(proposed, "constants").name).code == 0
    assert shown(proposed, merged(proposed, capsys, "--markdown")[1]) == snapshot
    # One is taken back in the checkout, one is damaged: two are left.
    for path, contents in before.items():
        if "tosa-fp/alpha" in path.as_posix():
            path.write_bytes(contents)
    (proposed.root / "tosa-int" / "alpha.txt").write_text("damaged")
    assert shown(proposed, merged(proposed, capsys, "--markdown")[1]) == snapshot


def test_where_all_is_accepted_the_summary_is_green(
    proposed: Runner,
    review: Review,
    artifacts: Artifacts,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    proposed.answers({"alpha": artifacts["hashed-constant"][1], "*": artifacts["steady"][0]})
    assert proposed(*RUN).code == 1
    assert review("--accept", titled(proposed, "constants").name).code == 0
    assert merged(proposed, capsys, "--markdown")[1] == snapshot
    assert merged(proposed, capsys, "--into", str(proposed.folder / "merged"))[0] == 0


def test_known_defects_are_apart_with_their_reason_and_a_link(
    proposed: Runner, snapshot: SnapshotAssertion
) -> None:
    made = summed(proposed)
    rows = [
        msgspec.structs.replace(row, known=True, accepted=True) if row.verdict == "corrupt" else row
        for row in made.rows
    ]
    names = [row.name for row in rows if row.known]
    defect = Decision(
        KNOWN,
        "corrupt",
        why="a gather <b>reads</b> past its end (#22436)",
        releases=("1.5.1",),
        cells=("a/b",),
    )
    summary = replace(made, rows=rows, decided=ReviewDecisions(declared=dict.fromkeys(names, defect)))
    lines = list(summary.markdown())
    assert len(lines) <= 10
    assert shown(proposed, lines) == snapshot


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


def test_a_comment_has_no_markup_of_a_verdict() -> None:
    assert "<b>" not in "\n".join(ReviewSummary([row(verdict="<b>x</b>", accepted=False)], ()).markdown())
