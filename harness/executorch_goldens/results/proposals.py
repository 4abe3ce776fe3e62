"""What a run keeps of a cell that needs a look, in one file, ``cell.json``: the golden that it would get, and evidence.

Beside it are what its variations made, and, where the artifact may be recorded, the golden-to-be, ``proposal.txt``,
whose digest is in the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Self

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import CommandError, FileError
from executorch_goldens.files import plain, untrusted
from executorch_goldens.goldens import equality, findings, golden
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import Fault, Finding, Frame, Key, OneOf
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import Record
from executorch_goldens.results.evidence import Evidence, write_arrays
from executorch_goldens.settings import releases

FILE = "cell.json"
#: The golden-to-be beside it.
GOLDEN = "proposal.txt"
#: The artifact of a variation, as a golden, in the folder of the variation.
MADE = "golden.txt"
#: Names of the folders of variations; see `executorch_goldens.zoo.variations.Variation.name`.
VARIATION_FOLDERS = "seed*-heap*"
#: Version of the file.
FORMAT = 3
#: What was in its place before it had this version.
BEFORE = "proposal.json"


class ProposalError(FileError, ValueError):
    """What is kept of a cell, or its golden-to-be, that cannot be used as it is."""


def _refusal(path: Path, what: str) -> ProposalError:
    return ProposalError(path, what, f"Run its cell again, or delete {path.parent}.")


@dataclass(frozen=True)
class Proposal:
    """The result that a run proposes for a cell.

    Attributes
    ----------
    release, models, commit, changes, settings
        As in ``run.json``.
    target, case, verdict, findings, at, accuracy
        As in ``results.jsonl``; `accuracy` also of a program that is wrong.
    blamed
        The pass that made the difference; None where none is known.
    content
        Digest of the golden-to-be (`executorch_goldens.goldens.record.Record`); None for what may not be recorded.
    replaces
        Digest of the golden that it was compared with; None where there was none that can be used.
    proof
        The proof by an export without the pass; empty where none was made, or it proves nothing.
    """

    release: str
    target: str
    case: str
    verdict: str
    findings: tuple[OneOf, ...]
    blamed: str | None
    content: str | None
    replaces: str | None
    models: tuple[str, ...]
    commit: str | None
    changes: str
    settings: Mapping[str, Any]
    accuracy: Accuracy | None = None
    at: Frame | None = None
    proof: str = ""
    folder: Path = field(default_factory=Path, compare=False)

    @property
    def cell(self) -> Cell:
        return Cell(self.target, self.case)

    @property
    def name(self) -> str:
        return f"{self.release} {self.cell}"

    @property
    def found(self) -> Finding:
        """The finding that is its reason."""
        return self.findings[0]

    @property
    def cause(self) -> Key:
        """What a known defect of it would name."""
        return findings.cause(self.findings)

    @property
    def blames_case(self) -> bool:
        """True if it is a mistake in the repository's own files."""
        return self.found.fault in (Fault.CASE, Fault.REPOSITORY)

    def proposed(self) -> Record:
        """Return the golden-to-be; raise ProposalError unless it is the one that was proposed."""
        place = self.folder / GOLDEN
        try:
            record = golden.read(place)
        except GoldenError as error:
            raise _refusal(place, error.what) from error
        if record is None or record.digest != self.content:
            raise _refusal(place, f"does not have the digest in {FILE}")
        return record

    def made(self) -> list[Record]:
        """Return the differing artifacts of its variations, each once; none if they left none."""
        return made(self.folder)


class CellFile(msgspec.Struct, frozen=True):
    """What a run keeps of a cell that needs a look.

    Attributes
    ----------
    proposal
        What a review shows of it; null where nothing is proposed: of a known defect, and of a cell that was recorded.
    evidence
        What a report shows of it beside that.
    """

    proposal: Proposal | None = None
    evidence: Evidence = Evidence()

    def write(self, folder: Path) -> None:
        """Write it into the folder of a cell, the arrays of its evidence, if there are any, first."""
        folder.mkdir(parents=True, exist_ok=True)
        evidence, arrays = self.evidence.split()
        write_arrays(folder, arrays)
        fields = plain.plain(msgspec.structs.replace(self, evidence=evidence))
        if self.proposal is not None:
            del fields["proposal"]["folder"]
        plain.write(folder / FILE, fields, FORMAT)

    @classmethod
    def load(cls, folder: Path, arrays: bool = False) -> Self:
        """Return what is kept in the folder of a cell, empty if nothing is; raise ProposalError.

        Parameters
        ----------
        arrays
            Whether to read the arrays of its evidence as well.
        """
        path = folder / FILE
        try:
            read = plain.read(path, cls, FORMAT)
            if arrays:
                read = msgspec.structs.replace(read, evidence=read.evidence.with_arrays(folder))
            if read.proposal is None:
                return read
            proposal = dataclasses.replace(read.proposal, folder=folder)
            untrusted.require_names([proposal.release])
            untrusted.inside(folder.parent.parent, proposal.target, proposal.case)
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            raise _refusal(path, f"is damaged ({type(error).__name__}: {error})") from error
        if (proposal.target, proposal.case) != path.parts[-3:-1]:
            raise _refusal(path, f"is the proposal of {proposal.cell}, in the folder of another cell")
        return msgspec.structs.replace(read, proposal=proposal)


def made(folder: Path) -> list[Record]:
    """Return the artifacts of a cell's variations, each once; raise ProposalError."""
    found: list[Record] = []
    for place in sorted(folder.glob(VARIATION_FOLDERS)):
        try:
            found += filter(None, [golden.read(place / MADE)])
        except GoldenError as error:
            raise _refusal(error.path, error.what) from error
    return distinct(found)


def distinct(records: Iterable[Record]) -> list[Record]:
    """Return records, each artifact once."""
    found: list[Record] = []
    seen: list[Record] = []
    for record in records:
        compared = equality.compared(record)
        if compared not in seen:
            seen.append(compared)
            found.append(record)
    return found


def discard(folder: Path) -> None:
    """Delete the proposal in the folder of a cell; its evidence stays."""
    msgspec.structs.replace(CellFile.load(folder), proposal=None).write(folder)
    (folder / GOLDEN).unlink(missing_ok=True)
    (folder / GOLDEN).with_suffix(golden.WHOLE).unlink(missing_ok=True)


def find(sweeps: Path, but: Collection[Path] = ()) -> Iterator[Proposal]:
    """Yield the proposals of every release under `sweeps`, sorted by name; raise ProposalError."""
    for path in sorted(sweeps.glob(f"*/*/*/{BEFORE}")):
        raise _refusal(path, "was left by an earlier version")
    for path in sorted(path for path in sweeps.glob(f"*/*/*/{FILE}") if path.parent not in but):
        proposal = CellFile.load(path.parent).proposal
        if proposal is not None and proposal.release != path.parts[-4]:
            raise _refusal(path, f"is of ExecuTorch {proposal.release}, in the folder of another release")
        if proposal is not None:
            yield proposal


def latest(cell: Cell, release: str | None, goldens: Path, sweeps: Path) -> tuple[str, Record]:
    """Return where the golden of a cell, or a later artifact, is from, in words, and the golden.

    Parameters
    ----------
    release
        An ExecuTorch version; None for that of this environment, or else the newest.
    goldens, sweeps
        Roots of the goldens and of results.

    Raises
    ------
    CommandError
        Where there is neither a golden nor a result.
    executorch_goldens.settings.releases.UnknownReleaseError
        For a release that there is not.
    executorch_goldens.goldens.golden.GoldenError
        For a golden that cannot be read.
    """
    with contextlib.suppress(metadata.PackageNotFoundError):
        release = release or metadata.version("executorch")
    known = releases.load()
    version = known.release(release or known.newest).version
    reviewed = golden.file_of(goldens / version, cell)
    place = sweeps / version / cell.target / cell.case
    made = sorted(place.glob(f"{VARIATION_FOLDERS}/{MADE}"))
    if made and _written(made[0]) > _written(reviewed) and (record := golden.read(made[0])) is not None:
        return f"the result of a run, newer than the golden ({made[0]})", record
    found = golden.read(reviewed)
    if found is None:
        raise CommandError(
            f"{cell} has no golden on ExecuTorch {version} ({goldens}) and no result ({sweeps}): goldens run "
            f"--cell {cell} checks it, --release names a different release"
        )
    return f"the golden ({reviewed})", found


def _written(file: Path) -> float:
    """Return when a golden, or a run's artifact, was written; 0 if missing."""
    return file.stat().st_mtime if file.exists() else 0.0
