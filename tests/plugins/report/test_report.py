"""The report, in a real browser: its view of real results, its independence of a network, and its refusals.

The results are those of real runs: of two releases with their bugs (`tests/data/report_results`), and of a replayed run
over real exports of the test zoo. The browser is the Chromium that is installed, driven by Playwright; where there is
none, these tests are skipped and say so. They leave screenshots in ``build/screenshots``.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Artifact, Casualty, Killed
from executorch_goldens.causes.groups import DECIDED
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.quantities import QUANTITIES
from executorch_goldens.goldens.record import Record
from executorch_goldens.results.evidence import Evidence, ShownTensor
from tests import DATA, GOLDENS, REPOSITORY
from tests.conftest import Artifacts
from tests.support.browsing import Reader
from tests.support.making import lowered_by
from tests.support.runner import Runner

RESULTS = DATA / "report_results"
STOCK = RESULTS / "stock"
#: Names that an untrusted case or error may have.
HOSTILE = '</script><img src=x onerror="document.title=1"><b>'


def report(*words: object) -> int:
    return cli.main(["report", *map(str, words)])


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The goldens and settings of this repository are those that count."""
    monkeypatch.chdir(REPOSITORY)


def keeping(artifact: Artifact | Casualty) -> Artifact:
    """Return an artifact that kept its lowered graph under watch."""
    assert isinstance(artifact, Artifact)
    assert artifact.watched is not None
    return replace(artifact, watched=replace(artifact.watched, kept=lowered_by(artifact).graph))


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory, release: str, artifacts: Artifacts) -> Path:
    """Results of a run over cases of the test zoo, each of another verdict."""
    runner = Runner(tmp_path_factory.mktemp("zoo"), release)
    cases = ("steady", "wrong", "hashed-constant", "set-of-strings")
    runner.zoo("zoo_of_verdicts", "crash", *cases)
    answers = {"crash": Killed("SIGSEGV"), **{case: artifacts[case] for case in cases}}
    # Exported again, an artifact keeps the graph after the pass that diverges.
    again = tuple(keeping(artifact) for artifact in artifacts["set-of-strings"])
    runner.answers({**answers, "again": {"set-of-strings": again}})
    words = ("--models", "zoo_of_verdicts", "--cell", "xnnpack-fp32/*", "--variations", "0,4")
    finished = runner(*words, "--explain", "all")
    assert sorted(finished.verdicts().values()) == ["corrupt", "crashed", "new", "order-only", "unstable"]
    return runner.sweeps.parent


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, zoo: Path) -> Path:
    """A report of the stock runs and of the zoo."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        made = tmp_path_factory.mktemp("report") / "report.html"
        assert report(STOCK, zoo, "--html", made) == cli.SAME
    return made


@pytest.fixture
def reader(browser: Any, file: Path) -> Iterator[Reader]:
    reader = Reader(browser, file, viewport={"width": 1200, "height": 900})
    yield reader
    reader.close()


# The grid


def rows_of(*folders: Path) -> list[dict[str, Any]]:
    files = [path for folder in folders for path in folder.rglob("results.jsonl")]
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_the_report_opens_with_its_causes_the_worst_first(reader: Reader, zoo: Path) -> None:
    wrong = Counter(row["verdict"] for row in rows_of(STOCK, zoo) if not row["accepted"])
    causes = reader.texts(".causes li a")
    counts, _, number = reader.heading().rpartition(": ")
    assert number == f"{len(causes)} causes"
    assert dict(reversed(each.split()) for each in counts.split(", ")) == {
        k: str(n) for k, n in wrong.items()
    }
    chips = [chip.split()[-1] for chip in reader.texts(".causes li .verdict:first-child")]
    assert chips == sorted(chips, key=lambda chip: chip in DECIDED)
    assert {"corrupt", "new"} <= set(chips)
    reader.shot("overview")
    reader.page.locator(".causes a").first.click()
    reader.page.wait_for_selector("html[data-shown^='cause/']")
    assert reader.heading() == causes[0]


def test_the_grid_counts_verdicts_and_filters_by_them_and_by_words(reader: Reader, zoo: Path) -> None:
    rows = rows_of(STOCK, zoo)
    page = reader.page
    assert reader.counted() == f"{len(rows)} cells"
    page.locator("#unfold").click()
    assert page.locator(".grid td a").count() == len(rows)
    for verdict in {row["verdict"] for row in rows}:
        number = sum(row["verdict"] == verdict for row in rows)
        assert f"{verdict} {number}" in page.locator(f"button[data-verdict={verdict}]").inner_text()
    page.locator("button[data-verdict=corrupt]").click()
    assert reader.counted() == f"3 of {len(rows)} cells"
    assert {link.get_attribute("class") for link in page.locator(".grid td a").all()} == {"v-corrupt"}
    reader.shot("grid-filtered")
    page.locator("#search").fill("fuseconstantargs")
    assert page.locator(".grid td a").all()[0].get_attribute("aria-label") == (
        "tosa-int/cat-h-v on 1.2.0: corrupt"
    )
    assert reader.counted() == f"1 of {len(rows)} cells"
    page.locator("#search").fill("")
    page.locator("button[data-verdict=corrupt]").click()
    page.get_by_label("releases").select_option("1.3.1")
    assert reader.counted() == f"4 of {len(rows)} cells"


def test_rows_of_stable_cells_are_folded_until_a_reader_asks_for_them(reader: Reader) -> None:
    rows = reader.page.locator(".grid tbody tr:not(.target)")
    assert rows.count() > 3
    for row in rows.all():
        assert row.locator("td a:not(.v-stable)").count() >= 1
    # Linear is stable everywhere.
    assert "linear" not in reader.texts(".grid tbody th")
    reader.page.locator("#unfold").click()
    assert "linear" in reader.texts(".grid tbody th")
    assert reader.page.locator("#unfold").count() == 0


def test_filters_are_in_the_address(browser: Any, file: Path, reader: Reader) -> None:
    page = reader.page
    page.locator("button[data-verdict=corrupt]").click()
    page.locator("#search").fill("Cat h")
    page.get_by_label("releases").select_option("1.2.0")
    address = page.evaluate("location.href")
    assert address.endswith("#cells?text=Cat+h&release=1.2.0&verdict=corrupt")
    other = Reader(browser, file)
    other.page.goto(address)
    other.page.reload()
    other.at("cells")
    assert other.counted() == reader.counted()
    assert other.counted().startswith("1 of ")
    assert other.page.locator("#search").input_value() == "Cat h"
    assert other.page.locator("button[data-verdict=corrupt]").get_attribute("aria-pressed") == "true"
    other.context.close()
    page.locator(".grid td a").click()
    reader.at("cell/1.2.0/tosa-int/cat-h-v")
    page.go_back()
    reader.at("cells")
    assert reader.counted().startswith("1 of ")
    page.go_forward()
    reader.at("cell/1.2.0/tosa-int/cat-h-v")
    page.get_by_role("link", name="All cells").click()
    reader.at("cells")
    assert reader.counted().startswith("1 of ")


def test_a_search_without_a_find_says_so(reader: Reader) -> None:
    page = reader.page
    assert page.locator(".nothing").count() == 0
    page.locator("#search").fill("no such cell")
    assert "No cell matches “no such cell”." in page.locator(".nothing").inner_text()
    assert not page.locator(".grid").is_visible()
    page.get_by_role("button", name="Clear search and filters").click()
    page.locator(".grid").wait_for(state="visible")
    assert page.locator("#search").input_value() == ""


def test_pages_of_cells_and_causes_lead_to_the_next_and_the_one_before(reader: Reader) -> None:
    page = reader.page
    page.locator("button[data-verdict=corrupt]").click()
    found = [link.get_attribute("href") for link in page.locator(".grid td a").all()]
    assert len(found) == 3
    page.locator(".grid td a").first.click()
    page.wait_for_selector("html[data-shown^='cell/']")
    assert page.locator(".beside").inner_text().endswith("1 of 3")
    for at in (1, 2):
        page.get_by_role("link", name="Next").click()
        page.wait_for_selector(f"html[data-shown='{found[at][1:]}']")
    assert page.get_by_role("link", name="Next").count() == 0
    page.keyboard.press("p")
    reader.at(found[1][1:])
    page.keyboard.press("n")
    reader.at(found[2][1:])
    reader.go("causes")
    page.locator(".causes a").first.click()
    page.wait_for_selector("html[data-shown^='cause/']")
    first = reader.heading()
    page.keyboard.press("n")
    page.wait_for_function("first => document.querySelector('h1').innerText !== first", arg=first)
    assert page.locator(".beside a[rel=prev]").count() == 1


@pytest.fixture
def declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A report of results in which a cell is wrong as is declared."""
    folder = tmp_path / "results" / "1.2.0"
    shutil.copytree(STOCK / "1.2.0", folder)
    lines = (folder / "results.jsonl").read_text()
    corrupt = next(row for row in map(json.loads, lines.splitlines()) if row["verdict"] == "corrupt")
    cell, _ = threaded()
    target, case = cell.split("/")
    line = corrupt | {"target": target, "case": case, "known": True, "accepted": True}
    (folder / "results.jsonl").write_text(f"{lines}{json.dumps(line)}\n")
    made = tmp_path / "declared.html"
    assert report(folder.parent, "--html", made) == cli.SAME
    printed = capsys.readouterr().out
    assert "2 corrupt" in printed
    assert "1 known defect" in printed
    return made


def threaded() -> tuple[str, str]:
    """Return a cell of 1.2.0 whose declared reason names a thread of upstream's, and the reason."""
    declared = Decisions.of_root(GOLDENS, "1.2.0").defects
    return next((cell, defect.why) for cell, defect in sorted(declared.items()) if "#" in defect.why)


def test_known_defects_have_their_reason_and_link_and_are_not_counted_as_corrupt(
    browser: Any, declared: Path
) -> None:
    reader = Reader(browser, declared)
    cell, reason = threaded()
    page = reader.page
    assert reader.heading().startswith("2 corrupt, ")
    assert page.locator("button[data-verdict=corrupt]").inner_text().endswith("corrupt 2")
    assert page.locator("button[data-verdict='known defect']").inner_text().endswith("known defect 1")
    assert reader.texts(".defects h2") == ["1 known defect"]
    row = page.locator(".defects tbody tr")
    assert reason in row.inner_text()
    number = re.findall(r"#(\d+)", reason)[0]
    assert row.get_by_role("link", name=f"#{number}").get_attribute("href") == (
        f"https://github.com/pytorch/executorch/issues/{number}"
    )
    row.get_by_role("link", name=cell).click()
    reader.at(f"cell/1.2.0/{cell}")
    assert reason in page.locator(".declared").inner_text()
    assert "known defect" in page.locator(".verdict").inner_text()
    reader.close()


def test_the_grid_is_gone_through_by_keyboard(reader: Reader) -> None:
    page = reader.page
    page.keyboard.press("/")
    page.keyboard.type("tosa-int/cat-h-v")
    page.locator(".grid td a").first.focus()
    page.keyboard.press("ArrowRight")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "tosa-int/cat-h-v on 1.3.1: stable"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    reader.at("cell/1.2.0/tosa-int/cat-h-v")
    page.keyboard.press("Escape")
    reader.at("cells")
    assert page.evaluate(focused) == "tosa-int/cat-h-v on 1.2.0: corrupt"
    # One stop for the tabulator, wherever the arrows went.
    assert page.locator(".grid a[tabindex='0']").count() == 1


# Pages of cells


def test_a_corrupt_cell_shows_constants_pass_error_and_commands(reader: Reader) -> None:
    page = reader.page
    page.get_by_label("tosa-int/cat-h-v on 1.2.0: corrupt").click()
    reader.at("cell/1.2.0/tosa-int/cat-h-v")
    assert reader.heading().startswith("tosa-int/cat-h-v")
    assert "94.9 times" in page.locator("tr.worse").first.inner_text()
    pictures = page.locator("section.tensor", has_text="delegate_0: aten_cat_default_fused_const")
    assert not pictures.is_visible()
    page.locator("details.constants > summary").click()
    assert pictures.is_visible()
    titles = pictures.locator("figcaption").all_text_contents()
    assert [title.split()[0] for title in titles] == ["golden", "now", "difference"]
    assert "20 of 40 differ" in titles[2]
    # The message says that codes are -127 where -95 was expected.
    golden, now, _ = (
        figure.locator("title").all_text_contents() for figure in pictures.locator("figure").all()
    )
    off = [(one, other) for one, other in zip(golden, now, strict=True) if one != other]
    assert len(off) == 20
    assert off[0] == ("[0, 0, 0, 1] = -95", "[0, 0, 0, 1] = -127")
    assert reader.texts("section.operator h4") == ["changed: CONST aten_cat_default_fused_const"]
    assert "FuseConstantArgsPass" in page.locator(".step.first").inner_text()
    assert "first that diverges" in page.locator(".step.first").inner_text()
    command = page.locator(".command", has_text="repro")
    command.get_by_role("button").click()
    page.wait_for_selector("#said:text('copied')", state="attached")
    assert page.evaluate("getSelection().toString()") == "goldens repro 1.2.0 tosa-int/cat-h-v"
    reader.shot("corrupt-cell")


def test_a_cell_leads_with_what_failed(reader: Reader) -> None:
    reader.go("cell/1.2.0/tosa-int/cat-h-v")
    assert reader.texts("main h2") == [
        "What differs",
        "Pass",
        "Output",
        "Operators",
        "Passes",
        "Commands",
        "Quantities",
    ]
    page = reader.page
    # What its cause makes wrong is said on the page of each of its cells.
    assert [chip.split()[1:] for chip in reader.texts(".cause .verdict")] == [["1", "corrupt"]]
    assert "The golden: error 0 of the tolerance" in page.locator("main").inner_text()
    # The graph as a whole, the constants and the message are folded.
    assert page.locator("main details[open]").count() == 0
    assert page.locator(".heat").first.bounding_box()["width"] >= 200
    assert page.locator(".pictures .scale").count() == page.locator(".pictures .heat").count() > 0
    assert page.locator("details.constants section.tensor").count() == 1
    # The same number wherever it says how many differ.
    assert "20 of 40 values differ" in page.locator("main").inner_text()
    assert "\t20 of 40\t" in page.locator("tr.worse").first.inner_text()
    assert "20 of 40 differ" in page.locator("section.tensor figcaption").nth(2).inner_text()


def test_the_text_around_the_change_stands_on_both_sides(reader: Reader) -> None:
    reader.go("cell/1.2.0/tosa-int/cat-h-v")
    golden, now = reader.page.locator(".hunks pre").all()
    for side in (golden, now):
        assert side.locator("mark").count() == 1
        assert "aten_cat_default_fused_const: INT8[1,4,5,2]" in side.locator("mark").inner_text()
        assert "TRANSPOSE" in side.inner_text()
    assert golden.locator("mark").inner_text() != now.locator("mark").inner_text()


def test_an_element_is_marked_on_all_sides_with_its_exact_values(browser: Any, file: Path) -> None:
    reader = Reader(browser, file, has_touch=True, viewport={"width": 390, "height": 800})
    reader.go("cell/1.2.0/tosa-int/cat-h-v")
    page = reader.page
    tensor = page.locator("section.tensor").first
    heats = tensor.locator(".heat").all()
    assert len(heats) == 3
    words = "[0, 1, 0, 0]: eager -0.748031497, now -1, difference -0.251968503"
    # Pointing, touching, and the arrow keys of the next element.
    heats[1].locator("g").nth(20).hover()
    assert tensor.locator(".element").inner_text() == words
    assert [heat.locator("g.here title").text_content().split(" = ")[0] for heat in heats] == [
        "[0, 1, 0, 0]"
    ] * 3
    heats[0].locator("g").nth(0).tap()
    assert tensor.locator(".element").inner_text().startswith("[0, 0, 0, 0]: eager ")
    heats[2].locator("g").nth(20).tap()
    assert tensor.locator(".element").inner_text() == words
    heats[2].focus()
    page.keyboard.press("ArrowLeft")
    assert tensor.locator(".element").inner_text().startswith("[0, 0, 3, 4]: ")
    assert tensor.locator("g.here").count() == 3
    reader.close()


def test_a_heat_map_has_gaps_between_channels(reader: Reader) -> None:
    reader.go("cell/1.2.0/tosa-int/cat-h-v")
    squares = reader.page.locator("section.tensor .heat").first.locator("g rect.back")
    # float32[1, 2, 4, 5]: two channels of four rows and five columns.
    left = [float(square.get_attribute("x")) for square in squares.all()]
    assert sorted(set(left)) == [0, 16, 32, 48, 64, 88, 104, 120, 136, 152]
    assert left[4] == 64
    assert left[20] == 88


def test_the_passes_are_scrolled_to_the_one_that_diverges(browser: Any, file: Path) -> None:
    reader = Reader(browser, file, viewport={"width": 390, "height": 800})
    reader.go("cell/1.2.0/tosa-int/cat-h-v")
    frame = reader.page.locator(".timeline").bounding_box()
    step = reader.page.locator(".step.first").bounding_box()
    assert frame["x"] <= step["x"]
    assert step["x"] + step["width"] <= frame["x"] + frame["width"] + 1
    assert reader.page.evaluate("document.querySelector('.timeline').scrollLeft") > 0
    reader.close()


def test_an_order_only_cell_shows_both_variations_and_the_factor(reader: Reader) -> None:
    page = reader.page
    page.locator("button[data-verdict=order-only]").click()
    page.get_by_label("tosa-fp/two-delegates on 1.2.0: order-only").click()
    reader.at("cell/1.2.0/tosa-fp/two-delegates")
    facts = page.locator(".facts").inner_text()
    assert "follows the hash seed; not the heap" in facts
    assert "seed0-heap0 | seed4-heap1" in " ".join(facts.split())
    # Renames are folded away: no operator differs.
    assert page.locator("section.operator").count() == 0
    assert page.get_by_text("4 operators; 1 value renamed").count() == 1
    assert "TOSAPartitioner" in page.locator(".step.first").inner_text()
    assert reader.texts(".sides pre")[-2:] == ["tag1 tag0", "tag0 tag1"]
    reader.shot("order-only-cell")


def test_the_graphs_after_the_pass_that_diverges_stand_side_by_side(reader: Reader, release: str) -> None:
    reader.go(f"cell/{release}/xnnpack-fp32/set-of-strings")
    one, other = [text for text in reader.texts(".sides pre") if "executorch_call_delegate" in text]
    assert one != other
    assert sorted(line.partition("(")[0] for line in one.splitlines()) == sorted(
        line.partition("(")[0] for line in other.splitlines()
    )


def test_a_failure_shows_the_golden_graph_and_the_accept_command(reader: Reader) -> None:
    reader.go("cell/1.2.0/xnnpack-fp32/permute-reshape-sum")
    assert "--snapshot-update" in reader.page.locator(".command", has_text="accept").inner_text()


def test_a_green_cell_says_its_quantities_and_its_tolerance(reader: Reader) -> None:
    reader.page.locator("#unfold").click()
    reader.page.get_by_label("tosa-fp/linear on 1.2.0: stable").click()
    reader.at("cell/1.2.0/tosa-fp/linear")
    text = reader.page.locator("main").inner_text()
    for words in ("tolerance, of the largest value\t0.000002922", "delegates\t1", *QUANTITIES.values()):
        assert words in text


def test_a_green_cell_without_a_golden_says_that_it_has_no_quantities(browser: Any, tmp_path: Path) -> None:
    made = tmp_path / "report.html"
    (tmp_path / "goldens").mkdir()
    assert report(STOCK, "--goldens", tmp_path / "goldens", "--html", made) == cli.SAME
    reader = Reader(browser, made)
    reader.go("cell/1.2.0/tosa-fp/linear")
    assert "its golden has none, or is not in this checkout" in reader.page.locator("main").inner_text()
    reader.close()


# Causes and drift


def test_a_cause_leads_to_its_cells(reader: Reader) -> None:
    page = reader.page
    page.get_by_role("link", name=re.compile("^Causes")).click()
    reader.at("causes")
    page.get_by_role("link", name=re.compile("^FuseConstantArgsPass ")).click()
    page.wait_for_selector("html[data-shown^='cause/']")
    assert reader.heading().startswith("FuseConstantArgsPass (")
    assert "-127" in page.locator("pre").first.inner_text()
    reader.shot("cause")
    page.locator(".cells a").click()
    reader.at("cell/1.2.0/tosa-int/cat-h-v")


def test_what_changed_from_one_release_to_the_next_has_a_page(reader: Reader) -> None:
    reader.page.get_by_role("link", name=re.compile("^Releases")).click()
    reader.at("releases")
    # The zoo's cells have no golden.
    assert reader.page.get_by_role("link", name="1.3.1 → 1.4.1").count() == 0
    reader.page.get_by_role("link", name="1.2.0 → 1.3.1").click()
    reader.at("drift/1.2.0..1.3.1")
    assert "4 have a golden in both releases" in reader.page.locator("main").inner_text()
    assert "Operators gained or lost" in reader.texts("h2")


# Whoever reads it

VIEWS = (
    *("cells", "causes", "cell/1.2.0/tosa-int/cat-h-v", "cell/1.2.0/tosa-fp/two-delegates"),
    *("cell/1.2.0/tosa-fp/linear", "cell/{release}/xnnpack-fp32/crash", "drift/1.2.0..1.3.1"),
    "releases",
)


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_every_view_fits_a_phone_and_has_names_and_contrast(
    browser: Any, file: Path, scheme: str, release: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: nox -s tests has it")
    reader = Reader(browser, file, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    for view in (each.format(release=release) for each in VIEWS):
        reader.go(view)
        assert reader.page.evaluate("document.documentElement.scrollWidth") <= 400, view
        found = axe.Axe().run(reader.page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], view
    reader.go("cell/1.2.0/tosa-int/cat-h-v")
    reader.shot(f"phone-{scheme}")
    reader.close()


def test_the_theme_follows_the_system_until_a_reader_says_otherwise(browser: Any, file: Path) -> None:
    reader = Reader(browser, file, color_scheme="dark")
    page = reader.page
    back = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 26)"
    button = page.get_by_role("button", name="Dark")
    assert page.evaluate(back) == dark
    assert button.get_attribute("aria-pressed") == "true"
    # Nothing is stored by looking, so that a system that changes is followed.
    assert page.evaluate("localStorage.length") == 0
    page.emulate_media(color_scheme="light")
    assert page.evaluate(back) == light
    page.wait_for_selector("#theme[aria-pressed=false]")
    button.click()
    assert page.evaluate(back) == dark
    page.emulate_media(color_scheme="dark")
    button.click()
    assert page.evaluate(back) == light
    page.reload()
    reader.at("cells")
    assert page.evaluate(back) == light
    reader.context.close()


def test_no_tile_is_bright_in_the_dark(browser: Any, file: Path) -> None:
    reader = Reader(browser, file, color_scheme="dark")
    reader.page.locator("#unfold").click()
    found = {
        tile.get_attribute("class"): tile.evaluate("each => getComputedStyle(each).backgroundColor")
        for tile in reader.page.locator(".grid td a").all()
    }
    assert {"v-stable", "v-order-only", "v-new"} <= set(found)
    for verdict, colour in found.items():
        red, green, blue = map(int, re.findall(r"\d+", colour))
        assert 0.2126 * red + 0.7152 * green + 0.0722 * blue < 110, verdict
    reader.close()


# Strangers


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A report of results whose reason, message and proposal contain markup."""
    folder = tmp_path / "results" / "1.2.0"
    shutil.copytree(STOCK / "1.2.0", folder)
    case = folder / "tosa-int" / "cat-h-v"
    kept = case / "cell.json"
    for path in (folder / "results.jsonl", kept):
        path.write_text(path.read_text().replace("output 0 float32", json.dumps(HOSTILE)[1:-1]))
    kept.write_text(kept.read_text().replace("first pass whose", json.dumps(HOSTILE)[1:-1]))
    made = tmp_path / "hostile.html"
    assert report(folder.parent, "--html", made) == cli.SAME
    return made


def test_markup_in_messages_is_text(browser: Any, hostile: Path) -> None:
    reader = Reader(browser, hostile)
    name = "tosa-int/cat-h-v"
    reader.page.get_by_label(f"{name} on 1.2.0: corrupt").click()
    reader.page.wait_for_selector("html[data-shown^='cell/1.2.0/tosa-int/']")
    assert reader.heading().startswith(name)
    assert HOSTILE in reader.page.locator("main").inner_text()
    assert reader.page.locator("main img, main script, main b").count() == 0
    assert reader.page.title() != "1"
    reader.go("causes")
    assert reader.page.locator("main b, main img").count() == 0
    reader.close()


def test_the_file_runs_no_script_but_its_own(browser: Any, file: Path) -> None:
    reader = Reader(browser, file)
    reader.page.evaluate("document.getElementById('main').innerHTML = '<img src=x onerror=\"window.ran=1\">'")
    reader.page.wait_for_timeout(200)
    assert reader.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in line for line in reader.complaints), reader.complaints
    reader.context.close()


# The file


def test_the_same_results_make_the_same_file(file: Path, zoo: Path, tmp_path: Path) -> None:
    assert report(STOCK, zoo, "--html", tmp_path / "again.html") == cli.SAME
    assert (tmp_path / "again.html").read_bytes() == file.read_bytes()


def refused(capsys: pytest.CaptureFixture[str], words: Sequence[object], *facts: object) -> None:
    """Assert that a report is refused by one line that states `facts`."""
    assert report(*words) == cli.ERROR
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1, printed.err
    for fact in facts:
        assert str(fact) in printed.err


def test_bad_input_is_one_error_and_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "report.html"
    refused(capsys, [tmp_path, "--html", made], tmp_path, "has no run.json")
    nowhere = tmp_path / "nowhere" / "report.html"
    refused(capsys, [STOCK, "--html", nowhere], nowhere, "name a file in a folder that is there")
    twice = tmp_path / "twice"
    shutil.copytree(STOCK / "1.3.1", twice / "1.3.1")
    refused(capsys, [STOCK, twice, "--html", made], "is in both", "name one folder")
    damaged = twice / "1.3.1" / "results.jsonl"
    damaged.write_text('{"format": 2, "target": "tosa-fp", "case": "linear"}\n')
    refused(capsys, [twice, "--html", made], twice, "required field `verdict`", "run the cells again")
    shutil.copytree(STOCK / "1.2.0", tmp_path / "evil" / "1.2.0")
    kept = tmp_path / "evil" / "1.2.0" / "tosa-int" / "cat-h-v" / "cell.npz"
    kept.write_bytes(kept.read_bytes()[:100])
    refused(capsys, [tmp_path / "evil", "--html", made], kept.parent, "is damaged", "Run its cell again")
    assert not made.exists()
    assert not list(tmp_path.glob("*.new~"))


# Its figures


def test_a_large_tensor_is_a_histogram_on_the_scale_of_its_pair() -> None:
    from executorch_goldens_plugins.report.tensors import BARS, pictures

    one = np.linspace(-1, 1, 5000, dtype=np.float32)
    for sides in ((one, one * 2), (one * 2, one)):
        golden, now, difference = pictures(*sides, ("golden", "now"))
        assert sum(golden.bars) == sum(now.bars) == 5000
        assert len(golden.bars) == BARS
        assert (golden.least, golden.most) == (now.least, now.most) == (-2, 2)
        assert "5000 of 5000 differ" in difference.facts


def test_only_what_is_beyond_its_tolerance_counts_as_different() -> None:
    from executorch_goldens_plugins.report.tensors import beyond_tolerance, errors

    expected = np.zeros((2, 2), np.float32)
    actual = np.array([[0, 1e-7], [0.5, np.nan]], np.float32)
    kept = ShownTensor(
        "output", "output 0", "example", "seed0-heap0", actual, expected, np.full((2, 2), 1e-6)
    )
    (error,) = errors(Evidence(tensors=[kept]))
    (shown,) = beyond_tolerance(Evidence(tensors=[kept]), "now")
    assert (error.apart, error.size) == (2, 4)
    assert "2 of 4 differ" in shown.pictures[2].facts


def test_an_operator_has_the_numbers_of_a_small_constant_and_the_digest_of_a_large_one() -> None:
    from executorch_goldens.diff.operators import CHANGED
    from executorch_goldens_plugins.report.operators import listings

    name = "delegate_0.tosa"
    record = golden.read(REPOSITORY / "goldens" / "1.4.1" / "tosa-int" / "conv1d.txt")
    text = record.sections[name]
    bias = r"  value b__frozen_param1: INT32\[4\]\n    sha256 ([0-9a-f]{12}).*\n    values -8357 "
    assert re.search(bias, text)
    now = re.sub(bias, lambda found: found[0].replace(found[1], "0" * 12).replace("-8357", "-8358"), text)
    ((listing),) = listings(Record({}, {name: text}), Record({}, {name: now}))
    (row,) = [row for row in listing.rows if row.state == CHANGED]
    assert sorted(row.marked) == [
        f"→ b__frozen_param1: INT32[4] -835{last} 11491 -10745 2089" for last in (7, 8)
    ]
    lines = [line for row in listing.rows for line in row.after]
    (weights,) = [line for line in lines if line.startswith("→ aten_convolution_default_weight_ohwi: ")]
    assert "sha256 f9ab775ef1c2" in weights


@pytest.mark.parametrize(("allowed", "words"), [(0.0, "none is allowed"), (1e-7, "1e+07 times")])
def test_no_error_is_a_number_of_times_that_nobody_reads(allowed: float, words: str) -> None:
    from executorch_goldens.words.errors import times
    from executorch_goldens_plugins.report.tensors import errors

    one = np.ones(3, np.float32)
    kept = ShownTensor("output", "output 0", "example", "seed0-heap0", one, one * 2, np.full(3, allowed))
    assert [times(error.used) for error in errors(Evidence(tensors=[kept]))] == [words]
