"""Faults of a run's output: full disks, a root that cannot be written, links that lead elsewhere."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.files.invocation import UPDATE
from executorch_goldens.goldens import golden
from lab.faults.fault import Fault
from lab.faults.place import SOUND, TARGET, Place, demand, tiny_disk
from lab.faults.running import ONE
from lab.faults.updating import age

#: Bytes that the content of a file takes of a file system in memory, or a multiple.
PAGE = 4096
#: Pages that there is room for beyond what is there, such that one write after the other is the first that fails.
ROOM = (1, 2, 4, 7, 11, 16)

TWO = ("--variations", "0,4")


def pages(folder: Path) -> int:
    """Return how many pages the content of a folder takes."""
    return sum(-(-path.stat().st_size // PAGE) for path in folder.rglob("*") if path.is_file())


def full_goldens(place: Place) -> None:
    place.go_on()
    age(place)
    failed = 0
    for room in ROOM:
        with tiny_disk(place.goldens, str((pages(place.goldens) + room) * PAGE)):
            ended = place.run(*place.reusing(), *TWO, UPDATE)
            place.goldens_by_digest()
        if ended.code != 0:
            failed += 1
            ended.is_one_error("No space left on device", str(place.goldens))
            demand("damaged-golden" not in ended.output, ended.output)
    demand(failed > 1, f"there was always room, {ROOM} pages")


def full_results(place: Place) -> None:
    """Fill the disk while results of changed cells, with their files, are written."""
    place.go_on()
    age(place)
    failed = 0
    for room in (1, 2, 3, 6, 12, 24):
        with tiny_disk(place.sweeps, str((pages(place.sweeps) + room) * PAGE)):
            ended = place.run(*place.reusing(), *TWO)
        shutil.rmtree(place.sweeps)
        place.sweeps.mkdir()
        demand(ended.code != 0, ended.output)
        if set(ended.verdicts()) != set(SOUND) or "No space left" in ended.output:
            failed += 1
            ended.is_one_error("No space left on device")
    demand(failed > 1, "there was always room")


def full_temporary(place: Place) -> None:
    place.go_on()
    failed = 0
    for size in ("8k", "16k", "24k", "64k"):
        with tiny_disk(place.temporary, size):
            ended = place.run(*ONE, cells=("sound",))
        if ended.verdicts() != {"sound": "stable"}:
            failed += 1
            ended.is_one_error("No space left on device")
            demand("new" not in ended.verdicts().values(), ended.output)
    demand(failed > 1, "there was always room")


def full_store(place: Place) -> None:
    """Fill the store's disk: exports are judged all the same."""
    place.go_on()
    shutil.rmtree(place.store)
    place.store.mkdir()
    with tiny_disk(place.store, "64k"):
        ended = place.run(*place.reusing(), *ONE)
    demand(ended.code == 0 and set(ended.verdicts().values()) == {"stable"}, ended.output)
    for fact in ("nothing more was kept", "No space left on device"):
        demand(fact in ended.output, f"{fact!r} is not said:\n{ended.output}")
    shutil.rmtree(place.store)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    with tiny_disk(folder, "16m"):
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield


def read_only_goldens(place: Place) -> None:
    place.go_on()
    with read_only(place.goldens):
        recording = place.run(*place.reusing(), *TWO, UPDATE)
        reading = place.run(*place.reusing(), *TWO)
    recording.is_one_error("Read-only file system", "--goldens DIR")
    demand(reading.code == 0, reading.output)


def links(place: Place) -> None:
    """Replace a golden, and the folders that it is in, by links to somewhere else."""
    place.go_on()
    cell = golden.file_of(place.goldens / place.release, Cell(TARGET, SOUND[0]))
    outside = place.folder / "outside"
    for linked in (cell, cell.parent, cell.parent.parent):
        linked.rename(outside)
        linked.symlink_to(outside)
        before = digests(outside)
        for words in ((), (UPDATE,)):
            ended = place.run(*place.reusing(), *TWO, *words)
            ended.is_one_error("is a link, which is not followed")
            demand(linked.is_symlink() and digests(outside) == before, f"{linked} was written through")
        linked.unlink()
        outside.rename(linked)


def digests(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {str(file): file.read_bytes() for file in files}


def faults() -> Iterator[Fault]:
    """Yield them."""
    full = "file system of {} pages more than there is"
    yield Fault(
        "disk full: goldens",
        "a " + full.format("1 to 16"),
        "one error that names it; each golden the old one or the new one; 4",
        full_goldens,
        updates=True,
    )
    yield Fault(
        "disk full: results",
        "a " + full.format("1 to 24"),
        "one error that names it; 4",
        full_results,
        updates=True,
    )
    yield Fault(
        "disk full: temporary files",
        "a file system of 8, 16, 24 and 64 KiB",
        "one error, or `failed` and never recorded, 1 or 4; `stable` where there is room",
        full_temporary,
        exports=True,
    )
    yield Fault(
        "disk full: store",
        "a file system of 64 KiB",
        "nothing more is kept, and that is said; verdicts as without; 0",
        full_store,
        exports=True,
    )
    yield Fault(
        "goldens read-only",
        "`mount -o ro`",
        "recording is refused in one error, 4; reading is green, 0",
        read_only_goldens,
    )
    yield Fault(
        "goldens: links to outside",
        "a file, a golden, a target, a release",
        "`damaged-golden`, or one error; nothing is written there",
        links,
    )
