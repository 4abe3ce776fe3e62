"""Joins the results of a run's shards into those of one run.

What belongs together is decided by ``run.json`` (`results.provenance`): the same commit, the same settings,
each cell once and none missing.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import filelock

from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.untrusted import UntrustedError
from executorch_goldens.files.wording import count
from executorch_goldens.results import provenance
from executorch_goldens.results import rows as results
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.results.rows import ResultRow

#: Fields of a provenance that shards of one run have in common.
COMMON = ("commit", "changes", "stack", "models", "settings", "variations", "selected", "whole")

#: Names that an error lists.
SHOWN = 5


class MergeError(HarnessError, ValueError):
    """Results do not belong together, or are incomplete; the message says how and where."""


@dataclass(frozen=True)
class PartialResults:
    """The results of a run, or of a shard of one.

    Attributes
    ----------
    parts
        Number of results that they were merged of.
    """

    folder: Path
    provenance: Provenance
    rows: Sequence[ResultRow]
    parts: int = 1

    @classmethod
    def load(cls, folder: Path) -> PartialResults:
        """Read a folder of results; raise UsageError."""
        return cls(folder, Provenance.load(folder), results.read(folder / results.FILE))

    def folder_of(self, row: ResultRow) -> Path:
        """Return the folder of a cell's files."""
        return untrusted.inside(self.folder, row.target, row.case)

    def wrong(self) -> list[ResultRow]:
        """Return the lines of the cells that do not pass."""
        return [row for row in self.rows if not row.accepted]

    def lacking(self) -> list[str]:
        """Return the cells of the run that have no line."""
        there = {str(row.cell) for row in self.rows}
        return [cell for cell in self.provenance.cells if cell not in there]

    def core_seconds(self) -> float:
        return float(sum(sum(row.core_seconds) for row in self.rows))

    def exports(self) -> int:
        return sum(len(row.variations) for row in self.rows)


def by_name(parts: Sequence[PartialResults]) -> dict[str, tuple[PartialResults, ResultRow]]:
    """Return the lines of cells, with what they are of, by `ResultRow.name`; raise MergeError where two are of one."""
    found: dict[str, tuple[PartialResults, ResultRow]] = {}
    for part in parts:
        for row in part.rows:
            if row.name in found:
                first = found[row.name][0].folder_of(row)
                raise MergeError(
                    f"{row.cell} of ExecuTorch {row.release} is in both {first} and {part.folder_of(row)}: name one "
                    "folder with results of it"
                )
            found[row.name] = part, row
    return found


def unchecked(parts: Sequence[PartialResults]) -> str:
    """Return which cells of runs have no line, in words: those of runs that were ended, and of shards that are missing.

    Empty where all have one, and there is any.
    """
    wanted: dict[str, None] = {}
    for each in (part.provenance for part in parts):
        # Without a shard, a run may have been asked for fewer than were selected.
        cells = each.selected if each.shard is not None else each.cells
        wanted |= dict.fromkeys(f"{each.release} {cell}" for cell in cells)
    there = {row.name for part in parts for row in part.rows}
    lacking = [name for name in wanted if name not in there]
    if lacking:
        of_all = count(len(there.union(wanted)), "cell")
        return f"{len(lacking)} of {of_all} not checked ({_named(lacking)}): run again"
    return "" if there else "no cell was checked"


@contextlib.contextmanager
def at_rest(folders: Sequence[Path]) -> Iterator[None]:
    """Keep runs from changing the results below `folders` meanwhile; raise MergeError where one does."""
    with contextlib.ExitStack() as held:
        # One that is named twice is refused later, with better words.
        for file in dict.fromkeys(
            file.absolute() for folder in folders for file in sorted(folder.glob(f"**/{provenance.FILE}"))
        ):
            lock = results.lock(file.parent)
            # Without a run there is none: results may be copies in a read-only folder.
            if not Path(lock.lock_file).is_file() or Path(lock.lock_file).is_symlink():
                continue
            try:
                held.enter_context(lock.acquire(timeout=0))
            except filelock.Timeout as error:
                raise MergeError(
                    f"a run works on {file.parent} (it holds {lock.lock_file}): wait for it"
                ) from error
            except OSError:
                continue
        yield


def find(folders: Sequence[Path]) -> dict[str, list[PartialResults]]:
    """Return the results under `folders` by release; raise MergeError for a folder without any."""
    found: dict[str, list[PartialResults]] = {}
    for folder in folders:
        try:
            untrusted.require_no_links(folder)
        except UntrustedError as error:
            raise MergeError(str(error)) from error
        files = sorted(folder.glob(f"**/{provenance.FILE}"))
        if not files:
            raise MergeError(f"{folder} has no {provenance.FILE}: name folders with results of `goldens run`")
        for file in files:
            part = PartialResults.load(file.parent)
            found.setdefault(part.provenance.release, []).append(part)
    return dict(sorted(found.items()))


def merge(parts: Sequence[PartialResults], target: Path) -> PartialResults:
    """Write the results of one run over the cells of `parts`, of one release, to the folder `target`.

    Raises
    ------
    MergeError
        For parts of different runs, for cells that are missing or there twice, and where `target` holds something else.
    """
    require_alike(parts)
    if not parts[0].provenance.selected:
        raise MergeError(f"{parts[0].folder}: no cell was checked: run again")
    require_each_once(parts)
    require_ended(parts)
    first = parts[0].provenance
    of_all = replace(
        first,
        shard=None,
        cells=first.selected,
        # Each kind once.
        machines=tuple(dict.fromkeys(name for part in parts for name in part.provenance.machines)),
    )
    if target.exists() and not (target / provenance.FILE).is_file():
        raise MergeError(f"{target} is there already and holds no results: name another folder with --into")
    if any(part.folder.resolve() == target.resolve() for part in parts):
        raise MergeError(f"{target} is one of the folders that are merged: name another one with --into")
    aside = target.with_name(target.name + durable.ASIDE)
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    rows = [row for part in parts for row in part.rows]
    results.write(aside / results.FILE, rows, first.selection())
    of_all.write(aside)
    for part in parts:
        for row in part.rows:
            made = part.folder_of(row)
            if made.is_dir():
                shutil.copytree(made, untrusted.inside(aside, row.target, row.case))
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    return PartialResults(target, of_all, results.read(target / results.FILE), len(parts))


def require_alike(parts: Sequence[PartialResults]) -> None:
    """Raise MergeError unless all parts are of one run."""
    first, *others = parts
    for part in others:
        for field in COMMON:
            one, other = getattr(first.provenance, field), getattr(part.provenance, field)
            if one != other:
                raise MergeError(
                    f"{first.folder} and {part.folder} are not of one run: {_difference(field, one, other)}; run the "
                    "shards with the same commit, settings and cells"
                )


def _difference(field: str, one: Any, other: Any) -> str:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        name = next(name for name in {**one, **other} if one.get(name) != other.get(name))
        return _difference(name, one.get(name), other.get(name))
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) + len(other) > SHOWN:
        return f"{field} differ, {len(one)} and {len(other)} names"
    if field == "changes":
        return "their checkouts have different uncommitted changes"
    return f"{field} {_shown(one)} and {_shown(other)}"


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def require_each_once(parts: Sequence[PartialResults]) -> None:
    """Raise MergeError unless each cell that was asked for is of exactly one part, and no other of any."""
    owner: dict[str, Path] = {}
    for part in parts:
        selected = frozenset(part.provenance.selected)
        if others := [cell for cell in part.provenance.cells if cell not in selected]:
            raise MergeError(
                f"{part.folder}: {provenance.FILE} has cells that nobody asked for: {', '.join(others[:SHOWN])}"
            )
        for cell in part.provenance.cells:
            if cell in owner:
                raise MergeError(f"{cell} is in both {owner[cell]} and {part.folder}: name each shard once")
            owner[cell] = part.folder
    if missing := [cell for cell in parts[0].provenance.selected if cell not in owner]:
        raise MergeError(
            f"ExecuTorch {parts[0].provenance.release}: {_some(missing)} in no folder{_missing_shards(parts)}"
        )


def _missing_shards(parts: Sequence[PartialResults]) -> str:
    there = [part.provenance.shard for part in parts]
    if None in there:
        return ""
    counts = {str(shard).partition("/")[2] for shard in there}
    if len(counts) > 1:
        return f": shards {', '.join(map(str, there))} are not of one split"
    (count,) = counts
    shards = [f"{number}/{count}" for number in range(1, int(count) + 1)]
    missing = [shard for shard in shards if shard not in there]
    return f": add shard {', '.join(missing)}" if missing else ""


def require_ended(parts: Sequence[PartialResults]) -> None:
    """Raise MergeError unless each part has exactly one line for each of its cells."""
    for part in parts:
        lines = [str(row.cell) for row in part.rows]
        if missing := part.lacking():
            raise MergeError(f"{part.folder} did not come to its end: {_some(missing)} without a result")
        if sorted(lines) != sorted(part.provenance.cells):
            raise MergeError(f"{part.folder}: {results.FILE} has other cells than {provenance.FILE}")


def _some(cells: Sequence[str]) -> str:
    return f"{len(cells)} cell{'s are' if len(cells) > 1 else ' is'} missing ({_named(cells)})"


def _named(cells: Sequence[str]) -> str:
    return ", ".join(cells[:SHOWN]) + (", ..." if len(cells) > SHOWN else "")


def of_releases(parts: Mapping[str, Sequence[PartialResults]], into: Path) -> Iterator[PartialResults]:
    """Merge the parts of each release into its folder of `into`, if all are of one commit; raise MergeError."""
    firsts = [of_release[0] for of_release in parts.values()]
    for part in firsts[1:]:
        if part.provenance.commit != firsts[0].provenance.commit:
            raise MergeError(
                f"{firsts[0].folder} and {part.folder} are not of one run: "
                f"{_difference('commit', firsts[0].provenance.commit, part.provenance.commit)}"
            )
    for version, of_release in parts.items():
        yield merge(of_release, into / version)
