"""The scripts of `findings/`: their entries in the table, and their output."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest

from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.patches import PATCHES
from executorch_goldens.settings import releases
from lab import FINDINGS
from lab.findings import executed, load, shown
from lab.stock.issues import CORRECTED

REPORTS = {name: finding.report for name, finding in load().items() if finding.report}
#: A maintainer is to read a script at a glance.
LINES = 30
IMPORT = re.compile("(?:from|import) ")


def test_the_table_has_every_finding_with_its_text_and_script() -> None:
    table = load()
    assert set(table) == {path.stem for path in FINDINGS.glob("*.py")}
    assert set(table) == {path.stem for path in FINDINGS.glob("*.md")} - {"README"}
    versions = set(releases.load().releases)
    for name, finding in table.items():
        assert finding.releases, name
        assert set(finding.releases) <= versions - {*finding.stops}, name


@pytest.mark.parametrize("name", [name for name in load() if name not in REPORTS])
def test_the_text_of_a_finding_says_the_same_of_upstream_as_the_table(name: str) -> None:
    finding = load()[name]
    assert bool(finding.threads) == (finding.upstream != "none found")
    text = (FINDINGS / f"{name}.md").read_text(encoding="utf-8").partition("**Upstream:**")[2]
    assert all(f"#{number}" in text for number in finding.threads)
    # A text says so in words of its own.
    state = {"none found": r"\bno issue|\bnone found", "open": r"\bopen\b", "merged": r"\bmerged\b"}
    assert re.search(state[finding.upstream], text)


def test_ten_findings_are_ready_to_be_filed() -> None:
    ready = {name for name, finding in load().items() if finding.status == "ready"}
    assert len(ready) == 10
    assert ready == set(REPORTS)


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_has_each_part_of_the_form_and_nothing_that_only_this_project_has(name: str) -> None:
    assert all(value or value is False for value in dataclasses.astuple(REPORTS[name]))
    text = (FINDINGS / f"{name}.md").read_text(encoding="utf-8")
    assert "](" not in text
    script = (FINDINGS / f"{name}.py").read_text(encoding="utf-8")
    assert script in text
    assert len(script.splitlines()) < LINES
    imported = {line.split()[1].partition(".")[0] for line in script.splitlines() if IMPORT.match(line)}
    assert imported <= {"torch", "torchao", "executorch", "tosa_reference_model"}


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_says_what_its_script_prints(name: str) -> None:
    script, release = FINDINGS / f"{name}.py", installed_release()
    assert shown(script)[0] is load()[name].shows_on(release)
    if release in load()[name].releases:
        assert executed(script).printed == REPORTS[name].actual.splitlines()


@pytest.mark.parametrize("name", CORRECTED)
def test_a_finding_names_its_patch_which_is_for_the_releases_that_show_it(name: str) -> None:
    declared = {version for version, release in releases.load().releases.items() if name in release.patches}
    assert declared == set(PATCHES[name].fits) == set(load()[name].releases)
    text = (FINDINGS / f"{name}.md").read_text(encoding="utf-8")
    (linked,) = re.findall(rf"\[`{name}`\]\(([^)]*\.py)\)", text)
    assert (FINDINGS / linked).resolve() == Path(sys.modules[PATCHES[name].install.__module__].__file__ or "")


@pytest.mark.parametrize(
    ("script", "result"),
    [
        (
            "print('3 of 4 values differ'); print('WARNING: other versions'); exit(1)",
            (True, "3 of 4 values differ"),
        ),
        ("print('not reproduced')", (False, "not reproduced")),
        ("print('not reproduced: no such operator')", (False, "not reproduced: no such operator")),
        ("exit(0)", (None, "exit code 0")),
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
