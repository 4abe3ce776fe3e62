"""The sentences about exports that did not finish, and about processes that died."""

from __future__ import annotations

from executorch_goldens.artifact import (
    HUNG,
    Casualty,
    DeadProcess,
    Exited,
    Killed,
    OfHarness,
    OutOfMemory,
    Overwritten,
    Shortage,
    TimedOut,
)
from executorch_goldens.files.wording import in_seconds


def reason(casualty: Casualty) -> str:
    """Return why an export did not finish, in one line.

    >>> reason(Killed("SIGSEGV")), reason(Killed("40")), reason(Exited(3))
    ('killed by SIGSEGV', 'killed by signal 40', 'exit status 3')
    >>> reason(Shortage("one.example"))
    'ended for lack of memory or disk on one.example'
    """
    match casualty:
        case Killed(signal=name):
            return f"{_of_template(casualty)}killed by {f'signal {name}' if name.isdecimal() else name}"
        case Exited(status=status):
            return f"{_of_template(casualty)}exit status {status}"
        case TimedOut():
            return _no_end(casualty)
        case OutOfMemory(limit=limit):
            return _memory(limit)
        case OfHarness(error=""):
            return "the harness itself failed: it ended before it could say why"
        case OfHarness(stage=stage, error=error, where=where):
            return (
                f"the harness itself failed (stage {stage}): {error} ({where}). "
                "This says nothing about the program: please report it as a defect of the harness"
            )
        case Overwritten(error=error):
            return (
                f"something in its process wrote to the file for its result, which it did not open ({error})"
            )
        case Shortage(node=node):
            return f"ended for lack of memory or disk on {node}"
    raise TypeError(type(casualty).__name__)


def _of_template(died: DeadProcess) -> str:
    """Return the words before how a template died, empty where it was the child."""
    if not died.template:
        return ""
    silent = f", silent for {died.silent:g} s" if died.template == HUNG else ""
    return f"the process that starts its exports (the template) {died.template}{silent}, and a second one as well: "


def _no_end(found: TimedOut) -> str:
    processor, wall, idle = map(in_seconds, (found.processor, found.wall, found.idle))
    taken = f"{processor} of processor time and {wall} of wall time, the last {idle} of it idle"
    return f"no end after {taken}; the limit is {found.limit:g} s of either (export-timeout)"


def _memory(limit: int | None) -> str:
    if limit is None:
        return "the machine has no more memory for it"
    shown = f"{limit / 2**20:,.0f} MiB" if limit >= 2**20 else f"{limit} bytes"
    return f"it needs more than {shown} of data (export-memory)"
