"""``python -m tests.mutants.history``, which is what ``nox -s history`` runs: which fixes taken back does the zoo see?

The fixes of the release that is installed are tried on its cells, until ``--minutes`` have passed; what was found is
kept, and a later session goes on from there. ``--so-far`` exports nothing and reports on both releases.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.selection import UsageError
from harness.sweeping.sweep import SweepError
from tests import REPOSITORY
from tests.mutants.__main__ import prepare
from tests.mutants.history import FIXES, SINCE
from tests.mutants.history.document import document, summary
from tests.mutants.history.fix import Fix, misfits
from tests.mutants.history.left_out import LEFT_OUT
from tests.mutants.history.measure import Kept, Search, Tried, results

DOCUMENT = REPOSITORY / "docs" / "history.md"
GOLDENS = REPOSITORY / "goldens"
KEPT = Path("build/history")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try fixes, or report what was found; return 0 unless a fix does not fit the release."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.history", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these fixes; wildcards")
    parser.add_argument("--check", action="store_true", help="only take all back; exports nothing")
    parser.add_argument("--so-far", action="store_true", help="only report; exports nothing")
    parser.add_argument("--update", action="store_true", help="write docs/history.md")
    parser.add_argument(
        "--cell", action="append", default=[], metavar="PATTERN", help="only these cells; repeatable"
    )
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="begin no export after; default: %(default)s"
    )
    parser.add_argument("--jobs", type=int, help="exports at a time; default: one per core")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each export")
    options = parser.parse_args(arguments)
    fixes = select(options.names)
    if not options.so_far:
        run = prepare(GOLDENS, "0", options.jobs, None, __package__, KEPT, tuple(options.cell))
        of_release = [fix for fix in fixes if fix.release == run.release.version]
        if not of_release:
            raise UsageError(
                f"no fix is taken back in {run.release.version}; fixes are of {', '.join(SINCE)}"
            )
        if options.check:
            return check(of_release, run.release.version)
        searching = Search(
            run,
            of_release,
            kept(run.release.version),
            options.minutes,
            print if options.verbose else lambda _: None,
        )
        search(searching)
    found = [each for release in SINCE for each in results(of(fixes, release), kept(release).read())]
    cells = {release: len(list((GOLDENS / release).glob("*/*/manifest.txt"))) for release in SINCE}
    print("", *summary(found, cells), sep="\n")
    if options.update:
        ordered = [each for fix in fixes for each in found if each.fix == fix]
        lines = document(ordered, cells, LEFT_OUT)
        DOCUMENT.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
    return 0


def check(fixes: Sequence[Fix], release: str) -> int:
    """Take `fixes` back in this process; print and count those that do not fit."""
    wrong = misfits(fixes, release)
    print(*wrong, f"{len(fixes) - len(wrong)} of {len(fixes)} fixes fit {release}", sep="\n")
    return len(wrong)


def search(searching: Search) -> None:
    """Print each cell that sees some fix taken back, and what it took."""
    cells = 0
    for tried in searching():
        cells += 1
        print(*lines(tried), sep="\n", end="\n" if tried.seen else "", flush=True)
    print(f"{cells} cells tried, {searching.exports} exports")


def lines(tried: Tried) -> list[str]:
    """Return what is printed of a cell."""
    if tried.control not in ("", "stable"):
        return [f"{tried.cell} is {tried.control} without any fix taken back"]
    return [
        f"{tried.cell} sees {fix.partition('@')[0]}: {seen.verdict}, {seen.named}"
        for fix, seen in tried.seen.items()
    ]


def kept(release: str) -> Kept:
    return Kept(KEPT / f"{release}.jsonl", GOLDENS / release)


def of(fixes: Sequence[Fix], release: str) -> list[Fix]:
    return [fix for fix in fixes if fix.release == release]


def select(names: Sequence[str]) -> list[Fix]:
    """Return the fixes that match some of `names`; all for none; raise UsageError for one that matches none."""
    for name in names:
        if not fnmatch.filter([fix.name for fix in FIXES], name):
            raise UsageError(
                f"no fix is called {name!r}; their names begin with the number of the pull request"
            )
    return [fix for fix in FIXES if not names or any(fnmatch.fnmatchcase(fix.name, name) for name in names)]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (UsageError, SweepError) as error:
        sys.exit(f"history: {error}")
