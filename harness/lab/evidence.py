"""Counts the evidence of the instruments: one line in README.md, from their tables."""

from __future__ import annotations

from collections.abc import Iterator

from executorch_goldens import releases
from executorch_goldens.files import markdown
from executorch_goldens.goldens import golden
from executorch_goldens.running import core
from lab import GOLDENS, findings
from lab.mutants import page as mutants
from lab.mutants.history import FIXES
from lab.mutants.history.__main__ import met
from lab.pages import Part


def parts() -> Iterator[Part]:
    """Yield the line of README.md, and the tables of docs/lab/README.md and CONTRIBUTING.md."""
    yield Part("../README.md", "evidence", line)
    yield Part("lab/README.md", "evidence", table)
    yield Part("../CONTRIBUTING.md", "cells", cells)


def counts() -> dict[str, str]:
    """Return each count with its unit, by the page that has the details."""
    versions = tuple(releases.load().releases)
    goldens = sum(_goldens(version) for version in versions)
    found = findings.load().values()
    fixed = sum(finding.upstream == "merged" for finding in found)
    judged = mutants.judged()
    detected = sum(each.detected for each in judged)
    fixes = [met(fix) for fix in FIXES]
    seen = sum(each.is_seen(*each.untaught) for each in fixes)
    return {
        "findings/README.md": f"{len(found)} defects found upstream ({fixed} fixed since)",
        "mutants.md": f"{detected} of {len(judged)} deliberate defects detected",
        "history.md": f"{seen} of {len(fixes)} reverted upstream fixes seen",
        f"coverage/{versions[-1]}.md": f"{goldens:,} goldens on {len(versions)} releases",
    }


def line() -> Iterator[str]:
    """Yield the counts as one sentence, with links."""
    yield "; ".join(f"[{count}](docs/lab/{page})" for page, count in counts().items()) + "."


def table() -> Iterator[str]:
    """Yield the counts as a table."""
    yield ""
    yield from markdown.head(("count", "details"))
    yield from (markdown.row((count, f"[{page}]({page})")) for page, count in counts().items())
    yield ""


def cells() -> Iterator[str]:
    """Yield how many cells each release has: with a golden, known to be wrong, and in the core."""
    yield ""
    yield from markdown.head(("release", "goldens", "known defects", "cells of the core"))
    for version, release in releases.load().releases.items():
        counted = (_goldens(version), len(release.known), len(core.read(GOLDENS / version / core.FILE)))
        yield markdown.row((version, *map(str, counted)))
    yield ""


def _goldens(version: str) -> int:
    return sum(1 for _ in golden.recorded(GOLDENS / version))
