"""The reference model finds no debugger."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.patches.shortcuts import SHORTCUTS


def test_the_reference_model_finds_no_debugger_and_lowering_finds_flatc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tosa_reference_model

    seen: list[str | None] = []

    def run(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        seen.append(shutil.which("gdb"))
        raise ValueError("refused")

    (tmp_path / "gdb").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    before = os.environ["PATH"]
    monkeypatch.setattr(tosa_reference_model, "run", run)
    assert shutil.which("gdb") is not None
    SHORTCUTS["no-debugger"].install()
    with pytest.raises(ValueError, match="refused"):
        tosa_reference_model.run(b"")
    assert seen == [None]
    assert os.environ["PATH"] == before
