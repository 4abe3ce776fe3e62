"""The registry of pages that instruments make: each is in it, has its marks and is up to date."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import lab
from executorch_goldens.cli import DIFFERENT, SAME
from lab import pages
from lab.__main__ import INSTRUMENTS, main, summary
from lab.pages import MAKERS, PageError, Part, difference, parts, spliced
from tests import REPOSITORY

PARTS = list(parts())
#: Folders whose pages are all made by an instrument.
MADE = (lab.DOCS / "coverage",)
#: Makers that measure nothing: they read what others have measured, and the parsers.
OF_NO_INSTRUMENT = {"commands", "evidence", "history", "results"}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_page_is_up_to_date(part: Part) -> None:
    assert difference(part) == [], "write it by: nox -s lab -- pages --update"


def test_every_mark_of_a_page_is_one_of_an_instrument_and_every_instrument_has_its_mark() -> None:
    marks = {
        f"{page.relative_to(REPOSITORY)}#{mark}"
        for page in (
            *REPOSITORY.glob("*.md"),
            *(REPOSITORY / "docs").rglob("*.md"),
            *lab.DOCS.rglob("*.md"),
            *lab.FINDINGS.glob("*.md"),
        )
        for mark in re.findall(r"^<!-- begin: (.*) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert marks == {part.name for part in PARTS if part.mark}


def test_every_page_of_a_folder_of_made_pages_is_one_of_an_instrument() -> None:
    found = {str(page.relative_to(REPOSITORY)) for folder in MADE for page in folder.iterdir()}
    assert found <= {part.page for part in PARTS if not part.mark}


def test_every_instrument_has_the_same_face() -> None:
    for name, module in INSTRUMENTS.items():
        assert (import_module(module).__doc__ or "").startswith(f"``python -m lab {name}"), module
        assert callable(import_module(module).add_to)
        assert callable(import_module(module).run)
        assert summary(module)
    assert set(MAKERS) - OF_NO_INSTRUMENT <= set(INSTRUMENTS)


def test_a_part_is_put_between_its_marks_and_a_page_without_them_is_refused() -> None:
    page = "before\n<!-- begin: a -->\nold\n<!-- end: a -->\nafter\n"
    assert spliced(page, "p.md", "a", "new\n") == page.replace("old", "new")
    for broken in (page.replace("begin: a", "begin: b"), page.replace("end: a", "end: b")):
        with pytest.raises(PageError, match=r"p\.md has no part 'a'; bring it back"):
            spliced(broken, "p.md", "a", "new\n")


def test_a_page_that_is_not_up_to_date_is_shown_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages, "REPOSITORY", tmp_path)
    assert main(["pages", "mutants"]) == DIFFERENT
    printed = capsys.readouterr().out
    assert "+# Mutation testing" in printed
    assert printed.endswith("accept: nox -s lab -- pages --update\n")
    assert main(["pages", "mutants", "--update"]) == SAME
    assert capsys.readouterr().out == "written: harness/lab/docs/mutants.md\n"
    assert main(["pages", "mutants", "--check"]) == SAME
    assert capsys.readouterr().out == "harness/lab/docs/mutants.md: up to date\n"
