"""Functions that seem to be in modules of any name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

NUMBERS = itertools.count()
OWN = "def call(*others):\n    return others[0](*others[1:]) if others else {}['key']"


def function(name: str, code: str = OWN) -> Callable[..., object]:
    """Return a function that raises, or calls the next one, as if it stood in the module named."""
    namespace: dict[str, Any] = {"__name__": name}
    # Code of one file and line is equal, and would be handed on wherever one is.
    exec(compile(code, f"{name}-{next(NUMBERS)}.py", "exec"), namespace)
    made: Callable[..., object] = namespace["call"]
    return made
