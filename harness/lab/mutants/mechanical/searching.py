"""Mutants that no cell kills, compared by two names: a model that the search finds is one that kills.

Each is laid over its release, as `lab.mutants.recall` does it: ``goldens compare 1.5.1 "1.5.1 + DIR"``. Where that ends
with a model of one call as it was drawn, the mutant is tried on it as on any cell, and the map keeps it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens_plugins.compare import calls
from lab.mutants import recall
from lab.mutants.mechanical import page
from lab.mutants.mechanical.drawing import Mechanical
from lab.mutants.mechanical.sites import Site


def search(
    toolchain: Toolchain, alive: Iterable[Mechanical], folder: Path, options: argparse.Namespace
) -> None:
    """Compare each mutant that has no result yet; results are kept beside a folder of the edited files."""
    folder.mkdir(parents=True, exist_ok=True)
    kept, release = folder.with_suffix(".jsonl"), toolchain.release.version
    for each in recall.unfinished(alive, lambda mutant: mutant.name, kept, options):
        laid, source = folder.absolute() / each.name, toolchain.site_packages / "executorch" / each.site.file
        file = laid / each.site.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.site.applied(source.read_bytes()))
        made = recall.compared(release, f"{release} + {laid}", options.budget)
        recall.keep(kept, {"name": each.name, **made})


def found(drawn: Iterable[Mechanical], folder: Path) -> dict[Site, list[Cell]]:
    """Return the models of one call, as they were drawn, by which comparisons saw mutants."""
    seen = {each["name"]: each.get("seen_by", ()) for each in recall.results(folder.with_suffix(".jsonl"))}
    return {
        each.site: [cell for cell in map(Cell.named, seen.get(each.name, ())) if is_drawn(cell)]
        for each in drawn
    }


def is_drawn(cell: Cell) -> bool:
    """Return whether a cell is a model of one call, for its own target."""
    model = calls.read().get(cell.case)
    return model is not None and model.target == cell.target


def killing(release: str) -> set[Cell]:
    """Return the models of one call that kill a mutant of a release: the map keeps them for that."""
    return {
        cell for row in page.committed(release) for cell in map(Cell.named, row.killers) if is_drawn(cell)
    }
