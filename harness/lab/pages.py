"""``python -m lab pages``: pages that instruments make, compared with committed data; exports nothing.

An instrument keeps what it measured in tables beside it, in goldens, or in the table of findings. Its page, or its
parts of a page, are rendered from these and from nothing else. A part is between ``<!-- begin: MARK -->`` and
``<!-- end: MARK -->``; where `Part.mark` is empty, the instrument makes the whole page.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable
from lab import REPOSITORY

#: Makers of pages, by the name of the instrument: a module with a function ``parts``.
MAKERS = {
    "args": "lab.args.page",
    "carried": "lab.carried",
    "commands": "lab.commands",
    "core": "lab.core.page",
    "evidence": "lab.evidence",
    "faults": "lab.faults.__main__",
    "fielded": "lab.fielded.page",
    "findings": "lab.findings",
    "fuzz-bytes": "lab.fuzz_bytes.__main__",
    "guests": "lab.guests.triage",
    "history": "lab.mutants.history.page",
    "mutants": "lab.mutants.mechanical.page",
    "narrow": "lab.narrow",
    "options": "lab.options.page",
    "reach": "lab.reach.page",
    "results": "lab.results",
}


class PageError(HarnessError, ValueError):
    """A page that lacks a mark of its instrument."""

    def __init__(self, page: str, mark: str) -> None:
        super().__init__(f"{page} has no part {mark!r}; bring it back with 'git checkout -- {page}'")


@dataclass(frozen=True)
class Part:
    """A page, or a part of one.

    Attributes
    ----------
    page
        Its path within the repository.
    mark
        Name of the part; empty for the whole page.
    lines
        Makes it, as lines of Markdown.
    """

    page: str
    mark: str
    lines: Callable[[], Iterable[str]]

    @property
    def file(self) -> Path:
        return REPOSITORY / self.page

    @property
    def name(self) -> str:
        return f"{self.page}#{self.mark}" if self.mark else self.page

    def rendered(self, committed: str) -> str:
        """Return the text of the page with this part made from committed data; raise PageError."""
        made = "".join(f"{line}\n" for line in self.lines())
        return spliced(committed, self.page, self.mark, made) if self.mark else made


def spliced(text: str, page: str, mark: str, made: str) -> str:
    """Return the text of a page with a part replaced; raise PageError where it has none of that mark."""
    begin, end = f"<!-- begin: {mark} -->\n", f"<!-- end: {mark} -->\n"
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise PageError(page, mark)
    return f"{before}{begin}{made}{end}{after}"


def parts(instruments: Iterable[str] = tuple(MAKERS)) -> Iterator[Part]:
    """Yield the parts that instruments make."""
    for instrument in instruments:
        yield from importlib.import_module(MAKERS[instrument]).parts()


def update(instruments: Iterable[str]) -> None:
    """Write the parts that instruments make, and print which of their pages that changed."""
    for part in parts(instruments):
        committed = part.file.read_text(encoding="utf-8") if part.file.exists() else ""
        made = part.rendered(committed)
        if made != committed:
            durable.replace(part.file, made)
            print(f"written: {part.name}")


def difference(part: Part) -> list[str]:
    """Return the difference of a page's part, as a diff; empty where it is up to date."""
    committed = part.file.read_text(encoding="utf-8") if part.file.exists() else ""
    now = part.rendered(committed).splitlines()
    return list(difflib.unified_diff(committed.splitlines(), now, part.name, "now", lineterm="", n=0))


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "pages",
        description="Compare the pages that instruments make with their measurements, or write them.",
    )
    parser.add_argument("instruments", nargs="*", metavar="INSTRUMENT", help=f"of: {', '.join(MAKERS)}")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="print the differences (the default)")
    what.add_argument("--update", action="store_true", help="write them")
    parser.set_defaults(run=run, refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    """Print the differences, or write the pages; return 0 where all are up to date or written, else 1."""
    if unknown := set(options.instruments) - set(MAKERS):
        options.refuse(f"no instrument that makes a page is called {min(unknown)!r}: {', '.join(MAKERS)}")
    instruments: Sequence[str] = options.instruments or list(MAKERS)
    if options.update:
        update(instruments)
        return SAME
    code = SAME
    for part in parts(instruments):
        lines = difference(part)
        print(*lines or [f"{part.name}: up to date"], sep="\n")
        sys.stdout.flush()
        code = DIFFERENT if lines else code
    if code == DIFFERENT:
        print("accept: nox -s lab -- pages --update")
    return code
