"""Effects of each correction on the script of its finding, in the installed release."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.patches import PATCHES
from lab.stock.issues import CORRECTED
from tests import REPOSITORY

#: Some twenty exports.
pytestmark = pytest.mark.slow

RELEASE = version("executorch").partition("+")[0]
#: The findings that a correction is for, on the installed release.
SHOWN = tuple(name for name in CORRECTED if RELEASE in PATCHES[name].fits)
JOBS = REPOSITORY / "tests" / "exports" / "patches" / "exports.py"
CODE = "import runpy, sys, lab.corrections; runpy.run_path(sys.argv.pop(1), run_name='__main__')"


@cache
def results() -> dict[str, Any]:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "3",
        "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY / "harness", REPOSITORY))),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    jobs = [f"{kind}/{name}" for name in SHOWN for kind in ("finding", "other_source")] + [
        f"finding/{name}:{name}" for name in SHOWN
    ]
    command = [sys.executable, "-c", CODE, str(JOBS), *jobs]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    return dict(json.loads(line.removeprefix("RESULT ")) for line in lines)


@pytest.mark.parametrize("name", SHOWN)
def test_a_finding_shows_without_its_correction(name: str) -> None:
    assert results()[f"finding/{name}"]["code"] == 1


@pytest.mark.parametrize("name", SHOWN)
def test_a_finding_does_not_show_with_its_correction(name: str) -> None:
    corrected = results()[f"finding/{name}:{name}"]
    assert corrected.get("code") == 0, corrected
    assert corrected["printed"]


@pytest.mark.parametrize("name", SHOWN)
def test_a_correction_is_refused_for_another_source(name: str) -> None:
    answer = results()[f"other_source/{name}"]
    assert f"patch {name!r} was not written for this source of {answer['function']}" in answer["refused"]
