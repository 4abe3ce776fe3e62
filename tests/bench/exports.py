"""How fast a sweep is against other ways to export the same cells under the same seeds; and what tracing costs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from harness import patches, releases
from harness.artifact import Cell
from harness.commands.shortcuts import draw
from harness.exporting.compat import installed_release
from harness.exporting.shortcuts import SHORTCUTS
from harness.exporting.worker import install_shortcuts, set_kernels
from harness.registry import load
from harness.reports import REPORTS
from harness.selection import EXPORT_TIMEOUT, load_cells
from harness.sweeping.settings import Settings, cores, default_interpreter, worker_environment
from harness.sweeping.sweep import Sweep
from harness.targets import find
from harness.variations import HASH_SEEDS, variations
from tests import REPOSITORY
from tests.bench.measurement import apart

FRESH = "a fresh interpreter per export, without shortcuts: its time / a sweep's"
PYTEST = "a pytest process per seed, without shortcuts: its time / a sweep's"
INSIDE = "core seconds of exports / (wall x cores) of a sweep, its templates' start included"
TRACING = "processor time of an export with tracing / without"

#: Cells of each target that are exported, drawn at random: with fewer, the start of the templates is most of the time.
PER_TARGET = 6

#: Traced and untraced exports of a cell, in turn, after one that fills the caches.
ROUNDS = 3


def drawn() -> list[Cell]:
    """Return drawn cells of each target that every case is exported for."""
    zoo = load_cells(("models",), releases.load().release(installed_release()))
    return draw([cell for cell in zoo if not find(cell.target).further], PER_TARGET, seed=0)


def reported() -> list[Cell]:
    """Return the cells that the upstream reports are shown on."""
    return [
        Cell(report.target, case.name)
        for report in REPORTS
        for case in load(("models",)).values()
        if case.report == report.number
    ]


def settings(isolation: str, shortcuts: tuple[str, ...]) -> Settings:
    names = patches.select("auto", releases.load().release(installed_release()).patches)
    return Settings(
        default_interpreter(),
        ("models",),
        names,
        cores(),
        EXPORT_TIMEOUT,
        isolation=isolation,
        shortcuts=shortcuts,
    )


def swept(isolation: str, shortcuts: tuple[str, ...], seeds: tuple[int, ...]) -> tuple[float, float]:
    """Export drawn cells under each seed; return (seconds of wall time, core seconds of the exports)."""
    selected = drawn()
    started = time.perf_counter()
    with Sweep(selected, variations(seeds), settings(isolation, shortcuts)) as sweep:
        outcomes = [outcome for cell in selected for outcome in sweep.outcomes(cell)]
    return time.perf_counter() - started, sum(outcome.core_seconds for outcome in outcomes)


def one_pytest_per_seed(seeds: tuple[int, ...]) -> float:
    """Export drawn cells in pytest processes, one a seed, as many at a time as there are cores; return seconds."""

    def run(seed: int) -> None:
        interpreter = default_interpreter()
        command = [
            str(interpreter),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/bench/in_process.py",
        ]
        environment = worker_environment(interpreter, seed) | {"PYTHONPATH": str(REPOSITORY)}
        subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)

    started = time.perf_counter()
    with ThreadPoolExecutor(cores()) as processes:
        list(processes.map(run, seeds))
    return time.perf_counter() - started


def isolation() -> Mapping[str, float]:
    """Export drawn cells under the four seeds by a sweep, by fresh interpreters and by pytest processes."""
    # In a new environment whoever comes first compiles every module.
    swept("fork", tuple(SHORTCUTS), HASH_SEEDS[:1])
    wall, inside = swept("fork", tuple(SHORTCUTS), HASH_SEEDS)
    fresh, _ = swept("fresh", (), HASH_SEEDS)
    return {
        FRESH: fresh / wall,
        PYTEST: one_pytest_per_seed(HASH_SEEDS) / wall,
        INSIDE: inside / (wall * cores()),
    }


def tracing() -> Mapping[str, float]:
    """Export each cell with and without tracing, in turn, in a process of its own."""
    return {TRACING: apart("tests.bench.exports")}


def traced() -> float:
    """Return the processor time of exports with tracing over that of the same without."""
    from harness.exporting.export import Export
    from harness.exporting.targets import Lowering

    spent = {True: 0.0, False: 0.0}
    for cell in reported():
        for number in range(-1, ROUNDS):
            for watched in (True, False):
                export = Export(load(("models",))[cell.case], Lowering.named(cell.target))
                started = time.process_time()
                try:
                    with export.watch if watched else nullcontext():
                        export.run()
                except Exception:
                    # Unpatched, some do not lower: that takes its time as well.
                    pass
                if number >= 0:
                    spent[watched] += time.process_time() - started
    return spent[True] / spent[False]


if __name__ == "__main__":
    set_kernels(1, False)
    install_shortcuts(tuple(SHORTCUTS))
    print(traced())
