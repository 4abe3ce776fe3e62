"""``python -m lab commits REPOSITORY SINCE``: what `goldens compare` says of commits in a row, by two names each.

Each commit after ``SINCE`` that edits Python of backends or of exir is laid over the release, which has to carry it
(`lab.carried`), and compared with the one before: ``goldens compare "1.4.1 + DIR@A^" "1.4.1 + DIR@A"``. Results are
kept in ``build/commits``, a line a commit, so that a session that was stopped goes on.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.settings.arguments import positive_int
from lab import markdown
from lab.mutants.recall import (
    REACHED,
    SEEN,
    UNREACHED,
    UNTOUCHED,
    accept,
    add_session,
    at_most,
    compared,
    keep,
    lines_reached,
    minutes,
    results,
    unfinished,
)

#: Paths of upstream's repository whose Python lowers programs.
PATHS = (
    *("backends/arm/*.py", "backends/xnnpack/*.py", "backends/transforms/*.py", "exir/*.py"),
    *(":!*/test/*", ":!*/tests/*", ":!*/scripts/*", ":!*/runtime/*", ":!*/third-party/*"),
)
KEPT = Path("build/commits")
#: Committed results, and what a person read in those that differ; of these a part of docs/history.md is made.
COMMITTED = Path(__file__).parent / "history" / "kept" / "commits"
READ = COMMITTED / "read.toml"
UPSTREAM = "https://github.com/pytorch/executorch/commit"


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("commits", description=__doc__)
    parser.add_argument("repository", type=Path, help="a clone of pytorch/executorch, bare or not")
    parser.add_argument("since", help="the commit after which they are taken, in the repository's order")
    parser.add_argument("--until", default="HEAD", help="the last one (default: %(default)s)")
    parser.add_argument("--release", default="1.4.1", help="default: %(default)s")
    parser.add_argument("--count", type=positive_int, help="commits to compare (default: all)")
    add_session(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare each commit that has no result yet with the one before; print what became of all."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{options.release}.jsonl"
    span = f"{options.since}..{options.until}"
    listed = git(options.repository, "log", "--reverse", "--format=%h%x09%s", span, "--", *PATHS).splitlines()
    commits = [(upstream, title) for upstream, _, title in (line.partition("\t") for line in listed)]
    chosen = itertools.islice(commits, options.count)
    for upstream, title in unfinished(chosen, lambda each: each[0], kept, options):
        names = [f"{options.release} + {options.repository}@{upstream}{back}" for back in ("^", "")]
        keep(kept, {"name": upstream, "title": title, **compared(names[0], names[1], options.budget)})
    number = Counter(each["result"] for each in results(kept))
    print(", ".join(f"{count} {name}" for name, count in number.items()), f"of {len(commits)}")
    if options.update:
        accept(kept, COMMITTED, [upstream for upstream, _ in commits])
    return SAME


def lines() -> Iterator[str]:
    """Yield the part of docs/history.md about commits in a row."""
    yield "## Commits in a row"
    yield ""
    yield "Upstream's commits after the branch point of a release, in its order, that edit Python of backends or of"
    yield "exir; each compared with the one before by two names. What a person read in those that differ is in"
    yield f"`{READ.relative_to(COMMITTED.parents[2])}`. Written by `nox -s lab -- commits REPOSITORY SINCE --update`."
    read = what_was_read()
    for file in sorted(COMMITTED.glob("*.jsonl")):
        every = results(file)
        yield ""
        yield f"{file.stem}: {summary(every, read)}."
        yield ""
        yield from markdown.head(
            ("commit", "said", "edited lines reached", "cells", "seconds", "differ", "read")
        )
        for each in every:
            yield _row(each, read.get(each["name"], {}))


def what_was_read() -> dict[str, Any]:
    """Return what a person read in commits that differ, by commit."""
    return tomllib.loads(READ.read_text(encoding="utf-8"))


def summary(every: Sequence[Mapping[str, Any]], read: Mapping[str, Any]) -> str:
    """Return how many commits were said to be identical, and how many rightly and wrongly red."""
    number = Counter(each["result"] for each in every)
    return (
        f"{len(every)} commits: {number[SEEN]} differed ({judged(every, read)}), {number[REACHED]} were reached and "
        f"identical, {number[UNREACHED]} not reached, {number[UNTOUCHED]} without code; {'; '.join(minutes(every))}"
    )


def judged(every: Sequence[Mapping[str, Any]], read: Mapping[str, Any]) -> str:
    """Return how many of the commits that differ are rightly red, and how many wrongly."""
    seen = [each["name"] for each in every if each["result"] == SEEN]
    number = Counter(read.get(name, {}).get("red", "not read") for name in seen)
    return ", ".join(f"{count} {word}" for word, count in sorted(number.items()))


def committed(release: str) -> tuple[str, str, str, str]:
    """Return the committed results of a release in words: what was tried, seen and not seen, and how."""
    every = results(COMMITTED / f"{release}.jsonl")
    number = Counter(each["result"] for each in every)
    return (
        f"{len(every)} upstream commits after {release}, in a row",
        judged(every, what_was_read()),
        f"{number[REACHED]} reached and identical, {number[UNREACHED]} not reached, {number[UNTOUCHED]} without code",
        f"`goldens compare` with the commit before{at_most(every)}",
    )


def _row(each: Mapping[str, Any], read: Mapping[str, str]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in each.get("kinds", {}).items())
    return markdown.row(
        (
            f"[{each['name']}]({UPSTREAM}/{each['name']}) {each['title']}",
            each["result"],
            lines_reached(each),
            str(each.get("cells", 0)),
            str(each["seconds"]),
            kinds or "-",
            f"{read['red']}: {read['why']}" if read else "-",
        )
    )


def git(folder: Path, *words: str, given: str | None = None) -> str:
    """Run git; raise UsageError where it fails."""
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
