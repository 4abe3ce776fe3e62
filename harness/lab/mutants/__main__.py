"""``python -m lab mutants``: verdicts of the harness on deliberate defects.

All of them are compared with what is committed; ``--update`` writes it, and docs/mutants.md. With names, only those
mutants are tried and nothing is compared. ``--tier core`` runs them over the core of the zoo instead, which has a table
of its own. ``--mechanical`` has mutants that nobody chose.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.running.options import CORE, FULL, TIERS, Options
from executorch_goldens.running.plan import Plan, plan
from executorch_goldens.settings import releases
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.words.verdicts import reason
from lab import GOLDENS, pages
from lab.mutants import MUTANTS, over_core, page
from lab.mutants.mechanical import command as mechanical
from lab.mutants.mutant import Mutant, Mutated
from lab.mutants.table import HEAD, Judged, is_enough, judge, summary

#: Results of ``--tier core`` so far.
KEPT = Path("build/mutants/core.jsonl")


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants; wildcards")
    parser.add_argument(
        "--update", action="store_true", help="write the results, and harness/lab/docs/mutants.md"
    )
    parser.add_argument(
        "--tier", choices=TIERS, default=FULL, help="core: over its cells, not each on a cell of its own"
    )
    parser.add_argument(
        "--so-far",
        action="store_true",
        help="with --tier core or --mechanical: only the results of earlier sessions; exports nothing",
    )
    parser.add_argument("--variations", default="0,4", help="default: %(default)s")
    parser.add_argument("--jobs", type=int, help="exports at a time; default: one per core")
    parser.add_argument("-v", "--verbose", action="store_true", help="print reasons as well")
    mechanical.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a row per mutant, then the totals; return 0 if all is as it must be and as committed, else 1."""
    if options.mechanical:
        return mechanical.run(options)
    mutants = select(options.names)
    prepared = prepare(GOLDENS, options.variations, options.jobs)
    if options.tier == CORE:
        return over_the_core(prepared, mutants, options)
    judged = []
    print("\n".join(HEAD))
    for found in verdicts(prepared, mutants):
        if isinstance(found, Verdict):
            print(f"without a mutant, {found.cell} is {found.name}: {reason(found)}")
            return 1
        judged.append(found)
        print(found.row(), flush=True)
        if options.verbose:
            print(f"  {found.reason}")
    print("", *summary(judged), sep="\n")
    if options.names:
        return 0 if is_enough(judged) else 1
    same = settle(page.ON_ITS_CELL, page.text_of(judged), options.update)
    return 0 if is_enough(judged) and same else 1


def over_the_core(planned: Plan, mutants: Sequence[Mutant], options: argparse.Namespace) -> int:
    """Print a row per mutant, then the totals; return 0 if enough are detected and all is as committed, else 1."""
    kept = over_core.Kept(KEPT, planned)
    found = []
    print("\n".join(over_core.HEAD))
    known = kept.read(mutants).values() if options.so_far else ()
    for each in known if options.so_far else over_core.search(planned, mutants, kept):
        found.append(each)
        print(each.row(), flush=True)
    print("", over_core.summary(found, mutants), sep="\n")
    if options.names:
        return 0 if over_core.is_enough(found, mutants) else 1
    same = settle(page.OVER_CORE, page.text_over_core(found), options.update)
    return 0 if over_core.is_enough(found, mutants) and same else 1


def settle(file: Path, text: str, update: bool) -> bool:
    """Compare a table with the results, or write it and its page; return whether it is the same."""
    if update:
        durable.replace(file, text)
        pages.update(["mutants"])
        return True
    committed = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = difflib.unified_diff(
        committed.splitlines(), text.splitlines(), file.name, "now", lineterm="", n=0
    )
    print(*lines, sep="\n")
    return committed == text


def select(names: Sequence[str]) -> list[Mutant]:
    """Return the mutants that match some of `names`; all for none; raise UsageError for one that matches none."""
    known = [mutant.name for mutant in MUTANTS]
    for name in names:
        if not fnmatch.filter(known, name):
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
            raise UsageError(f"no mutant is called {name!r}; {hint}")
    return [
        mutant
        for mutant in MUTANTS
        if not names or any(fnmatch.fnmatchcase(mutant.name, name) for name in names)
    ]


def prepare(
    goldens: Path,
    variations: str,
    jobs: int | None,
    release: str | None = releases.load().default,
    edits: str = "lab.mutants",
    sweeps: Path = Path("build/mutants"),
    cells: tuple[str, ...] = (),
    zoo: str = "models",
) -> Plan:
    """Return the run, over the default release, whose judgement is put to the test.

    Parameters
    ----------
    release
        None takes whichever is installed.
    edits
        The module that registers what is installed in exporting processes.
    cells
        Patterns of cells; empty is all.
    zoo
        The module that registers the cases, whose goldens are under `goldens`.
    """
    here(release)
    return plan(
        Options(
            cells=cells,
            variations=variations,
            jobs=jobs,
            models=(zoo, edits),
            goldens=goldens,
            sweeps=sweeps,
            tier=FULL,
            # As the goldens were recorded.
            patches="auto",
        )
    )


def verdicts(planned: Plan, mutants: Sequence[Mutant]) -> Iterator[Judged | Verdict]:
    """Yield a verdict for each cell that is not stable without a mutant, then the result of each mutant."""
    cells = {mutant: Cell(*mutant.cell.split("/")) for mutant in mutants}
    mutated = {mutant: Mutated(cell.target, cell.case, mutant.name) for mutant, cell in cells.items()}
    controls = list(dict.fromkeys(cells.values()))
    # One template per variation serves all mutants: each export is in a child of its own.
    installed: dict[Cell, tuple[str, ...]] = {cell: (cell.mutant,) for cell in mutated.values()}
    with Sweep(
        [*controls, *mutated.values()], planned.variations, planned.settings, further_patches=installed
    ) as sweep:
        for cell in controls:
            control = judge(planned, cell, sweep.outcomes(cell))
            if control.name != "stable":
                yield control
        for mutant in mutants:
            yield Judged.from_verdict(mutant, judge(planned, cells[mutant], sweep.outcomes(mutated[mutant])))
