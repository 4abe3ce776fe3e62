"""``python -m tests.mutants``, which is what ``nox -s mutants`` runs: what the harness says of every mutant.

All of them are compared with docs/mutants.md; ``--update`` writes it. With names, only those mutants are tried and
nothing is compared.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import releases
from harness.artifact import Cell
from harness.judging.verdict import Verdict
from harness.options import Options
from harness.run import Run
from harness.selection import EXPORT_TIMEOUT, UsageError
from harness.sweep import Sweep, SweepError
from tests import REPOSITORY
from tests.mutants import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.table import HEAD, Judged, document, is_enough, summary

DOCUMENT = REPOSITORY / "docs" / "mutants.md"


@dataclass(frozen=True)
class Mutated(Cell):
    """A cell with a mutant in the processes that export it."""

    mutant: str

    def __str__(self) -> str:
        return f"{super().__str__()} with {self.mutant}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per mutant, then the totals; return 0 if all is as it must be and as committed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants; wildcards")
    parser.add_argument("--update", action="store_true", help="write docs/mutants.md")
    parser.add_argument("--hash-seeds", default="0,4", help="default: %(default)s")
    parser.add_argument("--jobs", type=int, help="exports at a time; default: one per core")
    parser.add_argument("-v", "--verbose", action="store_true", help="print reasons as well")
    options = parser.parse_args(arguments)
    mutants = select(options.names)
    run = prepare(REPOSITORY / "goldens", options.hash_seeds, options.jobs)
    judged = []
    print("\n".join(HEAD))
    for found in verdicts(run, mutants):
        if isinstance(found, Verdict):
            print(f"without a mutant, {found.cell} is {found.name}: {found.reason}")
            return 1
        judged.append(found)
        print(found.row(), flush=True)
        if options.verbose:
            print(f"  {found.reason}")
    print("", *summary(judged), sep="\n")
    if options.names:
        return 0 if is_enough(judged) else 1
    text = "".join(f"{line}\n" for line in document(run.release.version, judged))
    if options.update:
        DOCUMENT.write_text(text, encoding="utf-8")
        return 0 if is_enough(judged) else 1
    committed = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
    difference = difflib.unified_diff(
        committed.splitlines(), text.splitlines(), str(DOCUMENT), "now", lineterm="", n=0
    )
    for line in difference:
        print(line)
    return 0 if is_enough(judged) and text == committed else 1


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


def prepare(goldens: Path, hash_seeds: str, jobs: int | None) -> Run:
    """Return the run, over the default release, whose judgement is put to the test."""
    return Run(
        Options(
            release=releases.load().default,
            matrix=releases.MATRIX,
            cells=(),
            families=(),
            variations="quick",
            hash_seeds=hash_seeds,
            jobs=jobs,
            export_timeout=EXPORT_TIMEOUT,
            patches="auto",
            shortcuts="all",
            models=("models", "tests.mutants"),
            goldens=goldens,
            sweeps=Path("build/mutants"),
            interpreter=None,
            isolation="fork",
            updating=False,
        )
    )


def verdicts(run: Run, mutants: Sequence[Mutant]) -> Iterator[Judged | Verdict]:
    """Yield a verdict for each cell that is not stable without a mutant, then what is said of each mutant."""
    cells = {mutant: Cell(*mutant.cell.split("/")) for mutant in mutants}
    mutated = {mutant: Mutated(cell.target, cell.case, mutant.name) for mutant, cell in cells.items()}
    controls = list(dict.fromkeys(cells.values()))
    # One template per variation serves all mutants: each export is in a child of its own.
    installed = {cell: (cell.mutant,) for cell in mutated.values()}
    with Sweep(
        [*controls, *mutated.values()], run.variations, run.settings, further_patches=installed
    ) as sweep:
        for cell in controls:
            control = run.judge(cell, sweep.outcomes(cell))
            if control.name != "stable":
                yield control
        for mutant in mutants:
            yield Judged.of(mutant, run.judge(cells[mutant], sweep.outcomes(mutated[mutant])))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (UsageError, SweepError) as error:
        sys.exit(f"mutants: {error}")
