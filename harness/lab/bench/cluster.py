"""Time saved when a second worker takes part in a run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import releases
from executorch_goldens.sweep.seconds import Seconds, committed
from executorch_goldens_plugins.cluster import PYTHON
from lab import REPOSITORY
from lab.clusters import import_path, scheduler, worker
from lab.shortcuts.command import draw

TWO = "wall time with one Dask worker / with two, of one job each"
#: Cells that are exported.
CELLS = 200
#: Core seconds of an export of each, at most, by the table of the release: one long export would decide the end.
MODERATE = 1.2


def drawn(cells: Sequence[Cell], table: Seconds) -> list[Cell]:
    """Return `CELLS` moderate cells drawn at random, equally many of each target that has so many."""
    moderate = [cell for cell in cells if table.expected(cell) <= MODERATE]
    draws = (draw(moderate, per_target, seed=0) for per_target in range(1, len(moderate) + 1))
    return next(found for found in draws if len(found) >= CELLS)[:CELLS]


def run(workers: int) -> float:
    """Export drawn cells under two variations on so many workers; return seconds, without the workers' start.

    The workers' machines have exported another cell before: their stores know the digests of the environment's files.
    """
    release = releases.load().release(installed_release())
    table = committed(REPOSITORY / "goldens" / release.version)
    zoo = load_cells(("models",), release)
    cells = drawn(zoo, table)
    other = min((cell for cell in zoo if cell not in cells), key=table.expected)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export([other], workers, folder)
        return export(cells, workers, folder)


def export(cells: Sequence[Cell], workers: int, folder: Path) -> float:
    """Export cells on workers that start for it, whose stores stay in `folder`; return the seconds of the run."""
    python = os.environ.get(PYTHON, sys.executable)
    with ExitStack() as cluster:
        address, _ = cluster.enter_context(scheduler(folder, python))
        for number in range(workers):
            cluster.enter_context(worker(folder, f"worker-{number}", address, python))
        command = [sys.executable, "-m", "executorch_goldens", "run", "-q", "-q", "--variations", "quick"]
        command += ["--cluster", address, "--cache", str(folder / "store")]
        command += ["--sweeps", str(folder / "sweeps")]
        command += [word for cell in cells for word in ("--cell", str(cell))]
        started = time.perf_counter()
        environment = os.environ | {"PYTHONPATH": import_path(folder)}
        finished = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
        seconds = time.perf_counter() - started
    if finished.returncode:
        sys.exit(
            f"bench: the run on {workers} workers failed:\n{finished.stdout[-2000:]}{finished.stderr[-2000:]}"
        )
    return seconds


def measure() -> Mapping[str, float]:
    """Run on one worker and on two."""
    return {TWO: run(1) / run(2)}
