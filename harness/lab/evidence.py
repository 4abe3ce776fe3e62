"""Counts the evidence of the instruments: a list in README.md, from their tables."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.reach import map as maps
from executorch_goldens.running import core
from executorch_goldens.settings import releases
from executorch_goldens.zoo import targets
from lab import GOLDENS, findings, markdown
from lab.mutants import commits, recall
from lab.mutants.mechanical import page as mechanical
from lab.pages import Part

#: Rows of `tolerances`: the largest power of two, and its words.
BUCKETS = (
    (-math.inf, "none: equal to the last bit"),
    (-14, "up to 2^-14, the rounding of float32"),
    (-8, "2^-13 to 2^-8"),
    (-6, "2^-7 and 2^-6, about a code of int8"),
    (-4, "2^-5 and 2^-4"),
    (-2, "2^-3 and 2^-2; above a tenth, each operator is judged by itself"),
    (math.inf, "2^-1 and more; each operator is judged by itself"),
)
#: The release that upstream's commits were laid on.
COMPARED = "1.4.1"
FAILS, NOT_RUN = "lowering fails", "not judged: the program is not run"


def parts() -> Iterator[Part]:
    """Yield the list of README.md, and the tables of CONTRIBUTING.md, docs/how-it-decides.md and the lab's page."""
    yield Part("README.md", "evidence", line)
    yield Part("harness/lab/docs/README.md", "evidence", table)
    yield Part("CONTRIBUTING.md", "cells", cells)
    yield Part("docs/how-it-decides.md", "tolerances", tolerances)


def counts() -> dict[str, str]:
    """Return each count with its unit, by the page that has the details."""
    versions = tuple(releases.load().releases)
    goldens = sum(_goldens(version) for version in versions)
    found = findings.load().values()
    fixed = sum(finding.upstream == "merged" for finding in found)
    by_release = drawn_results()
    drawn = [*itertools.chain.from_iterable(by_release)]
    return {
        "history.md#by-command": recall.committed(versions[-1]),
        "history.md#commits-in-a-row": commits.committed(COMPARED),
        "mutants.md": f"of {len(drawn)} defects drawn by rule in {count(len(by_release), 'release')}, "
        f"{sum(each.every != mechanical.NOT_REACHED for each in drawn)} are in lines that some cell runs, and "
        f"{sum(each.every == mechanical.KILLED for each in drawn)} are detected",
        "findings/README.md": f"{len(found)} defects found in ExecuTorch, each with a script and a text to file; "
        f"{fixed} are fixed upstream since",
        f"coverage/{versions[-1]}-reach.md": f"{goldens:,} goldens on {len(versions)} releases",
    }


def drawn_results() -> list[list[mechanical.Result]]:
    """Return what became of the mechanical mutants of each release that has a map and a table of them."""
    mapped = [version for version in releases.load().releases if (GOLDENS / version / maps.FILE).is_file()]
    found = {version: mechanical.committed(version) for version in mapped}
    return [mechanical.results(version, rows) for version, rows in found.items() if rows]


def line() -> Iterator[str]:
    """Yield the counts as a list, each with a link."""
    yield ""
    yield from (f"- {fact} ([details](harness/lab/docs/{page}))" for page, fact in counts().items())


def table() -> Iterator[str]:
    """Yield the counts as a table."""
    yield ""
    yield from markdown.head(("count", "details"))
    yield from (markdown.row((fact, f"[{page}]({page})")) for page, fact in counts().items())
    yield ""


def cells() -> Iterator[str]:
    """Yield how many cells each release has: with a golden, known to be wrong, and in the core."""
    yield ""
    yield from markdown.head(("release", "goldens", "known defects", "cells of the core"))
    for version in releases.load().releases:
        defects = Decisions.of_root(GOLDENS, version).defects
        counted = (_goldens(version), len(defects), len(core.read(GOLDENS / version / core.FILE)))
        yield markdown.row((version, *map(str, counted)))
    yield ""


def tolerances() -> Iterator[str]:
    """Yield how many goldens of the newest release hold their outputs to which part of the largest value."""
    *_, version = releases.load().releases
    counted: dict[str, Counter[str]] = {kind: Counter() for kind in ("float", "quantized", "built")}
    for cell in golden.recorded(GOLDENS / version):
        target = targets.TARGETS.get(cell.target)
        kind = "built" if target is None else "quantized" if target.is_quantized else "float"
        record = golden.read(golden.file_of(GOLDENS / version, cell))
        counted[kind][_bucket(record.numerics if record is not None else None)] += 1
    yield ""
    yield from markdown.head((f"largest tolerance of an output, {version}", *counted))
    for words in (*(words for _, words in BUCKETS), FAILS, NOT_RUN):
        yield markdown.row((words, *(str(each[words]) for each in counted.values())))
    yield ""


def _bucket(numerics: Numerics | None) -> str:
    """Return the row of `tolerances` for a golden."""
    if numerics is None or numerics.fails:
        return FAILS
    if numerics.not_run:
        return NOT_RUN
    least = -math.inf if numerics.power is None else numerics.power
    return next(words for most, words in BUCKETS if least <= most)


def _goldens(version: str) -> int:
    return sum(1 for _ in golden.recorded(GOLDENS / version))
