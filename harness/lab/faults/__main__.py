"""``python -m lab faults [--only NAME]``: losses through deliberate faults."""

from __future__ import annotations

import argparse
import functools
import itertools
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab import markdown, pages, tables
from lab.faults import damage, power, running, together, updating, writing
from lab.faults.fault import Fault, baseline, tried
from lab.faults.place import LostError, Place
from lab.faults.updating import Update
from lab.pages import Part

#: Losses by each fault that was made.
TABLE = Path(__file__).with_name("faults.tsv")

#: Random moments at which an update is killed.
KILLS = 200

#: Columns of the page, and of the table: the fields of `Row`.
HEAD = ("fault", "how it is made", "what becomes of the run", "times", "lost")
COLUMNS = ("name", "made", "holds", "times", "lost")

FAULTS = {fault.name: fault for room in (running, writing, together, damage) for fault in room.faults()}


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    made: str
    holds: str
    times: str
    lost: str


def parts() -> Iterator[Part]:
    """Yield the table of faults of harness/lab/docs/reliability.md."""
    yield Part("harness/lab/docs/reliability.md", "faults", _committed)


def _committed() -> Iterator[str]:
    yield from markdown.head(HEAD)
    for row in tables.read(TABLE, COLUMNS):
        yield markdown.row([*(row[name] for name in COLUMNS[:-1]), row["lost"] or "nothing"])


def keep(row: Row) -> None:
    """Put the row of a fault into the table; rows of others stay."""
    rows = {each["name"]: each for each in tables.read(TABLE, COLUMNS)}
    rows[row.name] = {**asdict(row), "lost": row.lost.partition("\n")[0]}
    tables.write(TABLE, COLUMNS, [rows[name] for name in NAMES if name in rows])


def of_fault(fault: Fault, sound: Place, repeats: int) -> Row:
    """Make a fault so often, or until something is lost."""
    for number in range(repeats):
        found = tried(fault, sound)
        print(f"{fault.name}: {found.lost or 'nothing lost'} ({found.seconds:.0f} s)", flush=True)
        if found.lost:
            return Row(fault.name, fault.made, fault.holds, str(number + 1), found.lost)
    return Row(fault.name, fault.made, fault.holds, str(repeats), "")


def updates(sound: Callable[[], Place], folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Interrupt both commands that write goldens, in every way."""
    whole = "each golden is the old one or the new one; the next one ends it"
    makers: Mapping[str, Callable[[Path], Update]] = {
        "recording": lambda folder: updating.recording(sound(), folder),
        "accepting": updating.accepting,
    }
    for name, make in makers.items():
        if not any(options.wanted(f"{name}: {how}") for how in WAYS):
            continue
        update = make(folder / f"{name}-before")
        place = folder / name

        def killed(update: Update = update, place: Path = place) -> str:
            tried, between = updating.killed_at_random(update, options.kills, options.seed, place)
            return f"{options.kills} of {tried} moments before its end, {between} between two goldens"

        def hindered(how: str, update: Update = update, place: Path = place) -> str:
            tried, calls = updating.at_calls(update, how, options.calls, place)
            return f"{tried} of {calls} calls"

        def cut(update: Update = update, place: Path = place) -> str:
            operations, disks = power.cut(update, place)
            return f"after each of {operations} operations, {disks} disks"

        ways: Mapping[str, tuple[str, Callable[[], str]]] = {
            "killed at random": ("SIGKILL at a random moment", killed),
            "killed at calls": (
                "SIGKILL at a system call that writes, by strace",
                lambda: hindered("signal"),
            ),
            "failing calls": ("a system call fails: no space, input/output error", lambda: hindered("error")),
            "power cut": ("its recorded writes that are certainly on disk", cut),
        }
        for how, (made, make_it) in ways.items():
            if options.wanted(f"{name}: {how}"):
                lost, times = "", "?"
                try:
                    times = make_it()
                except LostError as error:
                    lost = str(error)
                except Exception:
                    lost = traceback.format_exc()
                print(f"{name}: {how}: {times}: {lost or 'nothing lost'}", flush=True)
                yield Row(f"{name}: {how}", f"{made}, `{update.name}`", whole, times, lost)


WAYS = ("killed at random", "killed at calls", "failing calls", "power cut")
#: Groups of rows, in their order.
NAMES = (*FAULTS, *(f"{name}: {how}" for name in ("recording", "accepting") for how in WAYS))


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("faults", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="faults whose name has this in it; repeatable"
    )
    parser.add_argument("--repeats", type=int, default=1, help="how often each fault is made (default: 1)")
    parser.add_argument(
        "--kills", type=int, default=KILLS, help="random moments of each update (default: %(default)s)"
    )
    parser.add_argument(
        "--calls", type=int, default=0, help="system calls of each update (default: all that write)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--update", action="store_true", help="put their rows into the table and the page")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make faults and print the losses; return 1 if there are any."""
    options.wanted = lambda name: not options.only or any(part in name for part in options.only)
    if options.list:
        print("\n".join(NAMES))
        return 0
    lost = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as made:
        # Outside of the checkout, whose settings would be in the keys of what it keeps.
        sound = functools.cache(lambda: baseline(Path(made, "sound")))
        chosen = [fault for fault in FAULTS.values() if options.wanted(fault.name)]
        rows = (of_fault(fault, sound(), options.repeats) for fault in chosen)
        for row in itertools.chain(rows, updates(sound, Path(made), options)):
            lost += bool(row.lost)
            if options.update:
                # At once: a session that is stopped has written what it came to.
                keep(row)
                pages.update(["faults"])
    return int(lost > 0)
