"""How fast a sweep is: against a fresh interpreter per export, as the upstream reports do it; and what tracing costs.

    python -m tests.bench.exports
    python -m tests.bench.exports --hash-seeds 0,1,2,3,4,5,6,7,8,9

Goals, by the cells of the reports: at least 5 times as fast, starting the templates included; seconds inside exports at
least 0.8 of the cores' time; a traced export at most 1.15 times the processor time of one that is not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import nullcontext

from harness import patches, releases
from harness.artifact import Cell
from harness.commands.stock import REPORTS
from harness.exporting.compat import installed_release
from harness.exporting.shortcuts import SHORTCUTS
from harness.exporting.worker import install_shortcuts, set_kernels
from harness.registry import load
from harness.selection import EXPORT_TIMEOUT
from harness.sweep import Settings, Sweep, cores, default_interpreter
from harness.variations import parse_hash_seeds, variations

#: Traced and untraced exports of a cell, in turn, after one that fills the caches.
ROUNDS = 3


def cells() -> list[Cell]:
    """Return the cells that the upstream reports are shown on."""
    return [
        Cell(report.target, case.name)
        for report in REPORTS
        for case in load(("models",)).values()
        if case.report == report.number
    ]


def swept(isolation: str, seeds: Sequence[int], jobs: int) -> tuple[float, float]:
    """Export the cells under each seed; return (seconds of wall time, seconds inside exports)."""
    names = patches.select("auto", releases.load().release(installed_release()).patches)
    settings = Settings(default_interpreter(), ("models",), names, jobs, EXPORT_TIMEOUT, isolation=isolation)
    selected = cells()
    started = time.perf_counter()
    with Sweep(selected, variations(seeds), settings) as sweep:
        inside = sum(outcome.seconds for cell in selected for outcome in sweep.outcomes(cell))
    return time.perf_counter() - started, inside


def traced() -> tuple[float, float]:
    """Export each cell with and without tracing, in turn, in this process; return both processor times, with first."""
    from harness.exporting.export import Export
    from harness.exporting.targets import Lowering

    spent = {True: 0.0, False: 0.0}
    for cell in cells():
        for number in range(-1, ROUNDS):
            for tracing in (True, False):
                export = Export(load(("models",))[cell.case], Lowering.named(cell.target))
                started = time.process_time()
                try:
                    with export.watch if tracing else nullcontext():
                        export.run()
                except Exception:
                    # Unpatched, some do not lower: that takes its time as well.
                    pass
                if number >= 0:
                    spent[tracing] += time.process_time() - started
    return spent[True], spent[False]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.exports", description=__doc__)
    parser.add_argument("--hash-seeds", default="0,4,27,37", help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=cores())
    options = parser.parse_args()
    set_kernels(1, False)
    install_shortcuts(tuple(SHORTCUTS))
    seeds = parse_hash_seeds(options.hash_seeds)
    exports = len(cells()) * len(seeds)
    # In a new environment whoever comes first compiles every module.
    swept("fork", seeds[:1], options.jobs)
    fork, inside = swept("fork", seeds, options.jobs)
    fresh, _ = swept("fresh", seeds, options.jobs)
    print(f"{exports} exports of the reports' cells, {options.jobs} at a time")
    print(
        f"warm templates {fork:.0f} s, fresh interpreters {fresh:.0f} s: {fresh / fork:.1f} times as fast (goal 5)"
    )
    print(
        f"inside exports: {inside / (fork * options.jobs):.2f} of the cores' time, templates' start included"
    )
    with_trace, without = traced()
    print(f"tracing: {with_trace / without:.3f} of the processor time without (goal 1.15)")


if __name__ == "__main__":
    main()
