"""Names of drawn models.

``drawn-7-000123`` is the 123rd of seed 7.
"""

from __future__ import annotations

import re

from executorch_goldens.errors import HarnessError

# The operators to draw from; the order in which these are imported is part of what a name means.
from lab.fuzz import elementwise, flow, layers, reductions, shapes
from lab.fuzz.model import Model
from lab.fuzz.sketch import draw

TABLES = (elementwise, shapes, reductions, layers, flow)

PATTERN = re.compile(r"drawn-\d+-\d{6}")


class DrawnNameError(HarnessError, ValueError):
    """The name is not that of a drawn model."""


def name(seed: int, number: int) -> str:
    """Return the name of a model.

    >>> name(7, 123)
    'drawn-7-000123'
    """
    return f"drawn-{seed}-{number:06}"


def drawn(named: str) -> Model:
    """Return the model called `named`; raise `DrawnNameError`."""
    if PATTERN.fullmatch(named) is None:
        raise DrawnNameError(f"{named!r} is no name of a drawn model: these are like {name(7, 123)}")
    return draw(named)
