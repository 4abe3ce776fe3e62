"""Updates that are interrupted: ``--snapshot-update`` and a review's accept, killed or hindered where they write."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens import patches
from executorch_goldens.causes.groups import PENDING, grouped, read_members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.files import durable
from executorch_goldens.files.invocation import UPDATE
from executorch_goldens.goldens import golden, roots
from executorch_goldens.goldens.findings import Differs
from executorch_goldens.goldens.record import GRAPH, Record
from executorch_goldens.results import proposals, provenance
from executorch_goldens.results.proposals import CellFile, Proposal
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.exports import Settings, default_interpreter
from lab import GOLDENS
from lab.faults.place import TARGET, LostError, Place, demand, kill
from lab.faults.server import Server

#: Goldens that a review is asked to accept.
PROPOSED = 5

#: System calls that write, rename, delete, or sync (man 2 syscalls).
CALLS = (
    *("openat", "write", "fsync", "rename", "renameat", "renameat2", "mkdir", "mkdirat"),
    *("unlink", "unlinkat", "rmdir", "ftruncate"),
)
#: Errors of system calls on a full or dying disk.
ERRORS = {"fsync": "EIO", "unlink": "EIO", "unlinkat": "EIO", "rmdir": "EIO"}
FULL = "ENOSPC"


def age(place: Place) -> dict[str, str]:
    """Replace each golden by another one that is whole as well; return the digests of these."""
    root = place.goldens / place.release
    for cell in list(golden.recorded(root)):
        path = golden.file_of(root, cell)
        record = golden.read(path)
        assert record is not None
        sections = {**record.sections, GRAPH: f"{record.sections[GRAPH]}# older\n"}
        golden.write(path, Record(record.facts, sections))
    place.old = place.goldens_by_digest()
    return place.old


@dataclass(frozen=True)
class Update:
    """A command that writes goldens, and a place that it can begin in as often as one likes.

    Attributes
    ----------
    before
        A place in which every golden is an older one.
    new
        Digests of the goldens that it writes.
    words
        Of the command, for a place.
    """

    name: str
    before: Place
    new: Mapping[str, str]
    words: Callable[[Place], list[str]]

    @contextlib.contextmanager
    def begun(self, folder: Path) -> Iterator[Place]:
        """Give a place that is like `before`."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.before.folder, folder, symlinks=True)
        # Proposals and results say where they are in no word.
        place = Place(folder, old=self.before.old)
        place.go_on()
        yield place

    def demand_whole(self, place: Place, when: str) -> bool:
        """Demand that each golden is the old one or the new one; return whether some are new, and some old."""
        try:
            found = place.goldens_by_digest()
        except LostError as error:
            raise LostError(f"{self.name}, {when}: {error}") from error
        for cell, new in self.new.items():
            demand(
                found.get(cell) in (new, self.before.old[cell]),
                f"{self.name}, {when}: {cell} is neither the old one nor the new one: {found.get(cell)}",
            )
        return found not in (dict(self.new), dict(self.before.old))

    def demand_new(self, place: Place, when: str, output: str) -> None:
        """Demand that the command, run once more, has written the rest."""
        demand(
            place.goldens_by_digest() == self.new and not place.unfinished(),
            f"{self.name}, {when}, and again: {place.unfinished() or 'not all are new'}:\n{output}",
        )


def recording(sound: Place, folder: Path) -> Update:
    """Return a run with --snapshot-update, whose exports come from the store."""
    place = Place(folder).like(sound)
    age(place)

    def words(place: Place) -> list[str]:
        return place.run_command(*place.reusing(), "--variations", "0,4", UPDATE)[3:]

    return Update("--snapshot-update", place, sound.goldens_by_digest(), words)


def accepting(folder: Path, count: int = PROPOSED) -> Update:
    """Return a review that accepts the proposals of some cells: committed goldens, in place of older ones."""
    place = Place(folder).make()
    place.go_on()
    shutil.copy(GOLDENS / roots.ZOO, place.goldens)
    root = place.goldens / place.release
    there = [cell for cell in golden.recorded(GOLDENS / place.release) if cell.target == TARGET][:count]
    durable.make_folder(root)
    shutil.copy(GOLDENS / place.release / golden.RELEASE, root)
    for cell in there:
        record = golden.read(golden.file_of(GOLDENS / place.release, cell))
        assert record is not None
        golden.write(golden.file_of(root, cell), record)
    proposed = {cell.case: golden.read(golden.file_of(root, cell)) for cell in there}
    new = place.goldens_by_digest()
    age(place)
    release = releases.load().release(place.release)
    settings = Settings(default_interpreter(), ("models",), patches.select("auto", release.patches), 1, 60.0)
    for case, made in proposed.items():
        assert made is not None
        folder = place.sweeps / place.release / TARGET / case
        proposal = Proposal(
            release=place.release,
            target=TARGET,
            case=case,
            verdict="changed",
            findings=(Differs(("graph",)),),
            blamed=None,
            content=made.digest,
            replaces=place.old[f"{TARGET}/{case}"],
            models=("models",),
            commit=provenance.commit(place.folder),
            changes=provenance.changes(place.folder, place.goldens),
            settings=provenance.facts(settings),
            folder=folder,
        )
        golden.write(folder / proposals.GOLDEN, made, kept=True)
        CellFile(proposal).write(folder)
    return Update("review --accept", place, new, accept_all)


def folders(place: Place) -> tuple[str, str]:
    return f"--goldens={place.goldens}", f"--sweeps={place.sweeps}"


# Killed at random


def again(update: Update, place: Place, server: Server, when: str) -> None:
    """Carry the command out once more, and demand that nothing is left to be done."""
    log = place.folder / "again.log"
    words = update.words(place)
    if words:
        server.start(words, place.environment(), log)
        code = server.wait()
        demand(code == 0, f"{update.name}, {when}, and again: it ends with {code}:\n{log.read_text()}")
    else:
        # With nothing left to record, what is left beside a golden goes with the next recording.
        golden.recover(place.goldens / place.release)
    update.demand_new(place, when, log.read_text() if words else "nothing is proposed any more")


def accept_all(place: Place) -> list[str]:
    """Return the command that accepts whatever is proposed now; nothing where nothing is.

    Accepted proposals are gone, and the remaining ones may have another name.
    """
    goldens = place.goldens.resolve()
    standing = Standing(config.load(place.folder), goldens)
    groups = grouped(read_members(proposals.find(place.sweeps), goldens, standing))
    wrong = [member.objection for group in groups if group.state != PENDING for member in group.members]
    demand(not wrong, f"the remaining goldens cannot be accepted: {wrong}")
    return (
        ["review", *(word for group in groups for word in ("--accept", group.name)), *folders(place)]
        if groups
        else []
    )


def killed_at_random(update: Update, times: int, seed: int, folder: Path) -> tuple[int, int]:
    """Kill the command so often at random moments; return how often it was tried, and how often between two goldens.

    A moment after its end does not count. Half of the moments are drawn from all of its time, half from the time after
    its first golden is begun.
    """
    drawn = random.Random(seed)
    between = killed = number = 0
    with Server(update.before.environment()) as server:
        whole, writing = measured(update, server, folder)
        while killed < times:
            with update.begun(folder) as place:
                process = server.start(update.words(place), place.environment(), place.folder / "log")
                if number % 2:
                    await_writing(place, whole)
                    moment = drawn.uniform(0.0, writing)
                else:
                    moment = drawn.uniform(0.0, whole)
                time.sleep(moment)
                kill(process)
                killed += server.wait() == -signal.SIGKILL
                when = f"killed after {moment:.4f} s ({number} of seed {seed})"
                between += update.demand_whole(place, when)
                again(update, place, server, when)
            number += 1
    return number, between


def measured(update: Update, server: Server, folder: Path) -> tuple[float, float]:
    """Return how long the command takes undisturbed, and how long of it from its first golden on, in seconds."""
    with update.begun(folder) as place:
        began = time.monotonic()
        server.start(update.words(place), place.environment(), place.folder / "log")
        await_writing(place, 60.0)
        wrote = time.monotonic()
        code = server.wait()
        ended = time.monotonic()
        update.demand_new(place, f"undisturbed ({code})", (place.folder / "log").read_text())
    return ended - began, ended - wrote


def await_writing(place: Place, patience: float) -> None:
    """Wait until the first golden is being written, or has been."""
    target = next((place.goldens / place.release).glob("*/"))
    before = target.stat().st_mtime_ns
    end = time.monotonic() + patience
    while target.stat().st_mtime_ns == before and time.monotonic() < end:
        pass


# At every system call


@dataclass(frozen=True)
class Call:
    """The `number`th call of a system call in a command; `what` is its line in strace's output."""

    name: str
    number: int
    what: str


def at_calls(update: Update, how: str, most: int, folder: Path) -> tuple[int, int]:
    """Hinder the command at each system call that writes, or at about `most`; return at how many, and of how many.

    Parameters
    ----------
    how
        ``signal``, and it is killed there, or ``error``, and the call fails.
    """
    demand(shutil.which("strace"), "strace is not installed: apt-get install strace")
    with Server(update.before.environment()) as server:
        calls = calls_of(update, server, folder)
        chosen = calls[:: max(1, len(calls) // most)] if most else calls
        for call in chosen:
            hindered(update, server, call, how, folder)
    return len(chosen), len(calls)


def calls_of(update: Update, server: Server, folder: Path) -> list[Call]:
    """Return the calls of the command that change something in its place, output aside."""
    with update.begun(folder) as place:
        calls, log = place.folder / "calls", place.folder / "log"
        known = ",".join(f"?{name}" for name in CALLS)
        strace = ("-y", "-s", "0", "-o", str(calls), "-e", f"trace={known}")
        server.start(update.words(place), place.environment(), log, strace)
        server.wait()
        update.demand_new(place, "under strace", log.read_text())
        lines = calls.read_text(errors="replace").splitlines()
    found, seen = [], dict.fromkeys(CALLS, 0)
    for line in lines:
        name = line.partition("(")[0]
        if name not in seen:
            continue
        seen[name] += 1
        inside = str(folder) in line and not line.endswith("ENOENT (No such file or directory)")
        # No disk is so full that nothing can be written to nowhere.
        elsewhere = str(log) in line or f'"{os.devnull}"' in line
        if inside and not elsewhere and (name != "openat" or "O_CREAT" in line):
            found.append(Call(name, seen[name], line))
    return found


def hindered(update: Update, server: Server, call: Call, how: str, folder: Path) -> None:
    """Let a call fail, or kill the command at it; demand the invariants."""
    error = ERRORS.get(call.name, FULL)
    fault = f"error={error}" if how == "error" else "signal=SIGKILL"
    inject = f"inject={call.name}:{fault}:when={call.number}"
    with update.begun(folder) as place:
        log = place.folder / "log"
        strace = ("-o", os.devnull, "-e", f"trace={call.name}", "-e", inject)
        server.start(update.words(place), place.environment(), log, strace)
        code = server.wait()
        when = f"{fault} at {call.what}"
        demand(how == "error" or code == -signal.SIGKILL, f"{update.name}, {when}: it was not killed: {code}")
        update.demand_whole(place, when)
        output = log.read_text()
        demand("Traceback" not in output, f"{update.name}, {when}: a traceback:\n{output}")
        again(update, place, server, when)
