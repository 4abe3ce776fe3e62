"""Gathers the input of a report: the results of runs, proposals of their cells, the goldens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import Group, Member, grouped, read_members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.errors import UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.inventory import Inventory, InventoryError
from executorch_goldens.goldens.labels import OF_RUN, OF_TOOLCHAINS
from executorch_goldens.goldens.quantities import measured
from executorch_goldens.judging.verdict import DISAGREEING
from executorch_goldens.report.rereading import Rereading
from executorch_goldens.results import merging, proposals, provenance
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.rows import ResultRow
from executorch_goldens.review.decisions import ReviewDecisions, decisions
from executorch_goldens.settings.config import Config


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
        Its category: its verdict, or one of the kinds of `executorch_goldens.review.decisions`.
    sides
        The names of its golden and of the artifact of the run.
    """

    row: ResultRow
    folder: Path
    patches: Sequence[str]
    member: Member | None
    kind: str
    sides: tuple[str, str] = OF_RUN

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
        """Return the run's evidence for the page; raise `executorch_goldens.results.evidence.EvidenceError`."""
        return Evidence.load(self.folder)

    def labels(self, evidence: Evidence) -> tuple[str, str]:
        """Return the names of the two compared artifacts."""
        if self.row.verdict not in DISAGREEING:
            return self.sides
        names = [names[0] for names in evidence.agreeing]
        return (names[0], names[1]) if len(names) > 1 else ("one variation", "another")


@dataclass(frozen=True)
class Gathered:
    """The input of a report.

    Attributes
    ----------
    groups
        Causes of the cells that do not pass. Their members are without sections, see `whole`.
    compares
        Whether they are the results of a comparison, whose base is in the place of goldens.
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
    compares: bool = False
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

    def of_kind(self, kind: str) -> list[CellResult]:
        """Return the cells that are counted as `kind`."""
        return [found for found in self.found if found.kind == kind]

    def rejection(self, found: CellResult) -> str:
        """Return why the cause of a cell was rejected; empty where it was not."""
        return self.decided.rejected.get(found.row.name, "")

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
    roots = dict.fromkeys(part.folder.parent for part in parts)
    # Proposals of earlier runs of other cells stay beside the results, and do not belong to them.
    checked = {_folder(part, row) for part in parts for row in part.rows}
    proposed = (each for root in roots for each in proposals.find(root) if each.folder in checked)
    compares = any(provenance.BASE in part.provenance.settings for part in parts)
    # Proposals of a comparison cannot be accepted.
    standing = None if compares else Standing(repository, goldens)
    rereading = Rereading()
    groups = grouped(map(rereading.without_sections, read_members(proposed, goldens, standing)))
    decided = decisions(parts, goldens, groups)
    unchecked = merging.unchecked(parts)
    found = _found(parts, groups, decided)
    return Gathered(found, groups, goldens, decided, compares, unchecked, rereading.whole)


def _found(
    parts: Sequence[merging.PartialResults], groups: Sequence[Group], decided: ReviewDecisions
) -> list[CellResult]:
    """Return the findings of runs for each cell; raise UsageError where two runs found one cell."""
    members = {member.proposal.folder: member for group in groups for member in group.members}
    found: dict[str, CellResult] = {}
    rows = ((part, row) for part in parts for row in part.rows)
    for part, row in rows:
        folder, settings = _folder(part, row), part.provenance.settings
        sides = OF_TOOLCHAINS if provenance.BASE in settings else OF_RUN
        patches, kind = settings.get("patches", ()), decided.kind(row)
        each = CellResult(row, folder, patches, members.get(folder), kind, sides)
        if each.name in found:
            raise UsageError(
                f"{each.cell} of ExecuTorch {each.release} is in both {found[each.name].folder} and "
                f"{each.folder}: name one folder with results of it"
            )
        found[each.name] = each
    return list(found.values())


def _folder(part: merging.PartialResults, row: ResultRow) -> Path:
    """Return the folder of a run's files for a cell."""
    return untrusted.inside(part.folder, row.target, row.case)
