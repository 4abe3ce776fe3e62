"""Measured quantities, repetitions, and their records."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from executorch_goldens.results import provenance
from lab import REPOSITORY, markdown, tables
from lab.pages import Part

#: Measurements, the newest of each ratio on each release first.
HISTORY = Path(__file__).with_name("history.tsv")
COLUMNS = ("ratio", "release", "minimum", "median", "maximum", "goal", "when", "where")
#: Rows of a measured ratio that the history keeps, the newest first.
KEPT = 5
#: Digits of a commit that it shows.
SHORT = 12


@dataclass(frozen=True)
class Goal:
    """A ratio of two measurements in one run, and its expected value.

    Attributes
    ----------
    name
        Its two quantities.
    limit
        The goal; None for a ratio without one.
    at_most
        Whether a smaller ratio is better.
    """

    name: str
    limit: float | None
    at_most: bool = False

    def is_met(self, ratio: float) -> bool:
        return self.limit is None or (ratio <= self.limit if self.at_most else ratio >= self.limit)

    def __str__(self) -> str:
        return "-" if self.limit is None else f"{'at most' if self.at_most else 'at least'} {self.limit:g}"


@dataclass(frozen=True)
class Measurement:
    """Something that is measured as a whole.

    Attributes
    ----------
    name
        Its name on the command line.
    goals
        The ratios that one call of `measure` gives, in the order of its result's values.
    measure
        Measures once, and returns each ratio by the name of its goal.
    default
        Whether it is measured unless others are named: one that takes more than a few minutes is not.
    """

    name: str
    goals: tuple[Goal, ...]
    measure: Callable[[], Mapping[str, float]]
    default: bool = True


@dataclass(frozen=True)
class Measured:
    """All repetitions of one ratio in a run."""

    measurement: str
    goal: Goal
    ratios: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    def line(self) -> str:
        said = "" if self.goal.is_met(self.median) else "   MISSED"
        numbers = f"{min(self.ratios):9.3f} {self.median:9.3f} {max(self.ratios):9.3f}"
        return f"{self.goal.name:<72}{numbers}   {self.goal!s}{said}"


HEADING = f"{'ratio':<72}{'minimum':>9} {'median':>9} {'maximum':>9}   goal"


def repeated(measurement: Measurement, times: int) -> list[Measured]:
    """Measure `times` times, and return each ratio of `measurement`."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for _ in range(times):
        for name, ratio in measurement.measure().items():
            ratios[name].append(ratio)
    return [Measured(measurement.name, goal, tuple(ratios[goal.name])) for goal in measurement.goals]


def apart(module: str) -> float:
    """Run a module of this package in a process of its own; return the number that it prints last."""
    printed = subprocess.run(
        [sys.executable, "-m", module],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return float(printed.split()[-1])


def state() -> dict[str, str]:
    """Return the machine and revision of the figures."""
    # Only now: it imports torch, which the history does without.
    from executorch_goldens.exporting.compat import installed_release

    commit = provenance.commit(REPOSITORY) or "no checkout"
    dirty = "-dirty" if provenance.changes(REPOSITORY, REPOSITORY / "goldens") else ""
    return {
        "release": installed_release(),
        "commit": commit[:SHORT] + dirty,
        "machine": provenance.machine(),
    }


def write_json(path: Path, measured: Iterable[Measured], on: Mapping[str, str]) -> None:
    """Write every repetition of every ratio."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(one), "median": one.median} for one in measured]
    path.write_text(json.dumps({"state": on, "measured": rows}, indent=1) + "\n")


def keep(measured: Sequence[Measured], on: Mapping[str, str], date: str, path: Path = HISTORY) -> None:
    """Put a row for each ratio into the history, above its older ones on this release; `KEPT` stay in all."""
    new = [
        {
            "ratio": one.goal.name,
            "release": on["release"],
            "minimum": f"{min(one.ratios):.3f}",
            "median": f"{one.median:.3f}",
            "maximum": f"{max(one.ratios):.3f}",
            "goal": str(one.goal),
            "when": f"{date}, {on['commit']}",
            "where": on["machine"],
        }
        for one in measured
    ]
    rows = sorted([*new, *tables.read(path, COLUMNS)], key=_measured_on)
    kept = [row for _, same in itertools.groupby(rows, _measured_on) for row in itertools.islice(same, KEPT)]
    tables.write(path, COLUMNS, kept)


def _measured_on(row: Mapping[str, str]) -> tuple[str, str]:
    return row["ratio"], row["release"]


def parts() -> Iterator[Part]:
    """Yield the history of harness/lab/docs/benchmarks.md."""
    yield Part("harness/lab/docs/benchmarks.md", "history", _committed)


def _committed() -> Iterator[str]:
    yield from markdown.head(COLUMNS)
    yield from (markdown.row([*row.values()]) for row in tables.read(HISTORY, COLUMNS))
