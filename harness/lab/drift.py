"""What changes from each release to the next, from the committed goldens: the pages docs/lab/drift/."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from executorch_goldens import releases
from executorch_goldens.compare.drift import Drift
from lab import GOLDENS
from lab.pages import Part


def parts() -> Iterator[Part]:
    """Yield a page for each pair of neighbouring releases."""
    for before, after in itertools.pairwise(releases.load().releases):
        yield Part(f"lab/drift/{before}-{after}.md", "", functools.partial(lines, before, after), slow=True)


def lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines of ``goldens diff``."""
    yield from Drift.between(GOLDENS, before, after).markdown()
