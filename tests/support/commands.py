"""Commands in processes of their own, as a person calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import REPOSITORY
from tests.support.runner import DROPPED, RUN_LIMIT

#: The beginning of a command of this harness.
GOLDENS = (sys.executable, "-m", "executorch_goldens")


def inherited(*without: str) -> dict[str, str]:
    """Return the variables of this process, without `DROPPED` and those named."""
    return {name: value for name, value in os.environ.items() if name not in (*DROPPED, *without)}


def ended(
    command: Sequence[object],
    cwd: Path = REPOSITORY,
    env: Mapping[str, str] | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with the variables of `inherited` or with those of `env`, and with further ones."""
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**(inherited() if env is None else env), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_LIMIT,
    )
