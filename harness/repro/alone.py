"""Runs a script as its reader will: in a process and a folder of its own, without the harness."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

#: What it is run with in addition to a PATH: nothing of the harness, and no hash seed.
KEPT_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "TMPDIR")


class EndlessError(Exception):
    """A script was still running when its time was over."""


@dataclass(frozen=True)
class Ended:
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


def run(text: str, interpreter: Path, limit: float, path: str = os.defpath) -> Ended:
    """Run a script of this text.

    Parameters
    ----------
    limit
        Seconds that it may take.
    path
        Where the script finds commands: PATH.

    Raises
    ------
    EndlessError
        If it takes longer.
    """
    kept = {name: value for name, value in os.environ.items() if name in KEPT_ENVIRONMENT}
    with tempfile.TemporaryDirectory(prefix="goldens-alone-") as folder:
        Path(folder, "script.py").write_text(text, encoding="utf-8")
        try:
            ended = subprocess.run(
                [interpreter, "script.py"],
                cwd=folder,
                env={**kept, "PATH": path},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EndlessError(f"still running after {limit:g} s") from error
    # The reference model warns on standard output, and at its end.
    printed = [line for line in ended.stdout.splitlines() if line and not line.startswith("WARNING")]
    return Ended(ended.returncode, printed, ended.stderr)
