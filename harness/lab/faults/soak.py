"""``python -m lab soak``: growth while exports go on for hours with random faults.

One process keeps its templates all the time. In each turn it exports a case under both variations, and what is drawn
goes wrong with it: the case itself, its processes or a template. Nothing may grow by it: neither the memory and the
open files of this process nor temporary files nor processes. What no fault was drawn for comes out as the first time.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Artifact, Casualty, Cell, Lowered, Outcome
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from lab import REPOSITORY, markdown, pages, tables
from lab.faults.place import SOUND, TARGET, LostError, Place, demand, kill, status, until
from lab.pages import Part

#: Some of the states of the last soak, evenly.
TABLE = Path(__file__).with_name("soak.tsv")
#: All of them.
CURVES = REPOSITORY / "build" / "soak.tsv"

#: Cases at fault, and how their exports end; None where that is as of a sound one.
ENDS = {
    "dies-of-sigkill": "crashed",
    "dies-of-sigsegv": "crashed",
    "hangs-in-c": "timed-out",
    "leaves-a-process": None,
    "leaves-a-session": None,
    "dies-and-leaves-a-process": "crashed",
    "much-in-torch": "out-of-memory",
    "much-in-cpp": "out-of-memory",
}
#: Further faults of a turn, and how often in ten turns.
TURNS = ("none",) * 4 + ("case",) * 4 + ("export killed", "template killed")

#: Seconds and bytes of an export: on a machine that does much else, a sound one takes more than twenty.
LIMIT, MEMORY = 60.0, 3 << 30
#: Lines of the table; the file in build/ has them all.
SHOWN = 12
#: Turns after which what is there counts as the beginning: caches have been filled by then.
SETTLED = 10
#: Growth allowed to this process after it has settled, in 2**20 bytes: the collector's arenas differ.
SLACK_MB = 16.0


@dataclass(frozen=True)
class State:
    """The state after a turn.

    Attributes
    ----------
    memory_mb
        Resident memory of this process (man 5 proc, VmRSS).
    descriptors
        Its open files.
    files
        In the directory for temporary files, that of the sweep and its templates' logs aside.
    processes
        Below this one, templates aside.
    """

    minutes: float
    turn: int
    fault: str
    memory_mb: float
    descriptors: int
    files: int
    processes: int


#: Columns of a table of states.
COLUMNS = tuple(each.name for each in fields(State))


def resident_mb(process: int | str) -> float:
    """Return the resident memory of a process, in 2**20 bytes (man 5 proc, VmRSS)."""
    return round(int(status(process, "VmRSS").removesuffix(" kB")) / 1024, 1)


class Soak:
    """Turns of exports in one sweep that lasts."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.drawn = random.Random(seed)
        settings = Settings(default_interpreter(), ("lab.faults.zoo",), (), 2, LIMIT, memory=MEMORY)
        self.variations = variations((0, 4))
        self.sweep = Sweep([Cell(TARGET, "sound")], self.variations, settings, lasting=True)
        self.first: dict[str, object] = {}
        self.began = time.monotonic()
        self.turn = 0

    def state(self, fault: str) -> State:
        gc.collect()
        # Each template has a log and two pipes as long as it lives.
        templates = self.place.templates()
        below = {process for process in self.place.processes() if process != os.getpid()}
        files = [path for path in self.place.temporary.rglob("*") if not path.name.startswith("template-")]
        return State(
            minutes=round((time.monotonic() - self.began) / 60, 2),
            turn=self.turn,
            fault=fault,
            memory_mb=resident_mb("self"),
            descriptors=len(list(Path("/proc/self/fd").iterdir())) - 2 * len(templates),
            files=len(files),
            processes=len(below - set(templates)),
        )

    def one(self) -> State:
        """Take a turn; raise `LostError` for an end other than the fault's, or for leftovers."""
        self.turn += 1
        fault = self.drawn.choice(TURNS)
        case = self.drawn.choice(list(ENDS) if fault == "case" else list(SOUND))
        killing = None
        if fault.endswith("killed"):
            killing = threading.Thread(target=self._kill, args=(fault, self.drawn.uniform(0.0, 1.5)))
            killing.start()
        outcomes = self.sweep.again(Cell(TARGET, case), self.variations)
        if killing is not None:
            killing.join()
        said = f"{fault}, {case}, turn {self.turn}"
        for outcome in outcomes:
            self._judge(case, outcome, said, may_crash=killing is not None)
        wanted = lambda: not self.place.processes().keys() - {os.getpid(), *self.place.templates()}  # noqa: E731
        until(wanted, f"{said}: processes are left: {self.place.processes()}", 30.0)
        return self.state(case if fault == "case" else fault)

    def _judge(self, case: str, outcome: Outcome, said: str, may_crash: bool) -> None:
        result = outcome.result
        if isinstance(result, Casualty):
            right = result.verdict == ENDS.get(case) or (may_crash and result.verdict == "crashed")
            demand(right, f"{said}: {result}")
            return
        demand(ENDS.get(case) is None, f"{said}: it has come to its end")
        assert isinstance(result, Artifact)
        assert isinstance(result.result, Lowered)
        made = (result.result.graph, result.result.delegates, result.result.pte_sha256, result.result.samples)
        demand(self.first.setdefault(case, made) == made, f"{said}: another artifact than the first time")

    def _kill(self, fault: str, after: float) -> None:
        """Kill a template that is ready, or an export, if there is one at that moment."""
        time.sleep(after)
        ready = [each for each in list(self.sweep.templates.values()) if each.ready]
        exports = [process for each in ready for process, _ in list(each.children.values())]
        if found := [each.process.pid for each in ready] if fault == "template killed" else exports:
            kill(self.drawn.choice(found), self.drawn.choice((signal.SIGKILL, signal.SIGTERM)))


def grown(states: Sequence[State], turns: int = SETTLED) -> list[str]:
    """Return quantities that are larger at the end than after the first turns."""
    settled, last = states[min(turns, len(states) - 1)], states[-1]
    lines = [
        f"{name}: {before} at turn {settled.turn}, {after} at turn {last.turn}"
        for name in ("descriptors", "files", "processes")
        if (after := getattr(last, name)) > (before := getattr(settled, name))
    ]
    if last.memory_mb > settled.memory_mb + SLACK_MB:
        lines.append(f"memory: {settled.memory_mb} MB at turn {settled.turn}, {last.memory_mb} MB in the end")
    return lines


#: Columns of a state on the page: the heading, and the format of the field.
SHOWN_AS = {
    "minutes": ("minutes", "{:.0f}"),
    "turn": ("turns", "{}"),
    "memory_mb": ("memory, MB", "{:.0f}"),
    "descriptors": ("descriptors", "{}"),
    "files": ("temporary files", "{}"),
    "processes": ("processes", "{}"),
}


def parts() -> Iterator[Part]:
    """Yield the table of the soak of harness/lab/docs/reliability.md."""
    yield Part("harness/lab/docs/reliability.md", "soak", lambda: committed(TABLE))


def committed(file: Path) -> Iterator[str]:
    """Yield the states of a table as Markdown."""
    yield from markdown.head([head for head, _ in SHOWN_AS.values()])
    for row in tables.read(file, COLUMNS):
        numbers = {
            name: float(row[name]) if "." in form else row[name] for name, (_, form) in SHOWN_AS.items()
        }
        yield markdown.row([form.format(numbers[name]) for name, (_, form) in SHOWN_AS.items()])


def some(states: Sequence[State]) -> list[State]:
    """Return some of the states, evenly, and the last one."""
    step = max(1, len(states) // SHOWN)
    return list(dict.fromkeys([*states[::step][:SHOWN], states[-1]]))


def concluded(
    states: Sequence[State],
    lost: str,
    more: Sequence[str],
    update: bool,
    instrument: str,
    files: tuple[Path, Path],
) -> int:
    """Print the results of a soak, write its table, all states and its page if asked; return its exit code."""
    print("\n".join([lost or "nothing lost", *(more or ["nothing has grown"])]))
    if update and states:
        for file, of_file in zip(files, (some(states), states), strict=True):
            tables.write(file, COLUMNS, map(asdict, of_file))
        pages.update([instrument])
    return int(bool(lost or more))


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="how long (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults")
    parser.add_argument(
        "--update", action="store_true", help="write the table and the page; build/ gets all states"
    )
    # Of the process that soaks: what processes are known by is there from its first moment on.
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Soak and print; return 1 if anything was lost or has grown."""
    if options.place is None:
        with tempfile.TemporaryDirectory(prefix="soak-") as made:
            place = Place(Path(made)).make()
            place.go_on()
            words = [sys.executable, "-m", "lab", "soak", *options.forwarded, "--place", made]
            with place.start(words, stdout=None, stderr=None) as process:
                return process.wait()
    place = Place(options.place)
    states: list[State] = []
    lost = ""
    soak = Soak(place, options.seed)
    with soak.sweep:
        while time.monotonic() - soak.began < options.minutes * 60:
            try:
                states.append(soak.one())
            except LostError as error:
                lost = str(error)
                break
            print(asdict(states[-1]), flush=True)
    return concluded(states, lost, grown(states) if states else [], options.update, "soak", (TABLE, CURVES))
