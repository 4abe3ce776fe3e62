"""The pictures of README.md and docs/: each is of a run over an edited release, and has its text beside it.

Two lines of two passes are edited in a copy of the release that is installed, cells are run, and what a report
shows of them is photographed. Pixels differ between machines, so the text of a picture is compared, with the file
of its name that ends in ``.txt``. New pictures and texts are in ``build/pictures``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens import cli
from tests import REPOSITORY
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
NAMES = ("report-overview", "report-error", "report-operators")
#: Pixels of a page with three heat maps side by side.
WIDTH = 1040


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
