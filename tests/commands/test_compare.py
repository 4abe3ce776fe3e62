"""``compare --html``: the report is drawn by a Python with the drawing packages, which no toolchain has."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.cli import ERROR, main
from executorch_goldens.running import reporting


def test_a_report_that_cannot_be_drawn_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(reporting.PYTHON, "/no/such/python")
    words = ["compare", "no-toolchain", "1.5.1", "--html", str(tmp_path / "report.html")]
    assert main(words) == ERROR
    assert "--html: /no/such/python cannot draw one" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
