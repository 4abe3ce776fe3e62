"""The Python of an environment: the wheels say which it may be, and this one is taken first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from executorch_goldens.toolchains import interpreters, locking
from executorch_goldens.toolchains.interpreters import FILE, Interpreter, chosen, own, with_wheels


def test_locks_together_are_for_the_pythons_that_each_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "FOLDER", tmp_path)
    (tmp_path / FILE).write_text('"1.1.0" = ["3.9", "3.10", "3.11"]\nexplore = ["3.10", "3.12", "3.11"]\n')
    assert with_wheels(("1.1.0", "explore", "build")) == ("3.11", "3.10")
    assert with_wheels(("build",)) == (own(),)


def test_this_python_is_taken_else_a_made_one_else_one_that_is_found_else_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = own()
    assert chosen(("9.9", here)) == Interpreter(here, sys.executable)
    monkeypatch.setattr(interpreters, "own", lambda: "3.99")
    assert chosen(("9.9", "9.8", here), lambda version: version == "9.8") == Interpreter("9.8", "9.8")
    found = chosen(("9.9", here))
    code = "import sys; print(*sys.version_info[:2], sep='.')"
    printed = subprocess.run([found.request, "-c", code], capture_output=True, text=True, check=True).stdout
    assert (found.version, printed.strip()) == (here, here)
    assert chosen(("9.9", "9.8")) == Interpreter("9.9", "9.9")
