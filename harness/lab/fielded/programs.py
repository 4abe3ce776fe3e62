"""The programs of a release's cells: made by ordinary exports, and kept as long as these would make the same."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Artifact, Casualty, Cell, Failure, Outcome
from executorch_goldens.decode import DecodeError
from executorch_goldens.judging.rightness import wrongs
from executorch_goldens.settings.exports import Settings
from executorch_goldens.sweep.keys import Ingredients, digest, request
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from lab import fielded
from lab.fielded import corpus
from lab.fielded.corpus import CRASHED, REFUSED, RIGHT, WRONG, CorpusError, Shipped

#: Programs are made under the first variation: its heap is as it comes.
VARIATION = variations((0,))[0]


class Programs:
    """The programs of one release, in a folder.

    Parameters
    ----------
    settings
        Settings of exports: the release's interpreter, zoo and patches.
    folder
        Where they are kept.
    reuse
        Its store knows what an export depended on; nothing is taken from it, for an artifact does not hold what a
        program is run on.
    """

    def __init__(self, release: str, settings: Settings, folder: Path, reuse: Reuse) -> None:
        self.release = release
        self.settings = replace(settings, observer=fielded.RECORDER)
        self.folder = folder
        self.reuse = reuse
        self.lookup = reuse.lookup(self.settings)

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells whose program is not kept, or damaged."""
        return [cell for cell in cells if self.kept(cell) is None]

    def kept(self, cell: Cell) -> Shipped | None:
        """Return the program of a cell, None where there is none that is sound, or it may be another by now."""
        if self.lookup.answer(digest(self._asked(cell))) is None:
            return None
        try:
            return corpus.read(self.path(cell))
        except CorpusError:
            return None

    def path(self, cell: Cell) -> Path:
        """Return where the program of a cell is, or would be."""
        return self.folder / f"{digest(self._asked(cell))}{corpus.SUFFIX}"

    def _asked(self, cell: Cell) -> Ingredients:
        return request(self.settings, (cell, VARIATION, ()))

    def make(self, cells: Sequence[Cell]) -> Iterator[Shipped]:
        """Export cells, and yield the program of each, which may have no binary; raise `SweepError`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.folder) as made:
            os.environ[fielded.RECORDS] = str(Path(made).absolute())
            with Sweep(cells, (VARIATION,), self.settings, reuse=self.reuse) as sweep:
                for cell in cells:
                    (outcome,) = sweep.outcomes(cell)
                    yield self._keep(cell, Path(made), outcome)

    def _keep(self, cell: Cell, made: Path, outcome: Outcome) -> Shipped:
        recorded = made / cell.target / f"{cell.case}{corpus.SUFFIX}"
        own = own_state(outcome)
        if recorded.exists():
            shipped = msgspec.structs.replace(corpus.read(recorded), own=own)
        else:
            # The process died before there was a program.
            shipped = Shipped(cell, self.release, (), own)
        corpus.write(self.path(cell), shipped)
        return shipped


def own_state(outcome: Outcome) -> str:
    """Return the state of a program on its own release, one of `lab.fielded.corpus.OWN`."""
    if isinstance(outcome.result, Casualty):
        return CRASHED
    assert isinstance(outcome.result, Artifact)
    made = outcome.result.result
    # A failure, or a program that the runtime has no kernel for.
    if isinstance(made, Failure) or made.not_run:
        return REFUSED
    try:
        return WRONG if any(wrongs(made)) else RIGHT
    except DecodeError:
        return WRONG
