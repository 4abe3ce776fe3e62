"""The pictures of README.md and docs/: each is of a run over an edited release, and has its text beside it.

Two lines of two passes are edited in a copy of the release that is installed, cells are run, and what a report and a
review show of them is photographed. Pixels differ between machines, so the text of a picture is compared, with the file
of its name that ends in ``.txt``. New pictures and texts are in ``build/pictures``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import metadata
from itertools import groupby, starmap
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens import cli
from tests import REPOSITORY
from tests.commands.review.test_terminal import Terminal
from tests.support.browsing import Reader
from tests.support.runner import Runner

IMAGES = REPOSITORY / "docs" / "images"
PICTURES = REPOSITORY / "build" / "pictures"
#: Files of the release, with a line before and after: a scale larger by a millionth, an upper end that relu has not.
EDITS = {
    "backends/arm/_passes/rewrite_conv_pass.py": ("(inp * w) / out\n", "(inp * w) / out * (1 + 2**-20)\n"),
    "backends/xnnpack/_passes/fuse_activation_pass.py": ('output_max = "+inf"', "output_max = 2.0"),
}
CELLS = (
    *("tosa-int/conv1d", "tosa-int/linear", "tosa-int/conv-bn-relu", "tosa-fp/linear"),
    *("xnnpack-fp32/rectified-product", "xnnpack-int8/conv-bn-relu", "xnnpack-int8/causal-convolutions"),
)
#: The one whose error is shown: its values are codes times a scale, the same on every machine.
WRONG = "xnnpack-int8/conv-bn-relu"
REASON = "relu has no upper end"
#: Pictures of a report, and the one of a review.
NAMES = ("report-overview", "report-error", "report-operators", "review-terminal")
#: Pixels of a page with three heat maps side by side.
WIDTH = 1040
#: Lines at the foot of a review, which name its keys.
KEYS = 2
#: Colours of a terminal.
COLOURS = {"default": "#e6e9ed", "green": "#5fd38a", "red": "#ff8a80", "brown": "#e5c07b", "blue": "#7ab2ff"}


def edited(package: Path, target: Path) -> None:
    """Write a copy of an installed package with `EDITS`; unedited files are linked where possible."""

    def link(source: str, place: str) -> None:
        try:
            os.link(source, place)
        except OSError:
            shutil.copy2(source, place)

    shutil.copytree(package, target, copy_function=link)
    for name, (before, after) in EDITS.items():
        text = (package / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        (target / name).unlink()
        for compiled in (target / name).parent.glob(f"__pycache__/{Path(name).stem}.*.pyc"):
            compiled.unlink()
        (target / name).write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, release: str) -> Runner:
    """A run over the edited release, with copies of this repository's goldens."""
    runner = Runner(tmp_path_factory.mktemp("edited"), release)
    edited(
        Path(str(metadata.distribution("executorch").locate_file("executorch"))), runner.folder / "executorch"
    )
    runner.root.mkdir(parents=True)
    shutil.copy2(REPOSITORY / "goldens" / "zoo.txt", runner.goldens)
    for cell in CELLS:
        shutil.copytree(REPOSITORY / "goldens" / release / cell, runner.root / cell)
    words = [word for cell in CELLS for word in ("--cell", cell)]
    finished = runner(*words, "--variations", "full", "--jobs", "1")
    assert finished.verdicts() == {
        **dict.fromkeys(CELLS[:3], "changed"),
        CELLS[3]: "stable",
        CELLS[4]: "changed",
        **dict.fromkeys(CELLS[5:], "corrupt"),
    }, finished.output
    return runner


def kept(name: str, text: str, picture: bytes) -> None:
    """Leave a picture and its text, and compare the text with the one that is committed."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.png").write_bytes(picture)
    (PICTURES / f"{name}.txt").write_text(text, encoding="utf-8")
    committed = IMAGES / f"{name}.txt"
    assert committed.is_file(), f"cp build/pictures/{name}.* docs/images/"
    assert text == committed.read_text(encoding="utf-8"), f"cp build/pictures/{name}.* docs/images/"


def text_of(places: Sequence[Any]) -> str:
    """Return the words that parts of a page show, a line each."""
    lines = [line.strip() for place in places for line in place.inner_text().splitlines()]
    return "".join(f"{' '.join(line.split())}\n" for line in lines if line)


@pytest.fixture(scope="module")
def reader(browser: Any, ran: Runner) -> Iterator[Reader]:
    """The report of the run."""
    pytest.importorskip("markdown_it")
    file = ran.folder / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        words = ("report", str(ran.sweeps.parent), f"--goldens={ran.goldens}", "--html", str(file))
        assert cli.main([*words]) == cli.SAME
    reader = Reader(browser, file, viewport={"width": WIDTH, "height": 4000}, device_scale_factor=1.5)
    yield reader
    reader.close()


def photographed(reader: Reader, first: Any, last: Any) -> bytes:
    """Return a picture of a page from one of its parts to another."""
    upper, lower = first.bounding_box(), last.bounding_box()
    top = max(upper["y"] - 8, 0)
    clip = {"x": 0, "y": top, "width": WIDTH, "height": lower["y"] + lower["height"] + 12 - top}
    return bytes(reader.page.screenshot(clip=clip))


@pytest.mark.slow
def test_the_overview_is_of_this_report(reader: Reader) -> None:
    reader.go("cells")
    header, table = reader.page.locator("header"), reader.page.locator(".grid")
    parts = [reader.page.locator("h1"), reader.page.locator(".causes"), table]
    kept("report-overview", text_of(parts), photographed(reader, header, table))


@pytest.mark.slow
def test_the_error_is_of_this_report(reader: Reader, release: str) -> None:
    reader.go(f"cell/{release}/{WRONG}")
    tensor = reader.page.locator("section.tensor").first
    # The worst element, marked on all sides.
    apart = tensor.locator("figure").last.locator("g.apart").all()
    max(apart, key=lambda each: float(each.locator("rect").last.get_attribute("fill-opacity"))).hover()
    reader.page.mouse.move(0, 0)
    assert tensor.locator("g.here").count() == 3
    heading, table = reader.page.locator("h1"), reader.page.locator("main .scroll").first
    kept("report-error", text_of([heading, table, tensor]), photographed(reader, heading, tensor))


@pytest.mark.slow
def test_the_operators_are_of_this_report(reader: Reader, release: str) -> None:
    reader.go(f"cell/{release}/{WRONG}")
    names = reader.page.locator("h3", has_text="delegate_0").first
    operator = reader.page.locator("section.operator").last
    kept("report-operators", text_of([operator]), photographed(reader, names, operator))


def as_html(screen: Any) -> str:
    """Return the content of a terminal as a page."""
    empty = [number for number, line in enumerate(screen.display) if not line.strip()]
    rows = []
    for number in range(screen.lines):
        # What is empty down to the keys, at the foot, is left out.
        if {number, number + 1} <= {*empty} and set(range(number, screen.lines - KEYS)) <= {*empty}:
            continue
        cells = [screen.buffer[number][column] for column in range(screen.columns)]
        rows.append("".join(starmap(_run, groupby(cells, _style))))
    style = "margin:0;padding:12px;background:#14171a;color:#e6e9ed;font:14px/1.3 monospace;width:max-content"
    return f'<body style="margin:0"><pre style="{style}">' + "\n".join(rows) + "</pre>"


def _style(cell: Any) -> str:
    colour, back = COLOURS[cell.fg], "#14171a"
    if cell.reverse:
        colour, back = back, colour
    return f"color:{colour};background:{back};padding:.16em 0;font-weight:{700 if cell.bold else 400}"


def _run(style: str, cells: Iterable[Any]) -> str:
    return f'<span style="{style}">{escape("".join(cell.data for cell in cells))}</span>'


def shown(terminal: Terminal) -> str:
    """Return the lines of a screen, without those that are empty and without the keys."""
    lines = [line.rstrip() for line in terminal.screen.display]
    return "".join(f"{line}\n" for line in lines[:-KEYS] if line)


@pytest.mark.slow
def test_the_review_in_a_terminal_is_of_this_review(
    ran: Runner,
    browser: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.delenv("CI", raising=False)
    # What is accepted is written into a copy.
    copy = Runner(tmp_path / "copy", ran.release)
    shutil.copytree(ran.goldens, copy.goldens)
    shutil.copytree(ran.sweeps.parent, copy.sweeps.parent)
    terminal = Terminal(copy)
    terminal.shows("1/2")
    terminal.shows("a accept cause")
    page = browser.new_page(device_scale_factor=1.5)
    page.set_content(as_html(terminal.screen))
    picture = page.locator("pre").screenshot()
    page.close()
    text = shown(terminal)
    for keys, words, then in ((f"r{REASON}\r", f"r {REASON}", "2/2"), ("a", "a", "write 3 goldens")):
        terminal.press(keys)
        terminal.shows(then)
        text += f"{words}\n{shown(terminal)}"
    terminal.press("y")
    assert terminal.ended() == 0
    ended = [line.rstrip() for line in terminal.screen.display]
    text += "y\n" + "".join(f"{line}\n" for line in ended if line.startswith(("recorded: ", "rejected: ")))
    kept("review-terminal", text, picture)
    # Without a next run it is known what was decided.
    capsys.readouterr()
    assert cli.main(["merge", "--markdown", f"--goldens={copy.goldens}", str(copy.sweeps.parent)]) == cli.SAME
    _, head, *causes = capsys.readouterr().out.splitlines()
    assert head == (
        "**Goldens: broken.** 3 accepted and 3 rejected in review; 1 cell as it should be, on 1 release."
    )
    assert causes[0].endswith(f"(rejected: {REASON})")
    assert "RewriteConvPass" not in "".join(causes)


def test_every_picture_has_its_text_and_its_place() -> None:
    pages = {
        page: page.read_text(encoding="utf-8")
        for page in (REPOSITORY / "README.md", *IMAGES.parent.glob("*.md"))
    }
    assert {path.name for path in IMAGES.iterdir()} == {
        f"{name}.{kind}" for name in NAMES for kind in ("png", "txt")
    }
    for name in NAMES:
        assert any(f"images/{name}.png" in text for text in pages.values()), name


def test_the_example_of_a_review_is_the_one_of_the_picture() -> None:
    example = (IMAGES / "review-terminal.txt").read_text(encoding="utf-8")
    assert f"```\n{example}```\n" in (REPOSITORY / "docs" / "review.md").read_text(encoding="utf-8")
