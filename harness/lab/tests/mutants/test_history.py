"""Reverted fixes match their description, and each fits the release that it edits."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from executorch_goldens.patches import PATCHES
from executorch_goldens.settings import releases
from lab.mutants.history import AREAS, FIXES, KINDS, SINCE, page
from lab.mutants.history.fix import misfits
from lab.mutants.mutant import Edit
from tests import REPOSITORY


def test_there_are_forty_fixes_and_some_of_every_kind_and_of_both_releases() -> None:
    assert len(FIXES) >= 40
    assert {fix.kind for fix in FIXES} == set(KINDS)
    assert {fix.release for fix in FIXES} == set(SINCE) <= set(releases.load().releases)
    assert all(AREAS.values())


def test_each_is_of_another_pull_request_and_can_be_asked_for_by_its_number() -> None:
    assert len({fix.number for fix in FIXES}) == len(FIXES)
    for fix in FIXES:
        assert re.fullmatch(rf"{fix.number}(-[a-z0-9]+)+", fix.name)
        assert PATCHES[fix.name].install == fix.install
        assert set(PATCHES[fix.name].fits) == {fix.release}


def test_each_says_in_one_line_what_it_broke() -> None:
    for fix in FIXES:
        assert re.fullmatch(r"[^|\n]+[^.|\n]", fix.broke), fix.name


def test_each_fits_the_release_that_it_edits_beside_all_others(release: str) -> None:
    if release not in SINCE:
        pytest.skip(f"fixes are taken back in {' and '.join(SINCE)}")
    # In a process of its own, which has them from then on.
    taken_back = (
        "from lab.mutants.history import FIXES; from lab.mutants.history.fix import misfits; "
        f"print(*misfits(FIXES, {release!r}), sep='\\n')"
    )
    checked = subprocess.run(
        [sys.executable, "-c", taken_back], cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, check=True
    )
    assert checked.stdout.strip() == ""


def test_the_table_of_cells_is_of_these_fixes_as_they_are_edited() -> None:
    for release in SINCE:
        assert page.seen(release).keys() <= {fix.key for fix in FIXES if fix.release == release}
        assert len(page.seen(release)) > 10


def test_one_that_does_not_fit_is_told_with_what_is_not_there(release: str) -> None:
    edit = Edit("executorch_goldens.patches.guard:resolve", "no such line", "")
    fix = next(fix for fix in FIXES if fix.release in SINCE)
    broken = type(fix)("1-x", 1, release, fix.kind, "nothing", (edit,))
    assert misfits([broken], release) == [
        "1-x: executorch_goldens.patches.guard:resolve has 0 times, not once: 'no such line'"
    ]
    assert misfits([broken], "another") == []
