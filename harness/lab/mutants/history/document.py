"""docs/history.md: which fixes taken back the zoo sees, and which it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from executorch_goldens.files import markdown
from lab.mutants.history import AREAS, KINDS, SINCE
from lab.mutants.history.fix import Fix
from lab.mutants.history.measure import ENOUGH, ENOUGH_SHEETS, Met, Result
from lab.mutants.table import NONE

HEAD = (
    "| fix | release | it corrected | before it | zoo | guests | torch-ops | pairs | situations | verdict | named |",
    "|---|---|---|---|---:|---:|---:|---:|---:|---|---|",
)
INTRODUCTION = """\
# History as a measure

Real fixes of upstream's, taken back in a release that has them. [Mutants](mutants.md) are made up;
these went wrong. The releases: {releases}. Each fix taken back is a small edit of ours, in
`harness/lab/mutants/history`, that brings the old behaviour back. It is tied to no cell.

Five sources of cases meet them. Four are untaught: nobody made them for these fixes. `models` is the zoo. The
[guest zoos](guests.md) are upstream's own test models, in their cores; a fix often came with a test, which is
among them. `torch-ops` has samples of PyTorch's own database of operators, which are drawn by a rule with the
torch and the tables of 1.1.0, the oldest release here, and frozen: {samples} samples, sha256 `{digest}`.
`pairs` is a [matrix of situations](maintaining.md#the-lab): {rows} small models that have every pair of values of
operator, form of call, dtype, rank, layout, sharing, neighbours, users and target, frozen as well, sha256 `{matrix}`.
`models/situations` was taught: when few were seen, each class of situation that upstream's fixes corrected got a
family of small cases there, whose `guards` name the fixes. It has goldens of its own, in `goldens/situations`, of
these two releases, and it does not count as recall.

## Untaught recall

Of the fixes between two releases, how many each source sees when they are taken back, by what they corrected; the
last columns say over how many of its cells that is known so far, and what exports took that noted their processor
time. `torch-ops` and `pairs` have been tried on a part of their cells: their numbers are least ones.

{recall}

## How it is measured

The tables below say how many cells of each source have seen a fix taken back, and of how many that met it; they
are written by:

```console
$ nox -s lab -- history --minutes 60                  # the zoo; goes on where it was stopped
$ nox -s lab -- history --zoo situations --guarded    # each fix on the cases that name it
$ nox -s lab -- history --zoo arm-ops --minutes 60    # a guest zoo
$ nox -s lab -- history --zoo torch-ops --minutes 60  # PyTorch's samples
$ nox -s lab -- history --zoo pairs --minutes 60      # the matrix
$ nox -s lab -- history --so-far --update             # writes what was measured so far to this page
```

A cell is exported under one variation with all fixes of its release that it is to meet taken back at once.
If it is as its golden says, it sees none of them; two whose effects hide each other would be missed. If not,
the fixes are halved until one alone makes the difference. Fixes of one backend are not tried on cells of the
other, nor further once {enough} cells of a zoo, or {sheets} sheets, have seen them. Cells that have no golden,
because upstream gets them wrong, or that are not stable without any edit, say nothing. What sessions found is
kept, and committed, in `harness/lab/mutants/history/kept`; what was found with another golden or another edit does
not count. What the first session found over the zoo in 1.5.1, before there were situations, was not kept: of it
there are counts.
So the column "seen by the zoo" is what was seen before there were situations, and "seen by any" what is now.
"""
REPOSITORY = "https://github.com/pytorch/executorch/pull/"
#: Of many verdicts and passes, so many are listed.
LISTED = 3


@dataclass(frozen=True)
class Source:
    """What cases that nobody made for a fix say, and what that took.

    Attributes
    ----------
    seen
        Whether it has seen a fix.
    core_seconds
        By release; 0 where none were noted.
    cells
        Cells that met fixes, by release; 0 where that is not counted.
    """

    name: str
    seen: Callable[[Met], bool]
    core_seconds: Mapping[str, float]
    cells: Mapping[str, int] = field(default_factory=dict)


def recall(found: Sequence[Met], sources: Sequence[Source]) -> Iterator[str]:
    """Yield the table of how many fixes each source sees, by pair of releases and by what they corrected."""
    yield from markdown.head(("source", "from", "to", *KINDS, "all", "cells", "core seconds"))
    for release, before in SINCE.items():
        of_it = [each for each in found if each.fix.release == release]
        for source in sources:
            kinds = [[each for each in of_it if each.fix.kind == kind] for kind in KINDS]
            counts = (f"{sum(map(source.seen, each))} of {len(each)}" for each in (*kinds, of_it))
            seconds = source.core_seconds.get(release, 0.0)
            spent = f"{seconds:.0f}" if seconds else NONE
            yield markdown.row(
                (source.name, before, release, *counts, str(source.cells.get(release) or NONE), spent)
            )
    for source in sources:
        share = sum(map(source.seen, found)) / len(found)
        kinds = [[each for each in found if each.fix.kind == kind] for kind in KINDS]
        counts = (f"{sum(map(source.seen, each))} of {len(each)}" for each in kinds)
        whole = f"{sum(map(source.seen, found))} of {len(found)} ({share:.0%})"
        yield markdown.row((source.name, "both", "", *counts, whole, NONE, NONE))


def document(
    found: Sequence[Met],
    cells: Mapping[str, Sequence[int]],
    left_out: Sequence[str],
    sources: Sequence[Source],
    frozen: tuple[int, str, int, str],
) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    found
        For every fix.
    sources
        In the order of their rows.
    frozen
        Number and digest of the samples of torch-ops, and of the rows of the matrix.
    cells
        Number of cells with a golden in the zoo, the situations, the guest zoos, torch-ops and the matrix, by release.
    left_out
        Lines about fixes that no edit stands for.
    """
    yield from introduction(recall(found, sources), frozen)
    yield ""
    yield from summary(found, cells)
    for area, fixes in AREAS.items():
        yield ""
        yield f"## {area}"
        yield ""
        yield from HEAD
        yield from (row(each) for each in found if each.fix in fixes)
    yield ""
    yield "## Not seen"
    yield ""
    yield from not_seen(found)
    yield ""
    yield "## Out of reach"
    yield ""
    yield "These are taken back as well, but no export for the harness's targets comes by what they corrected:"
    yield ""
    yield from (f"- {link(each.fix)}: {each.fix.unreachable}" for each in found if each.fix.unreachable)
    yield ""
    yield "## Left out"
    yield ""
    yield from left_out


def introduction(table: Iterator[str], frozen: tuple[int, str, int, str]) -> Iterator[str]:
    releases = ", ".join(f"{release} for those after {before}" for release, before in SINCE.items())
    samples, digest, rows, matrix = frozen
    yield from INTRODUCTION.format(
        releases=releases,
        enough=ENOUGH,
        sheets=ENOUGH_SHEETS,
        samples=samples,
        digest=digest[:16],
        rows=rows,
        matrix=matrix,
        recall="\n".join(table),
    ).splitlines()


def row(found: Met) -> str:
    verdicts, places = (most(vars(seen)[what] for seen in found.seen) for what in ("verdict", "named"))
    said = (link(found.fix), found.fix.release, found.fix.kind, found.fix.broke)
    counts = map(count, (*found.untaught, found.situations))
    return f"| {' | '.join((*said, *counts, verdicts, places))} |"


def link(fix: Fix) -> str:
    return f"[#{fix.number}]({REPOSITORY}{fix.number})"


def count(result: Result) -> str:
    """Say how many cells of a zoo have seen a fix taken back."""
    if not result.tried:
        return "not tried"
    seen = len(result.seen)
    return f"{seen}{' or more' if seen >= ENOUGH else ''} of {result.tried}"


def most(values: Iterator[str]) -> str:
    """Return the most frequent of `values`, in that order.

    >>> most(iter(["failed", "corrupt", "corrupt"]))
    'corrupt, failed'
    """
    return ", ".join(value for value, _ in Counter(values).most_common(LISTED)) or NONE


def not_seen(found: Sequence[Met]) -> Iterator[str]:
    """Yield a line for each fix taken back that no cell has seen and one could, with the reason that is known."""
    unseen = [each.fix for each in found if not each.seen and not each.fix.unreachable]
    for fix in unseen:
        if fix.unseen:
            yield f"- {link(fix)}, {fix.release}: {fix.unseen}"
    if others := [link(fix) for fix in unseen if not fix.unseen]:
        yield f"- not looked into: {', '.join(others)}"


def summary(found: Sequence[Met], cells: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield how many there are, and how many were tried and seen, by release."""
    yield (
        "| release | fixes | out of reach | cells with a golden | tried on the zoo | seen by the zoo "
        "| seen by the situations | tried on guests | seen by guests | tried on torch-ops | seen by torch-ops "
        "| tried on pairs | seen by pairs | seen by any |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for release in SINCE:
        of_it = [each for each in found if each.fix.release == release]
        counts = (
            len(of_it),
            sum(bool(each.fix.unreachable) for each in of_it),
            " + ".join(map(str, cells.get(release, (0,)))),
            sum(bool(each.zoo.tried) for each in of_it),
            sum(bool(each.zoo.seen) for each in of_it),
            sum(bool(each.situations.seen) for each in of_it),
            sum(bool(each.guests.tried) for each in of_it),
            sum(bool(each.guests.seen) for each in of_it),
            sum(bool(each.sheets.tried) for each in of_it),
            sum(bool(each.sheets.seen) for each in of_it),
            sum(bool(each.pairs.tried) for each in of_it),
            sum(bool(each.pairs.seen) for each in of_it),
            sum(bool(each.seen) for each in of_it),
        )
        yield f"| {release} | {' | '.join(map(str, counts))} |"
