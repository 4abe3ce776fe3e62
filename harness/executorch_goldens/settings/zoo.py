"""The zoo of a run, from the repository that it is in."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from executorch_goldens import registry
from executorch_goldens.settings import config


def load_zoo(models: Sequence[str]) -> dict[str, registry.Case]:
    """Import the zoos named, from the repository of the run before anywhere else; raise `registry.ZooError`."""
    first = [str(path) for path in config.load().import_paths()]
    # Also where they come later on the path: a package `models` elsewhere would be found first.
    sys.path[:] = [*first, *(path for path in sys.path if path not in first)]
    return registry.load(models)
