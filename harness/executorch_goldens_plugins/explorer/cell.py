"""A cell of a run, with its golden."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from executorch_goldens.causes.groups import Member, members
from executorch_goldens.errors import CommandError
from executorch_goldens.goldens.labels import OF_RUN, OF_TOOLCHAINS, Labels
from executorch_goldens.results import merging
from executorch_goldens.results.compared import ARTIFACTS, folder_of
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.proposals import VARIATION_FOLDERS, CellFile
from executorch_goldens.results.rows import ResultRow


@dataclass(frozen=True)
class OpenedCell:
    """What a run kept of a cell.

    Attributes
    ----------
    goldens
        Root of its golden.
    sides
        The names of its golden and of the artifact of the run, or of two toolchains.
    member
        Its proposal, beside its golden; None without one.
    """

    row: ResultRow
    folder: Path
    goldens: Path
    sides: Labels
    member: Member | None
    evidence: Evidence

    @classmethod
    def find(cls, name: str, release: str | None, sweeps: Path, goldens: Path) -> OpenedCell:
        """Return what runs kept of ``TARGET/CASE``; raise CommandError, and errors of the files.

        Parameters
        ----------
        release
            Release of the results; None for the only one there is.
        """
        parts = [part for of_release in merging.find([sweeps]).values() for part in of_release]
        rows = merging.by_name(parts).values()
        found = {row.release: (part, row) for part, row in rows if str(row.cell) == name}
        if not found or release not in (None, *found):
            which = f" on {release}" if release else ""
            raise CommandError(
                f"{sweeps} has no results of {name}{which}: run it (goldens run --cell {name}), or name results "
                "with --sweeps"
            )
        if release is None and len(found) > 1:
            raise CommandError(f"{name} has results on {', '.join(found)}: name one with --release")
        part, row = found[release] if release is not None else next(iter(found.values()))
        comparison, sides = folder_of(part.folder.parent), OF_RUN
        if comparison is not None:
            goldens, sides = comparison / ARTIFACTS, OF_TOOLCHAINS
        member = next(members([replace(part, rows=[row])], goldens, labels=sides), None)
        folder = part.folder_of(row)
        return cls(row, folder, goldens, sides, member, CellFile.load(folder, arrays=True).evidence)

    @property
    def name(self) -> str:
        return f"{self.row.release}/{self.row.cell}"

    @property
    def labels(self) -> Labels:
        """The names of the two artifacts that it is shown with."""
        return self.evidence.labels(self.row.verdict, self.sides)

    def variation(self, label: str) -> str:
        """Return under which variation an artifact was made; empty where a run kept nothing of it."""
        kept = [folder.name for folder in sorted(self.folder.glob(VARIATION_FOLDERS))]
        agreeing = [names[0] for names in self.evidence.agreeing]
        return next((name for name in [*([label] if label in kept else ()), *agreeing, *kept]), "")
