"""Sources of another checkout, for exports on another machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.portable import command as portable


def test_another_checkout_has_the_harness_and_the_zoo_and_imports_both(tmp_path: Path) -> None:
    portable.copy_sources(["models"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["executorch_goldens", "models"]
    code = (
        "import json, executorch_goldens.sweep.worker as worker, models\n"
        "print(json.dumps([worker.__file__, models.__file__]))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    printed = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, cwd=tmp_path, capture_output=True, check=True
    ).stdout
    assert json.loads(printed) == [
        str(tmp_path / "executorch_goldens" / "sweep" / "worker.py"),
        str(tmp_path / "models" / "__init__.py"),
    ]


def test_a_zoo_of_another_repository_is_copied_whole_and_a_module_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    (repository / "firmware" / "zoo").mkdir(parents=True)
    for name in ("firmware/__init__.py", "firmware/weights.bin", "firmware/zoo/__init__.py", "lone.py"):
        (repository / name).touch()
    monkeypatch.syspath_prepend(repository)
    portable.copy_sources(["firmware.zoo", "firmware.weights", "lone"], tmp_path / "copy")
    copied = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")}
    assert {name for name in copied if not name.startswith("executorch_goldens")} == {
        *(
            "firmware",
            "firmware/__init__.py",
            "firmware/weights.bin",
            "firmware/zoo",
            "firmware/zoo/__init__.py",
        ),
        "lone.py",
    }
