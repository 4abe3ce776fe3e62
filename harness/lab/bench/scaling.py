"""Cost of a run by its number of cells, and growth of its memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.running.selection import FEWEST_TO_RECORD
from executorch_goldens.settings.exports import default_interpreter
from lab import REPOSITORY

RESIDUAL = "largest residual of seconds = a + b x cells, as a part of the seconds"
GROWTH = "memory of the run after the last cell / after the first hundred"

CELLS = (100, 400, 1600)
#: As small as a model is that a delegate takes.
ZOO = """
    import torch
    from executorch_goldens import case, Example
    for number in range({cells}):
        @case(guards="nothing", name=f"generated-{{number}}")
        def build(data, number=number):
            return Example(torch.nn.Linear(2, 3 + number % 5), (data.tensor("x", 1, 2),))
"""
#: A plugin of pytest that writes the run's own resident memory, in KiB, after each cell.
WATCHER = """
    from pathlib import Path
    def pytest_runtest_logfinish(nodeid, location):
        resident = Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]
        with open("resident", "a") as file:
            file.write(resident + "\\n")
"""


def run(cells: int) -> tuple[float, list[int]]:
    """Export `cells` generated cells, one export each; return seconds, and KiB after each cell."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "generated.py").write_text(textwrap.dedent(ZOO.format(cells=cells)))
        (folder / "watcher.py").write_text(textwrap.dedent(WATCHER))
        (folder / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["generated"]\npatches = "auto"\n')
        command = [
            str(default_interpreter()),
            "-m",
            "executorch_goldens",
            "run",
            "-q",
            "-q",
            "--cache=off",
            "-p",
            "watcher",
        ]
        command += ["--variations", str(FEWEST_TO_RECORD - 1), "--cell", "xnnpack-fp32/*", "--no-header"]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(REPOSITORY)])}
        started = time.perf_counter()
        finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        counted = re.search(r"(\d+) new", finished.stdout)
        if counted is None or int(counted[1]) != cells:
            sys.exit(f"bench: not all of {cells} generated cells are new:\n{finished.stdout[-2000:]}")
        return seconds, [int(line) for line in (folder / "resident").read_text().split()]


def measure() -> Mapping[str, float]:
    """Run 100, 400 and 1,600 generated cells, fit a line, and compare the last run's memory with its beginning."""
    runs = {cells: run(cells) for cells in CELLS}
    seconds = np.array([taken for taken, _ in runs.values()])
    slope, start = np.polyfit(CELLS, seconds, 1, w=1 / seconds)
    residual = np.abs(start + slope * np.array(CELLS) - seconds) / seconds
    print(f"ExecuTorch {installed_release()}: seconds = {start:.1f} + {slope:.3f} x cells")
    resident = runs[CELLS[-1]][1]
    return {RESIDUAL: float(residual.max()), GROWTH: resident[-1] / resident[CELLS[0]]}
