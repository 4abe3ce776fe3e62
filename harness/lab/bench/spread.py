"""Cost of measuring how far rounding alone moves a model's outputs."""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.exporting.export import Export
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


class Timed(Export):
    """An export that notes the seconds of processor time that measuring tolerances takes."""

    spent = 0.0

    def spread(self, module: torch.nn.Module) -> None:
        started = time.process_time()
        super().spread(module)
        self.spent += time.process_time() - started


def measure() -> Mapping[str, float]:
    """Export drawn cells in a process of its own."""
    return {SPREAD: apart("lab.bench.spread")}


def part() -> float:
    """Export each cell once for the caches and once for the figure; return the part of the time."""
    zoo = load(("models",))
    cells = draw(load_cells(("models",), releases.load().release(installed_release())), PER_TARGET, seed=0)
    whole = measuring = 0.0
    for cell in cells:
        for counted in (False, True):
            export = Timed(zoo[cell.case], Lowering.named(cell.target))
            started = time.process_time()
            try:
                with export.watch:
                    export.run()
            except Exception:
                # Some do not lower: that takes its time as well.
                pass
            if counted:
                whole += time.process_time() - started
                measuring += export.spent
    return measuring / whole


if __name__ == "__main__":
    set_kernels(1, False)
    install_shortcuts(tuple(SHORTCUTS))
    print(part())
