"""``python -m lab fuzz-bytes [READER...]``: behaviour of file readers on mutations of real files.

The work is cut into pieces, each in a process of its own (`lab.fuzz_bytes.piece`), and what a piece found is noted
when it ends: a session that is stopped goes on where it was, as long as the harness is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import REPOSITORY, markdown, pages, tables
from lab.fuzz_bytes.piece import CURRENT, MEGABYTES, SECONDS
from lab.fuzz_bytes.readers import READERS
from lab.pages import Part

FOLDER = REPOSITORY / "build" / "fuzz-bytes"
#: Findings of each reader's pieces in the last full run.
TABLE = Path(__file__).with_name("read.tsv")
COLUMNS = ("reader", "mutations", "core seconds", "slowest", "findings")

#: Mutations of each reader in a full run, and by default.
FULL = 20_000
FEW = 500
#: Mutations of a piece: hypothesis remembers each, so that a long piece would take ever more memory.
PIECE = 1000


@dataclass(frozen=True)
class Pieces:
    """Results of several pieces, in a file with a line for each."""

    file: Path
    harness: str

    def read(self) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of pieces of this harness."""
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        yield from (row for row in map(json.loads, lines) if row["harness"] == self.harness)

    def add(self, row: Mapping[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "harness": self.harness}) + "\n")


def digest_of_harness() -> str:
    """Return a digest of the code that reads, and of the code that mutates."""
    digest = hashlib.sha256()
    folders = (*sorted((REPOSITORY / "harness").glob("executorch_goldens*")), Path(__file__).parent)
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(str(path.relative_to(REPOSITORY)).encode() + path.read_bytes())
    return digest.hexdigest()


def seed_of(run: int, reader: str, number: int) -> int:
    """Return the seed of a piece: the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{run} {reader} {number}".encode()).digest()[:8], "little")


def fuzz(reader: str, count: int, run: int, number: int, aside: Path) -> dict[str, Any]:
    """Run one piece in a process of its own, and return its findings."""
    words = (reader, str(count), str(seed_of(run, reader, number)), str(aside))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "lab.fuzz_bytes.piece", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = {"reader": reader, "run": run, "number": number, "count": count, "seconds": round(spent, 1)}
    if done.returncode == 0:
        made: dict[str, Any] = json.loads(done.stdout)
        return row | made
    if done.returncode > 0:
        sys.exit(f"the piece {' '.join(words)} failed:\n{done.stderr}")
    data = (aside / CURRENT).read_bytes()
    name = hashlib.sha256(data).hexdigest()[:12]
    (aside / name).write_bytes(data)
    ended = f"the process was ended by {signal.Signals(-done.returncode).name}"
    return row | {"tried": 0, "slowest": SECONDS, "peak_mb": 0, "digest": "", "found": {name: ended}}


def sums(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield the findings of each reader's pieces, by `COLUMNS`."""
    for reader in READERS:
        own = [row for row in rows if row["reader"] == reader]
        if own:
            found = {what.partition(" (")[0] for row in own for what in row["found"].values()}
            yield {
                "reader": reader,
                "mutations": str(tried(own, reader)),
                "core seconds": f"{sum(row['seconds'] for row in own):.0f}",
                "slowest": f"{max(row['slowest'] for row in own):.2f}",
                "findings": str(len(found)),
            }


def lines(found: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield a table of `sums`."""
    yield from markdown.head(
        ("reader", "refuses with", "mutations", "core seconds", "slowest, s", "findings")
    )
    for each in found:
        declared = ", ".join(f"`{error.__name__}`" for error in READERS[each["reader"]].declared)
        counts = (f"{int(each[name]):,}" for name in ("mutations", "core seconds"))
        yield markdown.row([each["reader"], declared, *counts, each["slowest"], each["findings"]])


def parts() -> Iterator[Part]:
    """Yield the table of mutated files of harness/lab/docs/reliability.md."""
    yield Part("harness/lab/docs/reliability.md", "fuzz-bytes", lambda: lines(tables.read(TABLE, COLUMNS)))


def tried(rows: Sequence[Mapping[str, Any]], reader: str) -> int:
    """Return how many mutations a reader was given."""
    return sum(row["tried"] for row in rows if row["reader"] == reader)


def keep(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table and the page."""
    tables.write(TABLE, COLUMNS, sums(rows))
    pages.update(["fuzz-bytes"])


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("fuzz-bytes", description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"which: {', '.join(READERS)}")
    parser.add_argument(
        "--mutations", type=int, default=FEW, help=f"of each; {FULL} is a full run (default: {FEW})"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same mutations")
    parser.add_argument("--update", action="store_true", help="write the table and the page")
    parser.set_defaults(run=run, refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    """Fuzz and print; return 1 if something was found."""
    if unknown := [name for name in options.readers if name not in READERS]:
        options.refuse(f"no reader is called {unknown[0]!r}; there are {', '.join(READERS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    pieces = Pieces(FOLDER / "pieces.jsonl", digest_of_harness())
    known = [row for row in pieces.read() if row["run"] == options.seed]
    wanted = options.readers or list(READERS)
    while left := {name: count for name in wanted if (count := options.mutations - tried(known, name)) > 0}:
        # All readers come equally far in a session that is stopped.
        for name, count in left.items():
            number = sum(row["reader"] == name for row in known)
            row = fuzz(name, min(count, PIECE), options.seed, number, FOLDER / "found" / name)
            pieces.add(row)
            known.append(row)
            for file, what in row["found"].items():
                print(f"{name}: {what}: {FOLDER / 'found' / name / file}", flush=True)
        if options.update:
            keep([row for row in known if row["reader"] in wanted])
    shown = [row for row in known if row["reader"] in wanted]
    print("\n".join(lines(sums(shown))))
    if options.update:
        keep(shown)
    print(f"each mutation had {SECONDS:g} s and {MEGABYTES} MB; seed {options.seed}")
    return int(any(row["found"] for row in shown))
