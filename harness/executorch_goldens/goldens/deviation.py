"""Deviation of a tensor from its expected value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from executorch_goldens.artifact import Tensor
from executorch_goldens.decode.difference import distances
from executorch_goldens.goldens.findings import Deviated, Element, TensorType

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

    def exceeds_tolerance(self) -> bool:
        """Return whether an element exceeds its tolerance, or the dtype or the shape differs."""
        if self.expected.type != self.actual.type:
            return True
        return bool((self.differences() > self.tolerance).any())

    def line(self, what: str) -> str:
        """Return it in a line, as an exporting process says it, which imports no words: these make no export new."""
        found = self.measured()
        if found.given != found.expected:
            return f"{what}: is {found.given}, expected {found.expected}"
        number = f"{found.differing} of {found.size} values differ"
        allowed = f" (tolerance {found.least:g})" if found.most else ""
        return f"{what} {found.given}: {number}, max {found.largest:g}, mean {found.mean:g}{allowed}"

    def measured(self) -> Deviated:
        """Return how many elements differ, by how much, and the first of them."""
        types = TensorType.of_tensor(self.actual), TensorType.of_tensor(self.expected)
        if self.expected.type != self.actual.type:
            return Deviated(*types)
        difference = self.differences()
        tolerance = np.broadcast_to(self.tolerance, difference.shape)
        beyond = np.argwhere(difference > tolerance)
        first = [tuple(map(int, index)) for index in beyond[:SHOWN_ELEMENTS]]
        given, wanted = self.actual.array(), self.expected.array()
        return Deviated(
            *types,
            differing=len(beyond),
            size=difference.size,
            largest=float(difference.max()),
            mean=float(difference.mean()),
            least=float(tolerance.min(initial=np.inf)),
            most=float(tolerance.max(initial=0.0)),
            elements=tuple(
                Element(at, _plain(given[at]), _plain(wanted[at]), float(tolerance[at])) for at in first
            ),
        )


def _plain(value: np.generic) -> Any:
    """Return a number of JSON's; a complex one as text."""
    plain = value.item()
    return str(plain) if isinstance(plain, complex) else plain
