"""What came of a program in a runtime that did not make it, against what it gave on its own release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.fielded.corpus import CRASHED, REFUSED, RIGHT, WRONG, Program, Ran, Run
from harness.fielded.driving import Ended
from harness.fielded.running import MARK
from harness.judging.deviation import Deviation
from harness.targets import RUNTIME

#: The bytes that it gave on its own release; other bytes, within the tolerance of what they should be. What is right on
#: no release, or not on this one, has the words of `harness.fielded.corpus`.
SAME, ROUNDING = "same", "within rounding"

#: What `Outcome.text` ends with where a program is not right on its own release.
_OWN = re.compile(rf"; ({WRONG}|{REFUSED}|{CRASHED}) on [^ ;]+$")

#: A message of the runtime (ExecuTorch, runtime/platform/log.cpp): file and line before the words. What it says of the
#: processor is no error. One of the reference model (tosa-tools 2026.2.1) begins as an error.
_MESSAGE = re.compile(r"^(?:\[(?!cpuinfo_utils)[\w.]+:\d+\]|ERROR:) (?P<words>.*)$", re.MULTILINE)
#: What differs from run to run, or from build to build.
_PASSING = ((re.compile(r"0x[0-9a-fA-F]{6,}"), "0x…"), (re.compile(r"(/[\w.+@-]+)+/(?=[\w.+-]+)"), "…/"))
#: Characters of a reason that a line has.
SHOWN = 200


@dataclass(frozen=True)
class Outcome:
    """What came of a program.

    Attributes
    ----------
    kind
        `SAME`, `ROUNDING`, or ``wrong``, ``refused``, ``crashed``.
    reason
        Which outputs are wrong; the runtime's error; how the process died. Empty for the first two kinds.
    own
        What the program did on its own release, one of `harness.fielded.corpus.OWN`.
    release
        That made it.
    furthest
        How far an output is from that of its own release, at most, as a part of its largest value.
    """

    kind: str
    reason: str
    own: str
    release: str
    furthest: float = 0.0

    @property
    def text(self) -> str:
        """What a golden says."""
        reason = f": {self.reason}" if self.reason else ""
        return self.kind + reason + ("" if self.own == RIGHT else f"; {self.own} on {self.release}")


def is_clean(text: str) -> bool:
    """Whether a program is right, by the line of a golden."""
    return text in (SAME, ROUNDING)


def is_break(text: str) -> bool:
    """Whether a program that is right on its own release is not, by the line of a golden.

    >>> is_break("wrong: output 0"), is_break("wrong: output 0; wrong on 1.1.0")
    (True, False)
    """
    return not is_clean(text) and _OWN.search(text) is None


def judge(program: Program, ended: Ended) -> Outcome:
    """Return what came of a program."""
    kind, reason, furthest = _found(program, ended)
    return Outcome(kind, reason, program.own, program.release, furthest)


def _found(program: Program, ended: Ended) -> tuple[str, str, float]:
    if ended.casualty:
        return CRASHED, ended.casualty, 0.0
    pairs = list(zip(program.runs, ended.ran, strict=True))
    for run, ran in pairs:
        if ran.error is not None:
            return REFUSED, refusal(ran.error, ended.log.partition(f"{MARK}{run.name}\n")[2]), 0.0
    wrong = list(dict.fromkeys(words for run, ran in pairs for words in _wrong(program, run, ran)))
    # It may be wrong in what stands between its payloads, which run nowhere here.
    if program.own == WRONG and not wrong and all(run.outputs == ran.outputs for run, ran in pairs):
        return WRONG, "the same bytes as there", 0.0
    if wrong:
        return WRONG, ", ".join(wrong), 0.0
    if all(run.outputs == ran.outputs for run, ran in pairs):
        return SAME, "", 0.0
    return ROUNDING, "", max(_furthest(run, ran) for run, ran in pairs)


def _wrong(program: Program, run: Run, ran: Ran) -> Iterator[str]:
    """Yield which outputs are beyond their tolerance.

    On which samples is left out: a kernel that reads memory that nobody wrote is wrong now on these, now on those.
    """
    of = "" if program.runs_in == RUNTIME else f" of payload {run.binary}"
    if run.outputs is not None and len(run.outputs) != len(ran.outputs):
        yield f"{len(ran.outputs)} outputs{of} where there were {len(run.outputs)}"
        return
    for index, (expected, tolerance, actual) in enumerate(
        zip(run.expected, run.tolerances, ran.outputs, strict=False)
    ):
        if Deviation("", expected, actual, tolerance.array().astype(np.float64)).exceeds_tolerance():
            yield f"output {index}{of}"


def _furthest(run: Run, ran: Ran) -> float:
    """Return how far any output is from that of its own release, or where there was none, from what it should be."""
    found = [0.0]
    for before, after in zip(run.outputs or run.expected, ran.outputs, strict=False):
        largest = np.abs(before.wide()[np.isfinite(before.wide())]).max(initial=0.0)
        furthest = Deviation("", before, after).differences().max(initial=0.0)
        found.append(float(furthest / largest) if largest else float(furthest))
    return max(found)


def refusal(error: str, log: str) -> str:
    """Return why a runtime refused a program: its error, and the first that it logged of that run.

    >>> refusal("RuntimeError: loading failed with error 0x23", "[program.cpp:30] too short")
    'RuntimeError: loading failed with error 0x23; too short'
    """
    words = [" ".join(error.split())]
    if (logged := _MESSAGE.search(log)) is not None:
        words.append(" ".join(logged["words"].split()))
    reason = "; ".join(words)
    for pattern, replacement in _PASSING:
        reason = pattern.sub(replacement, reason)
    return reason if len(reason) <= SHOWN else f"{reason[: SHOWN - 1]}…"
