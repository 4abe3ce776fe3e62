"""Mutants that no cell kills, compared by two names: a model that the search finds is one that kills.

Each is laid over its release, as `lab.mutants.recall` does it: ``goldens compare 1.5.1 "1.5.1 + DIR"``. Where that ends
with a model of one call as it was drawn, the mutant is tried on it as on any cell, and the map keeps it.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterable
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens_plugins.compare import calls
from lab.mutants import recall
from lab.mutants.mechanical import page
from lab.mutants.mechanical.drawing import Mechanical
from lab.mutants.mechanical.reach import PACKAGE
from lab.mutants.mechanical.sites import Site


def search(
    toolchain: Toolchain, alive: Iterable[Mechanical], folder: Path, options: argparse.Namespace
) -> None:
    """Compare each mutant that has no result yet; results are kept beside a folder of the edited files."""
    folder.mkdir(parents=True, exist_ok=True)
    laid = {each.name: functools.partial(_lay, each.site, toolchain.site_packages) for each in alive}
    recall.laid_over(laid, toolchain.release.version, folder, results_of(folder), options)


def _lay(site: Site, packages: Path, folder: Path) -> None:
    """Write the file that a mutant edits, edited, as in a checkout of ExecuTorch."""
    file = folder / site.file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(site.applied((packages / PACKAGE / site.file).read_bytes()))


def results_of(folder: Path) -> Path:
    """Return where the results of the comparisons in a folder are kept.

    >>> results_of(Path("compared-1.5.1-2036e301bdb3")).name
    'compared-1.5.1-2036e301bdb3.jsonl'
    """
    return folder.with_name(f"{folder.name}.jsonl")


def found(drawn: Iterable[Mechanical], folder: Path) -> dict[Site, list[Cell]]:
    """Return the models of one call, as they were drawn, by which comparisons saw mutants."""
    seen = {each["name"]: each.get("seen_by", ()) for each in recall.results(results_of(folder))}
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
