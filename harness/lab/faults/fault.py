"""A fault: how it is made, and the conditions that its run, and every later one, must meet."""

from __future__ import annotations

import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.files.invocation import UPDATE
from lab.faults.place import SOUND, LostError, Place, demand, kill, until

#: Seconds that processes may take to end after their run: a template that is warming up sees it when it is done.
LEAVING = 240.0


@dataclass(frozen=True)
class Fault:
    """One way in which something goes wrong.

    Attributes
    ----------
    name
        In a few words; unique.
    made
        Its description.
    holds
        The expected end of the run: verdicts, words, exit code.
    make
        Makes it in a place and demands that; raises `LostError`.
    updates
        Whether the run may write goldens: then each is the old one or the new one afterwards.
    leaves
        Whether temporary files may be left, which the next run deletes.
    exports
        Whether the next run exports; otherwise it takes exports from the store.
    """

    name: str
    made: str
    holds: str
    make: Callable[[Place], None]
    updates: bool = False
    leaves: bool = False
    exports: bool = False


@dataclass(frozen=True)
class Tried:
    """A fault that was made, and its losses."""

    fault: Fault
    lost: str
    seconds: float


def baseline(folder: Path) -> Place:
    """Return a place with goldens of the sound cells, and a store of their exports: real ones.

    The folder is in no checkout: its settings would be in the keys of what the store holds.
    """
    place = Place(folder).make()
    place.go_on()
    ended = place.run(*place.reusing(), "--variations", "0,4", UPDATE)
    demand(ended.code == 0 and len(place.goldens_by_digest()) == len(SOUND), f"no baseline:\n{ended.output}")
    return place


def tried(fault: Fault, sound: Place, folder: Path | None = None) -> Tried:
    """Make a fault in a new place that begins like `sound`; return the losses."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fault-", dir=folder) as made:
        place = Place(Path(made)).like(sound)
        lost = ""
        try:
            _try(fault, place, sound)
        except LostError as error:
            lost = str(error)
        except Exception:
            lost = traceback.format_exc()
        for process in place.processes():
            kill(process)
    return Tried(fault, lost, time.monotonic() - began)


def _try(fault: Fault, place: Place, sound: Place) -> None:
    fault.make(place)
    place.variables.clear()
    until(lambda: not place.processes(), f"processes are left: {place.processes()}", LEAVING)
    if not fault.leaves:
        demand(not place.temporary_files(), f"temporary files are left: {place.temporary_files()}")
    expected = sound.goldens_by_digest()
    found = place.goldens_by_digest()
    if not fault.updates:
        demand(found == expected, f"goldens have changed: {found}, and were {expected}")
    _run_again(fault, place)
    demand(place.goldens_by_digest() == expected, "the next run did not bring the goldens in order")
    until(lambda: not place.processes(), f"the next run leaves processes: {place.processes()}", LEAVING)
    demand(not place.temporary_files(), f"the next run leaves files: {place.temporary_files()}")
    demand(not place.unfinished(), f"the next run leaves {place.unfinished()}")


def _run_again(fault: Fault, place: Place) -> None:
    place.go_on()
    words = ("--variations", "1") if fault.exports else (*place.reusing(), "--variations", "0,4")
    if fault.updates:
        words = (*place.reusing(), "--variations", "0,4", UPDATE)
    ended = place.run(*words)
    demand(ended.code == 0, f"the next run is not green, it ends with {ended.code}:\n{ended.output}")
    good = {"stable", "changed", "new"} if fault.updates else {"stable"}
    demand(
        set(ended.rows) == set(SOUND) and set(ended.verdicts().values()) <= good,
        f"the next run finds {ended.verdicts()}",
    )
