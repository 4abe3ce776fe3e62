"""Speed of a sweep against other ways to export the same cells under the same seeds; and the cost of tracing."""

from __future__ import annotations

import random
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from executorch_goldens import patches, plugins
from executorch_goldens.artifact import Cell
from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import (
    EXPORT_TIMEOUT,
    Settings,
    cores,
    default_interpreter,
    worker_environment,
)
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.sweep.worker import install_shortcuts, set_kernels
from executorch_goldens.zoo.registry import load
from executorch_goldens.zoo.targets import find
from executorch_goldens.zoo.variations import HASH_SEEDS, variations
from lab import REPOSITORY
from lab.bench.measurement import apart
from lab.stock.issues import ISSUES

FRESH = "a fresh interpreter per export, without shortcuts: its time / a sweep's"
PYTEST = "a pytest process per seed, without shortcuts: its time / a sweep's"
INSIDE = "core seconds of exports / (wall x cores) of a sweep, its templates' start included"
TRACING = "processor time of an export with tracing / without"

#: Cells of each target that are exported, drawn at random: with fewer, the start of the templates, which a run of the
#: whole zoo has once as well, is a large part of the time.
PER_TARGET = 16

#: Traced and untraced exports of a cell, in turn, after one that fills the caches.
ROUNDS = 3


def draw(cells: Sequence[Cell], per_target: int, seed: int) -> list[Cell]:
    """Return up to `per_target` cells of each target, drawn at random, in the order of `cells`."""
    generator = random.Random(seed)
    drawn: set[Cell] = set()
    for target in dict.fromkeys(cell.target for cell in cells):
        of_target = [cell for cell in cells if cell.target == target]
        drawn |= set(generator.sample(of_target, min(per_target, len(of_target))))
    return [cell for cell in cells if cell in drawn]


def drawn() -> list[Cell]:
    """Return drawn cells of each target that every case is exported for."""
    zoo = load_cells(("models",), releases.load().release(installed_release()))
    return draw([cell for cell in zoo if not find(cell.target).opt_in], PER_TARGET, seed=0)


def reported() -> list[Cell]:
    """Return the cells that the upstream issues are shown on."""
    return [
        Cell(issue.target, case.name)
        for issue in ISSUES
        for case in load(("models",)).values()
        if case.issue == issue.number
    ]


def settings(isolation: str, shortcuts: Mapping[str, str]) -> Settings:
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


def swept(selected: Sequence[Cell], seeds: Sequence[int]) -> tuple[float, dict[tuple[Cell, int], float]]:
    """Sweep cells under each seed; return seconds of wall time, and core seconds of each cell's export by its seed."""
    started = time.perf_counter()
    with Sweep(selected, variations(seeds), settings("fork", plugins.shortcuts())) as sweep:
        spent = {
            (cell, seed): outcome.core_seconds
            for cell in selected
            for seed, outcome in zip(seeds, sweep.outcomes(cell), strict=True)
        }
    return time.perf_counter() - started, spent


def fresh_interpreters(exports: Sequence[tuple[Cell, int]]) -> float:
    """Export each cell under its seed in an interpreter of its own, as many at a time as there are cores; seconds."""
    of_seed = {variation.hash_seed: variation for variation in variations(HASH_SEEDS)}
    started = time.perf_counter()
    with (
        Sweep((), (), settings("fresh", {}), lasting=True) as sweep,
        ThreadPoolExecutor(cores()) as threads,
    ):
        list(threads.map(lambda export: sweep.again(export[0], (of_seed[export[1]],)), exports))
    return time.perf_counter() - started


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
            "harness/lab/bench/in_process.py",
        ]
        environment = worker_environment(interpreter, seed) | {"PYTHONPATH": str(REPOSITORY)}
        subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)

    started = time.perf_counter()
    with ThreadPoolExecutor(cores()) as processes:
        list(processes.map(run, seeds))
    return time.perf_counter() - started


def isolation() -> Mapping[str, float]:
    """Export drawn cells under the four seeds by a sweep and by pytest processes, and a quarter by fresh interpreters.

    Fresh interpreters export each cell under one of the seeds, in turn, and are compared with that part of the sweep's
    wall time which these exports have in its core seconds.
    """
    selected = drawn()
    # In a new environment whoever comes first compiles every module.
    swept(selected[::4], HASH_SEEDS[:1])
    wall, spent = swept(selected, HASH_SEEDS)
    quarter = [(cell, HASH_SEEDS[number % len(HASH_SEEDS)]) for number, cell in enumerate(selected)]
    part = sum(spent[export] for export in quarter) / sum(spent.values())
    return {
        FRESH: fresh_interpreters(quarter) / (wall * part),
        PYTEST: one_pytest_per_seed(HASH_SEEDS) / wall,
        INSIDE: sum(spent.values()) / (wall * cores()),
    }


def tracing() -> Mapping[str, float]:
    """Export each cell with and without tracing, in turn, in a process of its own."""
    return {TRACING: apart("lab.bench.exports")}


def traced() -> float:
    """Return the processor time of exports with tracing over that of the same without."""
    from executorch_goldens.exporting.program import Request
    from executorch_goldens.exporting.recipe import stages
    from executorch_goldens.exporting.targets import Lowering

    spent = {True: 0.0, False: 0.0}
    for cell in reported():
        for number in range(-1, ROUNDS):
            for watched in (True, False):
                request = Request(load(("models",))[cell.case], Lowering.named(cell.target))
                started = time.process_time()
                try:
                    with request.watch if watched else nullcontext():
                        deque(stages(request), maxlen=1)
                except Exception:
                    # Unpatched, some do not lower: that takes its time as well.
                    pass
                if number >= 0:
                    spent[watched] += time.process_time() - started
    return spent[True] / spent[False]


if __name__ == "__main__":
    set_kernels(1, False)
    install_shortcuts([*plugins.shortcuts().values()])
    print(traced())
