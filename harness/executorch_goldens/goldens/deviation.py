"""Deviation of a tensor from its expected value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from executorch_goldens.artifact import Tensor
from executorch_goldens.decode.difference import distances

#: Differing elements of a tensor that are shown.
SHOWN_ELEMENTS = 4


@dataclass(frozen=True)
class Deviation:
    """Deviation of a tensor from its expected value.

    Attributes
    ----------
    expected, actual
        Tensors of one shape; dtypes may differ.
    tolerance
        Largest absolute difference that is no difference, of each element or of all; 0 demands equality.
    """

    what: str
    expected: Tensor
    actual: Tensor
    tolerance: npt.NDArray[np.float64] | float = 0.0

    def differences(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        actual, expected = self.actual.array(), self.expected.array()
        # A NaN where a number should be differs by infinity; NaN against NaN, and an infinity against the same one,
        # do not differ.
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        return np.where(same, 0.0, np.nan_to_num(distances(actual, expected), nan=np.inf, posinf=np.inf))

    def used(self) -> float:
        """Return the largest part of its tolerance that the difference of an element takes."""
        difference = self.differences()
        allowed = np.broadcast_to(self.tolerance, difference.shape)
        none = np.where(difference > 0.0, np.inf, 0.0)
        return float(np.divide(difference, allowed, out=none, where=allowed > 0.0).max(initial=0.0))

    def allows(self) -> bool:
        """True if some element may be off."""
        return bool(np.any(self.tolerance))

    def exceeds_tolerance(self) -> bool:
        """Return whether an element exceeds its tolerance, or the dtype or the shape differs."""
        if self.expected.type != self.actual.type:
            return True
        return bool((self.differences() > self.tolerance).any())

    def lines(self, expected_is: str = "was expected") -> Iterator[str]:
        """Yield the tensor, how many elements differ, by how much, and the first of them.

        Parameters
        ----------
        expected_is
            Says where the expected value comes from, after it.
        """
        expected, actual = self.expected.type, self.actual.type
        if expected != actual:
            yield f"{self.what}: is {actual}, expected {expected}"
            return
        difference = self.differences()
        tolerance = np.broadcast_to(self.tolerance, difference.shape)
        differing = np.argwhere(difference > tolerance)
        least, most = tolerance.min(initial=np.inf), tolerance.max(initial=0.0)
        stated = f" (tolerance {least:g})" if least == most else f" (tolerance {least:.2g} to {most:.2g})"
        yield (
            f"{self.what} {actual}: {len(differing)} of {difference.size} values differ, "
            f"max {difference.max():g}, mean {difference.mean():g}" + (stated if most else "")
        )
        for index in differing[:SHOWN_ELEMENTS]:
            position = tuple(int(i) for i in index)
            got, want = self.actual.array()[position], self.expected.array()[position]
            within = f", within {tolerance[position]:.2g}" if least != most else ""
            yield f"  {list(position)}: {got} where {want} {expected_is}{within}"
