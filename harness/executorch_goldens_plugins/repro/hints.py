"""The command that a failing cell proposes."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence

from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.plugins import Hint
from executorch_goldens.zoo import targets


def hint(judged: Verdict, release: str, called: Sequence[str]) -> Hint | None:
    """Return the command that writes a script, with the toolchain that exported where that is no published release."""
    # A build is a script already.
    if judged.name != "corrupt" or judged.cell.target == targets.BUILD:
        return None
    named = value(called, "-t", "--toolchain")
    words = ["goldens", "repro", release, str(judged.cell)]
    command = shlex.join([*words, *(("-t", named) if named not in (None, release) else ())])
    return Hint("repro", command, f"if it is a defect: {command} writes a script for an issue")


def value(called: Sequence[str], *names: str) -> str | None:
    """Return the last value that words of a command line give an option, by any of its names; None for none.

    >>> value(["run", "-t", "1.4.1", "--toolchain=1.5.1 + ../x"], "-t", "--toolchain"), value(["run"], "-t")
    ('1.5.1 + ../x', None)
    """
    found = None
    for word, following in itertools.zip_longest(called, called[1:]):
        name, _, said = word.partition("=")
        if name in names:
            found = said or following
        elif short := next((each for each in names if len(each) == 2 and word.startswith(each)), ""):
            found = word.removeprefix(short)
    return found
