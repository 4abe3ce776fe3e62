"""Judges programs whose outputs rounding moves far: by their operators, and by all outputs together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from executorch_goldens.artifact import IMPRECISE, Lowered
from executorch_goldens.numerics.tolerances import MARGIN

#: A mean difference of less than this part of a code says nothing.
LEAST_SHIFT = 0.5


def judged_otherwise(lowered: Lowered) -> bool:
    """Return whether each operator of a quantized program was found correct, given its actual inputs.

    What its outputs may be off by then says nothing against it: rounding to codes adds up, and decides what comes out.
    """
    inside = lowered.inside
    return bool(lowered.scales) and inside is not None and not inside.unseen and lowered.begins is None


def is_far_moved(lowered: Lowered, index: int) -> bool:
    """Return whether rounding alone moves some output so far that a comparison checks little."""
    return any(lowered.imprecision(sample, index) > IMPRECISE for sample in lowered.samples)


def unexplained(lowered: Lowered) -> Iterator[str]:
    """Yield outputs whose differences as a whole are not those of rounding, although it moves single ones far.

    Rounding moves elements up and down: over the elements of all samples the mean of the differences is no more than
    what the runs were moved by that showed how far rounding goes.
    """
    if not lowered.scales:
        return
    for index in range(max((len(sample.shifts) for sample in lowered.samples), default=0)):
        pairs = [
            (sample.outputs[index], sample.expected[index], sample.shifts[index])
            for sample in lowered.samples
            if len(sample.outputs) == len(sample.expected)
            and sample.outputs[index].shape == sample.expected[index].shape
            and not sample.expected[index].dtype.startswith("complex")
        ]
        if not pairs or not is_far_moved(lowered, index):
            continue
        differences = np.concatenate([(one.wide() - other.wide()).ravel() for one, other, _ in pairs])
        differences = differences[np.isfinite(differences)]
        mean = float(differences.mean()) if differences.size else 0.0
        shifted = math.sqrt(sum(shift**2 for *_, shift in pairs) / len(pairs))
        code = lowered.scales[index] if index < len(lowered.scales) else 0.0
        allowed = max(MARGIN * shifted, LEAST_SHIFT * code)
        if abs(mean) > allowed:
            yield (
                f"output {index} differs by {mean:.4g} on average over all samples, and rounding explains "
                f"{allowed:.4g}: differences that rounding makes go both ways"
            )
