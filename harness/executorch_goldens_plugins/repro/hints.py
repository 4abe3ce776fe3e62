"""The command that a failing cell proposes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from executorch_goldens.files import invocation
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.plugins import Hint
from executorch_goldens.zoo import targets


def hint(judged: Verdict, release: str, called: Sequence[str]) -> Hint | None:
    """Return the command that writes a script, with the toolchain that exported where that is no published release."""
    # A build is a script already.
    if judged.name != "corrupt" or judged.cell.target == targets.BUILD:
        return None
    named = invocation.value(called, "-t", "--toolchain")
    words = ["goldens", "repro", release, str(judged.cell)]
    command = shlex.join([*words, *(("-t", named) if named not in (None, release) else ())])
    return Hint("repro", command, f"if it is a defect: {command} writes a script for an issue")
