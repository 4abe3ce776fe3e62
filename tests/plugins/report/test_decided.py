"""The report after a review, in a real browser: accepted and rejected causes, without a next run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens import cli
from tests.commands.review.conftest import Review, measured_before, titled
from tests.support.browsing import Reader
from tests.support.runner import Runner

REASON = "for the <b>backend</b> (#21480)"


@pytest.fixture
def reader(
    proposed: Runner, review: Review, browser: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Reader]:
    """The report of results after a review that accepted one cause and rejected another."""
    for target in ("tosa-fp", "tosa-int"):
        measured_before(proposed, f"{target}/gamma", 0.25)
    assert review("--accept", titled(proposed, "constants").name).code == 0
    assert review("--reject", titled(proposed, "fails: ").name, "--reason", REASON).code == 0
    file = tmp_path / "report.html"
    words = ("report", str(proposed.sweeps.parent), f"--goldens={proposed.goldens}", "--html", str(file))
    assert cli.main([*words]) == cli.SAME
    assert {"4 accepted", "2 rejected", "2 corrupt"} <= set(
        capsys.readouterr().out.split(": ", 1)[1].split("; ")[0].split(", ")
    )
    reader = Reader(browser, file, viewport={"width": 1200, "height": 900})
    yield reader
    reader.close()


def test_what_was_decided_is_counted_apart(reader: Reader) -> None:
    assert reader.heading() == "2 corrupt, 1 order-only: 2 causes"
    assert reader.texts(".decided a") == ["⊘ 2 rejected", "✓ 4 accepted"]
    causes = reader.texts(".causes li")
    assert len(causes) == 3
    # What is decided comes last.
    assert causes[-1].endswith(f"rejected: {REASON}")
    assert reader.page.locator("main b").count() == 0
    reader.page.get_by_role("link", name="4 accepted").click()
    reader.page.wait_for_selector("button[data-verdict=accepted][aria-pressed=true]")
    assert reader.counted() == "4 of 12 cells"
    assert {link.get_attribute("class") for link in reader.page.locator(".grid td a").all()} == {"v-accepted"}


def test_the_page_of_a_cell_says_what_was_decided(reader: Reader, proposed: Runner) -> None:
    reader.go(f"cell/{proposed.release}/tosa-int/alpha")
    page = reader.page
    assert page.locator(".verdict").first.inner_text() == "✓ accepted: changed"
    assert "Its golden is what this run made" in page.locator(".decided").inner_text()
    assert page.locator(".command", has_text="accept").count() == 0
    assert page.locator(".command", has_text="again").count() == 1
    assert re.search(r"delegates\t1\t1", page.locator("main").inner_text())
    reader.go(f"cell/{proposed.release}/xnnpack-int8/beta")
    assert page.locator(".verdict").first.inner_text() == "⊘ rejected: failed"
    assert page.locator("p.rejected").inner_text() == f"Rejected: {REASON}"
    reader.go(f"cell/{proposed.release}/tosa-int/gamma")
    assert page.locator(".verdict").first.inner_text() == "✗ corrupt"
    assert page.locator("p.rejected, p.decided").count() == 0
    # The error before, where an earlier run measured it.
    assert "The golden: error 0.25 of the tolerance" in page.locator("main").inner_text()


def test_the_grid_of_one_release_says_why(reader: Reader) -> None:
    page = reader.page
    why = page.locator(".grid tr", has_text="gamma").locator("td.why").first
    assert "values differ" in why.inner_text()
    # The names of cases keep their width.
    name = page.locator(".grid tr", has_text="gamma").locator("th").first.bounding_box()
    assert name["height"] < 30
    assert page.locator(".grid tr", has_text="stable").locator("td.why").count() == 0
    page.set_viewport_size({"width": 390, "height": 800})
    assert not why.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
