"""Threads of upstream's tracker about defects that are no finding here: on which releases the zoo shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.causes import cause
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.goldens.record import FAILURE
from executorch_goldens.settings import releases
from lab import DOCS, GOLDENS, markdown

TABLE = DOCS / "findings" / "threads.toml"


@dataclass(frozen=True)
class Thread:
    """Threads about one defect, and where the zoo would show it.

    Attributes
    ----------
    numbers
        Of issues and pull requests in pytorch/executorch.
    what
        The defect, in a line.
    cells
        ``target/case``, each enough to show it.
    sign
        Text in the pass, type or message of a failure, or in the reason of a known defect, where it is this one; empty
        where any wrong program and any failure is.
    """

    numbers: tuple[int, ...]
    what: str
    cells: tuple[str, ...]
    sign: str = ""


def load() -> tuple[Thread, ...]:
    """Read the table."""
    return msgspec.toml.decode(TABLE.read_bytes(), type=dict[str, tuple[Thread, ...]])["threads"]


def lines(threads: Sequence[Thread], root: Path) -> Iterator[str]:
    """Yield the threads as Markdown, with the state in the goldens of each release."""
    matrix = releases.load().releases
    decided = {version: Decisions.of_root(GOLDENS, version) for version in matrix}
    yield from markdown.head(("upstream", "defect", "cells", *matrix))
    for thread in threads:
        numbers = " ".join(f"#{number}" for number in thread.numbers)
        states = (state(root / name, release, decided[name], thread) for name, release in matrix.items())
        yield markdown.row((numbers, thread.what, ", ".join(thread.cells), *states))


def state(root: Path, release: releases.Release, decided: Decisions, thread: Thread) -> str:
    """Return whether the goldens of a release show a defect: ``shows``, ``no``, or why they cannot say."""
    found = [cell_state(root, release, decided, name, thread.sign) for name in thread.cells]
    for prefix in ("shows", "other"):
        if chosen := sorted({text for text in found if text.startswith(prefix)}):
            return "; ".join(chosen)
    return "no" if "no" in found else "; ".join(sorted(set(found)))


def cell_state(root: Path, release: releases.Release, decided: Decisions, name: str, sign: str) -> str:
    """Return the state of one cell."""
    cell = Cell(*name.split("/"))
    if cell.target in release.unsupported:
        return f"cannot be reached: no {cell.target}"
    if defect := decided.defects.get(name):
        return f"shows ({defect.verdict})" if sign in defect.reason else f"other: {defect.reason}"
    record = golden.read(golden.file_of(root, cell))
    if record is None:
        return "not recorded"
    if not record.fails:
        return "no"
    if sign in record.sections[FAILURE]:
        return "shows (fails)"
    return f"other: {cause(record.sections[FAILURE]).where} fails"
