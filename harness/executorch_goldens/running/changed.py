"""Finds the cells that a change in the repository can reach: those that ``--changed-since REV`` runs, and why.

The store knows what the last export of a cell depended on (`store.facts`). A file counts for the cells whose
exports read it or looked for it, and for those without a valid earlier export.
"""

from __future__ import annotations

import fnmatch
import functools
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executorch_goldens import patches, releases
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting.recording import LISTING, PART, by_stem, matching
from executorch_goldens.files.wording import count
from executorch_goldens.judging import expectations
from executorch_goldens.settings import config
from executorch_goldens.store import functions
from executorch_goldens.store.facts import Fact
from executorch_goldens.store.imports import imported_from
from executorch_goldens.store.keys import digest
from executorch_goldens.store.reuse import Reuse
from executorch_goldens.toolchains import locking
from executorch_goldens.variations import Variation

if TYPE_CHECKING:
    from executorch_goldens.settings.exports import Settings

#: Packages of the harness that a run imports: exporting, judging, choosing.
ROOTS = (
    "executorch_goldens.running.cells",
    "executorch_goldens.running.plugin",
    "executorch_goldens.cli",
    "executorch_goldens.commands.run",
    "executorch_goldens.workers.worker",
)
#: Folders of a repository, and endings of files, that no cell depends on.
WITHOUT_CELLS = ("docs", "tests", "examples", ".github", ".ci")
TEXT = (".md", ".rst")
#: Files of a release's goldens that are no cell's: which cells come first, and which are in the core.
ABOUT_RUNS = ("seconds.txt", "core.txt")
#: Cells that a line names.
SHOWN = 6


class ChangedError(HarnessError, ValueError):
    """A revision whose changes cannot be listed; the message names it and the way out."""


@dataclass(frozen=True)
class Reached:
    """The cells that a changed file can reach.

    Attributes
    ----------
    file
        Relative to the top of the checkout.
    why
        The reason.
    cells
        None for every cell.
    """

    file: str
    why: str
    cells: frozenset[Cell] | None


@dataclass(frozen=True)
class Checkout:
    """A git checkout, and one of its revisions."""

    top: Path
    revision: str

    @classmethod
    def of(cls, folder: Path, revision: str) -> Checkout:
        """Return the checkout around `folder`; raise `ChangedError`."""
        asked = f"--changed-since {revision}"
        try:
            top = _git(folder, "rev-parse", "--show-toplevel").removesuffix("\n")
        except FileNotFoundError as error:
            raise ChangedError(
                f"{asked}: there is no git on the PATH: install it, or choose cells by --cell"
            ) from error
        except subprocess.CalledProcessError as error:
            raise ChangedError(
                f"{asked}: {folder} is not in a git checkout: run it in a clone, or choose cells by --cell"
            ) from error
        try:
            commit = _git(
                Path(top), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
            )
        except subprocess.CalledProcessError as error:
            raise ChangedError(
                f"{asked}: {top} has no such revision: name a commit, a branch or a tag; a shallow clone gets "
                "more by git fetch --unshallow"
            ) from error
        return cls(Path(top), commit.strip())

    def changed(self) -> list[str]:
        """Return the files that differ from the revision, deleted and untracked ones too."""
        differing = _git(self.top, "diff", "--name-only", "--no-renames", "-z", self.revision, "--")
        untracked = _git(self.top, "ls-files", "--others", "--exclude-standard", "-z")
        return sorted({name for name in (differing + untracked).split("\0") if name})

    def text(self, name: str) -> str | None:
        """Return the content of a file in the revision; None if missing."""
        try:
            return _git(self.top, "show", f"{self.revision}:{name}")
        except subprocess.CalledProcessError:
            return None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", errors="surrogateescape")


class Reach:
    """Finds the cells of one run that files can reach.

    Parameters
    ----------
    settings
        The exports of the run.
    known
        Every cell of the zoo and the release.
    release
        The one that is installed.
    goldens
        Root of the goldens.
    matrix
        The ``releases.toml`` of the run.
    reuse
        Its store knows what exports depended on.
    variations
        Variations under which an export may have been made.
    """

    def __init__(
        self,
        checkout: Checkout,
        settings: Settings,
        known: Sequence[Cell],
        release: releases.Release,
        goldens: Path,
        matrix: Path,
        reuse: Reuse,
        variations: Sequence[Variation],
    ) -> None:
        self.checkout = checkout
        self.settings = settings
        self.known = known
        self.release = release
        self.goldens = goldens
        self.repository = config.load()
        self.matrices = {matrix.resolve()}
        if self.repository.known_defects:
            self.matrices.add(self.repository.known_defects.resolve())
        self.root = settings.machine.root
        self.harness = self.root / "executorch_goldens"
        self.view = reuse.view(settings)
        #: Places to the cells whose exports read them; modules with a function to those that depend on no more of it;
        #: directories with a name to those that looked for it there.
        self.readers: dict[str, set[Cell]] = {}
        self.parts: dict[str, dict[str, set[Cell]]] = {}
        self.lookers: dict[str, dict[str, set[Cell]]] = {}
        self.unknown: set[Cell] = set()
        lookup = reuse.lookup(settings)
        of_lists: dict[str, set[Cell]] = {}
        for cell in known:
            asked = [digest(reuse.listing(settings, (cell, variation, ()))) for variation in variations]
            found = [made for each in asked for made in reuse.store.made(each)[:1]]
            if not any(lookup.answer(each) for each in asked):
                # A change in its last list may be one it was made from, or not.
                self.unknown.add(cell)
            for name in {name for made in found for name in made.lists}:
                of_lists.setdefault(name, set()).add(cell)
        for name, cells in of_lists.items():
            for fact in reuse.store.facts(name) or ():
                self._note(fact, cells)

    def _note(self, fact: Fact, cells: set[Cell]) -> None:
        path = self.view.places.path(fact.place)
        if fact.kind == PART:
            for function in fact.wanted:
                self.parts.setdefault(path, {}).setdefault(function, set()).update(cells)
            return
        self.readers.setdefault(path, set()).update(cells)
        if fact.kind == LISTING:
            for wanted in fact.wanted:
                self.lookers.setdefault(path, {}).setdefault(wanted, set()).update(cells)

    def of(self, name: str) -> Iterator[Reached]:
        """Yield the cells that the changed file `name` can reach; none if no cell depends on it."""
        path = self.checkout.top / name
        read = self._cells_that_read(name, path)
        if path.is_relative_to(self.goldens):
            yield from self._golden(name, path.relative_to(self.goldens).parts)
        elif path.resolve() in self.matrices:
            yield from self._matrix(name)
        elif path == self.repository.root / config.FILE:
            yield Reached(name, "says how cells are judged", None)
        elif path.resolve().parent == (self.harness / locking.FOLDER.name).resolve():
            if path.stem in (self.release.version, locking.torch_of(self.release)):
                yield Reached(name, f"the environment of {self.release.version}", None)
        elif path.resolve().is_relative_to(self.harness.resolve()):
            yield from self._of_harness(name, path)
        else:
            if read:
                yield Reached(name, "read by the export", frozenset(read))
            unknown = self.unknown - read
            if unknown and not self._is_without_cells(path):
                yield Reached(name, "no export of it as it is now is in the store", frozenset(unknown))

    def _cells_that_read(self, name: str, path: Path) -> set[Cell]:
        """Return the cells whose exports read a file, or looked for it where it came or went."""
        found = set(self.readers.get(str(path), ()))
        if parts := self.parts.get(str(path)):
            before, after = self.checkout.text(name), _text(path)
            for function, cells in parts.items():
                found |= cells if _differs(before, after, function) else set()
        for around in (path, *path.parents):
            there = around.is_relative_to(self.checkout.top)
            relative = around.relative_to(self.checkout.top).as_posix() if there else ""
            # A directory comes and goes with its files.
            if not relative or (around.exists() and self.checkout.text(relative) is not None):
                break
            for wanted, cells in self.lookers.get(str(around.parent), {}).items():
                found |= cells if matching(by_stem([around.name]), wanted) else set()
        return found

    def _golden(self, name: str, parts: tuple[str, ...]) -> Iterator[Reached]:
        if parts == (expectations.FILE,):
            yield from self._expected(name)
        elif len(parts) < 2:
            yield Reached(name, "says whose goldens they are", None)
        elif parts[0] == self.release.version and len(parts) > 3:
            cell = Cell(*parts[1:3])
            yield Reached(name, "its golden", frozenset({cell} & set(self.known)))
        elif parts[0] == self.release.version and parts[1] not in ABOUT_RUNS:
            yield Reached(name, "may reach every cell", None)

    def _expected(self, name: str) -> Iterator[Reached]:
        try:
            old = expectations.of_tables(tomllib.loads(self.checkout.text(name) or ""))
            new = expectations.read(self.goldens)
        except ValueError:
            yield Reached(name, "cannot be compared", None)
            return
        patterns = expectations.differing(old, new, self.release.version)
        if cells := {
            cell for cell in self.known for each in patterns if fnmatch.fnmatchcase(str(cell), each)
        }:
            yield Reached(name, f"expectations for {self.release.version}", frozenset(cells))

    def _matrix(self, name: str) -> Iterator[Reached]:
        before = self.checkout.text(name)
        try:
            old: dict[str, Any] = tomllib.loads(before or "")
            new: dict[str, Any] = tomllib.loads((self.checkout.top / name).read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError):
            yield Reached(name, "cannot be compared", None)
            return
        version = self.release.version
        if {**old, "releases": None, "default": None} != {**new, "releases": None, "default": None}:
            yield Reached(name, "changed for every release", None)
        was, now = (dict(table.get("releases", {}).get(version, {})) for table in (old, new))
        known_was, known_now = was.pop("known", {}), now.pop("known", {})
        if was != now:
            yield Reached(name, f"the table of {version}", None)
        differing = {cell for cell, _ in set(known_was.items()) ^ set(known_now.items())}
        if differing:
            cells = frozenset(cell for cell in self.known if str(cell) in differing)
            yield Reached(name, f"known defects of {version}", cells)

    def _of_harness(self, name: str, path: Path) -> Iterator[Reached]:
        owners = self._patches_of(path)
        if owners and not owners & set(self.settings.patches):
            return
        if owners:
            yield Reached(name, f"patch {', '.join(sorted(owners))}", None)
        # A file of another kind may be read by whatever is run, and a deleted one may have been.
        elif path in self.of_run or path.suffix != ".py" or not path.exists() or "exporting" in path.parts:
            yield Reached(name, "run for every cell", None)

    @functools.cached_property
    def of_run(self) -> set[Path]:
        """The files of the harness that a run imports, except those that only report."""
        telling = {
            f"executorch_goldens.review.{path.stem}" for path in (self.harness / "review").glob("*.py")
        }
        return imported_from(self.root, ROOTS, without=telling)

    def _patches_of(self, path: Path) -> set[str]:
        """Return the patches that a module in the folder ``patches`` is for, if it is for nothing else."""
        beside = not path.resolve().is_relative_to((self.harness / "patches").resolve())
        if beside or path in self._modules_from("executorch_goldens.patches.patch"):
            return set()
        return {
            name
            for name, patch in patches.PATCHES.items()
            if path in self._modules_from(patch.install.__module__)
        }

    def _modules_from(self, name: str) -> set[Path]:
        return imported_from(self.root, [name], without=("executorch_goldens", "executorch_goldens.patches"))

    def _is_without_cells(self, path: Path) -> bool:
        for root in (self.repository.root, self.checkout.top):
            if path.is_relative_to(root) and path.relative_to(root).parts[0] in WITHOUT_CELLS:
                return True
        return path.suffix in TEXT


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError:
        return None


def _differs(before: str | None, after: str | None, function: str) -> bool:
    """Return whether the part of a module that a function depends on is another one."""
    parts = [functions.part(text, function) if text is not None else None for text in (before, after)]
    return None in parts or parts[0] != parts[1]


@dataclass(frozen=True)
class Changes:
    """The choice of ``--changed-since``.

    Attributes
    ----------
    cells
        Those that the changes can reach.
    reached
        The reach of each changed file.
    count
        Of changed files.
    """

    revision: str
    cells: frozenset[Cell]
    reached: tuple[Reached, ...]
    count: int

    def lines(self, version: str) -> Iterator[str]:
        """Yield the message: how many cells, and for each file why."""
        changed = f"changed since {self.revision}: {count(self.count, 'file')}"
        if not self.cells:
            yield f"{changed}; no cell of ExecuTorch {version} is affected"
            return
        yield f"{changed}, affected: {count(len(self.cells), 'cell')}"
        for each in self.reached:
            if each.cells is None:
                yield f"  {each.file}: {each.why}: every cell"
            elif each.cells:
                named = sorted(map(str, each.cells))
                more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
                yield f"  {each.file}: {each.why}: {', '.join(named[:SHOWN])}{more}"


def since(
    revision: str,
    settings: Settings,
    known: Sequence[Cell],
    release: releases.Release,
    goldens: Path,
    reuse: Reuse,
    variations: Sequence[Variation],
    matrix: Path = releases.MATRIX,
) -> Changes:
    """Return the cells that changes since `revision` can reach, and why; raise `ChangedError`."""
    checkout = Checkout.of(config.load().root, revision)
    names = checkout.changed()
    reach = Reach(checkout, settings, known, release, goldens, matrix, reuse, variations) if names else None
    reached = tuple(each for name in names for each in (reach.of(name) if reach is not None else ()))
    cells = frozenset(cell for each in reached for cell in (known if each.cells is None else each.cells))
    return Changes(revision, cells, reached, len(names))
