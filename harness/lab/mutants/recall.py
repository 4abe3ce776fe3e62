"""``python -m lab recall``: what `goldens compare` says of upstream's fixes taken back, by two names and nothing else.

Each fix is taken back in a copy of the files that it edits, laid over its release: ``goldens compare 1.5.1 "1.5.1 +
DIR" --first``. It is seen if a cell differs, reached if edited lines ran and no cell differs, and else not reached.
Results are kept in ``build/recall``, a line a fix, so that a session that was stopped goes on.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable
from executorch_goldens.settings.arguments import positive_float
from executorch_goldens.settings.config import load
from executorch_goldens.toolchains.toolchain import Toolchain
from lab import markdown, pages
from lab.mutants.history import FIXES, SINCE
from lab.mutants.mutant import Edit, edited

T = TypeVar("T")

#: What a comparison says of a fix.
SEEN, REACHED, UNREACHED = "seen", "reached and not seen", "not reached"
#: Of an edit of comments, docstrings or places alone, as `goldens compare` says it.
UNTOUCHED = "no code differs"
#: One cell that differs is enough.
FIRST = "--first"
KEPT = Path("build/recall")
#: Committed results, of which a part of docs/history.md is made.
COMMITTED = Path(__file__).parent / "history" / "kept" / "compared"


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("recall", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these fixes; wildcards")
    parser.add_argument("--release", choices=tuple(SINCE), default="1.5.1", help="default: %(default)s")
    add_session(parser)
    parser.set_defaults(run=run)


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the options of a session of comparisons: see `unfinished` and `accept`."""
    parser.add_argument(
        "--budget", type=positive_float, help="minutes of each comparison (default: the command's)"
    )
    parser.add_argument("--minutes", type=positive_float, help="begin no comparison after (default: none)")
    parser.add_argument("--so-far", action="store_true", help="only report")
    parser.add_argument("--update", action="store_true", help="write the results, and docs/history.md")


def run(options: argparse.Namespace) -> int:
    """Compare each fix that has no result yet; print what became of all."""
    names = options.names or ["*"]
    fixes = [each for each in FIXES if each.release == options.release]
    wanted = [each for each in fixes if any(fnmatch.fnmatch(each.name, name) for name in names)]
    if not wanted:
        raise UsageError(f"no fix of {options.release} is named {' or '.join(names)}")
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{options.release}.jsonl"
    packages = Toolchain.from_name(options.release, load()).site_packages
    laid_over(
        {fix.name: functools.partial(lay, fix.edits, packages) for fix in wanted},
        *(options.release, KEPT / options.release, kept, options),
    )
    number = Counter(each["result"] for each in results(kept))
    print(", ".join(f"{number[each]} {each}" for each in (SEEN, REACHED, UNREACHED)), f"of {len(fixes)}")
    lost = no_longer_seen(results(COMMITTED / kept.name), results(kept))
    if lost:
        print(f"no longer seen: {', '.join(lost)}")
    if options.update:
        accept(kept, COMMITTED, [each.name for each in fixes])
    return DIFFERENT if lost else SAME


def no_longer_seen(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of what was seen before and is not now.

    >>> no_longer_seen([{"name": "a", "result": "seen"}], [{"name": "a", "result": "not reached"}])
    ['a']
    """
    seen = {each["name"] for each in before if each["result"] == SEEN}
    return [each["name"] for each in now if each["name"] in seen and each["result"] != SEEN]


def lines() -> Iterator[str]:
    """Yield the part of docs/history.md about comparisons by two names."""
    yield "## By command"
    yield ""
    yield "Each fix taken back in a copy of the files that it edits, laid over its release, and compared by two names:"
    yield '`goldens compare 1.5.1 "1.5.1 + DIR" --first`. Written by `nox -s lab -- recall --update`.'
    yield ""
    found = {file.stem: results(file) for file in sorted(COMMITTED.glob("*.jsonl"))}
    for release, every in found.items():
        yield f"{release}: {'; '.join(minutes(every))}."
        yield ""
    yield from markdown.head(("fix", "said", "edited lines reached", "cells", "seconds", "seen by"))
    for release, every in found.items():
        for each in every:
            yield markdown.row(
                (
                    f"{each['name']} ({release})",
                    each["result"],
                    lines_reached(each),
                    str(each.get("cells", 0)),
                    str(each["seconds"]),
                    ", ".join(each.get("seen_by", ())[:2]) or "-",
                )
            )


def committed(file: Path, what: str) -> tuple[str, str, str, str]:
    """Return committed results in words: what was tried, seen and not seen, and how."""
    every = results(file)
    number = Counter(each["result"] for each in every)
    return (
        f"{len(every)} {what}",
        str(number[SEEN]),
        f"{number[REACHED]} reached, {number[UNREACHED]} not reached",
        f"`goldens compare` with the release{at_most(every)}",
    )


def at_most(every: Sequence[Mapping[str, Any]]) -> str:
    """Return how long the longest of some comparisons took."""
    return f", at most {max(each['seconds'] for each in every) / 60:.0f} minutes each"


def minutes(every: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how long the comparisons took, by their budget."""
    for budget in sorted({each.get("budget", 0.0) for each in every}):
        seconds = [each["seconds"] for each in every if each.get("budget", 0.0) == budget]
        what = f"--budget {budget:g}" if budget else "the default budget"
        median, most = statistics.median(seconds) / 60, max(seconds) / 60
        yield f"{len(seconds)} with {what} took {median:.1f} minutes each (median; at most {most:.1f})"


def lines_reached(result: Mapping[str, Any]) -> str:
    """Return how many of the edited lines that can run were reached, in words."""
    reach = result.get("reach") or {}
    reached = reach.get("reached") or 0
    return f"{reached} of {reached + len(reach.get('unreached') or ())}"


def accept(kept: Path, committed: Path, names: Iterable[str]) -> None:
    """Commit the results of what has these names to a folder, with those that it has, and write the pages."""
    committed.mkdir(parents=True, exist_ok=True)
    found = {each["name"]: each for each in (*results(committed / kept.name), *results(kept))}
    text = "".join(f"{json.dumps(found[name])}\n" for name in names if name in found)
    durable.replace(committed / kept.name, text)
    pages.update(["history", "evidence"])


def unfinished(
    every: Iterable[T], name: Callable[[T], str], kept: Path, options: argparse.Namespace
) -> Iterator[T]:
    """Yield those that have no result yet, until ``--minutes`` have passed; none with ``--so-far``."""
    started, done = time.monotonic(), {each["name"] for each in results(kept)}
    for each in () if options.so_far else every:
        if options.minutes is not None and time.monotonic() - started > 60 * options.minutes:
            return
        if name(each) not in done:
            yield each


def laid_over(
    every: Mapping[str, Callable[[Path], None]],
    release: str,
    folder: Path,
    kept: Path,
    options: argparse.Namespace,
) -> None:
    """Compare a release with itself and edited files laid over it, by names that have no result yet.

    Parameters
    ----------
    every
        Writes the files that are edited into a folder.
    folder
        Below it each has one.
    """
    for name in unfinished(every, str, kept, options):
        place = (folder / name).absolute()
        every[name](place)
        keep(kept, {"name": name, **compared(release, f"{release} + {place}", options.budget, FIRST)})


def keep(kept: Path, result: dict[str, Any]) -> None:
    """Append a result, and print it."""
    with kept.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(result)}\n")
    print(f"{result['result']}: {result['name']}: {result['head']} ({result['seconds']} s)", flush=True)


def results(kept: Path) -> list[dict[str, Any]]:
    """Return the results so far, of each name the last one."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
    return [*{each["name"]: each for each in map(json.loads, lines)}.values()]


def lay(edits: Iterable[Edit], packages: Path, folder: Path) -> None:
    """Write the files that some edits are of, with the edits made, as in a checkout of ExecuTorch; raise EditError."""
    files: dict[Path, str] = {}
    for edit in edits:
        place = packages.joinpath(*edit.module.split("."))
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        files[file] = edited(files.get(file) or file.read_text(encoding="utf-8"), [edit])
    for file, text in files.items():
        path = folder / file.relative_to(packages / "executorch")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def compared(base: str, head: str, budget: float | None, *more: str) -> dict[str, Any]:
    """Return what a comparison of two toolchains says, with more options, and the seconds that it took."""
    own = {"budget": budget} if budget is not None else {}
    options = ["--budget", str(budget)] if budget is not None else []
    command = ["compare", base, head, "--json", *more, *options]
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "executorch_goldens", *command], capture_output=True, text=True, check=False
    )
    seconds = round(time.monotonic() - started)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"result": UNREACHED, "head": f"error: {lines[-1]}", "seconds": seconds, **own}
    differing = {cell: each for cell, each in found["cells"].items() if each["kind"] != "identical"}
    reach = found["reach"] or {}
    if differing:
        result = SEEN
    elif not any(reach.get(each) for each in ("reached", "unreached", "raising")):
        result = UNTOUCHED
    else:
        result = REACHED if reach.get("reached") else UNREACHED
    return {
        "result": result,
        "head": found["head"],
        "seconds": seconds,
        **own,
        "cells": len(found["cells"]),
        "seen_by": list(differing)[:5],
        "kinds": dict(Counter(each["kind"] for each in differing.values())),
        "causes": dict(Counter(each["cause"] or each["what"] for each in differing.values()).most_common(3)),
        "reach": {name: reach.get(name) for name in ("reached", "unreached", "raising")},
    }
