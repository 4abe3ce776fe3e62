"""Exports both sides of a comparison, judges them, and keeps their results: ``build/compare``.

Results of the base are stored like goldens, and those of the head like a run that was compared with
them: causes, evidence and reports are those of runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import filelock

from executorch_goldens.artifact import Artifact, Cell, Failure, Outcome
from executorch_goldens.comparing.outcome import KINDS, SAME, Made, kind_of, shown
from executorch_goldens.comparing.sides import Side, Sides
from executorch_goldens.errors import UsageError
from executorch_goldens.files.os_errors import as_user_error
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.labels import OF_TOOLCHAINS
from executorch_goldens.results import proposals, provenance
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.results.rows import Results
from executorch_goldens.review.groups import Group, grouped
from executorch_goldens.running.progress import MOST_LINES, Progress
from executorch_goldens.settings import config
from executorch_goldens.sweep import seconds
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import Variation

#: Below the folder of a comparison: what the base made, as goldens, and the results of the head.
ARTIFACTS, RESULTS = "base", "head"
#: Says that a folder is one of a comparison.
MARK = "compare.txt"


@dataclass(frozen=True)
class Compared:
    """A cell on both sides."""

    cell: Cell
    kind: str
    base: Made
    head: Made


@dataclass
class Comparison:
    """Two sides over some cells.

    Attributes
    ----------
    folder
        Where what they made is kept.
    reuse
        The store that exports are taken from and put into; None for none.
    found
        Every cell, in the order of the zoo, once it was made.
    """

    sides: Sides
    cells: tuple[Cell, ...]
    variations: tuple[Variation, ...]
    folder: Path
    reuse: Reuse | None = None
    found: list[Compared] = field(default_factory=list)
    said: int = field(default=0, init=False)

    def run(self, wanted: Callable[[Made, Sequence[Outcome]], bool]) -> None:
        """Export and judge both sides.

        Parameters
        ----------
        wanted
            Whether what the base made of a cell makes it one to compare.

        Raises
        ------
        SweepError
            Where the harness itself cannot export.
        """
        with alone(self.folder):
            clear(self.folder)
            results = Results(self.folder / RESULTS, self.sides.head.release)
            results.open()
            if self.reuse is not None:
                self.reuse.open()
            try:
                with as_user_error():
                    base = dict(self._base(wanted))
                    self._provenance(list(base)).write(results.root)
                    of_head = self._head(base, results)
            finally:
                results.close(self.cells)
                if self.reuse is not None:
                    self.reuse.close()
        both = ((cell, base[cell], of_head[cell]) for cell in self.cells if cell in base)
        self.found = [Compared(cell, kind_of(one, other), one, other) for cell, one, other in both]

    @property
    def artifacts(self) -> Path:
        """The base's artifacts, as a root of goldens."""
        return self.folder / ARTIFACTS

    def differing(self) -> list[Compared]:
        """Return the cells that are not identical."""
        return [each for each in self.found if each.kind != SAME]

    def causes(self) -> list[Group]:
        """Return the causes of the differences."""
        return grouped(proposals.find(self.folder / RESULTS), self.artifacts, labels=OF_TOOLCHAINS)

    def _base(self, wanted: Callable[[Made, Sequence[Outcome]], bool]) -> Iterator[tuple[Cell, Made]]:
        side = self.sides.base
        # The head is compared with it as with goldens of its own release.
        root = self.artifacts / self.sides.head.release.version
        root.mkdir(parents=True)
        for cell, outcomes in self._exported(side, self.cells):
            made = Made.of(outcomes, side.release)
            if not wanted(made, outcomes):
                continue
            if made.texts is not None:
                golden.write(golden.directory(root, cell), made.texts)
            yield cell, made

    def _head(self, base: dict[Cell, Made], results: Results) -> dict[Cell, Made]:
        side = self.sides.head
        # Its texts name the versions of the base: that these differ is no difference of a cell.
        release = dataclasses.replace(side.release, pins=self.sides.base.release.pins)
        found = {}
        came = self._provenance(list(base))
        for cell, outcomes in self._exported(side, list(base)):
            reviewed = base[cell].texts
            made = found[cell] = Made.of(outcomes, release, reviewed)
            judged = made.verdict
            if (kind := kind_of(base[cell], made)) != SAME:
                self._say_at_once(f"{KINDS[kind]}: {cell}: {shown(base[cell], made)}".rstrip(": "))
                results.keep(cell, outcomes)
                results.propose(judged, made.texts, reviewed, came, made.accuracy)
            results.note(judged, outcomes, made.accuracy)
        return found

    def _say_at_once(self, line: str) -> None:
        """Say what is known of a cell that differs, while others are exported; of many, of the first alone."""
        self.said += 1
        if self.said <= MOST_LINES:
            if sys.stderr.isatty():
                _Screen().rewrite("")
            _Screen().write_line(line)

    def _exported(self, side: Side, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Sequence[Outcome]]]:
        """Export cells on a side, and yield them as they come."""
        if not cells:
            return
        known = seconds.committed(config.load().goldens / side.release.version)
        ordered = known.longest_first(cells)
        screen = _Screen()
        screen.write_line(
            f"{side.word}: {count(len(ordered), 'cell')}, {len(self.variations)} variations each"
        )
        progress = Progress(
            ordered, known, len(self.variations), side.settings.jobs, screen, sys.stderr.isatty()
        )
        with Sweep(ordered, self.variations, side.settings, reuse=self.reuse) as sweep:
            for cell in ordered:
                progress.wait(sweep, cell)
                yield cell, sweep.outcomes(cell)
                progress.passed(sweep, cell)
        progress.erase()

    def _provenance(self, cells: Sequence[Cell]) -> Provenance:
        """Return the origin of the head's results."""
        side = self.sides.head
        repository = config.load().root
        names = tuple(str(cell) for cell in self.cells if cell in set(cells))
        return Provenance(
            release=side.release.version,
            stack=side.release.stack(),
            models=side.settings.models,
            commit=provenance.commit(repository),
            changes=provenance.changes(repository, self.folder),
            settings=provenance.facts(side.settings) | {provenance.BASE: self.sides.base.toolchain.name},
            variations=tuple(variation.name for variation in self.variations),
            shard=None,
            selected=names,
            whole=False,
            cells=names,
            machines=(provenance.machine(),),
        )


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other comparisons out of a folder; raise UsageError where one is at work there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise UsageError(
            f"a different comparison works in {folder}: wait for it, or name another --sweeps"
        ) from error
    try:
        yield
    finally:
        lock.release()


def clear(folder: Path) -> None:
    """Make the folder of a comparison, with nothing of an earlier one; raise UsageError for one of somebody else's."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise UsageError(
            f"--sweeps {folder} has files that are of no comparison: name one that is empty, or none"
        )
    for name in (ARTIFACTS, RESULTS):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("Files of goldens compare; the next comparison in this folder deletes them.\n")


class _Screen:
    """Standard error, as the progress of a run writes to a terminal."""

    def rewrite(self, line: str, **markup: bool) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def write_line(self, line: str, **markup: bool) -> None:
        print(line, file=sys.stderr, flush=True)

    def write(self, content: str, **markup: bool) -> None:
        sys.stderr.write(content)


def changed_by(name: str) -> Callable[[Made, Sequence[Outcome]], bool]:
    """Return whether a pass of this name changed the graph of a cell, by the trace of its exports, or failed."""

    def wanted(_: Made, outcomes: Sequence[Outcome]) -> bool:
        made = [outcome.result for outcome in outcomes if isinstance(outcome.result, Artifact)]
        traces = (each.watched.passes for each in made if each.watched is not None)
        return any(run.changed and run.name == name for trace in traces for run in trace) or any(
            isinstance(each.result, Failure) and each.result.pass_name == name for each in made
        )

    return wanted
