"""Writes the report of a finished run, by a Python with the extra `report`: no release's environment has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from executorch_goldens.errors import UsageError
from executorch_goldens.toolchains.handing import MAIN
from executorch_goldens.workers.worker import with_harness

#: Names the Python of the environment that the report is written in; by default it is this one.
PYTHON = "EXECUTORCH_GOLDENS_REPORT_PYTHON"


def require(file: Path) -> None:
    """Raise UsageError unless a report can be written to `file` when the run has ended."""
    if not file.absolute().parent.is_dir():
        raise UsageError(
            f"--html {file}: there is no folder {file.parent}: make it, or name a file elsewhere"
        )
    try:
        found = subprocess.run([_python(), "-c", "import markdown_it"], capture_output=True, check=False)
        why = found.stderr.decode(errors="replace").strip().splitlines()[-1:]
    except OSError as error:
        why = [str(error)]
    if why:
        raise UsageError(
            f"--html: {_python()} cannot draw one ({why[0]}): install 'executorch-goldens[report]' there, name "
            f"another Python in {PYTHON}, or run nox -s goldens, which has one"
        )


def write(file: Path, results: Path, goldens: Path) -> tuple[bool, str]:
    """Write the report of the results in a folder; return whether that succeeded, and the message."""
    command = [*with_harness(Path(_python()), MAIN), "report", str(results), f"--goldens={goldens}"]
    done = subprocess.run([*command, f"--html={file}"], capture_output=True, text=True, check=False)
    said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return done.returncode == 0, f"report: {said[-1] if said else file}"


def _python() -> str:
    return os.environ.get(PYTHON) or sys.executable
