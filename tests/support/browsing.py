"""A report in a real browser: the Chromium that is installed, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import REPOSITORY

SCREENSHOTS = REPOSITORY / "build" / "screenshots"
#: Names that Debian, Fedora, Arch and Google give the browser.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api", reason="no Playwright: nox -s tests has it")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no {' or '.join(BROWSERS)} on the PATH: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        # Root, as in a container, has no sandbox.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        launched = playwright.chromium.launch(executable_path=found, args=arguments)
        yield launched
        launched.close()


class Reader:
    """A tab that shows a report, and records its requests and errors."""

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.file = file
        self.page.goto(file.as_uri())
        self.at("cells")

    def at(self, address: str) -> None:
        """Wait until the view of an address is shown."""
        self.page.wait_for_selector(f"html[data-shown='{address}']")

    def go(self, address: str) -> None:
        self.page.evaluate("address => { location.hash = '#' + address; }", address)
        self.at(address)

    def heading(self) -> str:
        return str(self.page.locator("h1").inner_text())

    def counted(self) -> str:
        """Return the text above the grid."""
        return str(self.page.locator("#count").inner_text())

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_text_contents()]

    def shot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def close(self) -> None:
        """Assert that nothing but the file was asked for, and nothing complained of."""
        self.context.close()
        assert self.requests == [self.file.as_uri()]
        assert self.complaints == []
