"""harness/lab/docs/history.md: which fixes taken back the zoo sees, and which it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab import markdown
from lab.mutants import commits
from lab.mutants import recall as compared
from lab.mutants.history import AREAS, KINDS, SINCE
from lab.mutants.history.fix import Fix
from lab.mutants.history.measure import ENOUGH, ENOUGH_FURTHER, ENOUGH_SHEETS, Met, Result
from lab.mutants.history.needs import NEEDS
from lab.mutants.table import NONE

INTRODUCTION = """\
# Reverted fixes

Real upstream fixes, reverted one at a time in a release that has them. [Mutants](mutants.md) are made up;
these defects were real. The releases: {releases}. Each reverted fix is a small edit in
`harness/lab/mutants/history` that restores the old behaviour. No edit was made for a particular cell.

Cells from several sources are exported with them. Most sources are untaught: nobody wrote their cases for
these fixes, and they are held out by time. For a pair of releases, a source has only what the older one
ships: its torch and tables, its targets, its tests.

{sources}

## Untaught recall

The table counts the fixes between two releases that each source detects, by the kind of defect. The last
columns count the cells that this is based on, and the core seconds of exports that recorded them. Sources
without goldens were tried on a part of their cells: some at random, some chosen because they were likely to
detect a remaining fix. They met few fixes that another untaught source had already detected, so their rows
are lower bounds. Until 26 November 2026 upstream's later tests counted with the earlier ones: 41 of 84.
Held out by time, and without the sources added since, the same cells detected 34.

{recall}

## Method

The tables below count the cells of each source that detected a reverted fix, and the cells that met it.
These commands write them:

```console
$ nox -s lab -- history --minutes 60                  # the zoo; continues after an interruption
$ nox -s lab -- history --zoo situations --guarded    # each fix on the cases that name it
$ nox -s lab -- history --zoo arm-ops --minutes 60    # a guest zoo
$ nox -s lab -- history --zoo arm-ops-further --minutes 60    # the same for further targets
$ nox -s lab -- history --zoo torch-ops --minutes 60  # PyTorch's samples in sheets; torch-ops-further: alone
$ nox -s lab -- history --zoo wider --minutes 60      # the wider matrix; pairs: the first one
$ nox -s lab -- history --so-far --update             # writes the results so far to this page
```

A cell is exported under one variation with all its fixes of the release reverted at once. If it equals its
golden, it detects none of them; two fixes that hide each other would be missed. Otherwise the set is halved
until one fix alone makes the difference. Fixes of one backend are not tried on cells of the other, nor
after {enough} cells of a zoo, {sheets} sheets, or {further} cell without a golden detected them. `wider`
and the `further` sources have no goldens: their cells are compared with an unedited export of the same
session. Cells that are wrong or unstable without any edit do not count. Results are committed in
`harness/lab/mutants/history/kept`; those for a different golden, model or edit do not count. Of the
first session over the zoo in 1.5.1, before there were situations, only counts remain.
"""
#: Descriptions of each source's cases.
SOURCES = {
    "zoo": ("`models`, the zoo of this project"),
    "zoo, further targets": (
        "each of them for some of the targets that it does not ask for; all targets of the harness take turns"
    ),
    "upstream's tests": (
        "the models of upstream's own tests, in the cores of the [guest zoos](guests.md), that the older "
        "release has too"
    ),
    "upstream's tests, further targets": (
        "all of these, in the core or not, for the targets that the guest zoos do not have: Ethos-U55 and "
        "U85, int16 and int4, bfloat16, conditions, symbolic sizes, VGF, weights per tensor, dynamic, the "
        "config for training. The cases of one operator take turns in them"
    ),
    "upstream's unit tests": (
        "upstream's tests of single passes, of quantizers and others that the older release has, for the common "
        "targets and some others, which take turns"
    ),
    "torch-ops": (
        "samples of PyTorch's own database of operators, drawn by a rule with the torch and the tables of "
        "1.1.0, the oldest release here, and frozen: {samples} samples, sha256 `{digest}`; in sheets, and "
        "each alone, where they take turns in all targets, and those of float32 in bfloat16 as well"
    ),
    "torch-modules": (
        "samples of PyTorch's own database of modules, drawn and frozen in the same way: {modules} of them, sha256 "
        "`{of_modules}`; each for some of all targets, which take turns"
    ),
    "pairs": (
        "a [matrix of situations](instruments.md#sources-without-goldens): {rows} small models that have every pair "
        "of values of operator, form of call, dtype, rank, layout, sharing, neighbours, users and target, frozen, "
        "sha256 `{matrix}`"
    ),
    "wider": (
        "a matrix with all targets of the harness, all dtypes of the samples, all operators of the tables of "
        "1.1.0, neighbours that do nothing, constants, and sizes of one or symbolic: {wider} "
        "models, frozen, sha256 `{wider_matrix}`"
    ),
    "drawn": (
        "models of the [generator](generator.md): a walk of two to nine operators, of seed 43; each for some of all "
        "targets, which take turns"
    ),
    "upstream's later tests": (
        "the tests that the older release lacks: a fix often came with one. They do not count as recall"
    ),
    "situations": (
        "`models/situations`, which was taught: when few fixes were detected, each class of corrected situation got a "
        "family of small cases there, whose `guards` name the fixes. It does not count either"
    ),
}
#: About cells that are not right without any edit.
RED = """\
Cells without goldens that are not right on 1.5.1 without any edit. They detect nothing, so they do not count above. A
model that does not lower is not among them: its failure is compared with that of the edited release. The cause is the
stage, the pass and the function that raised, or the operator where outputs begin to be wrong; results keep it. "Causes
left" have no explanation in [explained.toml](../mutants/history/explained.toml). A session exports a red cell without a
kept cause again."""
REPOSITORY = "https://github.com/pytorch/executorch/pull/"
#: Of many verdicts and passes, so many are listed.
LISTED = 3


@dataclass(frozen=True)
class Effort:
    """The cells and the time of a source's measurement.

    Attributes
    ----------
    cells
        That met fixes.
    core_seconds
        Of their exports, where it was noted.
    """

    cells: int
    core_seconds: float


#: By source, then by release.
Efforts = Mapping[str, Mapping[str, Effort]]


def recall(found: Sequence[Met], efforts: Efforts) -> Iterator[str]:
    """Yield the table of how many fixes each source sees, by pair of releases and by kind."""
    yield from markdown.head(("source", "from", "to", *KINDS, "all", "cells", "core seconds"))
    taught = found[0].taught
    sources: dict[str, Sequence[str]] = {name: (name,) for name in found[0].untaught}
    sources["all untaught"] = found[0].untaught
    sources |= {f"{name}, not counted": (name,) for name in sorted(taught)}
    for release, before in SINCE.items():
        of_it = [each for each in found if each.fix.release == release]
        for label, names in sources.items():
            counted = [efforts[name][release] for name in names if name in efforts]
            # Where results were not kept, cells are counted by the fixes alone.
            cells = max(sum(each.cells for each in counted), *(each.tried(*names) for each in of_it), 0)
            seconds = sum(each.core_seconds for each in counted)
            spent = (str(cells or NONE), f"{seconds:.0f}" if seconds else NONE)
            yield markdown.row((label, before, release, *_counts(of_it, names), *spent))
    for label, names in sources.items():
        share = sum(each.is_seen(*names) for each in found) / len(found)
        *kinds, whole = _counts(found, names)
        yield markdown.row((label, "both", "", *kinds, f"{whole} ({share:.0%})", NONE, NONE))


def _counts(found: Sequence[Met], sources: Sequence[str]) -> Iterator[str]:
    """Yield how many fixes of each kind, and of all, some of the sources have seen."""
    for kinds in (*((kind,) for kind in KINDS), KINDS):
        of_it = [each for each in found if each.fix.kind in kinds]
        yield f"{sum(each.is_seen(*sources) for each in of_it)} of {len(of_it)}"


def document(
    found: Sequence[Met],
    efforts: Efforts,
    left_out: Sequence[str],
    frozen: Mapping[str, object],
    red: Iterable[str] = (),
) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    found
        For every fix.
    frozen
        Numbers and digests of the drawn sources, by name.
    left_out
        Lines about fixes without an edit.
    red
        Lines about cells that do not count.
    """
    yield from introduction(recall(found, efforts), frozen)
    yield ""
    yield from compared.lines()
    yield ""
    yield from commits.lines()
    for area, fixes in AREAS.items():
        yield ""
        yield f"## {area}"
        yield ""
        of_it = [each for each in found if each.fix in fixes]
        yield from table(of_it)
    yield ""
    yield "## Not seen"
    yield ""
    yield from not_seen(found)
    yield ""
    yield "### Not seen by untaught sources"
    yield ""
    yield "A case needs these to detect the fix. They were read off the fixes after the sources were frozen."
    yield "No case was written for them."
    yield ""
    yield from needed(found)
    yield ""
    yield "## Red by themselves"
    yield ""
    yield from RED.splitlines()
    yield ""
    yield from red
    yield ""
    yield "## Out of reach"
    yield ""
    yield "These are reverted too, but no export for the harness's targets reaches the corrected code:"
    yield ""
    yield from (f"- {link(each.fix)}: {each.fix.unreachable}" for each in found if each.fix.unreachable)
    yield ""
    yield "## Left out"
    yield ""
    yield from left_out


def introduction(table: Iterator[str], frozen: Mapping[str, object]) -> Iterator[str]:
    releases = ", ".join(f"{release} for those after {before}" for release, before in SINCE.items())
    sources = "\n".join(
        (
            *markdown.head(("source", "cases")),
            *(markdown.row((f"`{name}`", text)) for name, text in SOURCES.items()),
        )
    ).format_map(frozen)
    yield from INTRODUCTION.format(
        releases=releases,
        enough=ENOUGH,
        sheets=ENOUGH_SHEETS,
        further=ENOUGH_FURTHER,
        sources=sources,
        recall="\n".join(table),
    ).splitlines()


def table(found: Sequence[Met]) -> Iterator[str]:
    """Yield the table of how many cells of each source have seen each fix."""
    sources = tuple(found[0].found) if found else ()
    yield f"| {' | '.join(('fix', 'release', 'it corrected', 'before it', *sources, 'verdict', 'named'))} |"
    yield f"|---|---|---|---|{'---:|' * len(sources)}---|---|"
    yield from map(row, found)


def row(found: Met) -> str:
    verdicts, places = (most(vars(seen)[what] for seen in found.seen) for what in ("verdict", "named"))
    said = (link(found.fix), found.fix.release, found.fix.kind, found.fix.broke)
    return f"| {' | '.join((*said, *map(count, found.found.values()), verdicts, places))} |"


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


def needed(found: Sequence[Met]) -> Iterator[str]:
    """Yield the table of needs of fixes that no untaught source has seen, grouped by kind."""
    unseen = [each for each in found if not each.is_seen(*each.untaught)]
    yield from markdown.head(("kind", "fixes", "needed"))
    for kind in dict.fromkeys(kind for kind, _ in NEEDS.values()):
        of_it = [each.fix for each in unseen if NEEDS[each.fix.number][0] == kind]
        if of_it:
            what = "; ".join(f"{link(fix)}: {NEEDS[fix.number][1]}" for fix in of_it)
            yield markdown.row((kind, str(len(of_it)), what))
