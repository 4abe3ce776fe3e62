"""Gathers the input of a report: the results of runs, proposals of their cells, the goldens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.labels import OF_RUN, OF_TOOLCHAINS
from executorch_goldens.goldens.quantities import measured
from executorch_goldens.goldens.reading import Reading, reading
from executorch_goldens.judging.verdict import DISAGREEING
from executorch_goldens.results import merging, proposals, provenance
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.review.decisions import Decisions, decisions, name_of
from executorch_goldens.review.groups import Group, Member, grouped
from executorch_goldens.review.standing import Standing
from executorch_goldens.settings.config import Config


@dataclass(frozen=True)
class Found:
    """A run's findings for a cell.

    Attributes
    ----------
    row
        Its line of ``results.jsonl``.
    folder
        The evidence that the run kept of it.
    patches
        Names of those that it was exported with.
    member
        Its proposal, beside its golden; None without one.
    kind
        Its category: its verdict, or one of the kinds of `executorch_goldens.review.decisions`.
    sides
        The names of its golden and of the artifact of the run.
    """

    release: str
    row: Mapping[str, Any]
    folder: Path
    patches: Sequence[str]
    member: Member | None
    kind: str
    sides: tuple[str, str] = OF_RUN.sides

    @property
    def cell(self) -> Cell:
        return Cell(self.row["target"], self.row["case"])

    @property
    def name(self) -> str:
        """By which links name it."""
        return f"{self.release}/{self.cell}"

    def evidence(self) -> Evidence:
        """Return the run's evidence for the page; raise `executorch_goldens.results.evidence.EvidenceError`."""
        return Evidence.read(self.folder)

    def labels(self, evidence: Evidence) -> tuple[str, str]:
        """Return the names of the two compared artifacts."""
        if self.row["verdict"] not in DISAGREEING:
            return self.sides
        names = [names[0] for names in evidence.agreeing]
        return (names[0], names[1]) if len(names) > 1 else ("one variation", "another")


@dataclass(frozen=True)
class Gathered:
    """The input of a report.

    Attributes
    ----------
    found
        Every cell of every release, releases in their order.
    groups
        Causes of what is not as it should be.
    readings
        Of the goldens, by release; of a release without any, none.
    decided
        Decisions about the cells.
    compares
        Whether they are the results of a comparison, whose base is in the place of goldens.
    """

    found: Sequence[Found]
    groups: Sequence[Group]
    readings: Mapping[str, Mapping[Cell, Reading]]
    decided: Decisions
    compares: bool = False

    @property
    def releases(self) -> list[str]:
        return list(dict.fromkeys(found.release for found in self.found))

    def defect(self, found: Found) -> str:
        """Return the declared defect of a cell; empty for none."""
        declared = self.decided.declared.get(name_of(found.release, found.row))
        return declared.reason if declared is not None else ""

    def of_kind(self, kind: str) -> list[Found]:
        """Return the cells that are counted as `kind`."""
        return [found for found in self.found if found.kind == kind]

    def quantities(self, found: Found) -> Mapping[str, int]:
        """Return the quantities of the golden of a cell; none where it has no golden, or is no program."""
        held = self.readings.get(found.release, {}).get(found.cell)
        return measured(held) if held is not None else {}


def gather(folders: Sequence[Path], goldens: Path, repository: Config) -> Gathered:
    """Read the results under `folders`; raise UsageError and errors of the files."""
    by_release = {release: list(each) for release, each in merging.find(folders).items()}
    parts = [part for of_release in by_release.values() for part in of_release]
    roots = dict.fromkeys(part.folder.parent for part in parts)
    # Proposals of earlier runs of other cells stay beside the results, and do not belong to them.
    checked = {_folder(part, row) for part in parts for row in part.rows}
    proposed = [each for root in roots for each in proposals.find(root) if each.folder in checked]
    compares = any(provenance.BASE in part.provenance.settings for part in parts)
    # Proposals of a comparison cannot be accepted.
    standing = None if compares else Standing(repository, goldens)
    groups = grouped(proposed, goldens, standing, OF_TOOLCHAINS if compares else OF_RUN)
    decided = decisions(parts, goldens, repository, groups)
    readings = {
        release: dict(_readings(each, goldens / release, decided)) for release, each in by_release.items()
    }
    return Gathered(_found(parts, groups, decided), groups, readings, decided, compares)


def _found(parts: Sequence[merging.Part], groups: Sequence[Group], decided: Decisions) -> list[Found]:
    """Return the findings of runs for each cell; raise UsageError where two runs found one cell."""
    members = {member.proposal.folder: member for group in groups for member in group.members}
    found: dict[str, Found] = {}
    for each in (each for part in parts for each in _of_part(part, members, decided)):
        if each.name in found:
            raise UsageError(
                f"{each.cell} of ExecuTorch {each.release} is in both {found[each.name].folder} and "
                f"{each.folder}: name one folder with results of it"
            )
        found[each.name] = each
    return list(found.values())


def _readings(
    parts: Sequence[merging.Part], root: Path, decided: Decisions
) -> Iterator[tuple[Cell, Reading]]:
    for row in (row for part in parts for row in part.rows):
        cell = Cell(row["target"], row["case"])
        if defect := decided.declared.get(name_of(root.name, row)):
            yield cell, Reading(f"{defect.verdict}: {defect.reason}")
            continue
        # That a golden is damaged is the cell's verdict.
        with contextlib.suppress(GoldenError):
            if (texts := golden.read(golden.directory(root, cell))) is not None:
                yield cell, reading(texts)


def _of_part(part: merging.Part, members: Mapping[Path, Member], decided: Decisions) -> Iterator[Found]:
    release = part.provenance.release
    patches = part.provenance.settings.get("patches", ())
    compares = provenance.BASE in part.provenance.settings
    sides = (OF_TOOLCHAINS if compares else OF_RUN).sides
    for row in part.rows:
        folder = _folder(part, row)
        kind = decided.kind(release, row)
        yield Found(release, row, folder, patches, members.get(folder), kind, sides)


def _folder(part: merging.Part, row: Mapping[str, Any]) -> Path:
    """Return the folder of a run's files for a cell."""
    return untrusted.inside(part.folder, row["target"], row["case"])
