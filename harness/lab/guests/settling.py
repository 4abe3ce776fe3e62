"""Splits the sheets that are wrong in the installed release: a sample that is wrong alone gets a sheet of its own.

Which sheets are wrong the goldens say. The halves of such a sheet are exported in a fork and judged as a run judges
them, without a golden; one that is not right is halved until a sample is alone. What is right is one sheet again, or,
where that is wrong in company alone, several.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import resource
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from executorch_goldens import patches
from executorch_goldens.artifact import Artifact, Cell, Failure, Outcome
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.export import export
from executorch_goldens.judging.verdict import objection
from executorch_goldens.patches.shortcuts import SHORTCUTS
from executorch_goldens.registry import Case
from executorch_goldens.releases import Release
from executorch_goldens.targets import ANY_SQNR
from executorch_goldens.workers import worker
from lab.guests import GuestZoo, listing, sheets, triage
from lab.guests.cases import QUANTIZATION
from lab.guests.listing import Entry, Listing
from lab.guests.sheets import Sample

#: Seconds of processor time that the export of a sheet may take.
SECONDS = 180


def settled(zoo: GuestZoo, release: Release, root: Path) -> Listing:
    """Return the listing of a zoo for `release`, the installed one, by its goldens under `root`."""
    listed = [entry for entry in listing.read(zoo.name).entries if release.version in entry.releases]
    if not listed:
        return Listing(tuple(sheets.whole(zoo.name, (release.version,))))
    wrong = {
        each.cell
        for name, version, _, found in triage.recorded(root)
        if (name, version) == (zoo.name, release.version)
        for each in found
    }
    entries: list[Entry] = []
    for target, of_target in itertools.groupby(sorted(listed, key=_target), key=_target):
        settler = None
        for each in of_target:
            numbers = tuple(map(int, each.node.split(",")))
            if len(numbers) == 1 or f"{target}/{each.name}" not in wrong:
                entries.append(replace(each, releases=(release.version,)))
                continue
            settler = settler or Settler(zoo, release, target)
            entries.extend(settler.entries(numbers))
    return Listing(tuple(sorted(entries)))


def _target(entry: Entry) -> str:
    return entry.kinds[0]


class Settler:
    """Splits sheets on one target; this process is warmed up for it, and each export is in a fork.

    Parameters
    ----------
    release
        The installed one.
    """

    def __init__(self, zoo: GuestZoo, release: Release, target: str) -> None:
        self.zoo = zoo
        self.release = release
        self.target = target
        worker.set_kernels(1, onednn=False)
        worker.load_kernels()
        worker.install_shortcuts(tuple(SHORTCUTS), worker.target_or_none(target))
        patches.apply(release.patches, compat.installed_release(), worker.target_or_none(target))
        worker.warm_up([target])

    def entries(self, numbers: Sequence[int]) -> list[Entry]:
        """Return the sheets that the samples of a sheet that is wrong are to be in."""
        middle = len(numbers) // 2
        parts = [*self.split(numbers[:middle]), *self.split(numbers[middle:])]
        right = [part for part, is_right in parts if is_right]
        together = tuple(itertools.chain(*right))
        if len(right) > 1 and self.is_right(together):
            right = [together]
        made = [*right, *(part for part, is_right in parts if not is_right)]
        release = (self.release.version,)
        print(f"{self.target}: {len(numbers)} samples, {len(made)} sheets", flush=True)
        return [
            sheets.entry(self.zoo.name, part, self.target, release, f"-{place}" if place else "")
            for place, part in enumerate(made)
        ]

    def split(self, numbers: Sequence[int]) -> Iterator[tuple[tuple[int, ...], bool]]:
        """Yield parts of a sheet, each with whether it is right; one that is not has one sample."""
        if (is_right := self.is_right(numbers)) or len(numbers) == 1:
            yield tuple(numbers), is_right
            return
        middle = len(numbers) // 2
        yield from self.split(numbers[:middle])
        yield from self.split(numbers[middle:])

    def is_right(self, numbers: Sequence[int]) -> bool:
        """Whether the sheet of the samples of these numbers lowers, and is right."""
        there = sheets.samples(self.zoo.name)
        artifact = self.export([there[number] for number in numbers])
        if artifact is None or isinstance(artifact.result, Failure):
            return False
        cell = Cell(self.target, "sheet")
        return objection(cell, [Outcome(cell, "once", artifact, 0.0, 0.0)]) is None

    def export(self, samples: Sequence[Sample]) -> Artifact | None:
        """Export the sheet of `samples`; None where that ends the process."""
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "artifact")
            process = os.fork()
            if process == 0:
                with contextlib.suppress(BaseException):
                    self._in_fork(samples, result)
                os._exit(0)
            os.waitpid(process, 0)
            return pickle.loads(result.read_bytes()) if result.exists() else None

    def _in_fork(self, samples: Sequence[Sample], result: Path) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        case = Case(
            name="sheet",
            family="sheets",
            guards="a sheet",
            build=lambda _: sheets.example(samples),
            quantization=QUANTIZATION,
            run_on=self.zoo.run_on,
            sqnr=ANY_SQNR,
        )
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        result.with_suffix(".part").write_bytes(pickle.dumps(export(case, self.target, self.release.patches)))
        result.with_suffix(".part").rename(result)
