"""Judges a program in another release's runtime, against its results in its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from executorch_goldens.artifact import Tensor
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens_plugins.field import running
from executorch_goldens_plugins.field.format import FrozenProgram, FrozenSample, FrozenTensor
from executorch_goldens_plugins.field.running import Ran
from lab.fielded.corpus import CRASHED, REFUSED, RIGHT, WHOLE, WRONG, Shipped

#: The bytes that it gave on its own release; other bytes, within the tolerance of what they should be. What is right on
#: no release, or not on this one, has the words of `lab.fielded.corpus`.
SAME, ROUNDING = "same", "within rounding"

#: Ending of `Outcome.text` where a program is not right on its own release.
_OWN = re.compile(rf"; ({WRONG}|{REFUSED}|{CRASHED}) on [^ ;]+$")

#: Parts that differ between runs or builds.
_PASSING = ((re.compile(r"0x[0-9a-fA-F]{6,}"), "0x…"), (re.compile(r"(/[\w.+@-]+)+/(?=[\w.+-]+)"), "…/"))
#: Characters of a reason that a line has.
SHOWN = 200


@dataclass(frozen=True)
class Outcome:
    """The result of a program.

    Attributes
    ----------
    kind
        `SAME`, `ROUNDING`, or ``wrong``, ``refused``, ``crashed``.
    reason
        The wrong outputs; the runtime's error; how the process died. Empty for the first two kinds.
    own
        The state of the program on its own release, one of `lab.fielded.corpus.OWN`.
    release
        That made it.
    furthest
        The largest distance of an output from that of its own release, as a part of its largest value.
    """

    kind: str
    reason: str
    own: str
    release: str
    furthest: float = 0.0

    @property
    def text(self) -> str:
        """The text of the golden."""
        reason = f": {self.reason}" if self.reason else ""
        return self.kind + reason + ("" if self.own == RIGHT else f"; {self.own} on {self.release}")


def is_clean(text: str) -> bool:
    """Return whether a program is right, by the line of a golden."""
    return text in (SAME, ROUNDING)


def is_break(text: str) -> bool:
    """Return whether a program is right in its own release and wrong here, by the line of a golden.

    >>> is_break("wrong: output 0"), is_break("wrong: output 0; wrong on 1.1.0")
    (True, False)
    """
    return not is_clean(text) and _OWN.search(text) is None


def judge(shipped: Shipped, ran: Sequence[Ran]) -> Outcome:
    """Return the outcome of shipped programs, given the result of each in `ran`."""
    kind, reason, furthest = _found(shipped, ran)
    return Outcome(kind, lasting(reason), shipped.own, shipped.release, furthest)


def _found(shipped: Shipped, ran: Sequence[Ran]) -> tuple[str, str, float]:
    runs: list[_Run] = []
    for program, each in zip(shipped.programs, ran, strict=True):
        if each.stopped == running.REFUSED:
            return REFUSED, each.reason, 0.0
        if each.stopped:
            return CRASHED, f"{each.reason} on {program.samples[len(each.outputs)].name}", 0.0
        runs += [
            _Run(program, sample, _tensors(sample.outputs), _tensors(outputs))
            for sample, outputs in zip(program.samples, each.outputs, strict=True)
        ]
    wrong = list(dict.fromkeys(words for run in runs for words in run.wrong()))
    is_same = all(run.before == run.after for run in runs)
    # It may be wrong in what is between its payloads, which run nowhere here.
    if shipped.own == WRONG and not wrong and is_same:
        return WRONG, "the same bytes as there", 0.0
    if wrong:
        return WRONG, ", ".join(wrong), 0.0
    if is_same:
        return SAME, "", 0.0
    return ROUNDING, "", max(run.furthest() for run in runs)


@dataclass(frozen=True)
class _Run:
    """Outputs of a program for a sample, on its own release and later, in dtypes that numpy has."""

    program: FrozenProgram
    sample: FrozenSample
    before: tuple[Tensor, ...]
    after: tuple[Tensor, ...]

    def wrong(self) -> Iterator[str]:
        """Yield which outputs are beyond their tolerance.

        On which samples is left out: a kernel that reads memory that nobody wrote is wrong now on these, now on those.
        """
        of = "" if self.program.name == WHOLE else f" of {self.program.name}"
        if self.before and len(self.before) != len(self.after):
            yield f"{len(self.after)} outputs{of} where there were {len(self.before)}"
            return
        expected = _tensors(self.sample.expected)
        for index, (one, other) in enumerate(zip(expected, self.after, strict=False)):
            if Deviation(one, other, self.sample.tolerance(index)).exceeds_tolerance():
                yield f"output {index}{of}"

    def furthest(self) -> float:
        """Return how far any output is from that of its own release, or from the expected one where there was none."""
        found = [0.0]
        for before, after in zip(self.before or _tensors(self.sample.expected), self.after, strict=False):
            largest = np.abs(before.wide()[np.isfinite(before.wide())]).max(initial=0.0)
            furthest = Deviation(before, after).differences().max(initial=0.0)
            found.append(float(furthest / largest) if largest else float(furthest))
        return max(found)


def _tensors(values: Sequence[FrozenTensor]) -> tuple[Tensor, ...]:
    return tuple(value.tensor() for value in values)


def lasting(reason: str) -> str:
    """Return a reason without parts that differ between runs, cut to the length of a line.

    >>> lasting("RuntimeError: no; at 0x7fffdeadbeef in /home/me/x.cpp")
    'RuntimeError: no; at 0x… in …/x.cpp'
    """
    for pattern, replacement in _PASSING:
        reason = pattern.sub(replacement, reason)
    return reason if len(reason) <= SHOWN else f"{reason[: SHOWN - 1]}…"
