"""docs/history.md: which fixes taken back the zoo sees, and which it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.mutants.history import AREAS, SINCE
from tests.mutants.history.measure import ENOUGH, Result
from tests.mutants.table import NONE

HEAD = (
    "| fix | release | it corrected | before it | seen by | verdict | named | cells tried |",
    "|---|---|---|---|---:|---|---|---:|",
)
REPOSITORY = "https://github.com/pytorch/executorch/pull/"
#: Of many verdicts and passes, so many are listed.
LISTED = 3


def document(found: Sequence[Result], cells: Mapping[str, int], left_out: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    found
        For every fix.
    cells
        Number of cells with a golden, by release.
    left_out
        Lines about fixes that no edit stands for.
    """
    releases = ", ".join(f"{release} for those after {before}" for release, before in SINCE.items())
    yield "# History as a measure"
    yield ""
    yield "Real fixes of upstream's, taken back in a release that has them. [Mutants](mutants.md) are made up;"
    yield f"these went wrong. The releases: {releases}. Each fix taken back is a small edit of ours, in"
    yield "`tests/mutants/history`, that brings the old behaviour back. It is tied to no cell: the whole zoo meets it."
    yield "The table is written by:"
    yield ""
    yield "```console"
    yield "$ nox -s history -- --minutes 60      # goes on where it was stopped"
    yield "$ nox -s history -- --so-far --update # writes what was measured so far to this page"
    yield "```"
    yield ""
    yield "A cell is exported under one variation with all fixes of its release taken back at once. If it is as its"
    yield "golden says, it sees none of them; two whose effects hide each other would be missed. If not, the fixes are"
    yield "halved until one alone makes the difference. Fixes of one backend are not tried on cells of the other, nor"
    yield f"further once {ENOUGH} cells have seen them. Cells that have no golden, because upstream gets them wrong, or"
    yield "that are not stable without any edit, say nothing."
    yield ""
    yield from summary(found, cells)
    yield ""
    yield "Families of small cases for the situations that these fixes corrected stand in `models/situations`, a zoo of"
    yield "its own. Neither its goldens nor figures over it are recorded yet: none of the above counts it."
    if not any(each.tried for each in found):
        yield ""
        yield "Nothing of this was measured yet: no cell has met a fix taken back."
    for area, fixes in AREAS.items():
        yield ""
        yield f"## {area}"
        yield ""
        yield from HEAD
        yield from (row(each) for each in found if each.fix in fixes)
    yield ""
    yield "## Out of reach"
    yield ""
    yield "These are taken back as well, but no export for the harness's targets comes by what they corrected:"
    yield ""
    for each in found:
        if each.fix.unreachable:
            yield f"- [#{each.fix.number}]({REPOSITORY}{each.fix.number}): {each.fix.unreachable}"
    yield ""
    yield "## Left out"
    yield ""
    yield from left_out


def row(found: Result) -> str:
    fix = found.fix
    link = f"[#{fix.number}]({REPOSITORY}{fix.number})"
    if not found.tried:
        said = ("not tried", NONE, NONE, "0")
    else:
        verdicts, places = (
            most(vars(seen)[what] for seen in found.seen.values()) for what in ("verdict", "named")
        )
        count = len(found.seen)
        number = f"{count} or more" if count >= ENOUGH else str(count)
        said = (number, verdicts, places, str(found.tried))
    return f"| {' | '.join((link, fix.release, fix.kind, fix.broke, *said))} |"


def most(values: Iterator[str]) -> str:
    """Return the most frequent of `values`, in that order.

    >>> most(iter(["failed", "corrupt", "corrupt"]))
    'corrupt, failed'
    """
    return ", ".join(value for value, _ in Counter(values).most_common(LISTED)) or NONE


def summary(found: Sequence[Result], cells: Mapping[str, int]) -> Iterator[str]:
    """Yield how many there are, and how many were tried and seen, by release."""
    yield "| release | cells with a golden | fixes | out of reach | tried on some cell | seen |"
    yield "|---|---:|---:|---:|---:|---:|"
    for release in SINCE:
        of_it = [each for each in found if each.fix.release == release]
        tried = [each for each in of_it if each.tried]
        unreachable = sum(bool(each.fix.unreachable) for each in of_it)
        seen = sum(bool(each.seen) for each in tried)
        counts = (cells.get(release, 0), len(of_it), unreachable, len(tried), seen)
        yield f"| {release} | {' | '.join(map(str, counts))} |"
