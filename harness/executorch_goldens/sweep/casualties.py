"""Why an export, or a template, did not finish: from its exit status and its log."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Casualty, Killed, OfHarness, OutOfMemory, TimedOut, died
from executorch_goldens.files import shortage
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.messages import Ended
from executorch_goldens.sweep.spool import whole
from executorch_goldens.sweep.worker import OUT_OF_MEMORY, OWN_ERROR

#: Errors of an incomplete environment.
LACKING = ("ModuleNotFoundError", "ImportError", "PackageNotFoundError")

#: Bytes that there must be room for where a child's log is empty: a full disk is why it says nothing.
LOG_BYTES = 1 << 16

#: Lines of a dead child's output that are shown.
LOG_LINES = 15
#: Line of a traceback with a file and a line of it.
RAISED_IN = re.compile(r'  File "(.*)", line (\d+)')
#: Heading of an export's current calls (`faulthandler.register`).
PLACE = "Stack (most recent call first):"


def casualty(ended: Ended, settings: Settings, log: Path, result: io.FileIO) -> Casualty:
    """Return why an export did not finish; raise OSError where the disk was too full for it to say why."""
    if ended.timed_out:
        taken = (ended.core_seconds, ended.seconds, ended.idle)
        return TimedOut(settings.limit, *taken, tail=last_words_and_calls(log))
    tail = last_lines(log)
    # C++ that is given no memory and does not catch it ends its process; any program may say so in another's name.
    died_of_it = settings.memory is not None and ended.status < 0 and shortage.MEMORY.search("\n".join(tail))
    if ended.status == OUT_OF_MEMORY or died_of_it:
        return OutOfMemory(settings.memory, tail=tail)
    return of_harness(log, result) if ended.status == OWN_ERROR else died(ended.status, tail=tail)


def of_harness(log: Path, result: io.FileIO) -> OfHarness:
    """Return the error of the harness's own that a child left in the place of its artifact, with its log."""
    lines = all_lines(log)
    if not lines:
        require_room(log)
    try:
        found = msgspec.msgpack.decode(whole(result.fileno()), type=OfHarness)
    except ValueError:
        found = OfHarness()
    # The last line is the first one shown.
    return msgspec.structs.replace(found, tail=_shown(lines[:-1]), log="\n".join((*lines, "")))


def last_word(log: Path) -> str:
    """Return the last line of a child's log; raise OSError where the disk was too full for one."""
    if lines := all_lines(log):
        return lines[-1]
    require_room(log)
    return "it ended before it could say why"


def not_started(interpreter: Path, status: int, lines: str) -> str:
    r"""Return the message for a template that died before it was ready; `lines` are the last of its log.

    >>> print(not_started(Path("python"), 1, "Traceback:\nModuleNotFoundError: No module named 'torch'"))
    python lacks something (ModuleNotFoundError: No module named 'torch'): make its environment again, and run again
    """
    last = lines.rpartition("\n")[2]
    if any(f"{name}: " in last for name in LACKING):
        return f"{interpreter} lacks something ({last}): make its environment again, and run again"
    ended = died(status)
    how = f"killed by {ended.signal}" if isinstance(ended, Killed) else f"exit status {ended.status}"
    return f"{interpreter} could not start exporting ({how}):\n{lines}"


def last_lines(log: Path) -> tuple[str, ...]:
    """Return the end of a log, empty if there is none."""
    return _shown(all_lines(log))


def raised(log: Path) -> str:
    """Return the exception that a log ends with in one line, with the place that raised it; else its last lines."""
    lines = all_lines(log)
    places = [found for line in lines if (found := RAISED_IN.match(line))]
    return f"{places[-1][1]}, line {places[-1][2]}: {lines[-1]}" if places else "\n".join(_shown(lines))


def last_words_and_calls(log: Path) -> tuple[str, ...]:
    """Return the last words of an export that was ended at its limit, and the innermost calls that it was in."""
    lines = all_lines(log)
    place = next((number for number, line in enumerate(lines) if line == PLACE), len(lines))
    # A call a line follows.
    return (*lines[:place][-LOG_LINES:], *lines[place + 1 :][:LOG_LINES])


def all_lines(log: Path) -> list[str]:
    """Return the lines of a log without empty ones at its end, none if there is none."""
    try:
        return log.read_text(errors="replace").rstrip().splitlines()
    except FileNotFoundError:
        return []


def _shown(lines: list[str]) -> tuple[str, ...]:
    return tuple(lines[-LOG_LINES:])


def require_room(log: Path) -> None:
    """Raise OSError where nothing can be written to a log: its child could not say so."""
    try:
        with log.open("ab") as file:
            file.write(bytes(LOG_BYTES))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(log)) from error
