"""Gathers the input of a report: the results of runs, proposals of their cells, the goldens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import Group, Member, grouped, members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.inventory import Inventory, InventoryError
from executorch_goldens.goldens.labels import OF_RUN, OF_TOOLCHAINS, Labels
from executorch_goldens.goldens.quantities import measured
from executorch_goldens.results import merging
from executorch_goldens.results.compared import ARTIFACTS, DATA, ComparedCell, ComparedSides, folder_of
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.merging import PartialResults
from executorch_goldens.results.proposals import CellFile
from executorch_goldens.results.rows import ResultRow
from executorch_goldens.review.decisions import ReviewDecisions, decisions
from executorch_goldens.settings.config import Config
from executorch_goldens_plugins.report.rereading import Rereading


@dataclass(frozen=True)
class CellResult:
    """A run's findings for a cell.

    Attributes
    ----------
    folder
        The evidence that the run kept of it.
    member
        Its proposal, beside its golden; None without one.
    kind
        Its category: its verdict, or one of the kinds of `executorch_goldens.review.decisions`; of a comparison, its
        kind of difference.
    compared
        What a comparison found on both sides; None in a run.
    """

    row: ResultRow
    folder: Path
    patches: Sequence[str]
    member: Member | None
    kind: str
    compared: ComparedCell | None = None

    @property
    def sides(self) -> Labels:
        """The names of its golden and of the artifact of the run, or of two toolchains."""
        return OF_RUN if self.compared is None else OF_TOOLCHAINS

    @property
    def release(self) -> str:
        return self.row.release

    @property
    def cell(self) -> Cell:
        return self.row.cell

    @property
    def name(self) -> str:
        """By which links name it."""
        return f"{self.release}/{self.cell}"

    def evidence(self) -> Evidence:
        """Return the run's evidence for the page; raise `executorch_goldens.results.proposals.ProposalError`."""
        return CellFile.load(self.folder, arrays=True).evidence

    def labels(self, evidence: Evidence) -> Labels:
        """Return the names of the two compared artifacts."""
        return evidence.labels(self.row.verdict, self.sides)


@dataclass(frozen=True)
class Gathered:
    """The input of a report.

    Attributes
    ----------
    groups
        Causes of the cells that do not pass. Their members are without sections, see `whole`.
    compared
        What a comparison found, if they are of one: its base is in the place of goldens.
    unchecked
        Which cells have no result, in words; empty where all have one.
    whole
        Return a member with the sections of its goldens; raise UsageError where these have changed since.
    measured
        Quantities of the goldens that were read, by `CellResult.name`.
    """

    found: Sequence[CellResult]
    groups: Sequence[Group]
    goldens: Path
    decided: ReviewDecisions
    compared: ComparedSides | None = None
    unchecked: str = ""
    whole: Callable[[Member], Member] = Rereading().whole
    measured: dict[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def releases(self) -> list[str]:
        return list(dict.fromkeys(found.release for found in self.found))

    def defect(self, found: CellResult) -> str:
        """Return the declared defect of a cell; empty for none."""
        declared = self.decided.declared.get(found.row.name)
        return declared.reason if declared is not None else ""

    def kind_of(self, member: Member) -> str:
        """Return what a cell of a cause is counted as: its verdict, or its kind of difference."""
        cell = str(member.proposal.cell)
        return member.proposal.verdict if self.compared is None else self.compared.cells[cell].kind

    def readings(self, release: str) -> dict[Cell, Inventory]:
        """Read the goldens of the cells of a release, and note their quantities."""
        read = ((found.cell, self._held(found)) for found in self.found if found.release == release)
        return {cell: held for cell, held in read if held is not None}

    def quantities(self, found: CellResult) -> Mapping[str, int]:
        """Return the quantities of the golden of a cell; none where it has no golden, or is no program."""
        if found.name not in self.measured:
            self._held(found)
        return self.measured[found.name]

    def _held(self, found: CellResult) -> Inventory | None:
        """Read the golden of a cell, and note its quantities; None where it has none that can be read."""
        held = None
        if defect := self.decided.declared.get(found.row.name):
            held = Inventory(str(defect))
        else:
            # That a golden is damaged is the cell's verdict.
            with contextlib.suppress(GoldenError, InventoryError):
                standing = golden.read(golden.file_of(self.goldens / found.release, found.cell))
                held = standing.inventory if standing is not None else None
        self.measured[found.name] = measured(held) if held is not None else {}
        return held


def gather(folders: Sequence[Path], goldens: Path, repository: Config) -> Gathered:
    """Read the results under `folders`; raise UsageError and errors of the files."""
    parts = [part for of_release in merging.find(folders).values() for part in of_release]
    rereading = Rereading()
    compared = None
    if (folder := _comparison(parts)) is not None:
        compared, goldens = ComparedSides.load(folder), folder / ARTIFACTS
        if compared.cells.keys() != {str(row.cell) for part in parts for row in part.rows}:
            raise UsageError(f"{folder} has results of other cells than its {DATA}: compare again")
    # Proposals of a comparison cannot be accepted.
    how = (Standing(repository, goldens), OF_RUN) if compared is None else (None, OF_TOOLCHAINS)
    groups = grouped(map(rereading.without_sections, members(parts, goldens, *how)))
    decided = decisions(parts, goldens, groups)
    found = _found(parts, groups, decided, compared)
    unchecked = merging.unchecked(parts) if compared is None else ""
    return Gathered(found, groups, goldens, decided, compared, unchecked, rereading.whole)


def _comparison(parts: Sequence[PartialResults]) -> Path | None:
    """Return the folder of the comparison that results are of; raise UsageError unless they are alone."""
    roots = dict.fromkeys(part.folder.parent for part in parts)
    found = [folder for root in roots if (folder := folder_of(root)) is not None]
    if found and len(roots) > 1:
        raise UsageError(f"{found[0]} is of a comparison: a report of it has no other results; name it alone")
    return found[0] if found else None


def _found(
    parts: Sequence[PartialResults],
    groups: Sequence[Group],
    decided: ReviewDecisions,
    compared: ComparedSides | None = None,
) -> list[CellResult]:
    """Return the findings of runs for each cell; raise UsageError where two runs found one cell."""
    proposed = {member.proposal.folder: member for group in groups for member in group.members}
    found = []
    for part, row in merging.by_name(parts).values():
        folder, patches = part.folder_of(row), part.provenance.settings.get("patches", ())
        both = compared.cells[str(row.cell)] if compared is not None else None
        kind = decided.kind(row) if both is None else both.shown_as
        found.append(CellResult(row, folder, patches, proposed.get(folder), kind, both))
    return found
