"""The scripts of docs/findings: which stand in the table, and what a run of one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import releases
from tests.findings import FOLDER, declared, shown


def test_the_table_has_every_finding_with_its_text_and_script() -> None:
    table = declared((FOLDER / "README.md").read_text(encoding="utf-8"))
    assert set(table) == {path.stem for path in FOLDER.glob("*.py")}
    assert set(table) == {path.stem for path in FOLDER.glob("*.md")} - {"README"}
    assert set().union(*table.values()) == set(releases.load().releases)
    assert all(table.values())


@pytest.mark.parametrize(
    ("script", "result"),
    [
        (
            "print('3 of 4 values differ'); print('WARNING: other versions'); exit(1)",
            (True, "3 of 4 values differ"),
        ),
        ("print('not reproduced')", (False, "not reproduced")),
        ("print('not reproduced: no such operator')", (False, "not reproduced: no such operator")),
        ("print('fine')", (None, "exit code 0")),
        ("exit(1)", (None, "exit code 1")),
        ("print('before'); raise ValueError('no such pass')", (None, "ValueError: no such pass")),
        ("import os; os.abort()", (None, "exit code -6")),
    ],
)
def test_a_script_shows_its_defect_or_not_or_is_broken(
    tmp_path: Path, script: str, result: tuple[bool | None, str]
) -> None:
    path = tmp_path / "script.py"
    path.write_text(script)
    assert shown(path) == result
