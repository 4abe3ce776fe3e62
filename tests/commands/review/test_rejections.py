"""Rejected causes are remembered, and can be declared as known defects."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from executorch_goldens import cli
from executorch_goldens.errors import UsageError
from executorch_goldens.review.declaring import declare
from executorch_goldens.settings import releases
from tests.commands.review.conftest import Review, edit, titled
from tests.support.runner import Runner


def test_a_rejection_is_kept_and_shown_until_its_cause_is_accepted(proposed: Runner, review: Review) -> None:
    before = proposed.files()
    group = titled(proposed, "constants with different values")
    said = review("--reject", group.name, "--reason", "  ask in the tracker ")
    assert (said.code, said.out) == (0, f"rejected: {group.title}; 4 changed: ask in the tracker\n")
    assert proposed.files() == before
    # The next run proposes the same cause in other words and on fewer cells.
    edit(proposed, "tosa-int/alpha", reason="differs in something")
    shutil.rmtree(proposed.sweeps / "tosa-fp" / "alpha")
    assert review().out.count("  rejected: ask in the tracker\n") == 1
    again = titled(proposed, "constants with different values")
    assert again.name != group.name
    assert review("--accept", again.name).code == cli.SAME
    assert "ask in the tracker" not in review().out


KNOWN = """\
# Ours.
[releases."1.0.0".known]
# Reported.
"tosa-fp/a" = "corrupt: one" # by us
"tosa-fp/c" = "crashed: three"

[releases."3.0.0".known] # None yet.
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
    file.write_text('[releases."1.0.0"]\nknown = { "tosa-fp/b" = "corrupt: two" } # ours\n')
    declare(file, {"1.0.0": {"tosa-fp/a": "corrupt: one"}})
    assert list(releases.known_defects(file)["1.0.0"]) == ["tosa-fp/a", "tosa-fp/b"]
    assert file.read_text().endswith("} # ours\n")
    declare(tmp_path / "new.toml", {"1.0.0": {"tosa-fp/a": "corrupt: one"}})
    assert releases.known_defects(tmp_path / "new.toml")["1.0.0"].keys() == {"tosa-fp/a"}


@pytest.mark.parametrize(
    "text", ['[releases."1.0.0"]\nknown = ["tosa-fp/a"]\n', "[releases", "releases = 1\n"]
)
def test_a_file_of_known_defects_that_cannot_be_edited_stays_and_the_lines_are_said(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        declare(file, {"1.0.0": {"tosa-fp/b": "corrupt: two"}})
    assert f"{file} cannot be edited" in str(refused.value)
    assert '[releases."1.0.0".known]; "tosa-fp/b" = "corrupt: two"' in str(refused.value)
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_a_cause_that_is_wrong_can_be_declared_as_known(proposed: Runner, review: Review) -> None:
    file = proposed.goldens / "known.toml"
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
