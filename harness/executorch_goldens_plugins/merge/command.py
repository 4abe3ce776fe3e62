"""``goldens merge``: join the results of shards, or summarize runs in Markdown."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import Group, grouped, members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.files import untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import decisions as book
from executorch_goldens.goldens import golden, roots
from executorch_goldens.results import merging
from executorch_goldens.results.merging import PartialResults
from executorch_goldens.results.rows import KNOWN, ResultRow
from executorch_goldens.review.decisions import (
    ACCEPTED,
    REJECTED,
    ReviewDecisions,
    decisions,
    rejected,
)
from executorch_goldens.running import counting
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import Forms, share
from executorch_goldens.settings.config import Config
from executorch_goldens_plugins.merge.summary import ReviewSummary, linked, marks

#: Variable that names the file for the summary of a job (GitHub Actions, "Workflow commands").
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
#: Cells that it lists: it may not exceed a mebibyte.
SHOWN_WRONG = 100

#: The forms of the command, and the options of each.
JOINING, MARKDOWN, ANNOTATIONS = "joining", "--markdown", "--annotations"
OPTIONS = {
    JOINING: ("--into",),
    MARKDOWN: (MARKDOWN, "--base", "--link"),
    ANNOTATIONS: (ANNOTATIONS,),
}

EXAMPLES = """\
examples:
  goldens merge build/shards/*
  goldens merge build/merged --markdown --base build/base
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "merge",
        description="Join results.jsonl, run.json and the kept files of cells that need a look. Results of "
        "unlike runs, missing cells and duplicate cells are refused. Exits with 1 if a cell needs a look "
        "or a golden is stale. With --markdown, join nothing: print counts, causes, regressions, and "
        "differences from the base, for the comment on a pull request; exits with 1 if a cell was not checked.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="+", type=Path, metavar="DIR", help="a folder with results below it")
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="where the joined results go (default: build/merged)"
    )
    share(parser.add_argument, "--goldens")
    reporting = parser.add_argument_group("in place of joining")
    form = reporting.add_mutually_exclusive_group()
    form.add_argument(
        MARKDOWN, action="store_true", help="print the findings of runs in ten lines of Markdown"
    )
    form.add_argument(
        ANNOTATIONS, action="store_true", help="print GitHub's commands that mark the changed goldens"
    )
    reporting.add_argument(
        "--base",
        action="append",
        type=Path,
        metavar="DIR",
        help="results of the commit that they are based on; repeatable",
    )
    reporting.add_argument("--link", default="", metavar="URL", help="where the whole report is")
    parser.set_defaults(run=run, forms=Forms(OPTIONS, form_of))


def form_of(arguments: argparse.Namespace) -> str:
    """Return which of `OPTIONS` it is."""
    return MARKDOWN if arguments.markdown else ANNOTATIONS if arguments.annotations else JOINING


def run(arguments: argparse.Namespace) -> int:
    """Merge, and print the end of one whole run; or print the summary."""
    repository = config.load()
    if form_of(arguments) != JOINING:
        return tell(arguments, repository)
    goldens = arguments.goldens or repository.goldens
    into = arguments.into or repository.root / "build" / "merged"
    code = SAME
    with merging.at_rest(arguments.results):
        joined = list(merging.of_releases(merging.find(arguments.results), into))
    # Grouping takes longer than joining.
    groups = causes(joined, goldens.resolve(), repository) if rejected(book.read(goldens)) else []
    decided = decisions(joined, goldens.resolve(), groups)
    for merged in joined:
        lines = list(summary(merged, goldens, decided))
        print("\n".join(lines))
        step_summary(
            f"goldens of ExecuTorch {merged.provenance.release}, {merged.parts} folders merged",
            [*map(decided.kind, merged.rows)],
            lines,
        )
        if any(left(merged, decided)) or stale(merged, goldens):
            code = DIFFERENT
    return code


def step_summary(title: str, verdicts: Iterable[str], wrong: Sequence[str]) -> None:
    """Add the counts and the cells that need a look to the summary of a job of GitHub Actions, if this is one."""
    if not (file := os.environ.get(STEP_SUMMARY)):
        return
    lines = [f"### {title}", "", "| verdict | cells |", "|---|---|"]
    lines += [f"| {verdict} | {count} |" for verdict, count in Counter(verdicts).items()]
    lines += ["", *(f"- {linked(untrusted.markdown(line))}" for line in wrong[:SHOWN_WRONG])]
    if len(wrong) > SHOWN_WRONG:
        lines.append(f"- and {len(wrong) - SHOWN_WRONG} more")
    with Path(file).open("a", encoding="utf-8") as summary:
        summary.write("\n".join(lines) + "\n\n")


def tell(arguments: argparse.Namespace, repository: Config) -> int:
    """Print the summary; raise `executorch_goldens.results.merging.MergeError` for a folder without results."""
    goldens = (arguments.goldens or repository.goldens).resolve()
    parts = parts_of(arguments.results)
    unchecked = merging.unchecked(parts)
    groups = causes(parts, goldens, repository)
    if arguments.annotations:
        within = goldens.relative_to(repository.root) if goldens.is_relative_to(repository.root) else goldens
        lines = marks(groups, goldens, within.as_posix(), unchecked)
    else:
        base = rows(parts_of(arguments.base)) if arguments.base else None
        decided = decisions(parts, goldens, groups)
        lines = ReviewSummary(rows(parts), groups, base, arguments.link, decided, unchecked).markdown()
    print(*lines, sep="\n")
    return DIFFERENT if unchecked else SAME


def parts_of(folders: Sequence[Path]) -> list[PartialResults]:
    """Return the results under some folders; raise `results.merging.MergeError` where one has none."""
    return [part for of_release in merging.find(folders).values() for part in of_release]


def causes(parts: Sequence[PartialResults], goldens: Path, repository: Config) -> list[Group]:
    """Return the causes of the proposals of results."""
    return grouped(members(parts, goldens, Standing(repository, goldens)))


def rows(parts: Iterable[PartialResults]) -> list[ResultRow]:
    """Return the rows of results."""
    return [row for part in parts for row in part.rows]


def left(merged: PartialResults, decided: ReviewDecisions) -> Iterator[ResultRow]:
    """Yield the rows of the cells that need a look, and were not accepted since."""
    return (row for row in merged.wrong() if decided.kind(row) != ACCEPTED)


def summary(merged: PartialResults, goldens: Path, decided: ReviewDecisions) -> Iterator[str]:
    """Yield the lines of a release."""
    came = merged.provenance
    kinds = [*map(decided.kind, merged.rows)]
    verdicts = counting.counts((kind, row.new) for kind, row in zip(kinds, merged.rows, strict=True))
    yield f"ExecuTorch {came.release}, {count(merged.parts, 'folder')}: {verdicts}"
    exports = f"{count(len(came.variations), 'variation')}, {count(merged.exports(), 'export')}"
    yield f"{exports}, {merged.core_seconds():.0f} core seconds"
    yield f"results: {merged.folder}"
    yield from counting.exactness({row.cell: row.accuracy for row in merged.rows if row.accuracy is not None})
    for row in left(merged, decided):
        why = decided.rejected.get(row.name)
        rejected = f" ({REJECTED}: {why})" if why else ""
        yield f"{row.verdict}: {row.cell}: {row.reason}{rejected}"
    if accepted := kinds.count(ACCEPTED):
        yield f"accepted since the run: {count(accepted, 'cell')}"
    for row in (row for row, kind in zip(merged.rows, kinds, strict=True) if kind == KNOWN):
        defect = decided.declared.get(row.name)
        yield f"{KNOWN}: {row.cell} is {row.verdict}: {defect.reason if defect is not None else row.reason}"
    for cell in stale(merged, goldens):
        yield counting.stale(golden.file_of(goldens / came.release, cell))


def stale(merged: PartialResults, goldens: Path) -> tuple[Cell, ...]:
    """Return the goldens that match no cell, which only a run of all cells can tell."""
    if not merged.provenance.whole:
        return ()
    return roots.leftovers(goldens / merged.provenance.release, set(merged.provenance.selection())).stale
