"""Proposals: the golden that a cell would get, and how it was made.

A run leaves ``proposal.json`` in the folder that it keeps of a cell. Where the artifact may be recorded, the
golden-to-be is ``proposal.txt`` beside it, and the file has its digest.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import FileError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.goldens import equality, golden
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.golden import GoldenError, Texts

FILE = "proposal.json"
#: The golden-to-be beside it.
GOLDEN = "proposal.txt"
#: The artifact of a variation, as a golden, in the folder of the variation.
MADE = "golden.txt"
#: Version of the file.
FORMAT = 1


class ProposalError(FileError, ValueError):
    """A proposal, or its golden-to-be, that cannot be used as it is."""


def _refusal(path: Path, what: str) -> ProposalError:
    return ProposalError(path, what, f"Run its cell again, or delete {path.parent}.")


@dataclass(frozen=True)
class Proposal:
    """The result that a run proposes for a cell.

    Attributes
    ----------
    verdict, reason
        See `executorch_goldens.judging.verdict.Verdict`.
    blamed
        The pass that made the difference; None where none is known.
    content
        Digest of the golden-to-be (`executorch_goldens.goldens.golden.digest`); None for what may not be recorded.
    replaces
        Digest of the golden that it was compared with; None where there was none that can be used.
    models, commit, changes, settings
        See `executorch_goldens.results.provenance.Provenance`.
    accuracy
        The distance of the program from eager; None where it did not run.
    cause
        What a known defect of it would name (`executorch_goldens.judging.known.cause`).
    begins
        Where its values begin to be wrong (`executorch_goldens.judging.rightness.place`); empty where none are, or it
        is not known.
    proof
        The proof by an export without the pass; empty where none was made, or it proves nothing.
    folder
        Where it is.
    """

    release: str
    target: str
    case: str
    verdict: str
    reason: str
    blamed: str | None
    content: str | None
    replaces: str | None
    models: tuple[str, ...]
    commit: str | None
    changes: str
    settings: Mapping[str, Any]
    accuracy: Accuracy | None = None
    proof: str = ""
    cause: str = ""
    begins: str = ""
    folder: Path = field(default=Path(), compare=False)

    @property
    def cell(self) -> Cell:
        return Cell(self.target, self.case)

    @property
    def name(self) -> str:
        return f"{self.release} {self.cell}"

    def write(self, texts: Texts | None) -> None:
        """Write it into `folder` with `texts`, the golden-to-be."""
        discard(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if texts is not None:
            golden.write(self.folder / GOLDEN, texts)
        self._write_file()

    def _write_file(self) -> None:
        fields = {name: value for name, value in dataclasses.asdict(self).items() if name != "folder"}
        durable.replace(self.folder / FILE, json.dumps({"format": FORMAT, **fields}, indent=1) + "\n")

    def with_proof(self, proof: str) -> Self:
        """Return it with the result of an export without the pass, and write that to its file."""
        proven = dataclasses.replace(self, proof=proof)
        proven._write_file()
        return proven

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the proposal in a file; raise ProposalError."""
        try:
            fields = untrusted.json_of(untrusted.text(path))
            if fields.pop("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            fields.pop("folder", None)
            read = dataclasses.replace(msgspec.convert(fields, cls), folder=path.parent)
            untrusted.require_names([read.release])
            untrusted.inside(path.parent.parent.parent, read.target, read.case)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise _refusal(path, f"is damaged ({type(error).__name__}: {error})") from error
        if (read.target, read.case) != path.parts[-3:-1]:
            raise _refusal(path, f"is the proposal of {read.cell}, in the folder of another cell")
        return read

    def texts(self) -> Texts:
        """Return the golden-to-be; raise ProposalError unless it is the one that was proposed."""
        place = self.folder / GOLDEN
        try:
            texts = golden.read(place)
        except GoldenError as error:
            raise _refusal(place, error.what) from error
        if texts is None or golden.digest(texts) != self.content:
            raise _refusal(place, f"does not have the digest in {FILE}")
        return texts

    def made(self) -> list[Texts]:
        """Return the differing artifacts of its variations, each once, as golden texts; none if they left none."""
        return made(self.folder)


def made(folder: Path) -> list[Texts]:
    """Return the artifacts of a cell's variations, each once, as golden texts; raise ProposalError."""
    found: dict[tuple[tuple[str, str], ...], Texts] = {}
    for place in sorted(folder.glob("seed*-heap*")):
        try:
            texts = golden.read(place / MADE)
        except GoldenError as error:
            raise _refusal(error.path, error.what) from error
        if texts is not None:
            found.setdefault(tuple(sorted(equality.compared(texts).items())), texts)
    return list(found.values())


def discard(folder: Path) -> None:
    """Delete the proposal in the folder of a cell, if there is one."""
    (folder / FILE).unlink(missing_ok=True)
    (folder / GOLDEN).unlink(missing_ok=True)


def find(sweeps: Path) -> Iterator[Proposal]:
    """Yield the proposals of every release under `sweeps`, sorted by name; raise ProposalError."""
    for path in sorted(sweeps.glob(f"*/*/*/{FILE}")):
        proposal = Proposal.read(path)
        if proposal.release != path.parts[-4]:
            raise _refusal(path, f"is of ExecuTorch {proposal.release}, in the folder of another release")
        yield proposal
