"""Cost of measuring how far rounding alone moves a model's outputs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.exporting.numerics import rounding
from executorch_goldens.exporting.program import Request
from executorch_goldens.exporting.recipe import stages
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.patches.shortcuts import SHORTCUTS
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import releases
from executorch_goldens.sweep.worker import install_shortcuts, set_kernels
from executorch_goldens.zoo.registry import load
from lab.bench.measurement import apart
from lab.shortcuts.command import draw

SPREAD = "processor time of measuring tolerances / of exports"
#: Cells of each target that are exported, drawn at random.
PER_TARGET = 6


def timed() -> list[float]:
    """Have each measurement of tolerances in this process leave its seconds of processor time in a list."""
    measuring, spent = rounding.moved, []

    def noting(*given: Any) -> rounding.Moved:
        started = time.process_time()
        moved = measuring(*given)
        spent.append(time.process_time() - started)
        return moved

    rounding.moved = noting  # type: ignore[assignment]
    return spent


def measure() -> Mapping[str, float]:
    """Export drawn cells in a process of its own."""
    return {SPREAD: apart("lab.bench.spread")}


def part() -> float:
    """Export each cell once for the caches and once for the figure; return the part of the time."""
    zoo = load(("models",))
    cells = draw(load_cells(("models",), releases.load().release(installed_release())), PER_TARGET, seed=0)
    whole = measuring = 0.0
    spent = timed()
    for cell in cells:
        for counted in (False, True):
            request = Request(zoo[cell.case], Lowering.named(cell.target))
            spent.clear()
            started = time.process_time()
            try:
                with request.watch:
                    deque(stages(request), maxlen=1)
            except Exception:
                # Some do not lower: that takes its time as well.
                pass
            if counted:
                whole += time.process_time() - started
                measuring += sum(spent)
    return measuring / whole


if __name__ == "__main__":
    set_kernels(1, False)
    install_shortcuts(tuple(SHORTCUTS))
    print(part())
