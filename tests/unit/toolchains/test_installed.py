"""What an environment has installed, asked of its Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from executorch_goldens.errors import UsageError
from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens.toolchains.installed import Installed


def test_no_file_of_the_folder_is_imported_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Installed.probe(default_interpreter()).versions
    monkeypatch.chdir(tmp_path)
    Installed.probe.cache_clear()
    for name in ("keyword", "token", "types", "json", "sysconfig"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('of the folder')")
    assert Installed.probe(default_interpreter()).versions == there


def test_what_a_python_says_that_cannot_be_run_is_shown(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho libpython3.11.so.1.0: cannot open shared object file >&2\nexit 127\n")
    python.chmod(0o755)
    with pytest.raises(UsageError) as raised:
        Installed.probe(python)
    why = "libpython3.11.so.1.0: cannot open shared object file"
    assert str(raised.value) == f"the toolchain {python} cannot be run:\n{why}"
    python.write_text("#!/bin/sh\nexit 3\n")
    Installed.probe.cache_clear()
    with pytest.raises(UsageError, match="cannot be run:\nit ended with 3"):
        Installed.probe(python)
