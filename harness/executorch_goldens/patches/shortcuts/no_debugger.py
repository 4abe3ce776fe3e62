"""Let the TOSA reference model find no ``gdb``.

Where it refuses a graph, or dies, it attaches the debugger that it finds on the PATH to its own process and prints
backtraces: four times, and 20 s in all, for a graph of ten operators. Nobody reads them; what it refuses, and why,
it says besides.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from executorch_goldens.patches.shortcuts.shortcut import Shortcut


def _install() -> None:
    import tosa_reference_model

    run = tosa_reference_model.run

    @functools.wraps(run)
    def run_without_debugger(*args: Any, **kwargs: Any) -> Any:
        path = os.environ.get("PATH", os.defpath)
        # An empty PATH means the working directory.
        os.environ["PATH"] = os.devnull
        try:
            return run(*args, **kwargs)
        finally:
            os.environ["PATH"] = path

    tosa_reference_model.run = run_without_debugger


SHORTCUT = Shortcut(
    "no-debugger",
    "the TOSA reference model attaches no gdb when it refuses a graph",
    {},
    _install,
    unguarded="run is compiled and has no source; it gets the arguments it was called with, and PATH is put back",
)
