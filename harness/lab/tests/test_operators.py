"""The table of operators: what it counts, what it keeps, and its page in a real browser."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from executorch_goldens.settings import releases
from executorch_goldens_plugins.compare.calls import CallModel, Operand
from lab.args import kept, page, table
from lab.args.kept import KeptError
from lab.args.trying import Tried
from tests import REPOSITORY

STATIC = REPOSITORY / "docs" / "site" / "static"
#: Text that an upstream error may have.
HOSTILE = '</td><img src=x onerror="document.title=1">'
FAILS = {"kind": "fails", "stage": "lower", "error": HOSTILE}
WRONG = {"kind": "wrong-values", "dtype": "float32"}


def model(name: str, target: str, *shape: int, layout: str = "contiguous") -> CallModel:
    return CallModel(name, target, f"{name[:-5]}.default", {"self": Operand("float32", shape, layout=layout)})


MODELS = {
    each.name: each
    for each in (
        model("abs-0000", "tosa-fp", 2, 3, layout="permuted"),
        model("abs-0001", "tosa-fp", 2, 3),
        model("abs-0002", "tosa-fp", 4, 4),
        model("abs-0003", "xnnpack-fp32", 2, 3),
        model("sin-0000", "tosa-fp", 2, 3),
        model("sin-0001", "tosa-int", 2, 3),
    )
}


def results(**came: str | tuple[str, Mapping[str, str]]) -> dict[str, Tried]:
    """Return results by the names of models, without their dash."""
    found = {}
    for word, each in came.items():
        name = f"{word[:3]}-{word[3:]}"
        outcome, finding = (each, {}) if isinstance(each, str) else each
        found[name] = Tried(name, outcome, finding)
    return found


RESULTS = {
    "1.3.1": results(abs0000="whole", abs0001="whole", abs0003="whole", sin0000="outside"),
    "1.4.1": results(
        abs0000="whole",
        abs0001=("failed", FAILS),
        abs0002=("failed", FAILS),
        abs0003=("wrong", WRONG),
        sin0000="whole",
    ),
    "1.5.1": results(
        abs0000="whole", abs0001="whole", abs0002=("failed", FAILS), abs0003=("wrong", WRONG), sin0001="whole"
    ),
}
TABLE = table.made(RESULTS, MODELS)


def came(operator: str, target: str, release: str) -> Sequence[tuple[str, int, str]]:
    (row,) = (
        row for row in TABLE.rows if (row.operator, row.target, row.release) == (operator, target, release)
    )
    assert row.tried == sum(each.models for each in row.came)
    return [(each.outcome, each.models, each.example) for each in row.came]


# What is counted


def test_a_row_counts_what_was_tried_with_the_smallest_and_plainest_model_of_each_kind() -> None:
    assert came("abs.default", "tosa-fp", "1.3.1") == [("whole", 2, "abs-0001")]
    assert came("abs.default", "tosa-fp", "1.4.1") == [("whole", 1, "abs-0000"), ("failed", 2, "abs-0001")]
    # Nothing is said of what was not tried.
    assert not [row for row in TABLE.rows if row.target == "tosa-int" and row.release != "1.5.1"]
    assert TABLE.releases["1.3.1"] == table.TriedOn(drawn=6, tried=4)
    assert TABLE.models["abs-0001"] == "abs.default(self=float32[2, 3])"


def test_what_changed_between_releases_is_decided_on_models_that_were_tried_on_both() -> None:
    first, second = TABLE.steps
    assert first == table.Step(
        before="1.3.1",
        after="1.4.1",
        models=4,
        shifts=(),
        gained=(("sin.default", "tosa-fp"),),
        lost=(("abs.default", "xnnpack-fp32"),),
        more=(),
        fewer=(("abs.default", "tosa-fp"),),
    )
    # The sine was tried on both releases, but by no model on both.
    assert (second.models, second.gained, second.lost) == (4, (), ())
    assert second.more == (("abs.default", "tosa-fp"),)


def test_what_most_models_that_changed_share_is_told_apart_from_operators() -> None:
    every = {
        f"abs-{number:04}": msgspec.structs.replace(
            model(f"abs-{number:04}", "tosa-fp", 2, number + 1),
            # Half of those with a second user changed.
            users="two",
            open=0 if number < 6 else None,
        )
        for number in range(12)
    }
    before = {name: Tried(name, "whole") for name in every}
    after = {
        name: Tried(name, "whole" if number in (0, *range(7, 12)) else "outside")
        for number, name in enumerate(every)
    }
    for one, other, whole in ((before, after, (6, 1)), (after, before, (1, 6))):
        (step,) = table.made({"1.3.1": one, "1.4.1": other}, every).steps
        assert step.shifts == (table.Shift("tosa", "size", "symbolic", 6, *whole),)
        # What is left is one model without a symbolic size that changed, and one that did not.
        assert (step.fewer, step.more)[whole == (1, 6)] == (("abs.default", "tosa-fp"),)
        assert step.gained == step.lost == ()
    few = {name: each for name, each in before.items() if name > "abs-0001"}
    (step,) = table.made({"1.3.1": few, "1.4.1": after}, every).steps
    assert step.shifts == ()


# What is kept


def test_kept_results_are_read_as_they_were_found(tmp_path: Path) -> None:
    found = RESULTS["1.4.1"]
    kept.file_of("1.4.1", tmp_path).write_bytes(kept.encoded(found, MODELS.values()))
    assert kept.read("1.4.1", MODELS.values(), tmp_path) == found
    assert kept.read("1.5.1", MODELS.values(), tmp_path) == {}


def test_a_result_is_left_out_where_its_operator_was_drawn_again(tmp_path: Path) -> None:
    kept.file_of("1.4.1", tmp_path).write_bytes(kept.encoded(RESULTS["1.4.1"], MODELS.values()))
    other = {**MODELS, "sin-0000": model("sin-0000", "tosa-int", 3, 3)}
    read = kept.read("1.4.1", other.values(), tmp_path)
    assert {name[:3] for name in read} == {"abs"}
    # Models that came behind those with a result change nothing.
    further = {**MODELS, "sin-0002": model("sin-0002", "tosa-int", 3, 3)}
    assert kept.read("1.4.1", further.values(), tmp_path) == RESULTS["1.4.1"]
    # A further release that names the operator draws no model again.
    named = {name: msgspec.structs.replace(each, releases=("1.4.1",)) for name, each in MODELS.items()}
    assert kept.read("1.4.1", named.values(), tmp_path) == RESULTS["1.4.1"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be read"),
        (kept.encoded(RESULTS["1.4.1"], MODELS.values())[:-40], "cannot be read"),
        (lzma.compress(b'{"format": 9, "outcomes": [], "findings": [], "operators": {}}'), "has format 9"),
    ],
    ids=["empty", "cut off", "newer"],
)
def test_kept_results_that_cannot_be_read_are_refused_with_the_file_and_the_way_out(
    tmp_path: Path, content: bytes, says: str
) -> None:
    file = kept.file_of("1.4.1", tmp_path)
    file.write_bytes(content)
    with pytest.raises(KeptError, match=f"{file} {says}.*; bring it back with 'git checkout -- {file}'"):
        kept.read("1.4.1", MODELS.values(), tmp_path)


def test_a_session_is_put_over_the_kept_results_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kept.calls, "read", lambda: MODELS)
    monkeypatch.chdir(tmp_path)
    kept.file_of("1.4.1", tmp_path).write_bytes(kept.encoded(RESULTS["1.4.1"], MODELS.values()))
    session = tmp_path / "build" / "args" / "1.4.1" / "tried.jsonl"
    session.parent.mkdir(parents=True)
    of_session = results(abs0001="partly", sin0001="whole")
    session.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in of_session.values()))
    kept.keep(tmp_path)
    assert kept.read("1.4.1", MODELS.values(), tmp_path) == RESULTS["1.4.1"] | of_session
    assert capsys.readouterr().out.startswith("1.4.1: 6 results, ")
    assert [path.name for path in tmp_path.glob("*.xz")] == ["1.4.1.xz"]


def test_the_committed_results_are_a_table_and_small() -> None:
    made = json.loads(table.as_json())
    assert list(made["releases"]) == list(releases.load().releases)
    assert {came["example"] for row in made["rows"] for came in row["came"]} == set(made["models"])
    assert all(path.stat().st_size < 120_000 for path in kept.FOLDER.glob("*.xz"))


# The page


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table with the site's script and style, without what Sphinx puts around it."""
    made = tmp_path_factory.mktemp("operators") / "operators.html"
    for name in ("operators.js", "site.css"):
        (made.parent / name).write_text((STATIC / name).read_text())
    head = "<title>Operators</title><link rel=stylesheet href=site.css><script src=operators.js></script>"
    body = f"<main><h1>Operators</h1>{page.html(TABLE, MODELS)}</main>"
    made.write_text(f"<!doctype html><html lang=en><meta charset=utf-8>{head}{body}</html>")
    return made


@pytest.fixture
def tab(browser: Any, file: Path) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(file.as_uri())
    yield opened
    assert complaints == []
    context.close()


def rows(tab: Any) -> list[list[str]]:
    """Return what is shown of the rows of all operators."""
    script = """all => all.filter(row => !row.hidden && !row.closest('details').hidden)
        .map(row => [...row.cells].filter(cell => !cell.hidden).map(cell => cell.textContent.trim()))"""
    return tab.locator("#operators tbody tr").evaluate_all(script)


def status(tab: Any) -> str:
    return str(tab.get_by_role("status").inner_text())


def test_the_page_is_plain_tables_without_a_script(browser: Any, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(file.as_uri())
    assert not tab.locator("form").is_visible()
    tab.locator("summary").first.click()
    shown = tab.locator("details").first
    assert shown.locator("caption").is_visible()
    assert shown.locator("thead th[scope=col]").all_inner_texts() == ["target", "1.3.1", "1.4.1", "1.5.1"]
    cells = [row.locator("th, td").all_inner_texts() for row in shown.locator("tbody tr").all()]
    assert cells == [
        ["tosa-fp", "2 whole", "1 whole, 2 failed", "2 whole, 1 failed"],
        # A cell that two releases share.
        ["xnnpack-fp32", "1 whole", "1 wrong"],
    ]
    failed = shown.locator("li[data-outcome=failed]")
    assert HOSTILE in failed.inner_text()
    assert "abs.default(self=float32[2, 3])" in failed.inner_text()
    assert tab.title() == "Operators"
    context.close()


def test_filters_show_the_rows_and_releases_that_have_what_is_chosen(tab: Any) -> None:
    assert status(tab) == "2 of 2 operators"
    tab.get_by_label("Came to").select_option("wrong")
    assert rows(tab) == [["xnnpack-fp32", "1 whole", "1 wrong"]]
    assert status(tab) == "1 of 2 operators"
    tab.get_by_label("Release").select_option("1.5.1")
    assert rows(tab) == [["xnnpack-fp32", "1 wrong"]]
    assert tab.locator("td:visible").get_attribute("colspan") == "1"
    assert tab.locator("thead th:visible").all_inner_texts() == ["target", "1.5.1"]
    tab.get_by_label("Release").select_option("1.3.1")
    assert rows(tab) == []
    assert status(tab) == "0 of 2 operators"
    tab.get_by_role("button", name="Show all").click()
    assert status(tab) == "2 of 2 operators"
    assert len(rows(tab)) == 4
    tab.get_by_label("Target").select_option("tosa-int")
    assert rows(tab) == [["tosa-int", "not tried", "1 whole"]]
    tab.get_by_label("Release").select_option("1.4.1")
    assert rows(tab) == [], "what was not tried is no result"


def test_a_search_opens_the_one_operator_and_is_in_the_address(tab: Any, file: Path) -> None:
    tab.get_by_label("Operator").fill("SIN")
    assert status(tab) == "1 of 2 operators"
    assert tab.locator("details[open]").get_attribute("id") == "sin.default"
    tab.get_by_label("Came to").select_option("whole")
    address = tab.url
    assert address == f"{file.as_uri()}?operator=SIN&outcome=whole"
    tab.goto("about:blank")
    tab.goto(address)
    assert tab.get_by_label("Operator").input_value() == "SIN"
    assert status(tab) == "1 of 2 operators"
    tab.goto(f"{file.as_uri()}#abs.default")
    assert tab.locator("details[open]").get_attribute("id") == "abs.default"


def test_examples_are_of_what_is_chosen(tab: Any) -> None:
    tab.get_by_label("Operator").fill("abs")
    tab.get_by_label("Target").select_option("xnnpack-fp32")
    assert tab.locator("li:visible b").all_inner_texts() == ["whole", "wrong"]
    tab.get_by_label("Release").select_option("1.5.1")
    assert tab.locator("li:visible b").all_inner_texts() == ["wrong"]


def test_the_page_can_be_used_with_a_keyboard_and_a_screen_reader(tab: Any) -> None:
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.name") == "operator"
    tab.keyboard.type("abs")
    for _ in range(5):
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.tagName") == "SUMMARY"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.getAttribute('role')") == "region"
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe: nox -s tests has it")
    found = axe.Axe().run(tab).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


def test_a_narrow_screen_scrolls_the_table_and_not_the_page(browser: Any, file: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    tab = context.new_page()
    tab.goto(f"{file.as_uri()}#abs.default")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
