"""Results of a run: a row per cell, and the files of cells that need a look.

``<sweeps>/<release>/results.jsonl`` has a line for each cell that was checked: one file, to be searched and streamed.
Where a cell is neither stable nor accepted, ``<sweeps>/<release>/<target>/<case>/`` holds all else of it:
``cell.json`` (`results.proposals`), and in a folder for each variation what that made, for diff and decode. What
options of plugins leave of any cell is in a folder of its own there. The folder of a cell takes its place whole, and
then its row is added: a killed run leaves all of a cell or nothing.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import filelock
import msgspec

from executorch_goldens.artifact import Artifact, Casualty, Cell, Failure, Lowered, OfHarness, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable, plain, untrusted
from executorch_goldens.goldens import golden, rendering
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import Fault, Frame, Key, OneOf
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging.attribution import Attribution
from executorch_goldens.judging.comparison import made_with
from executorch_goldens.judging.divergence import How
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.results import proposals
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.proposals import CellFile, Proposal
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.seconds import Remembered
from executorch_goldens.words import verdicts as words

#: A line of JSON for each cell.
FILE = "results.jsonl"
#: Version of a line.
FORMAT = 2

#: Categories of an accepted cell in place of its verdict: a known defect; names that differ where that is allowed.
KNOWN, ALLOWED = "known defect", "allowed rename"

#: Folder below a cell's for what options of plugins leave (`running.additions.Addition.judged`).
OF_PLUGINS = "plugins"


class Diverged(msgspec.Struct, frozen=True):
    """The first pass, partitioner or stage whose result is not the same.

    Attributes
    ----------
    name
        Its name, without its pipeline.
    how
        What is known of it.
    number, total
        Its place among those that run, from 1, and their number; 0 where no traces are compared.
    weights
        Names of weights that differ.
    """

    name: str
    how: How
    number: int
    total: int
    weights: tuple[str, ...]


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of a cell.

    Attributes
    ----------
    verdict
        Its verdict: docs/verdicts.md.
    new
        What a cell without a golden is, if no program with delegates: ``FAILURE`` or ``NO DELEGATE``; else empty.
    reason
        Why it has its verdict, in a sentence for people; empty for a stable cell.
    fault
        Whose mistake it is.
    cause
        What a decision names of it: the key of the first finding, and where outputs begin to be wrong.
    findings
        All that was found, the first of it is the reason; none for a stable cell.
    at
        The line of the repository's own that raised; null where none did.
    divergence
        Where it begins to differ from its golden, or variations from each other; null where that is not known.
    attribution
        The factor that a disagreement follows; null where that was not sought.
    accuracy
        Distance of its program from eager; null where that was not measured.
    not_judged
        Why its program was not run; empty where it was, or where there is none.
    """

    verdict: str
    new: str = ""
    reason: str
    fault: Fault = Fault.NONE
    cause: Key = {}
    findings: tuple[OneOf, ...]
    at: Frame | None = None
    divergence: Diverged | None = None
    attribution: Attribution | None = None
    accuracy: Accuracy | None = None
    not_judged: str = ""

    @classmethod
    def of_verdict(
        cls, judged: Verdict, accuracy: Accuracy | None, not_judged: str = "", **fields: Any
    ) -> Self:
        """Return a verdict as results have it, with the other `fields`."""
        return cls(
            verdict=judged.name,
            new=judged.kind_of_new,
            reason=words.reason(judged),
            fault=judged.fault,
            cause=judged.cause,
            findings=judged.findings,
            at=judged.at,
            divergence=msgspec.convert(judged.divergence, Diverged | None, from_attributes=True),
            attribution=judged.attribution,
            accuracy=accuracy,
            not_judged=not_judged,
            **fields,
        )


class ResultRow(Reported, frozen=True, kw_only=True):
    """A line of ``results.jsonl``: what a run found of a cell, and its exports.

    Attributes
    ----------
    format
        Version of the line.
    release
        Version of ExecuTorch.
    target, case
        Names of its target and of its case.
    accepted
        Whether a person has nothing left to do.
    recorded
        Whether the run recorded the artifact as the cell's golden.
    known
        Whether it is a known defect of the cell.
    variations
        The exports, by the name of their variation; `seconds`, `core_seconds` and `reused` have a value for each.
    seconds, core_seconds
        Seconds that an export took, and seconds of processor time.
    reused
        Whether an export is from the cache.
    peak_mb
        Largest peak of memory of an export, in MB.
    pte_sha256
        SHA-256 of the program, where all exports made the same; otherwise null.
    """

    format: int = FORMAT
    release: str
    target: str
    case: str
    accepted: bool
    recorded: bool
    known: bool
    variations: tuple[str, ...]
    seconds: tuple[float, ...]
    core_seconds: tuple[float, ...]
    reused: tuple[bool, ...] = ()
    peak_mb: float = 0.0
    pte_sha256: str | None = None

    @property
    def cell(self) -> Cell:
        return Cell(self.target, self.case)

    @property
    def name(self) -> str:
        """The name of the cell, as `executorch_goldens.results.proposals.Proposal.name` has it."""
        return f"{self.release} {self.cell}"


class Results:
    """The results of one run over one release."""

    def __init__(self, sweeps: Path, release: Release) -> None:
        self.release = release
        self.root = sweeps.resolve() / release.version
        self.file = self.root / FILE
        self.seconds = Remembered(self.root)
        self._lock = lock(self.root)
        self._aside = self.root / f"cells{durable.ASIDE}"

    def open(self) -> None:
        """Take the folder for this run alone, with no result in it yet; raise UsageError."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise UsageError(
                f"a different run works on {self.release.version} in this checkout (it holds {self._lock.lock_file}); "
                "wait for it, or give this one a checkout or a --sweeps of its own"
            ) from error
        except OSError as error:
            raise UsageError(f"--sweeps {self.root} cannot be written: {error}") from error
        durable.delete_left_over(self.root)
        shutil.rmtree(self._aside, ignore_errors=True)
        self.file.write_text("")

    def close(self, cells: Sequence[Cell]) -> None:
        """Leave the lines in the order of `cells`, whichever export ended first, and the folder to other runs."""
        if self._lock.is_locked:
            write(self.file, read(self.file), cells)
            self.seconds.write()
            shutil.rmtree(self._aside, ignore_errors=True)
        self._lock.release()

    def folder(self, cell: Cell) -> Path:
        return untrusted.inside(self.root, cell.target, cell.case)

    def aside(self, cell: Cell) -> Path:
        """Return where the folder of a cell is made, until `settle`."""
        return untrusted.inside(self._aside, cell.target, cell.case)

    def note(
        self,
        judged: Verdict,
        outcomes: Sequence[Outcome],
        accuracy: Accuracy | None,
        not_judged: str = "",
    ) -> None:
        """Append the cell's line to results.jsonl.

        Parameters
        ----------
        not_judged
            Why its program was not run; empty where it was, or where there is none.
        """
        row = ResultRow.of_verdict(
            judged,
            accuracy,
            not_judged,
            release=self.release.version,
            target=judged.cell.target,
            case=judged.cell.case,
            accepted=judged.accepted,
            recorded=judged.recorded,
            known=bool(judged.known),
            variations=tuple(outcome.variation for outcome in outcomes),
            seconds=tuple(round(outcome.seconds, 3) for outcome in outcomes),
            core_seconds=tuple(round(outcome.core_seconds, 3) for outcome in outcomes),
            reused=tuple(outcome.reused for outcome in outcomes),
            peak_mb=round(max(outcome.peak_mb for outcome in outcomes), 1),
            pte_sha256=_digest(outcomes),
        )
        with self.file.open("a", encoding="utf-8") as file:
            file.write(_lines([row]))
        if not any(outcome.reused for outcome in outcomes):
            self.seconds.note(judged.cell, outcomes)

    def amend(self, cells: Collection[Cell], **fields: Any) -> None:
        """Change fields of the lines of `cells`."""
        rows = (
            msgspec.structs.replace(row, **fields) if row.cell in cells else row for row in read(self.file)
        )
        durable.replace(self.file, _lines(rows))

    def recorded(self, cells: Collection[Cell]) -> None:
        """Note that the proposals of `cells` are recorded now, and delete their files."""
        self.amend(cells, recorded=True, accepted=True)
        for cell in cells:
            self.clear(cell)

    def propose(
        self,
        judged: Verdict,
        proposed: Record | None,
        reviewed: Record | None,
        came: Provenance,
        accuracy: Accuracy | None = None,
        evidence: Evidence | None = None,
    ) -> Proposal:
        """Leave what was kept of a cell with its golden-to-be, for a review, and return that.

        Parameters
        ----------
        reviewed
            The golden that it would replace, if there is one that can be used.
        accuracy
            Accuracy of the program, right or wrong, if it ran.
        """
        proposal = Proposal(
            release=self.release.version,
            target=judged.cell.target,
            case=judged.cell.case,
            verdict=judged.name,
            findings=judged.findings,
            at=judged.at,
            blamed=judged.divergence.name if judged.divergence else None,
            content=proposed.digest if proposed is not None else None,
            replaces=reviewed.digest if reviewed is not None else None,
            models=came.models,
            commit=came.commit,
            changes=came.changes,
            settings=came.settings,
            accuracy=accuracy,
            folder=self.folder(judged.cell),
        )
        if proposed is not None:
            golden.write(self.aside(judged.cell) / proposals.GOLDEN, proposed, kept=True)
        self.settle(judged.cell, CellFile(proposal, evidence or Evidence()))
        return proposal

    def settle(self, cell: Cell, file: CellFile | None) -> None:
        """Let what was kept of a cell, with `file` if there is one, take the place of what an earlier run left."""
        made = self.aside(cell)
        if file is not None:
            file.write(made)
        self.clear(cell)
        if made.is_dir():
            place = self.folder(cell)
            durable.make_folder(place.parent)
            made.rename(place)
            durable.sync_folder(place.parent)

    def clear(self, cell: Cell) -> None:
        """Delete what is kept of `cell`, at once."""
        gone = self._aside / f"gone{durable.ASIDE}"
        gone.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.folder(cell).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def keep(self, cell: Cell, outcomes: Sequence[Outcome]) -> list[Record]:
        """Leave what every variation made aside, until `settle`; return each artifact once."""
        folder = self.aside(cell)
        folder.mkdir(parents=True)
        records: list[Record] = []
        names = [outcome.variation for outcome in outcomes]
        for outcome in outcomes:
            if isinstance(outcome.result, Casualty):
                if isinstance(outcome.result, OfHarness):
                    (folder / f"log-{outcome.variation}.txt").write_text(outcome.result.log, encoding="utf-8")
                continue
            place = folder / outcome.variation
            # Of a payload that cannot be decoded there is no text, and the more need of its bytes.
            with contextlib.suppress(DecodeError):
                records.append(
                    rendering.render(outcome.result, made_with(outcome.result, names, self.release))
                )
                golden.write(place / proposals.MADE, records[-1], kept=True)
            place.mkdir(parents=True, exist_ok=True)
            result = outcome.result.result
            made = result.made if isinstance(result, Failure) else result
            if made is not None:
                if made.pte:
                    (place / "program.pte").write_bytes(made.pte)
                for index, delegate in enumerate(made.delegates):
                    (place / f"delegate_{index}.bin").write_bytes(delegate.payload)
        return proposals.distinct(records)


def lock(folder: Path) -> filelock.BaseFileLock:
    """Return the lock that a run holds while it may write the results of a release, in `folder`."""
    return filelock.FileLock(folder / "lock")


def read(file: Path) -> list[ResultRow]:
    """Return the lines of a ``results.jsonl``, but for one whose writer was killed; raise UsageError."""
    try:
        lines = [line for line in untrusted.text(file).splitlines(keepends=True) if line.endswith("\n")]
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}; run the cells again") from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_row(line))
        except ValueError as error:
            raise UsageError(
                f"{file}, line {number}, cannot be read: {error}; run the cells again"
            ) from error
    return rows


def _row(line: str) -> ResultRow:
    row = plain.converted(untrusted.json_of(line), ResultRow, FORMAT)
    for name in (row.release, row.target, row.case):
        untrusted.require_name(name)
    return row


def write(file: Path, rows: Iterable[ResultRow], cells: Sequence[Cell]) -> None:
    """Write a ``results.jsonl`` whole, in the order of `cells`; rows of others are left out."""
    of_cell = {row.cell: row for row in rows}
    durable.replace(file, _lines(of_cell[cell] for cell in cells if cell in of_cell))


def _lines(rows: Iterable[ResultRow]) -> str:
    return "".join(json.dumps(plain.plain(row)) + "\n" for row in rows)


def _digest(outcomes: Sequence[Outcome]) -> str | None:
    """Return the digest of the program that all exports made that made one; None where they made several, or none."""
    digests = {
        outcome.result.result.pte_sha256
        for outcome in outcomes
        if isinstance(outcome.result, Artifact) and isinstance(outcome.result.result, Lowered)
    }
    return digests.pop() if len(digests) == 1 else None
