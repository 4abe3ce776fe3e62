"""What runs found, in ten lines for a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from executorch_goldens import cli
from executorch_goldens.commands.merge import rows as rows_of
from executorch_goldens.review.summary import MARK, Row, Summary, marks
from tests.commands.review.conftest import RUN, Artifacts, edit, found
from tests.support.runner import Runner


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
    # The largest cause comes first.
    assert lines[2].startswith("- 4 changed: constants with different values")
    assert any("2 corrupt: corrupt: output" in line for line in lines)
    assert "not so in the base: " in lines[-2]
    assert "9 cells, as " in lines[-2]
    assert "more" not in lines[-2]
    assert lines[-1].startswith("[the whole report](https://example.org/report); ")
    without = list(summed(proposed).markdown())
    assert not any("base" in line for line in without)


def test_the_summary_says_what_the_base_lacks_and_counts_what_was_not_run(proposed: Runner) -> None:
    rows = rows_of([proposed.folder / "sweeps"])
    lacking = [(release, row) for release, row in rows if row["target"] != "tosa-fp"]
    (line,) = summed(proposed, lacking).against()
    assert line == ", ".join(
        [f"not in the base: {proposed.release} tosa-fp/alpha"]
        + [f"{proposed.release} tosa-fp/{case}" for case in ("beta", "gamma")]
    )
    further = [*rows, *((release, {**row, "case": f"other-{row['case']}"}) for release, row in rows)]
    assert list(summed(proposed, further).against()) == [f"not run here: {len(rows)} cells of the base"]


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


def test_the_summary_says_which_new_cells_fail_or_delegate_nothing() -> None:
    row = {"verdict": "new", "accepted": False, "target": "tosa-fp", "case": "a"}
    reasons = (
        "FAILURE: export: Unsupported: no",
        "NO DELEGATE: 1 operator outside",
        "1 delegate with 2 operators",
    )
    made = Summary([("1.4.1", {**row, "reason": reason}) for reason in reasons], [])
    assert made.state == "changed"
    assert list(made.markdown())[1].startswith(
        "**Goldens: changed.** 3 new (1 FAILURE, 1 NO DELEGATE); 0 cells"
    )


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
    words = ["merge", "--markdown", f"--goldens={proposed.goldens}", str(proposed.folder / "sweeps")]
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith(MARK)
    assert cli.main(["merge", "--annotations", *words[2:]]) == 0
    assert capsys.readouterr().out.startswith("::error file=")
    assert cli.main(["merge", "--markdown", str(proposed.folder / "zoo_three.py")]) == cli.ERROR
    assert "has no run.json" in capsys.readouterr().err
