"""Two at once: runs, a run and a review, a run and a merge, over one checkout and over one store."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

from executorch_goldens.files.invocation import UPDATE
from lab.faults.fault import Fault
from lab.faults.place import Ended, Place, demand
from lab.faults.running import ONE, while_exporting
from lab.faults.updating import age, folders
from lab.faults.writing import TWO


def ends_green(place: Place, process: subprocess.Popen[str]) -> Ended:
    """Let a run go on, and demand that it has not noticed anything."""
    place.go_on()
    ended = place.finish(process)
    demand(ended.code == 0 and set(ended.verdicts().values()) <= {"stable", "changed", "new"}, ended.output)
    return ended


def two_runs(place: Place) -> None:
    first = while_exporting(place)
    second = place.finish(place.start(place.run_command(*ONE)))
    second.is_one_error("a different run works on", "wait for it", "--sweeps")
    ends_green(place, first)


def two_recordings(place: Place) -> None:
    """Record into one root from two folders of results."""
    first = place.start(place.run_command(*TWO, UPDATE))
    place.await_export()
    other = Place(place.folder / "other").make()
    command = place.run_command(*place.reusing(), *TWO, UPDATE)
    moved = [word.replace(str(place.sweeps), str(other.sweeps)) for word in command]
    second = place.finish(place.start(moved))
    second.is_one_error("is being written by a different run", "Wait for it")
    # One that only reads is green meanwhile.
    reading = place.finish(place.start([word for word in moved if word != UPDATE]))
    demand(reading.code == 0, reading.output)
    ends_green(place, first)


def run_and_review(place: Place) -> None:
    """Accept proposals during a run that may propose something else."""
    age(place)
    proposed = place.run(*place.reusing(), *TWO)
    demand(set(proposed.verdicts().values()) == {"changed"}, proposed.output)
    listed = place.command("review", *folders(place))
    (group, *_) = re.findall(r"^([0-9a-f]{8})\b", listed.output, re.MULTILINE)
    run = place.start(place.run_command(*TWO, cells=("waits",)))
    place.await_export()
    refused = place.command("review", "--accept", group, *folders(place))
    refused.is_one_error("a run works on", "wait for it")
    place.go_on()
    demand(place.finish(run).code == 1, "the run found nothing changed")
    accepted = place.command("review", "--accept", group, *folders(place))
    demand(accepted.code == 0, accepted.output)


def run_and_merge(place: Place) -> None:
    run = while_exporting(place)
    into = f"--into={place.folder / 'merged'}"
    refused = place.command("merge", str(place.sweeps), into, f"--goldens={place.goldens}")
    refused.is_one_error("a run works on", "wait for it")
    ends_green(place, run)
    merged = place.command("merge", str(place.sweeps), into, f"--goldens={place.goldens}")
    demand(merged.code == 0, merged.output)


def one_store(place: Place) -> None:
    """Let three runs fill one store, which may have as much as two exports take: what is used stays."""
    place.go_on()
    modules = place.folder / "modules"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(
        "from executorch_goldens.sweep.store import Store\nStore.__init__.__defaults__ = (40 << 10,)\n"
    )
    others = [Place(place.folder / name).like(place) for name in ("one", "two", "three")]
    for other in others:
        other.go_on()
        other.variables["PYTHONPATH"] = f"{modules}{os.pathsep}{other.environment()['PYTHONPATH']}"
    store = place.folder / "shared"
    for _ in range(2):
        words = (f"--cache={store}", *ONE)
        running = [(other, other.start(other.run_command(*words))) for other in others]
        for other, process in running:
            ended = other.finish(process)
            demand(ended.code == 0, ended.output)
            demand(set(ended.verdicts().values()) == {"stable"}, ended.output)
    for other in others:
        demand(not other.temporary_files(), f"temporary files are left: {other.temporary_files()}")


def faults() -> Iterator[Fault]:
    """Yield them."""
    yield Fault(
        "two runs, one folder of results",
        "the second starts in the middle of the first",
        "the second is refused: wait for it; 4",
        two_runs,
    )
    yield Fault(
        "two recordings, one root of goldens",
        "with results of their own",
        "the second is refused, 4; one that reads is green, 0",
        two_recordings,
        updates=True,
    )
    yield Fault(
        "a run and a review",
        "`review --accept` in the middle of a run",
        "the review is refused, 2; then it accepts, 0",
        run_and_review,
        updates=True,
    )
    yield Fault(
        "a run and a merge",
        "`merge` of its results in the middle of a run",
        "the merge is refused, 2; then it merges, 0",
        run_and_merge,
    )
    yield Fault(
        "three runs, one store",
        "twice, with room for two exports: each evicts what no other uses",
        "all `stable`; 0",
        one_store,
    )
