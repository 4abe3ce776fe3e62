"""Splits the sheets that are wrong in the installed release: a sample that is wrong alone gets a sheet of its own.

A sheet is exported in a fork and judged as a run judges it, without a golden. Of one that is wrong each sample is
exported alone. Those that are right share a sheet again: if that is wrong, it is so in company alone. Of those that are
wrong for one cause on one target the first is a case, and the others are left out of the listing by name.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from executorch_goldens import patches
from executorch_goldens.artifact import Artifact, Cell, Failure, Outcome
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.entry import export
from executorch_goldens.goldens.causes import general
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.judging.verdict import objection
from executorch_goldens.patches.shortcuts import SHORTCUTS
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep import worker
from executorch_goldens.words.verdicts import reason
from executorch_goldens.zoo.registry import Case
from lab.compact import goldens
from lab.conditioning import ANY_SQNR
from lab.guests import GuestZoo, listing, sheets
from lab.guests.cases import QUANTIZATION
from lab.guests.listing import Entry, Listing, Omitted
from lab.guests.sheets import Sample

#: Characters of a cause.
LONGEST = 160
#: Seconds of processor time that the export of a sheet may take.
SECONDS = 180


def settled(zoo: GuestZoo, release: Release, root: Path) -> Listing:
    """Return the listing of a zoo for `release`, the installed one.

    Sheets of the core that have no golden under `root`, or are wrong by it, are split; others stay as they are. Each
    target has a process of its own, as many at a time as there are cores.
    """
    listed = listing.read(zoo.name).for_release(release.version)
    entries = listed.entries or tuple(sheets.whole(zoo.name, (release.version,)))
    right = right_in(root / zoo.folder / release.version, release.version)
    done: list[Entry] = []
    left: dict[str, list[Entry]] = {}
    for each in entries:
        target = each.kinds[0]
        alone = "," not in each.node
        if alone or each.number % listing.PART or f"{target}/{each.name}" in right:
            done.append(each)
        else:
            left.setdefault(target, []).append(each)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        listings = list(threads.map(lambda target: split(zoo, release, target, left[target]), left))
    return Listing(
        tuple(sorted((*done, *(entry for each in listings for entry in each.entries)))),
        tuple(sorted((*listed.omitted, *(omitted for each in listings for omitted in each.omitted)))),
    )


def split(zoo: GuestZoo, release: Release, target: str, entries: Sequence[Entry]) -> Listing:
    """Split sheets on one target in a fork of this process, which must not have computed anything yet."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "listing")
        process = os.fork()
        if process == 0:
            status = 1
            try:
                settler = Settler(zoo, release, target)
                made = [settler.split(each.file, numbers_of(each), each.number) for each in entries]
                result.write_bytes(pickle.dumps(made))
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        _, status = os.waitpid(process, 0)
        if status != 0:
            raise HarnessError(f"{zoo.name}: the process that splits the sheets of {target} ended")
        made = pickle.loads(result.read_bytes())
    return Listing(
        tuple(entry for each in made for entry in each.entries),
        tuple(omitted for each in made for omitted in each.omitted),
    )


def numbers_of(entry: Entry) -> tuple[int, ...]:
    return tuple(map(int, entry.node.split(",")))


def masked(text: str) -> str:
    """Return the first line of a message without parts that differ between samples, blanks joined.

    Dtypes stay: a result of another shape is one defect, and one of another dtype is a different one.

    >>> masked("corrupt: output 0: is float32[1, 5], expected float32[1, 3]")
    'corrupt: output …: is float32[…], expected float32[…]'
    >>> masked("corrupt: output 4: is float32[], expected float16[]")
    'corrupt: output …: is float32[…], expected float16[…]'
    """
    line = (text.strip().splitlines() or [""])[0]
    return " ".join(general(line).split())[:LONGEST]


def right_in(folder: Path, version: str) -> set[str]:
    """Return the cells whose golden in a folder is a program, and right."""
    wrong = set(Decisions.of_root(folder.parent, version).defects)
    recorded = ((str(cell), goldens.read(folder, cell)) for cell in goldens.recorded(folder))
    return {cell for cell, record in recorded if record is not None and not record.fails} - wrong


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
        self.first: dict[str, str] = {}
        worker.set_kernels(1, onednn=False)
        worker.load_kernels()
        worker.install_shortcuts(tuple(SHORTCUTS), worker.target_or_none(target))
        patches.apply(release.patches, compat.installed_release(), worker.target_or_none(target))
        worker.warm_up([target])

    def split(self, group: str, numbers: Sequence[int], sheet: int) -> Listing:
        """Return the sheets that the samples of a sheet are to be in, and those that are left out."""
        release = (self.release.version,)
        if not self.cause(numbers):
            return Listing((sheets.entry(self.zoo.name, numbers, sheet, self.target, release),))
        causes = {number: self.cause([number]) for number in numbers}
        parts = [[number for number in numbers if not causes[number]]]
        omitted = []
        for number in numbers:
            name = sheets.samples(self.zoo.name)[number].name
            if not (cause := causes[number]):
                continue
            if self.first.setdefault(cause, name) == name:
                parts.append([number])
                continue
            reason = f"{self.target}: as {self.first[cause]}: {cause}"
            omitted.append(Omitted(f"{group}::{number} {name}", reason, release))
        entries = [sheets.entry(self.zoo.name, part, sheet, self.target, release) for part in parts if part]
        return Listing(tuple(entries), tuple(omitted))

    def cause(self, numbers: Sequence[int]) -> str:
        """Return why the sheet of the samples of these numbers is wrong, without parts that differ between samples."""
        there = sheets.samples(self.zoo.name)
        artifact = self.export([there[number] for number in numbers])
        if artifact is None:
            return "the process ends"
        if isinstance(failure := artifact.result, Failure):
            return masked(f"{failure.stage} {failure.pass_name or '-'} {failure.type}: {failure.message}")
        cell = Cell(self.target, "sheet")
        verdict = objection(cell, [Outcome(cell, "once", artifact, 0.0, 0.0)])
        return "" if verdict is None else masked(f"{verdict.name}: {reason(verdict)}")

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
