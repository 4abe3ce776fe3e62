"""Shows the upstream reports: their cases on every release, patches off and on, against what releases.toml declares.

``python -m harness.stock RELEASE=PYTHON ...`` is what ``nox -s stock`` runs: it drives the exports of each release's
environment from one interpreter and prints one table.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import patches, releases, verdict
from harness.artifact import Artifact, Cell, Failure, Lowered, Outcome
from harness.selection import EXPORT_TIMEOUT, Installed, UsageError, find_release
from harness.sweep import Settings, Sweep, SweepError
from harness.variations import HashSeedError, parse_hash_seeds, variations
from harness.worker import load_models
from models.registry import CASES

#: One seed for each order of report #19045. ``--hash-seeds 0,1,2,3,4,5,6,7,8,9`` repeats what was measured for it.
HASH_SEEDS = "0,4"

#: The digests that report #19045 printed, and that every release gives for its model.
KNOWN_DIGESTS = {
    "c5504f6a7079731396c58bd7e56bb4420b18bb1b5d612df9781247c271aa8230": "c5504f6a",
    "787da2bc084cec910bee01c1480afb0e2655f0be066821757bbbdfcef26eef76": "787da2bc",
}


@dataclass(frozen=True)
class Report:
    """An upstream report and the target on which its cases show it."""

    number: int
    title: str
    target: str


REPORTS = (
    Report(19045, "partition order follows the hash seed", "tosa-fp"),
    Report(18866, "duplicate output slots collapse", "tosa-fp"),
    Report(18971, "quantized cat constants folded wrongly", "tosa-int"),
    Report(19152, "XNNPACK permute with two consumers", "xnnpack-fp32"),
)


@dataclass(frozen=True)
class Finding:
    """What a release shows of a report.

    Attributes
    ----------
    state
        ``bug``, ``fails`` or ``fixed``; see releases.toml.
    facts
        What was measured, a line each.
    """

    state: str
    facts: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the facts; return 0 if every cell of the table is as declared, else 1."""
    parser = argparse.ArgumentParser(prog="python -m harness.stock", description=__doc__)
    parser.add_argument("environments", nargs="+", metavar="RELEASE=PYTHON")
    parser.add_argument("--hash-seeds", default=HASH_SEEDS, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(arguments)
    seeds = parse_hash_seeds(options.hash_seeds)
    columns: dict[str, tuple[dict[int, Finding], dict[int, Finding]]] = {}
    surprises: list[str] = []
    for environment in options.environments:
        version, _, python = environment.partition("=")
        release = find_release(Installed.probe(Path(python)), version)
        settings = Settings(Path(python), ("models",), (), options.jobs, EXPORT_TIMEOUT)
        off = findings(settings, seeds)
        on = findings(replace(settings, patches=patches.select("auto", release.patches)), seeds)
        columns[version] = off, on
        surprises += list(differences(release, off, on))
        print(f"ExecuTorch {version}")
        for report in REPORTS:
            print(f"  #{report.number} {report.title}")
            print(f"    patches off: {off[report.number].state}")
            for fact in off[report.number].facts:
                print(f"      {fact}")
            print(f"    patches on:  {on[report.number].state}")
            for fact in on[report.number].facts:
                print(f"      {fact}")
        sys.stdout.flush()
    print("\n".join(table(columns)))
    for surprise in surprises:
        print(surprise)
    return 1 if surprises else 0


def findings(settings: Settings, seeds: Sequence[int]) -> dict[int, Finding]:
    """Export every report's cases as `settings` say and judge them."""
    load_models(settings.models)
    cells = {
        report: [Cell(report.target, case.name) for case in CASES if case.report == report.number]
        for report in REPORTS
    }
    with Sweep([cell for group in cells.values() for cell in group], variations(seeds), settings) as sweep:
        return {
            report.number: judge({cell: sweep.outcomes(cell) for cell in group})
            for report, group in cells.items()
        }


def judge(outcomes: Mapping[Cell, Sequence[Outcome]]) -> Finding:
    """Return the worst state of a report's cells: a wrong or unstable artifact before a failure to lower."""
    states = []
    facts: list[str] = []
    for cell, of_cell in outcomes.items():
        judged = verdict.judge(cell, of_cell)
        if isinstance(judged, verdict.Verdict):
            states.append("bug")
            constants = [line for line in judged.detail if line.startswith("constant ")]
            facts += [f"{cell}: {judged.name}: {fact}" for fact in (judged.reason, *constants)]
        elif isinstance(judged.result, Failure):
            states.append("fails")
            facts.append(f"{cell}: {judged.result.type}: {judged.result.message.splitlines()[0]}")
        else:
            states.append("fixed")
        facts += [f"{cell}: {fact}" for fact in graph_digests(of_cell)]
    state = next((state for state in ("bug", "fails") if state in states), "fixed")
    return Finding(state, tuple(facts))


def graph_digests(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the graph digests of a cell that report #19045 printed, with the seeds that give them."""
    seeds: dict[str, list[str]] = {}
    for outcome in outcomes:
        if isinstance(outcome.result, Artifact) and isinstance(outcome.result.result, Lowered):
            digest = hashlib.sha256(outcome.result.result.graph.removesuffix("\n").encode()).hexdigest()
            seeds.setdefault(digest, []).append(outcome.variation.partition("-")[0].removeprefix("seed"))
    if set(seeds) <= set(KNOWN_DIGESTS):
        for digest, of_digest in sorted(seeds.items()):
            yield f"graph sha256 {digest} under seeds {' '.join(of_digest)}"


def differences(
    release: releases.Release, off: Mapping[int, Finding], on: Mapping[int, Finding]
) -> Iterator[str]:
    """Yield a line for each report whose state is not the declared one, in either direction."""
    for report in REPORTS:
        declared, found = release.reports[report.number], off[report.number].state
        if found != declared:
            yield (
                f"NOT AS DECLARED: #{report.number} on {release.version} without patches is {found!r}; releases.toml "
                f'says {declared!r}. Look at it, then correct [releases."{release.version}"].'
            )
        if on[report.number].state != "fixed":
            yield f"NOT FIXED: #{report.number} on {release.version} is {on[report.number].state!r} with patches on."


def table(columns: Mapping[str, tuple[Mapping[int, Finding], Mapping[int, Finding]]]) -> Iterator[str]:
    """Yield the table report x release, each cell ``patches off -> patches on``."""
    yield f"{'report':<10}" + "".join(f"{version:<18}" for version in columns)
    for report in REPORTS:
        cells = [f"{off[report.number].state} -> {on[report.number].state}" for off, on in columns.values()]
        yield f"#{report.number:<9}" + "".join(f"{cell:<18}" for cell in cells)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (UsageError, HashSeedError, SweepError) as error:
        sys.exit(f"stock: {error}")
