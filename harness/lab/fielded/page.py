"""The tables of harness/lab/docs/fielded.md: releases that may be mixed, and programs that break, from the goldens."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.files import untrusted
from executorch_goldens.settings import releases
from lab import GOLDENS
from lab.fielded import goldens
from lab.fielded.goldens import OWN, PROMISED, Pair, promise
from lab.fielded.judging import ROUNDING, SAME, is_break
from lab.pages import Part

#: Cells of a cause that are written out for a pair.
SHOWN = 6

#: Pairs with the line of each of their programs.
Lines = Mapping[Pair, Mapping[Cell, str]]


def counts(lines: Mapping[Cell, str]) -> tuple[int, int, int, int]:
    """Return how many programs give the same, are within rounding, break, and are not right on their own release."""
    texts = list(lines.values())
    same, rounding, broken = texts.count(SAME), texts.count(ROUNDING), sum(map(is_break, texts))
    return same, rounding, broken, len(texts) - same - rounding - broken


def table(lines: Lines, versions: Sequence[str]) -> Iterator[str]:
    """Yield the table of pairs, as Markdown: a row for each release that makes programs."""
    yield f"| programs of | {' | '.join(f'on {version}' for version in versions)} |"
    yield "|---|" + "---|" * len(versions)
    for made in versions:
        row = []
        for run in versions:
            pair = Pair(made, run)
            if pair not in lines:
                row.append("-")
                continue
            mark = {OWN: "", PROMISED: " *"}.get(promise(pair, versions), "")
            row.append(" / ".join(map(str, counts(lines[pair]))) + mark)
        yield f"| {made} | {' | '.join(row)} |"


def broken(lines: Lines, versions: Sequence[str]) -> Iterator[str]:
    """Yield broken programs as Markdown: by outcome, then by pair."""
    causes: dict[str, dict[Pair, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for pair, of_pair in lines.items():
        for cell, text in of_pair.items():
            if is_break(text):
                causes[cause(text)][pair].append(cell)
    if not causes:
        yield "Nothing breaks." if any(lines.values()) else "Nothing is recorded yet."
        return
    yield "| what comes of it | programs of | on | promised | programs |"
    yield "|---|---|---|---|---|"
    for name, pairs in sorted(causes.items(), key=lambda item: (-sum(map(len, item[1].values())), item[0])):
        for pair, cells in pairs.items():
            promised = "yes" if promise(pair, versions) == PROMISED else "no"
            more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
            named = ", ".join(f"`{cell}`" for cell in sorted(cells)[:SHOWN]) + more
            yield (
                f"| {untrusted.markdown(name)} | {pair.made} | {pair.run} | {promised} | {len(cells)}: {named} |"
            )


def cause(text: str) -> str:
    """Return the common part of the outcomes of one cause.

    >>> cause("wrong: output 0, output 1"), cause("refused: error 0x23; too short")
    ('wrong outputs', 'refused: error 0x23; too short')
    """
    return "wrong outputs" if text.startswith("wrong: ") else re.sub(r" on \S+, call \d+$", "", text)


def parts() -> Iterator[Part]:
    """Yield the tables of harness/lab/docs/fielded.md."""
    yield Part("harness/lab/docs/fielded.md", "fielded", _committed)


def _committed() -> Iterator[str]:
    versions = list(releases.load().releases)
    lines = reviewed(GOLDENS, versions)
    yield from ("", *table(lines, versions), "", *broken(lines, versions), "")


def reviewed(root: Path, versions: Sequence[str]) -> dict[Pair, dict[Cell, str]]:
    """Return the reviewed results of every pair that has a golden."""
    every = (Pair(made, run) for made in versions for run in versions)
    read = ((pair, goldens.read(pair, root)) for pair in every)
    return {pair: lines for pair, lines in read if lines is not None}
