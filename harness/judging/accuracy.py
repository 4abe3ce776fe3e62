"""How near a program is to eager, and how near it had to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.artifact import Lowered
from harness.judging.deviation import Deviation


@dataclass(frozen=True)
class Accuracy:
    """Of all outputs on all samples, the worst.

    Attributes
    ----------
    error
        Largest difference of an element from what is expected, as a part of the largest absolute value of its output.
    tolerance
        Largest tolerance of an element, likewise.
    used
        Largest part of its tolerance that an element's difference takes: 1 is as far as it may be.
    """

    error: float
    tolerance: float
    used: float

    @classmethod
    def of(cls, lowered: Lowered) -> Accuracy:
        """Measure a program; an output of another shape than is expected is left out."""
        error = tolerance = used = 0.0
        for sample in lowered.samples:
            for index, (expected, actual) in enumerate(zip(sample.expected, sample.outputs, strict=False)):
                if expected.shape != actual.shape:
                    continue
                allowed = lowered.tolerance(sample, index)
                difference = Deviation("", expected, actual).differences()
                parts = np.divide(
                    difference, allowed, out=np.where(difference > 0.0, np.inf, 0.0), where=allowed > 0.0
                )
                used = max(used, float(parts.max(initial=0.0)))
                tolerance = max(tolerance, lowered.imprecision(sample, index))
                if largest := lowered.largest(sample, index):
                    error = max(error, float(difference.max(initial=0.0)) / largest)
        return cls(error, tolerance, used)
