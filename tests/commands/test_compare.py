"""Reports of ``compare`` and ``run -t``: drawn by a Python with the drawing packages, which no toolchain has."""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NoReturn

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import ERROR, main
from executorch_goldens.commands import run
from executorch_goldens.commands.compare import changes_nothing, passes, traced
from executorch_goldens.running import reporting
from tests import REPOSITORY


def test_a_report_that_cannot_be_drawn_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(reporting.PYTHON, "/no/such/python")
    words = ["compare", "no-toolchain", "1.5.1", "--html", str(tmp_path / "report.html")]
    assert main(words) == ERROR
    assert "--html: /no/such/python cannot draw one" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_report_of_a_run_in_a_toolchain_is_drawn_by_the_python_that_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "other")
    (there,) = (tmp_path / "other").glob("lib/python*/site-packages")
    (there / "ours.pth").write_text(sysconfig.get_path("purelib"))

    def handed(python: Path, words: list[str], environment: dict[str, str]) -> NoReturn:
        raise InterruptedError(environment[reporting.PYTHON])

    monkeypatch.setattr(os, "execve", handed)
    monkeypatch.delenv(reporting.PYTHON, raising=False)
    with pytest.raises(InterruptedError, match=sys.executable):
        run.run(
            argparse.Namespace(
                toolchain=str(tmp_path / "other/bin/python"), models=None, forwarded=["--report=r.html"]
            )
        )


def test_a_misspelt_pass_is_named_with_those_that_goldens_name(tmp_path: Path) -> None:
    trace = tmp_path / "tosa-fp/linear/trace.txt"
    trace.parent.mkdir(parents=True)
    trace.write_text("arm backend: RewriteConvPass 8de5cde57d92\n")
    # A cell without a trace might have any pass.
    cells = frozenset({Cell("tosa-fp", "linear"), Cell("tosa-fp", "loop")})
    assert traced("RewriteConvPas", cells, tmp_path) == (frozenset({Cell("tosa-fp", "loop")}), frozenset())
    error = changes_nothing("RewriteConvPas", passes(cells, tmp_path))
    assert str(error).endswith("no cell that was chosen; near: RewriteConvPass")


def test_a_pass_that_a_cell_fails_in_chooses_it() -> None:
    # The trace of its golden ends before the pass.
    cell = frozenset({Cell("xnnpack-fp32", "resnet8")})
    assert traced("FuseBatchNormPass", cell, REPOSITORY / "goldens" / "1.4.1") == (cell, cell)
