"""Make faults: ``python -m lab faults [--only NAME]``; ``nox -s lab -- faults`` runs it."""

from __future__ import annotations

import argparse
import functools
import itertools
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import REPOSITORY
from lab.faults import damage, power, running, together, updating, writing
from lab.faults.fault import Fault, baseline, tried
from lab.faults.place import LostError, Place
from lab.faults.updating import Update

PAGE = REPOSITORY / "docs" / "reliability.md"
#: The part of the page that this writes.
TABLE = re.compile(r"(?<=<!-- faults -->\n).*?(?=<!-- /faults -->)", re.DOTALL)

#: Random moments at which an update is killed.
KILLS = 200

HEAD = "| fault | how it is made | what becomes of the run | times | lost |\n|---|---|---|---|---|\n"

FAULTS = {fault.name: fault for room in (running, writing, together, damage) for fault in room.faults()}


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    made: str
    holds: str
    times: str
    lost: str

    def __str__(self) -> str:
        lost = self.lost.splitlines()[0].replace("|", "\\|") if self.lost else "nothing"
        return f"| {self.name} | {self.made} | {self.holds} | {self.times} | {lost} |"


def merged(page: str, row: Row) -> str:
    """Return a page with the row of a fault put into its table; rows of others stay."""
    (table,) = TABLE.findall(page)
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()[2:]}
    rows[row.name] = str(row)
    return TABLE.sub(lambda _: HEAD + "".join(f"{rows[name]}\n" for name in NAMES if name in rows), page)


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
            "power cut": ("its recorded writes, as far as they are on the disk for certain", cut),
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
#: What there are rows of, in their order.
NAMES = (*FAULTS, *(f"{name}: {how}" for name in ("recording", "accepting") for how in WAYS))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make faults and print what was lost; return 1 if anything was."""
    parser = argparse.ArgumentParser(prog="nox -s lab -- faults --", description=__doc__)
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
    parser.add_argument(
        "--update", action="store_true", help=f"put their rows into {PAGE.relative_to(REPOSITORY)}"
    )
    options = parser.parse_args(arguments)
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
                PAGE.write_text(merged(PAGE.read_text(encoding="utf-8"), row), encoding="utf-8")
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
