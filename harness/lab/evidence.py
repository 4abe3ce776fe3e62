"""Counts the evidence of the instruments: tables in README.md and other pages, from theirs."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator

from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.running import core
from executorch_goldens.settings import releases
from executorch_goldens.zoo import targets
from executorch_goldens_plugins.compare.reach import map as maps
from lab import GOLDENS, findings, markdown
from lab.mutants import commits, recall, swaps
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
    """Yield the tables of README.md, CONTRIBUTING.md, docs/how-it-decides.md and the lab's page."""
    yield Part("README.md", "evidence", functools.partial(table, "", "harness/lab/docs/"))
    yield Part("harness/lab/docs/README.md", "evidence", functools.partial(table, "../../../", ""))
    yield Part("CONTRIBUTING.md", "cells", cells)
    yield Part("docs/how-it-decides.md", "tolerances", tolerances)


def tried() -> dict[str, tuple[str, str, str, str]]:
    """Return what was tried, seen and not seen, and how, by the page that has the details."""
    by_release, newest = drawn_results(), releases.load().newest
    drawn = Counter(each.every for each in itertools.chain.from_iterable(by_release))
    killed, unreached = drawn[mechanical.KILLED], drawn[mechanical.NOT_REACHED]
    return {
        "history.md#by-command": recall.committed(
            recall.COMMITTED / f"{newest}.jsonl", f"upstream fixes in {newest}, each reverted"
        ),
        "history.md#swapped-names": recall.committed(
            swaps.COMMITTED / f"{swaps.RELEASE}.jsonl",
            f"names read for another in {swaps.RELEASE}, drawn by rule",
        ),
        "history.md#commits-in-a-row": commits.committed(COMPARED),
        "mutants.md": (
            f"{drawn.total()} defects drawn by rule in {count(len(by_release), 'release')}",
            str(killed),
            f"{drawn.total() - killed - unreached} reached, {unreached} not reached",
            "an export of up to 12 cells that run the line",
        ),
    }


def drawn_results() -> list[list[mechanical.Result]]:
    """Return what became of the mechanical mutants of each release that has a map and a table of them."""
    mapped = [version for version in releases.load().releases if (GOLDENS / version / maps.FILE).is_file()]
    found = {version: mechanical.committed(version) for version in mapped}
    return [mechanical.results(version, rows) for version, rows in found.items() if rows]


def table(root: str, lab: str) -> Iterator[str]:
    """Yield what was tried, as a table, and what was found; `root` and `lab` lead there from the page."""
    yield ""
    yield from markdown.head(("tried", "seen", "not seen", "how"))
    for page, (*counts, how) in tried().items():
        yield markdown.row((*counts, f"{how} ([details]({lab}{page}))"))
    yield ""
    versions, found = releases.load().releases, findings.load().values()
    goldens, fixed = sum(map(_goldens, versions)), sum(finding.upstream == "merged" for finding in found)
    yield f"Found: [{len(found)} defects of ExecuTorch]({root}findings/README.md), each with a script and a text to"
    yield f"file; {fixed} are fixed upstream since. Recorded: {goldens:,} goldens on {len(versions)} releases"
    yield f"([what they reach]({lab}coverage/{releases.load().newest}-reach.md))."
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
