"""The page of the matrix: each option, what releases lack, and the programs that are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from executorch_goldens.goldens.decisions import Decisions, inline
from lab import known, markdown
from lab.options.cases import all_rows, releases_of
from lab.options.factors import LACKED, OPTIONS, REFUSED, RELEASES
from lab.pages import Part

PAGE = "harness/lab/docs/options.md"


def parts() -> Iterator[Part]:
    """Yield the parts of the page."""
    yield Part(PAGE, "options", options)
    yield Part(PAGE, "lacking", lacking)
    yield Part(PAGE, "wrong", wrong)


def options() -> Iterator[str]:
    """Yield the counts of programs by release, and the table of options."""
    found = list(all_rows().values())
    used = Counter((name, value) for row in found for name, value in row._asdict().items())
    counts = [sum(release in releases_of(row) for row in found) for release in RELEASES]
    of_each = ", ".join(f"{count} of {release}" for count, release in zip(counts, RELEASES, strict=True))
    yield f"{len(found)} programs: {of_each}."
    yield ""
    yield from markdown.head(("option", "value", "set by", "programs", "releases"))
    for name, values in OPTIONS.items():
        for value, option in values.items():
            releases = "all" if option.releases == RELEASES else ", ".join(option.releases)
            says = f"`{option.says}`" if "(" in option.says or "=" in option.says else option.says
            yield markdown.row((name, value, says, str(used[name, value]), releases))


def lacking() -> Iterator[str]:
    """Yield the options that a release lacks, and those that no row has."""
    yield from markdown.head(("release", "no program has"))
    for release in RELEASES:
        values = [
            f"{name} {value}"
            for name, of_it in OPTIONS.items()
            for value, option in of_it.items()
            if release not in option.releases
        ]
        yield markdown.row((release, ", ".join(values) or "lacks nothing"))
    yield ""
    yield "No release has:"
    yield ""
    yield from (f"- {says}" for says in LACKED)
    yield ""
    yield "Left out:"
    yield ""
    yield from (f"- {says}" for says in REFUSED)


def wrong() -> Iterator[str]:
    """Yield how many programs were tried, and those that are wrong, as the list of what is known has them."""
    tried = {release: known.tried().get(("options", release)) for release in RELEASES}
    for release, counted in tried.items():
        possible = sum(release in releases_of(row) for row in all_rows().values())
        right = counted["right"] if counted is not None else "0"
        yield f"- {release}: {right} of {possible} programs are right"
    yield ""
    yield from markdown.head(("release", "programs", "result", "why"))
    for release in RELEASES:
        rows: dict[tuple[str, str], list[str]] = {}
        for cell, defect in sorted(Decisions.of_root(known.FOLDER / "options", release).defects.items()):
            result = inline(defect.finding) if defect.finding is not None else defect.why
            rows.setdefault((f"{defect.verdict}: {result}", defect.why), []).append(cell)
        for (result, why), cells in rows.items():
            names = ", ".join(f"`{cell.partition('/')[2]}`" for cell in cells)
            yield markdown.row((release, names, result, why))
