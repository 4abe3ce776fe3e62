"""Ownership, lock and leftovers of a root of goldens.

A root holds a folder of goldens per release, and ``zoo.txt``, which names the zoo whose goldens they are: a run over
a different zoo would find every one of them stale.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable, merging, untrusted
from executorch_goldens.goldens import golden, record
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import FORMAT

#: The file of a root that names the format of its goldens and the modules of their zoo.
ZOO = "zoo.txt"


@dataclass(frozen=True)
class Leftovers:
    """Files in a release's folder that match no cell.

    Attributes
    ----------
    stale
        Cells that have a golden, and are not of the zoo and the release.
    foreign
        Files that are no goldens, with the reason: nobody but their owner may delete them.
    """

    stale: tuple[Cell, ...]
    foreign: tuple[tuple[Path, str], ...]


def check(root: Path, models: Sequence[str], updating: bool) -> None:
    """Raise GoldenError unless a run over the zoo of `models` may use the goldens under `root`.

    One that only reads may have further modules, which bring patches for instance, and may use goldens that do not say
    whose they are.
    """
    owner = zoo(root)
    asked = " ".join(sorted(models))
    if owner is None:
        if updating and any(root.glob(f"*/*/*{golden.SUFFIX}")):
            raise GoldenError(
                root,
                f"holds goldens and no {ZOO} that says whose they are; the run is over {asked}",
                f"Pass --goldens DIR for a root of its own; if these are the goldens of {asked}, write the lines "
                f"'format: {FORMAT}' and 'models: {asked}' to {root / ZOO}.",
            )
    elif not set(owner) <= set(models) or (updating and set(owner) != set(models)):
        raise GoldenError(
            root,
            f"holds the goldens of {' '.join(owner)}, and the run is over {asked}",
            f"Pass --goldens DIR for a root of its own; if the zoo was renamed, edit {root / ZOO}.",
        )


def zoo(root: Path) -> tuple[str, ...] | None:
    """Return the modules, sorted, whose goldens are under `root`; None where it does not say; raise GoldenError."""
    path = root / ZOO
    try:
        text = untrusted.text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise GoldenError(path, f"cannot be read ({error})", _again(path)) from error
    fields = dict(line.partition(": ")[::2] for line in text.splitlines())
    if (found := fields.get("format", "")) != str(FORMAT):
        older = found in map(str, range(FORMAT))
        way_out = "Delete it and the goldens beside it, and record them again with --snapshot-update."
        what = f"format {found!r} is {'older than' if older else 'not'} {FORMAT}"
        raise GoldenError(path, what, way_out if older else _again(path))
    if not (models := fields.get("models", "").split()):
        raise GoldenError(path, "names no modules", _again(path))
    return tuple(sorted(models))


def _again(path: Path) -> str:
    way_out = merging.bring_back(path, "name the zoo's modules in it")
    return f"{way_out[:1].upper()}{way_out[1:]}, or pass --goldens DIR."


def lock(root: Path, version: str) -> filelock.BaseFileLock:
    """Return the lock that a run holds while it may write the goldens of a release under `root`."""
    return filelock.FileLock(root / f".{version}.lock")


def open_for_writing(folder: Path, its_lock: filelock.BaseFileLock, patience: float = 0.0) -> None:
    """Take the lock, and complete interrupted writes in a release's folder; raise GoldenError.

    Parameters
    ----------
    patience
        Seconds to wait for a run that has the lock.
    """
    golden.require_no_link(folder)
    try:
        Path(its_lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        its_lock.acquire(timeout=patience)
        golden.recover(folder)
        probe = folder / f"probe{durable.ASIDE}"
        probe.mkdir(parents=True, exist_ok=True)
        probe.rmdir()
    except filelock.Timeout as error:
        raise golden.UnwritableError(
            folder,
            f"is being written by a different run (it holds {its_lock.lock_file})",
            "Wait for it, or pass --goldens DIR for a root of its own.",
        ) from error
    except OSError as error:
        raise _unwritable(folder, error) from error


def claim(root: Path, models: Sequence[str]) -> None:
    """Say in `root` that its goldens are those of `models`, unless it says whose they are; raise GoldenError."""
    if zoo(root) is None:
        text = f"format: {FORMAT}\nmodels: {' '.join(sorted(models))}\n"
        try:
            durable.replace(root / ZOO, text)
        except OSError as error:
            raise _unwritable(root / ZOO, error) from error


def share(folder: Path, facts: Mapping[str, str]) -> None:
    """Say once in a release's folder without goldens what those to come share, unless it says so; raise GoldenError.

    Parameters
    ----------
    facts
        Facts of its goldens; kept are the stack, the patches and the variations.
    """
    if (folder / golden.RELEASE).exists() or any(golden.recorded(folder)):
        return
    try:
        durable.replace(folder / golden.RELEASE, shared_text(facts))
    except OSError as error:
        raise _unwritable(folder / golden.RELEASE, error) from error


def shared_text(facts: Mapping[str, str]) -> str:
    """Return the ``release.toml`` with those of the facts that all goldens of a release may share."""
    shared = {name: value for name, value in facts.items() if record.may_be_shared(name)}
    head = "# Facts of every golden here that does not say otherwise.\n"
    return head + "".join(f"{name} = {json.dumps(value)}\n" for name, value in shared.items())


def _unwritable(path: Path, error: OSError) -> GoldenError:
    return golden.UnwritableError(
        path, f"cannot be written ({error})", "Make it writable, or pass --goldens DIR."
    )


def leftovers(folder: Path, known: Collection[Cell]) -> Leftovers:
    """Return the files in a release's folder besides the goldens of the cells `known`."""
    stale, foreign = [], []
    for cell in golden.recorded(folder):
        if cell in known:
            continue
        path = golden.file_of(folder, cell)
        try:
            golden.read(path)
            stale.append(cell)
        except GoldenError as error:
            foreign.append((path, error.what))
    return Leftovers(tuple(stale), tuple(foreign))
