"""Runs a script as its reader will: in a process and a folder of its own, without the harness."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.exporting.limits import Idleness
from executorch_goldens.files.wording import in_seconds

#: Environment variables besides PATH: nothing of the harness, and no hash seed.
KEPT_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "TMPDIR")


#: Seconds between two looks at what a script has taken.
LOOKS = 0.2


class ScriptTimeoutError(Exception):
    """A script was still running when its time was over."""


@dataclass(frozen=True)
class EndedScript:
    """How a script ended.

    Attributes
    ----------
    code
        Exit code; the negative of a signal's number.
    printed
        Lines of standard output that say something.
    errors
        Standard error.
    """

    code: int
    printed: list[str]
    errors: str

    @property
    def last(self) -> str:
        """The last line printed, else the last of standard error, else the exit code."""
        return (self.printed or self.errors.strip().splitlines() or [f"exit code {self.code}"])[-1]


def run(text: str, interpreter: Path, limit: float, path: str = os.defpath) -> EndedScript:
    """Run a script of this text.

    Parameters
    ----------
    limit
        Seconds of processor time that it may take, and that it may be idle.
    path
        Where the script finds commands: PATH.

    Raises
    ------
    ScriptTimeoutError
        If it takes longer.
    """
    kept = {name: value for name, value in os.environ.items() if name in KEPT_ENVIRONMENT}
    with tempfile.TemporaryDirectory(prefix="goldens-alone-") as folder:
        Path(folder, "script.py").write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            [interpreter, "script.py"],
            cwd=folder,
            env={**kept, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, errors = _output(process, limit)
        finally:
            process.kill()
            process.wait()
    # The reference model warns on standard output, and at its end.
    printed = [line for line in output.splitlines() if line and not line.startswith("WARNING")]
    return EndedScript(process.returncode, printed, errors)


def _output(process: subprocess.Popen[str], limit: float) -> tuple[str, str]:
    """Wait for the end of `process`; return its output and its errors."""
    started, idleness = time.monotonic(), Idleness(process.pid)
    while True:
        try:
            return process.communicate(timeout=LOOKS)
        except subprocess.TimeoutExpired:
            idleness.look(2 * LOOKS)
            if max(idleness.used, idleness.idle) > limit:
                used, taken = in_seconds(idleness.used), in_seconds(time.monotonic() - started)
                raise ScriptTimeoutError(
                    f"still running after {used} of processor time and {taken} of wall time"
                ) from None
