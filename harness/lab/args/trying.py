"""Exports the models on a release, judges each, and keeps the reach of those that go a way which none went.

A session goes on where an earlier one was stopped. Of one export nothing says that it repeats: what is unstable only by
chance is not known from it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens.artifact import Artifact, Cell, Outcome
from executorch_goldens.goldens.findings import Fault
from executorch_goldens.goldens.inventory import inventory
from executorch_goldens.settings import config
from executorch_goldens.settings.exports import Settings
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.calls import CallModel
from executorch_goldens_plugins.compare.exporting.instrument import instrument
from executorch_goldens_plugins.compare.outcome import FAILING, RIGHT, Made
from executorch_goldens_plugins.compare.reach import edits
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.choice import turns
from lab.reach import building
from lab.reach.command import RECORDS, exported, facts

#: Where results are kept while they are made, by release.
KEPT = Path("build/args")
#: A line for each model that was tried.
RESULTS = "tried.jsonl"
#: Files whose functions' ways count: what lowers for a backend. Of all others a statement that none ran does.
BACKENDS = ("executorch/backends/arm/", "executorch/backends/xnnpack/", "executorch/backends/transforms/")
#: What a model came to: taken whole by delegates and right, or in part, or by none; wrong; lowering raises; a process
#: that ended; what shows no error of ExecuTorch: outputs that rounding may move far, or that are one number everywhere.
OUTCOMES = ("whole", "partly", "outside", "wrong", "failed", "ended", "unjudged")
WHOLE, PARTLY, OUTSIDE, IS_WRONG, FAILED, ENDED, UNJUDGED = OUTCOMES
#: Models of a sweep.
CHUNK = 500
#: Operators beside a call that no delegate takes: see the plugin's `calls`, and where values are quantized.
NEVER_TAKEN = frozenset(
    (
        "aten.fmod.Scalar",
        "quantized_decomposed.quantize_per_tensor.default",
        "quantized_decomposed.dequantize_per_tensor.default",
    )
)


class Tried(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model came to on a release.

    Attributes
    ----------
    outcome
        One of `OUTCOMES`.
    finding
        The key of what is not right (`executorch_goldens.goldens.findings`); empty for what is right.
    """

    model: str
    outcome: str
    finding: Mapping[str, Any] = {}
    seconds: float = 0.0


def order(every: Sequence[CallModel], first: Collection[str] = ()) -> Iterator[CallModel]:
    """Yield models, some first: one of each operator on each of its targets, then a second, and so on.

    In each of these rounds operators take turns, so that a session which is stopped has some of each.
    """
    rounds: dict[int, list[CallModel]] = defaultdict(list)
    number: Counter[tuple[str, str]] = Counter()
    for each in every:
        if each.name in first:
            rounds[0].append(each)
        else:
            number[each.operator, each.target] += 1
            rounds[number[each.operator, each.target]].append(each)
    for place in sorted(rounds):
        yield from turns(list(calls.by_operator(rounds[place]).values()))


def mapped(root: Path) -> set[str]:
    """Return the models that go a way of their own on some release, by the maps in a folder of goldens."""
    known = map(maps.read, root.glob(f"*/{maps.FILE}"))
    return {each.case for found in known for each in found.cells if found.sources[each.source] == calls.ARGS}


def tried(file: Path) -> Iterator[Tried]:
    """Yield the results in a file; of a line that was cut off while it was written, nothing."""
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        try:
            yield msgspec.json.decode(line, type=Tried)
        except msgspec.DecodeError:
            continue


def run(toolchain: Toolchain, known: Collection[str], jobs: int, deadline: float) -> int:
    """Export the models that have no result on a release; return how many were exported.

    Parameters
    ----------
    known
        Models that have a committed result on it.
    deadline
        By `time.monotonic`.
    """
    release = toolchain.release.version
    folder = KEPT / release
    folder.mkdir(parents=True, exist_ok=True)
    results, reached = folder / RESULTS, RECORDS / release / f"{calls.ARGS}.jsonl"
    reached.parent.mkdir(parents=True, exist_ok=True)
    done = {*known, *(each.model for each in tried(results))}
    every = [each for each in calls.read().values() if release in (each.releases or (release,))]
    root = config.load().goldens
    wanted = [each for each in order(every, mapped(root)) if each.name not in done]
    ways = building.Ways(toolchain.site_packages, BACKENDS)
    map_of_it = root / release / maps.FILE
    if map_of_it.is_file():
        ways.take(maps.read(map_of_it))
    for record in building.read(reached):
        ways.add(record.lines)
    # What shortcuts replace runs in cells of other zoos, which `reach` exports without them.
    settings = toolchain.settings((calls.ARGS,), jobs, instrument=instrument(edits.PACKAGES))
    cells = {Cell(each.target, each.name): each for each in wanted}
    number = kept = 0
    with results.open("ab") as lines, reached.open("a", encoding="utf-8") as records:
        for outcome in in_chunks(list(cells), settings, deadline):
            found = result(outcome, toolchain)
            lines.write(msgspec.json.encode(found) + b"\n")
            lines.flush()
            number += 1
            if isinstance(outcome.result, Artifact) and ways.add(outcome.result.reach):
                kept += 1
                record = building.ReachRecord(
                    calls.ARGS,
                    outcome.cell,
                    outcome.core_seconds,
                    facts(outcome.result),
                    outcome.result.reach,
                    found.outcome in (IS_WRONG, FAILED),
                )
                records.write(building.encoded(record))
                records.flush()
            if not number % 100:
                print(f"{release}: {number} of {len(cells)} tried, {kept} kept", file=sys.stderr, flush=True)
    return number


def in_chunks(wanted: Sequence[Cell], settings: Settings, deadline: float) -> Iterator[Outcome]:
    """Export cells until a time, and yield the result of each; what a sweep holds of them is freed with it."""
    for start in range(0, len(wanted), CHUNK):
        if time.monotonic() < deadline:
            yield from exported(wanted[start : start + CHUNK], settings, deadline)


def result(outcome: Outcome, toolchain: Toolchain) -> Tried:
    """Judge an export."""
    name, seconds = outcome.cell.case, round(outcome.core_seconds, 2)
    if not isinstance(outcome.result, Artifact):
        return Tried(name, ENDED, {"kind": str(outcome.result.verdict)}, seconds)
    made = Made.from_outcomes([outcome], toolchain.release)
    if made.state != RIGHT:
        word = FAILED if made.state == FAILING else IS_WRONG
        if (made.failure or made.verdict.findings[0]).fault is not Fault.TOOLCHAIN:
            word = UNJUDGED
        return Tried(name, word, made.cause, seconds)
    assert made.record is not None
    found = inventory(made.record)
    if not found.delegates.total():
        return Tried(name, OUTSIDE, {}, seconds)
    return Tried(name, PARTLY if found.outside.keys() - NEVER_TAKEN else WHOLE, {}, seconds)
