"""Compares a program's new outputs with its frozen ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.words.findings import deviated
from executorch_goldens_plugins.field.format import DEVICE, FrozenProgram, FrozenSample, FrozenTensor
from executorch_goldens_plugins.field.running import Ran

#: Results of a program, beside `executorch_goldens_plugins.field.running.REFUSED`, ``CRASHED`` and ``TIMED_OUT``.
SAME, ROUNDING, WRONG, KEPT = "same", "within rounding", "wrong", "kept"
#: Results that are right.
RIGHT = frozenset((SAME, ROUNDING, KEPT))


@dataclass(frozen=True)
class Result:
    """The result of a frozen program.

    Attributes
    ----------
    word
        ``same``: every output has the bytes that were frozen. ``within rounding``: some differ, by no more than the
        tolerance that was frozen. ``wrong``: some differ by more. ``kept``: only the device that it is for runs it.
        ``refused``, ``crashed``, ``timed-out``: the runtime did not run it to its end.
    reason
        A line; empty for ``same``.
    samples
        Name of each sample that it was run on, and which of the first three.
    seconds
        Seconds that its process took.
    """

    word: str
    reason: str
    samples: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def is_right(self) -> bool:
        return self.word in RIGHT


def kept(program: FrozenProgram) -> Result:
    """Return the result of a program that no interpreter runs."""
    assert program.engine == DEVICE
    return Result(KEPT, f"needs a runtime with {', '.join(program.backends) or 'its delegates'}", (), 0.0)


def compare(program: FrozenProgram, ran: Ran) -> Result:
    """Compare a program's outputs with the frozen ones."""
    found = [
        of_sample(sample, outputs) for sample, outputs in zip(program.samples, ran.outputs, strict=False)
    ]
    samples = tuple((sample.name, word) for sample, (word, _) in zip(program.samples, found, strict=False))
    if ran.stopped:
        after = f" after {len(found)} of {len(program.samples)} samples" if found else ""
        return Result(ran.stopped, f"{ran.reason}{after}", samples, ran.seconds)
    for worst in (WRONG, ROUNDING):
        for sample, (word, reason) in zip(program.samples, found, strict=True):
            if word == worst:
                return Result(word, f"sample {sample.name}: {reason}", samples, ran.seconds)
    return Result(SAME, "", samples, ran.seconds)


def of_sample(sample: FrozenSample, outputs: Sequence[FrozenTensor]) -> tuple[str, str]:
    """Return ``same``, ``within rounding`` or ``wrong``, and the differences, for a program's outputs on a sample."""
    if len(outputs) != len(sample.outputs):
        return WRONG, f"{len(outputs)} outputs where {len(sample.outputs)} were frozen"
    if [_facts(value) for value in outputs] == [_facts(value) for value in sample.outputs]:
        return SAME, ""
    for index, given in enumerate(outputs):
        frozen = sample.outputs[index]
        if (given.dtype, given.shape) != (frozen.dtype, frozen.shape):
            return WRONG, (
                f"output {index} is {given.dtype}{list(given.shape)} where "
                f"{frozen.dtype}{list(frozen.shape)} was frozen"
            )
    wrong = [line for index, given in enumerate(outputs) for line in _beyond(sample, index, given)]
    if wrong:
        return WRONG, wrong[0]
    differing = sum(_facts(one) != _facts(other) for one, other in zip(outputs, sample.outputs, strict=True))
    return ROUNDING, f"{differing} of {len(outputs)} outputs differ from the bytes that were frozen"


def _facts(value: FrozenTensor) -> tuple[str, tuple[int, ...], bytes]:
    return value.dtype, tuple(value.shape), value.data


def _beyond(sample: FrozenSample, index: int, given: FrozenTensor) -> Iterator[str]:
    """Yield how an output is beyond its tolerance; nothing where it is within."""
    expected = sample.expected[index].tensor()
    deviation = Deviation(expected, given.tensor(), sample.tolerance(index))
    if deviation.exceeds_tolerance():
        yield from deviated(f"output {index}", deviation.measured())
