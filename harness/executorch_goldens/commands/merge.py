"""``goldens merge``: join the results of shards, or say in Markdown what runs found."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.files import durable
from executorch_goldens.goldens import golden, roots
from executorch_goldens.releases import MATRIX
from executorch_goldens.results import ledger, merging, proposals
from executorch_goldens.results.ledger import Ledger
from executorch_goldens.results.merging import Merged
from executorch_goldens.running import messages
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import Forms, share
from executorch_goldens.settings.config import Config

if TYPE_CHECKING:
    from executorch_goldens.review.summary import Row

#: The forms of the command, and the options of each.
JOINING, MARKDOWN, ANNOTATIONS = "joining", "--markdown", "--annotations"
OPTIONS = {
    JOINING: ("--into", "--ledger"),
    MARKDOWN: (MARKDOWN, "--base", "--link"),
    ANNOTATIONS: (ANNOTATIONS,),
}

EXAMPLES = """\
examples:
  goldens merge build/shards/*
  goldens merge build/sweeps --ledger
  goldens merge build/merged --markdown --base build/base
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "merge",
        description="Join results.jsonl, run.json, junit.xml and what was kept of cells that need a look. Results of "
        "unlike runs, missing cells and cells that are there twice are refused. Ends with 1 where a cell is not as it "
        "should be or a golden is stale. With --markdown, join nothing: print counts, causes, what got worse, and what "
        "is otherwise than in the base, for the comment on a pull request.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="+", type=Path, metavar="DIR", help="a folder with results below it")
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="where the joined results go (default: build/merged)"
    )
    share(parser.add_argument, "--goldens")
    parser.add_argument(
        "--ledger",
        action="store_true",
        help=f"write a row of {ledger.FILE} beside the goldens for each release: only for whole runs",
    )
    told = parser.add_argument_group("in place of joining")
    form = told.add_mutually_exclusive_group()
    form.add_argument(MARKDOWN, action="store_true", help="print ten lines of Markdown: what runs found")
    form.add_argument(
        ANNOTATIONS, action="store_true", help="print GitHub's commands that mark the changed goldens"
    )
    told.add_argument(
        "--base",
        action="append",
        type=Path,
        metavar="DIR",
        help="results of the commit that they are based on; repeatable",
    )
    told.add_argument("--link", default="", metavar="URL", help="where the whole report is")
    parser.set_defaults(run=run, forms=Forms(OPTIONS, form_of))


def form_of(arguments: argparse.Namespace) -> str:
    """Return which of `OPTIONS` it is."""
    return MARKDOWN if arguments.markdown else ANNOTATIONS if arguments.annotations else JOINING


def run(arguments: argparse.Namespace) -> int:
    """Merge, and print what the end of one run would have; or say what was found."""
    repository = config.load()
    if form_of(arguments) != JOINING:
        return tell(arguments, repository)
    goldens = arguments.goldens or repository.goldens
    into = arguments.into or repository.root / "build" / "merged"
    proved = Ledger.read(goldens) if arguments.ledger else None
    code = SAME
    with merging.at_rest(arguments.results):
        joined = list(merging.of_releases(merging.find(arguments.results), into))
    for merged in joined:
        lines = list(summary(merged, goldens))
        print("\n".join(lines))
        messages.step_summary(
            f"goldens of ExecuTorch {merged.provenance.release}, {merged.parts} folders merged",
            [row["verdict"] for row in merged.rows],
            lines,
        )
        if merged.wrong() or stale(merged, goldens):
            code = DIFFERENT
        if proved is not None:
            proved = proved.with_run(merged, goldens)
    if proved is not None:
        durable.replace(goldens / ledger.FILE, proved.text())
        print(f"ledger: {goldens / ledger.FILE}")
    return code


def tell(arguments: argparse.Namespace, repository: Config) -> int:
    """Print the summary; raise `executorch_goldens.results.merging.MergeError` for a folder without results."""
    # Joining shards does not wait for what groups what they propose.
    from executorch_goldens.review.groups import grouped
    from executorch_goldens.review.standing import Standing
    from executorch_goldens.review.summary import Summary, marks

    goldens = (arguments.goldens or repository.goldens).resolve()
    found = rows(arguments.results)
    standing = Standing(repository, goldens, MATRIX)
    proposed = [each for folder in arguments.results for each in proposals.find(folder)]
    groups = grouped(proposed, goldens, standing)
    if arguments.annotations:
        within = goldens.relative_to(repository.root) if goldens.is_relative_to(repository.root) else goldens
        print(*marks(groups, within.as_posix()), sep="\n")
        return SAME
    base = rows(arguments.base) if arguments.base else None
    print(*Summary(found, groups, base, arguments.link).markdown(), sep="\n")
    return SAME


def rows(folders: Sequence[Path]) -> list[Row]:
    """Return the results under some folders; raise `results.merging.MergeError` where one has none."""
    return [
        (release, row)
        for release, parts in merging.find(folders).items()
        for part in parts
        for row in part.rows
    ]


def summary(merged: Merged, goldens: Path) -> Iterator[str]:
    """Yield the lines of a release."""
    came = merged.provenance
    verdicts = messages.counts((row["verdict"], row["reason"]) for row in merged.rows)
    yield f"ExecuTorch {came.release}, {merged.parts} folders: {verdicts}"
    yield f"{len(came.variations)} variations, {merged.exports()} exports, {merged.core_seconds():.0f} core seconds"
    yield f"results: {merged.folder}"
    yield from messages.numerics(
        {
            Cell(row["target"], row["case"]): row["difference"]
            for row in merged.rows
            if row["difference"] is not None
        }
    )
    found = {Cell(row["target"], row["case"]): row.get("sqnr") for row in merged.rows}
    yield from messages.ratios({cell: ratio for cell, ratio in found.items() if ratio is not None})
    for row in merged.wrong():
        yield f"{row['verdict']}: {row['target']}/{row['case']}: {row['reason']}"
    for cell in stale(merged, goldens):
        yield messages.stale(golden.directory(goldens / came.release, cell))


def stale(merged: Merged, goldens: Path) -> tuple[Cell, ...]:
    """Return the goldens that match no cell, which only a run of all cells can tell."""
    if not merged.provenance.whole:
        return ()
    return roots.leftovers(goldens / merged.provenance.release, set(merged.provenance.selection())).stale
