"""Reverted fixes match their description, and each fits the release that it edits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from executorch_goldens.patches import PATCHES
from executorch_goldens.settings import releases
from lab.mutants import recall
from lab.mutants.history import FIXES, SINCE, page
from lab.mutants.installing import EditError
from lab.mutants.mutant import Edit


def test_there_are_fixes_of_every_kind_and_of_both_releases() -> None:
    assert {fix.kind for fix in FIXES} == {"crash", "wrong result", "lost delegate"}
    assert {fix.release for fix in FIXES} == set(SINCE) <= set(releases.load().releases)


def test_each_is_of_another_pull_request_and_can_be_asked_for_by_its_number() -> None:
    assert len({fix.number for fix in FIXES}) == len(FIXES)
    for fix in FIXES:
        assert re.fullmatch(r"\d+(-[a-z0-9]+)+", fix.name)
        assert PATCHES[fix.name].install == fix.install
        assert set(PATCHES[fix.name].fits) == {fix.release}


def test_each_says_in_one_line_what_it_broke() -> None:
    for fix in FIXES:
        assert re.fullmatch(r"[^|\n]+[^.|\n]", fix.broke), fix.name


def test_one_that_does_not_fit_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "passes.py").write_text("def call():\n    return 1\n")
    for name, old, said in (
        ("call", "return 2", "has 0 times, not once: 'return 2'"),
        ("run", "", "is not there"),
    ):
        with pytest.raises(EditError, match=f"passes:{name} {said}"):
            recall.lay([Edit(f"passes:{name}", old, "")], tmp_path, tmp_path / "laid")
    assert not (tmp_path / "laid").exists()


def test_the_table_of_cells_is_of_these_fixes_as_they_are_edited() -> None:
    for release in SINCE:
        assert page.seen(release).keys() <= {fix.key for fix in FIXES if fix.release == release}
        assert len(page.seen(release)) > 10
