"""Names of drawn models.

``drawn-7-000123`` is the 123rd of seed 7. ``drawn-7-000123-000045`` is that with change 45: a few of the draws that
make it are made again. What is changed may be changed again.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable

from executorch_goldens.errors import HarnessError

# The operators to draw from; the order in which these are imported is part of what a name means.
from lab.fuzz import elementwise, flow, layers, reductions, shapes
from lab.fuzz.model import Model
from lab.fuzz.sketch import draw

TABLES = (elementwise, shapes, reductions, layers, flow)

PATTERN = re.compile(r"(?P<drawn>drawn-(?P<seed>\d+)-(?P<number>\d{6}))(?P<changes>(?:-\d{6})*)")
#: Number of changes a model may have: names of cases have 64 characters at most.
MOST_CHANGES = 4
#: Numbers that a seed has.
END = 10**6
#: Models of seed 0 that `digest` looks at.
LOOKED_AT = 50


class DrawnNameError(HarnessError, ValueError):
    """The name is not that of a drawn model."""


def name(seed: int, number: int) -> str:
    """Return the name of a model.

    >>> name(7, 123)
    'drawn-7-000123'
    """
    return f"drawn-{seed}-{number:06}"


def changed(named: str, number: int) -> str:
    """Return the name of a change of a model.

    >>> changed("drawn-7-000123", 45)
    'drawn-7-000123-000045'
    """
    return f"{named}-{number:06}"


def changes(named: str) -> int:
    """Return how often a model is changed; raise `DrawnNameError`."""
    return _parts(named)["changes"].count("-")


def drawn(named: str) -> Model:
    """Return the model called `named`; raise `DrawnNameError`."""
    parts = _parts(named)
    # The key of a change is the name up to it: change 45 of one model is not that of another.
    numbers = parts["changes"].split("-")[1:]
    return draw(parts["drawn"], list(itertools.accumulate((parts["drawn"], *numbers), "{}-{}".format))[1:])


def _parts(named: str) -> re.Match[str]:
    found = PATTERN.fullmatch(named)
    if found is None:
        raise DrawnNameError(f"{named!r} is no name of a drawn model: these are like {name(7, 123)}")
    return found


def digest() -> str:
    """Return a digest of the first models of seed 0: another one means that names mean other models."""
    return _digest(name(0, number) for number in range(LOOKED_AT))


def digest_of_changes() -> str:
    """Return the same for the first changes of these models."""
    return _digest(changed(name(0, number), number) for number in range(LOOKED_AT))


def _digest(models: Iterable[str]) -> str:
    texts = "".join(drawn(model).source() for model in models)
    return hashlib.sha256(texts.encode()).hexdigest()[:12]
