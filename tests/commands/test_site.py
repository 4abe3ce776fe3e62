"""The documentation site in Chromium: the reader's first view, copying, and search."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import REPOSITORY

pytestmark = pytest.mark.slow

#: Names the Python of the session ``docs``.
PYTHON = "EXECUTORCH_GOLDENS_DOCS_PYTHON"
VIEW = {"width": 1280, "height": 720}
#: Pages with the longest lines of code.
WIDE = ("README.html", "docs/verdicts.html", "docs/toolchains.html")
#: The page that is largest, in bytes: it must open on a phone.
LARGEST = 1_500_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if PYTHON not in os.environ:
        pytest.skip(f"{PYTHON} names no Python: nox -s tests has it")
    out = tmp_path_factory.mktemp("site")
    command = (
        os.environ[PYTHON],
        "-m",
        "sphinx",
        "--fail-on-warning",
        "-q",
        "-c",
        "docs/site",
        ".",
        str(out),
    )
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "harness")}
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, timeout=900)
    return out


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport=VIEW)
    yield context.new_page()
    context.close()


def test_the_install_command_is_on_the_first_screen_and_can_be_copied(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    block = page.locator("div.highlight", has_text="pip install").first
    box = block.bounding_box()
    assert box["y"] + box["height"] <= VIEW["height"]
    assert block.locator("button.copybtn").count() == 1
    assert (
        page.locator("link[rel=icon], link[rel='shortcut icon']")
        .get_attribute("href")
        .endswith("favicon.svg")
    )


@pytest.mark.parametrize("name", WIDE)
def test_no_block_of_code_is_cut_off(site: Path, page: Any, name: str) -> None:
    page.goto((site / name).as_uri())
    blocks = page.locator("div.highlight pre")
    assert blocks.count() > 1
    assert blocks.evaluate_all("all => all.filter(each => each.scrollWidth > each.clientWidth).length") == 0


@pytest.mark.parametrize(
    ("words", "first"), [("partition order", "docs/"), ("known defects", "docs/goldens.html")]
)
def test_a_search_finds_pages_that_explain_before_tables(
    site: Path, page: Any, words: str, first: str
) -> None:
    page.goto(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    page.wait_for_selector("ul.search li a")
    page.wait_for_function("document.querySelector('p.search-summary')?.innerText.includes('found')")
    found = [
        link.split("/site", 1)[-1].lstrip("0123456789/").partition("#")[0].partition("?")[0]
        for link in page.locator("ul.search > li > a").evaluate_all("all => all.map(each => each.href)")
    ]
    assert found[0].startswith(first)
    lab = [index for index, link in enumerate(found) if link.startswith(("harness/lab/docs/", "findings/"))]
    assert not lab or min(lab) > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_table_of_operators_is_in_its_page_with_names_and_contrast(
    site: Path, browser: Any, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: nox -s tests has it")
    file = site / "docs" / "operators.html"
    assert file.stat().st_size < LARGEST
    made = json.loads((site / "docs" / "operators.json").read_text())
    every = {row["operator"] for row in made["rows"]}
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.goto(file.as_uri())
    assert set(page.locator("#operators > details").evaluate_all("all => all.map(each => each.id)")) == every
    page.get_by_label("Operator", exact=True).fill(min(every))
    page.locator("#operators table").first.wait_for()
    for part in ("#operators-filters", "#operators"):
        found = axe.Axe().run(page, context=part).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], part
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
