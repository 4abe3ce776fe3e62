"""``python -m lab history``: which of upstream's fixes, taken back, the zoo sees.

The fixes of the release that is installed are tried on its cells, until ``--minutes`` have passed; what was found is
kept beside this module, and a later session goes on from there. ``--so-far`` exports nothing and reports on both
releases and all zoos.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from executorch_goldens.errors import UsageError
from executorch_goldens.running.plan import Plan
from executorch_goldens.settings.zoo import load_zoo
from executorch_goldens.zoo.registry import zoo_of
from lab import GOLDENS, pages
from lab.further import SOURCES as FURTHER
from lab.further import is_held_out
from lab.guests import ZOOS as GUESTS
from lab.guests import listing, modules, sheets
from lab.guests.one import RECORDED
from lab.guests.triage import explanations
from lab.mutants.__main__ import prepare
from lab.mutants.history import FIXES, SINCE, red
from lab.mutants.history.document import Effort, document, recall
from lab.mutants.history.earlier import earlier
from lab.mutants.history.fix import Fix, misfits
from lab.mutants.history.left_out import LEFT_OUT
from lab.mutants.history.measure import (
    ENOUGH,
    ENOUGH_FURTHER,
    ENOUGH_SHEETS,
    Kept,
    Met,
    Search,
    Tried,
    joined,
    numbers,
    results,
)
from lab.pages import Part
from lab.pairs import rows

#: Results of sessions: committed, for the page is made of them.
KEPT = Path(__file__).parent / "kept"
SWEEPS = Path("build/history")

#: The zoo that was not made for fixes, and the one that was.
ZOO, SITUATIONS = "zoo", "situations"
#: Those of upstream's tests that came after the older release of a pair.
LATER = "upstream's later tests"
#: The zoo of sheets, and the matrix of situations.
SHEETS, PAIRS = "torch-ops", "pairs"
#: The modules of these two: the zoo's goldens are of both.
MODELS, TAUGHT_MODELS = "models", "models.situations"
#: Zoos that fixes are tried on, by name: the module, and the folder in `GOLDENS` and in `KEPT`.
ZOOS = {
    ZOO: (MODELS, Path()),
    SITUATIONS: (TAUGHT_MODELS, Path("situations")),
    **{guests.name: (guests.module, guests.folder) for guests in GUESTS.values()},
    PAIRS: ("lab.pairs.zoo", Path("pairs")),
    **{source.name: (source.module, source.folder) for source in FURTHER.values()},
}
#: The guest zoos of upstream's own tests.
UPSTREAM = tuple(name for name in GUESTS if name != SHEETS)
FURTHER_UPSTREAM = tuple(name for name in FURTHER if name.removesuffix("-further") in UPSTREAM)
#: Sources of the page, in its order: the zoos of each.
SOURCES = {
    ZOO: (ZOO,),
    "zoo, further targets": ("zoo-further",),
    "upstream's tests": UPSTREAM,
    "upstream's tests, further targets": FURTHER_UPSTREAM,
    "upstream's unit tests": ("unit-tests",),
    SHEETS: (SHEETS, "torch-ops-further"),
    "torch-modules": ("torch-modules",),
    PAIRS: (PAIRS,),
    "wider": ("wider",),
    "drawn": ("drawn",),
    LATER: UPSTREAM,
    SITUATIONS: (SITUATIONS,),
}
#: Those that were made for the fixes, or may have come with them.
TAUGHT = frozenset((LATER, SITUATIONS))


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("history", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these fixes; wildcards")
    parser.add_argument("--check", action="store_true", help="only take all back; exports nothing")
    parser.add_argument("--so-far", action="store_true", help="only report; exports nothing")
    parser.add_argument("--update", action="store_true", help="write harness/lab/docs/history.md")
    parser.add_argument(
        "--zoo",
        choices=ZOOS,
        default=ZOO,
        help="the zoo, the situations, a guest zoo, or the matrix; default: %(default)s",
    )
    parser.add_argument(
        "--guarded", action="store_true", help="each fix only on cells whose case names it in `guards`"
    )
    parser.add_argument(
        "--cell", action="append", default=[], metavar="PATTERN", help="only these cells; repeatable"
    )
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="begin no export after; default: %(default)s"
    )
    parser.add_argument("--jobs", type=int, help="exports at a time; default: one per core")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each export")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Try fixes, or report results; return 0 unless a fix does not fit the release."""
    fixes = select(options.names)
    if not options.so_far:
        module, folder = ZOOS[options.zoo]
        prepared = prepare(
            goldens_of(options.zoo),
            "0,",
            options.jobs,
            None,
            __package__,
            SWEEPS / folder,
            tuple(options.cell),
            MODELS if module == TAUGHT_MODELS else module,
        )
        if module in (MODELS, TAUGHT_MODELS):
            prepared = only(prepared, module)
        of_release = [fix for fix in fixes if fix.release == prepared.release.version]
        if not of_release:
            raise UsageError(
                f"no fix is taken back in {prepared.release.version}; fixes are of {', '.join(SINCE)}"
            )
        if options.check:
            return check(of_release, prepared.release.version)
        searching = Search(
            held_out(prepared, module) if options.zoo in FURTHER else prepared,
            of_release,
            kept(options.zoo, prepared.release.version),
            options.minutes,
            guarded(module) if options.guarded else None,
            print if options.verbose else lambda _: None,
            ENOUGH_FURTHER if options.zoo in FURTHER else ENOUGH_SHEETS if options.zoo == SHEETS else ENOUGH,
            options.zoo in FURTHER,
            RECORDED.get(options.zoo),
        )
        search(searching)
    print("", *recall([met(fix) for fix in fixes], efforts()), sep="\n")
    if options.update:
        pages.update(["history"])
    return 0


def parts() -> Iterator[Part]:
    """Yield harness/lab/docs/history.md."""
    yield Part("harness/lab/docs/history.md", "", _committed)


def _committed() -> Iterator[str]:
    page = document([met(fix) for fix in FIXES], efforts(), LEFT_OUT, frozen(), red_lines())
    return map(str.rstrip, page)


def frozen() -> dict[str, object]:
    """Return how much there is of each source that is drawn, and its digest, as the page names them."""
    return {
        "samples": len(sheets.samples(SHEETS)),
        "digest": sheets.digest(SHEETS)[:16],
        "modules": len(modules.samples()),
        "of_modules": modules.digest()[:16],
        "rows": len(rows.read()),
        "matrix": rows.digest(),
        "wider": len(rows.read(rows.WIDER)),
        "wider_matrix": rows.digest(rows.WIDER),
    }


def red_lines() -> Iterator[str]:
    """Yield the lines about cells without goldens that are red on the newest release here."""
    release = next(reversed(SINCE))
    yield from red.lines(red_results(release), release, explanations(red.TABLE))


def red_results(release: str) -> dict[str, list[Tried]]:
    """Return the results of the sources without goldens that were tried on a release."""
    return {zoo: found for zoo in FURTHER if (found := tried(zoo, release))}


def efforts() -> dict[str, dict[str, Effort]]:
    """Return the number of measured cells of each source, and their cost, by release."""
    return {
        source: {
            release: Effort(len({each.cell for each in found}), sum(each.core_seconds for each in found))
            for release in SINCE
            for found in ([each for zoo in zoos for each in tried_of(source, zoo, release)],)
        }
        for source, zoos in SOURCES.items()
    }


def check(fixes: Sequence[Fix], release: str) -> int:
    """Take `fixes` back in this process; print and count those that do not fit."""
    wrong = misfits(fixes, release)
    print(*wrong, f"{len(fixes) - len(wrong)} of {len(fixes)} fixes fit {release}", sep="\n")
    return len(wrong)


def search(searching: Search) -> None:
    """Print each cell that sees some reverted fix, and its cost."""
    cells = 0
    for each in searching():
        cells += 1
        if found := lines(each):
            print(*found, sep="\n", flush=True)
    print(f"{cells} cells tried, {searching.exports} exports")


def lines(cell: Tried) -> list[str]:
    """Return the lines for a cell."""
    if cell.control not in ("", "stable"):
        return [f"{cell.cell} is {cell.control} without any fix taken back"]
    return [
        f"{cell.cell} sees #{fix.partition('@')[0]}: {seen.verdict}, {seen.named}"
        for fix, seen in cell.seen.items()
    ]


def held_out(planned: Plan, module: str) -> Plan:
    """Return a run over those cells of a zoo without goldens that the release before the fixes has."""
    cases, before = load_zoo([module]), SINCE[planned.release.version]
    asked = frozenset(cell for cell in planned.asked if is_held_out(cell, cases[cell.case], before))
    return replace(planned, asked=asked)


def only(planned: Plan, module: str) -> Plan:
    """Return a run over the cells of the zoo that one of its two modules registers."""
    cases = load_zoo([MODELS])
    own = {name for name, case in cases.items() if zoo_of(case, (MODELS, TAUGHT_MODELS)) == module}
    return replace(planned, asked=frozenset(cell for cell in planned.asked if cell.case in own))


def goldens_of(zoo: str) -> Path:
    """Return the root of the goldens of a zoo."""
    return GOLDENS if zoo == SITUATIONS else GOLDENS / ZOOS[zoo][1]


def kept(zoo: str, release: str) -> Kept:
    module, folder = ZOOS[zoo]
    models = {name: case.guards for name, case in load_zoo([module]).items()} if zoo in FURTHER else None
    return Kept(KEPT / folder / f"{release}.jsonl", goldens_of(zoo) / release, models)


def met(fix: Fix) -> Met:
    """Return the results of earlier sessions for `fix` in each source."""
    found = {
        source: joined(fix, [results([fix], tried_of(source, zoo, fix.release))[0] for zoo in zoos])
        for source, zoos in SOURCES.items()
    }
    return Met(fix, {**found, ZOO: earlier(fix, found[ZOO])}, TAUGHT)


def tried_of(source: str, zoo: str, release: str) -> list[Tried]:
    """Return the results for the cells of `zoo` in `source`: upstream's tests belong to one of two."""
    found = tried(zoo, release)
    if zoo not in UPSTREAM:
        return found
    before = SINCE[release]
    there = {entry.name for entry in listing.read(zoo).entries if before in entry.releases}
    return [each for each in found if (each.cell.partition("/")[2] in there) == (source != LATER)]


@functools.cache
def tried(zoo: str, release: str) -> list[Tried]:
    return kept(zoo, release).read()


def guarded(zoo: str) -> dict[str, frozenset[int]]:
    """Return the numbers of the fixes that each case of `zoo` names."""
    return {name: numbers(case.guards) for name, case in load_zoo([zoo]).items()}


def select(names: Sequence[str]) -> list[Fix]:
    """Return the fixes that match some of `names`; all for none; raise UsageError for one that matches none."""
    for name in names:
        if not fnmatch.filter([fix.name for fix in FIXES], name):
            raise UsageError(
                f"no fix is called {name!r}; their names begin with the number of the pull request"
            )
    return [fix for fix in FIXES if not names or any(fnmatch.fnmatchcase(fix.name, name) for name in names)]
