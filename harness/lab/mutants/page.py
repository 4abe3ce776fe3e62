"""Results of every mutant: the tables that keep them, and harness/lab/docs/mutants.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from executorch_goldens.settings import releases
from lab import GOLDENS, tables
from lab.mutants import MUTANTS, over_core, table
from lab.mutants.mechanical import page as mechanical
from lab.mutants.over_core import Found
from lab.mutants.table import Judged
from lab.pages import Part

#: Results of each mutant on its cell, and over the core.
ON_ITS_CELL = Path(__file__).with_name("found.tsv")
OVER_CORE = Path(__file__).with_name("found-over-core.tsv")


def text_of(judged: Sequence[Judged]) -> str:
    """Return the table of mutants on their cells."""
    rows = ({"mutant": each.mutant.name, "verdict": each.verdict, "named": each.named} for each in judged)
    return tables.text(table.COLUMNS, rows)


def text_over_core(found: Sequence[Found]) -> str:
    """Return the table of mutants over the core, in their order."""
    by_name = {each.mutant: asdict(each) for each in found}
    rows = (by_name[mutant.name] for mutant in MUTANTS if mutant.name in by_name)
    return tables.text(over_core.COLUMNS, rows)


def judged() -> list[Judged]:
    """Return the committed result of each mutant on its cell."""
    rows = {row["mutant"]: row for row in tables.read(ON_ITS_CELL, table.COLUMNS)}
    return [
        Judged(mutant, rows[mutant.name]["verdict"], rows[mutant.name]["named"])
        for mutant in MUTANTS
        if mutant.name in rows
    ]


def found() -> list[Found]:
    """Return the committed result of each mutant over the core."""
    rows = tables.read(OVER_CORE, over_core.COLUMNS)
    return [
        Found(row["mutant"], row["cell"], row["verdict"], row["named"], int(row["tried"])) for row in rows
    ]


def parts() -> Iterator[Part]:
    """Yield harness/lab/docs/mutants.md."""
    yield Part("harness/lab/docs/mutants.md", "", _committed)


def _committed() -> Iterator[str]:
    release = releases.load().default
    yield from table.section(release, judged())
    yield ""
    cells = len(over_core.with_golden(GOLDENS / release))
    yield from over_core.section(release, cells, found(), MUTANTS)
    yield ""
    yield from mechanical.section()
