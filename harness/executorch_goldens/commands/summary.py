"""``goldens summary``: what runs found, in ten lines of Markdown, for the comment on a pull request."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.releases import MATRIX
from executorch_goldens.results import merging, proposals
from executorch_goldens.review.groups import grouped
from executorch_goldens.review.standing import Standing
from executorch_goldens.review.summary import Row, Summary, marks
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "summary",
        help="say in ten lines of Markdown what runs found",
        description="Print counts, causes, what got worse, and what is otherwise than in the base: for the comment on "
        "a pull request.",
    )
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="DIR", help="folders that hold the results of runs"
    )
    parser.add_argument(
        "--base",
        action="append",
        type=Path,
        metavar="DIR",
        help="results of the commit that it is based on; repeatable",
    )
    parser.add_argument("--link", default="", metavar="URL", help="where the whole report is")
    parser.add_argument(
        "--annotations",
        action="store_true",
        help="print GitHub's commands that mark the changed goldens, in place of the summary",
    )
    share(parser.add_argument, "--goldens")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the summary; raise `executorch_goldens.results.merging.MergeError` for a folder without results."""
    repository = config.load()
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
