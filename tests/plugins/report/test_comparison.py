"""The report of a comparison, in a real browser: it says what the command printed, and no more than that.

The comparisons are real ones: of edited passes with their release (`tests/data/report_results/compared`).
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens import cli
from executorch_goldens.results.compared import DATA as FILE
from executorch_goldens.results.compared import RESULTS, ComparedSides
from executorch_goldens.words.kinds import WORDS
from tests import DATA
from tests.plugins.report.test_report import HOSTILE, refused, report
from tests.support.browsing import Reader

COMPARED = DATA / "report_results" / "compared"
#: One whose cells are of several kinds, and one in which no cell was compared.
MIXED, NONE = COMPARED / "mixed", COMPARED / "none"
DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 800}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No golden and no setting of a repository counts."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("compared") / "mixed.html"
    assert report(MIXED, "--html", made) == cli.SAME
    return made


@pytest.fixture
def reader(browser: Any, file: Path) -> Iterator[Reader]:
    reader = Reader(browser, file, viewport=DESKTOP)
    yield reader
    reader.close()


def in_first_view(reader: Reader, selector: str) -> bool:
    box = reader.page.locator(selector).first.bounding_box()
    return box is not None and box["y"] + box["height"] <= reader.page.viewport_size["height"]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("folder", [MIXED, NONE], ids=["mixed", "none"])
def test_the_first_view_says_what_the_command_printed(
    browser: Any, tmp_path: Path, folder: Path, size: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    data = ComparedSides.load(folder)
    assert report(folder, "--html", tmp_path / "report.html") == cli.SAME
    assert data.head in capsys.readouterr().out
    reader = Reader(browser, tmp_path / "report.html", viewport=size)
    assert reader.heading() == data.head
    assert reader.texts(".lines li") == list(data.facts)
    assert reader.page.title() == f"{data.head} · 1.5.1 → {data.sides['head'].toolchain}"
    assert data.reach is not None
    listed = reader.texts(".listed li")
    assert listed == [*data.reach.unreached, *data.reach.left_out]
    assert data.reach.unreached
    for what in (".lines li:last-child", ".listed:last-of-type summary"):
        assert in_first_view(reader, what)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: nox -s tests has it")
    found = axe.Axe().run(reader.page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
    reader.shot(f"compared-{folder.name}-{size['width']}")
    reader.close()


def test_cells_stand_by_kind_newly_wrong_first_and_wrong_on_both_sides_after_all_others(
    reader: Reader,
) -> None:
    data = ComparedSides.load(MIXED)
    number = Counter(cell.shown_as for cell in data.cells.values())
    assert {"wrong", "unstable", "at-times", "fails", "different", "both", "identical"} <= number.keys()
    wanted = [kind for kind in WORDS if number[kind]]
    assert reader.texts(".grid tr.target") == [WORDS[kind] for kind in wanted]
    for kind in wanted:
        button = reader.page.locator(f"button[data-verdict='{kind}']")
        assert button.inner_text().endswith(f"{WORDS[kind]} {number[kind]}")
    wrong = reader.page.locator(".grid tbody").first.locator("tr:not(.target) th").all_text_contents()
    assert sorted(wrong) == sorted(name for name, cell in data.cells.items() if cell.kind == "wrong")
    assert len(reader.texts(".grid td a")) == len(data.cells)
    # The causes, in the same order.
    chips = [chip.split(" ", 2)[2] for chip in reader.texts(".causes li .verdict:first-child")]
    assert chips == sorted(chips, key=[*WORDS.values()].index)
    assert chips[0] == WORDS["wrong"]


def test_the_page_of_a_cell_has_what_was_found_on_both_sides(reader: Reader) -> None:
    data = ComparedSides.load(MIXED)
    for name, each in data.cells.items():
        if each.shown_as == "identical":
            continue
        reader.go(f"cell/1.5.1/{name}")
        text = reader.page.locator("main").inner_text()
        assert each.what in text
        assert reader.texts("main > dl:first-of-type dt")[:2] == [
            f"{side}: {data.sides[side].toolchain}" for side in ("base", "head")
        ]
        assert "golden" not in text
    reader.shot("compared-cell")
    reader.go("cell/1.5.1/xnnpack-int8/conv-bn-relu")
    assert reader.texts("section.operator h5") == ["base", "head"]


def test_a_folder_that_was_moved_makes_the_same_report(browser: Any, reader: Reader, tmp_path: Path) -> None:
    shutil.copytree(MIXED, tmp_path / "moved")
    # Its head's folder is as good a name.
    assert report(tmp_path / "moved" / RESULTS, "--html", tmp_path / "report.html") == cli.SAME
    other = Reader(browser, tmp_path / "report.html", viewport=DESKTOP)
    for address in ("cells", "cell/1.5.1/xnnpack-int8/conv-bn-relu"):
        for each in (reader, other):
            each.go(address)
        texts = [each.page.locator("main").inner_text() for each in (reader, other)]
        assert texts[0].replace(str(MIXED), "") == texts[1].replace(str(tmp_path / "moved"), "")
    other.close()


def test_markup_of_a_comparison_is_text(browser: Any, tmp_path: Path) -> None:
    shutil.copytree(MIXED, tmp_path / "hostile")
    file = tmp_path / "hostile" / FILE
    file.write_text(file.read_text().replace("../executorch", json.dumps(HOSTILE)[1:-1]))
    assert report(tmp_path / "hostile", "--html", tmp_path / "report.html") == cli.SAME
    reader = Reader(browser, tmp_path / "report.html", viewport=DESKTOP)
    assert HOSTILE in reader.page.locator("header").inner_text()
    assert HOSTILE in reader.page.locator(".lines").inner_text()
    assert reader.page.locator("main img, main script, main b, header img").count() == 0
    reader.go("cell/1.5.1/xnnpack-int8/conv-bn-relu")
    assert HOSTILE in reader.page.locator("main").inner_text()
    reader.close()


def test_what_is_no_whole_comparison_is_one_error_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "report.html"
    words = ["--html", made]
    refused(capsys, [MIXED, NONE, *words], "of a comparison", "name it alone")
    refused(capsys, [MIXED, "--goldens", tmp_path, *words], "--goldens", "leave it out")
    folder = tmp_path / "folder"
    shutil.copytree(MIXED, folder)
    data = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(data | {"cells": {}}))
    refused(capsys, [folder, *words], folder, "other cells", "compare again")
    (folder / FILE).write_text(json.dumps(data | {"format": 0}))
    refused(capsys, [folder, *words], folder / FILE, "format", "compare again")
    (folder / FILE).unlink()
    refused(capsys, [folder, *words], folder, "did not end", "compare again")
    assert not made.exists()
