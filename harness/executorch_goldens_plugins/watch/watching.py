"""Waits for saved files, and checks the cells that depend on them.

A round is a run as any other, over the cells whose exports in the store do not hold any more.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import os
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.commands.run import PYTEST
from executorch_goldens.errors import HarnessError, UsageError
from executorch_goldens.exporting.recording import FILE
from executorch_goldens.files import untrusted
from executorch_goldens.files.wording import count, from_here
from executorch_goldens.running import options as of_run
from executorch_goldens.running.options import CALLED_AS, Options
from executorch_goldens.running.plan import Plan, plan
from executorch_goldens.running.plugin import CellTests
from executorch_goldens.running.run import Run
from executorch_goldens.sweep.facts import UnknownDependencyError
from executorch_goldens.sweep.keys import Wanted, digest, request
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.store import facts_of
from executorch_goldens.sweep.sweep import worth_warming
from executorch_goldens.toolchains.naming import Name
from executorch_goldens.toolchains.sources import PACKAGE, PARTS
from executorch_goldens.toolchains.toolchain import Toolchain, chosen
from executorch_goldens_plugins.watch.plugin import WATCH
from executorch_goldens_plugins.watch.standing import Standby, StandingSweep, WatchOption

#: Variations of a watch that asks for none: a verdict takes half as long as with four.
VARIATIONS = "quick"
#: Folders that nobody edits, and places of them: Python's library, the system's.
UNSEEN = ("__pycache__", ".git")
NOT_EDITED = ("<python>", "/usr/", "/lib", "/etc/")
#: Seconds between two looks for Ctrl-C while nothing is saved, and milliseconds between two for the end of a watch.
LOOK = 1.0
LOOK_MS = 200


def require(options: Options) -> None:
    """Raise UsageError for what no watch can do."""
    if importlib.util.find_spec("watchfiles") is None:
        raise UsageError(f"--watch needs watchfiles: {sys.executable} -m pip install watchfiles")
    if options.updating:
        raise UsageError("--watch records nothing: goldens review accepts what it shows")
    if not options.caches:
        raise UsageError("--watch asks the cache what a saved file concerns: pass --cache on")
    if options.elsewhere is not None:
        raise UsageError(f"--watch exports on this machine: leave {options.elsewhere.option} out")


class Saved:
    """The files that were saved since they were asked for last, in some folders."""

    def __init__(self) -> None:
        self.queue: queue.Queue[str] = queue.Queue()
        self.folders: frozenset[str] = frozenset()
        self.run: Run | None = None
        self.files: frozenset[str] = frozenset()
        self._stop = threading.Event()

    def within(self, folders: Iterable[str]) -> None:
        """Watch these folders, without those in them, in place of the former."""
        there = frozenset(folder for folder in folders if Path(folder).is_dir())
        if there == self.folders:
            return
        stop, self._stop, self.folders = self._stop, threading.Event(), there
        started: queue.Queue[OSError | None] = queue.Queue()
        threading.Thread(target=self._listen, args=(self._stop, started), daemon=True).start()
        # What is saved from now on is seen.
        if (error := started.get()) is not None:
            raise UsageError(
                f"--watch cannot watch {count(len(there), 'folder')}: {error}; choose fewer cells"
            )
        stop.set()

    def _listen(self, stop: threading.Event, started: queue.Queue[OSError | None]) -> None:
        from watchfiles import watch

        try:
            for changes in watch(
                *sorted(self.folders),
                watch_filter=lambda _, path: not Path(path).is_dir(),
                stop_event=stop,
                rust_timeout=LOOK_MS,
                yield_on_timeout=True,
                recursive=False,
                raise_interrupt=False,
            ):
                if started.empty():
                    started.put(None)
                self._note({path for _, path in changes})
        except OSError as error:
            # The limit of the system, or a folder that has gone meanwhile.
            started.put(error)

    def _note(self, names: set[str]) -> None:
        for name in names:
            self.queue.put(name)
        run = self.run
        if run is not None and isinstance(run.sweep, StandingSweep) and names & self.files:
            run.sweep.abort("a file was saved, which cells depend on: beginning again")

    def wait(self) -> list[str]:
        """Return the files, once there is one."""
        while True:
            try:
                found = [self.queue.get(timeout=LOOK)]
                break
            except queue.Empty:
                continue
        while not self.queue.empty():
            found.append(self.queue.get())
        return sorted(set(found))

    def waiting(self) -> list[str]:
        """Return the files that were saved since, which the next `wait` returns as well."""
        with self.queue.mutex:
            return sorted(set(self.queue.queue))

    def stop(self) -> None:
        self._stop.set()


@dataclasses.dataclass
class Watching:
    """A watch over the cells of a plan.

    Attributes
    ----------
    words
        Arguments of pytest.
    keys
        Exports in the store of each cell when it was judged; None for one that is not there.
    """

    options: Options
    toolchain: Toolchain
    plan: Plan
    words: Sequence[str]
    standby: Standby
    saved: Saved
    keys: dict[Cell, tuple[str | None, ...]] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Watching:
        """Return the watch of a command line, without diagnosis unless asked for; raises as `plan`."""
        # What it prints to type is no watch.
        os.environ[CALLED_AS] = os.environ[CALLED_AS].replace(f" {WATCH}", "")
        words = [word for word in arguments.forwarded if word != WATCH]
        options = of_run.read(arguments, words)
        require(options)
        # Children that list the zoo again have it then.
        importlib.import_module("torch")
        if not any(word.startswith("--explain") for word in words):
            options = dataclasses.replace(options, explain="off")
        if not any(word.startswith(("--tb", "--verbose", "-v")) for word in words):
            # A line a cell, as soon as it is judged.
            words = [*words, "--tb=no"]
        options = dataclasses.replace(options, variations=options.variations or VARIATIONS)
        toolchain = chosen(options.toolchain)
        settled = plan(options, True, toolchain)
        standby = Standby(worth_warming(settled.cells))
        return cls(options, toolchain, settled, [*PYTEST, *words], standby, Saved())

    def run(self) -> int:
        """Check cells until Ctrl-C."""
        try:
            self._check(self.plan.cells)
            waits = True
            while True:
                if waits:
                    print("watching; Ctrl-C ends it", flush=True)
                waits = self._after(self.saved.wait())
        finally:
            self.saved.stop()
            self.standby.close()

    def _after(self, files: Sequence[str]) -> bool:
        """Check what saved files concern; an error in them is one line.

        Return whether anything was said: a log that somebody writes beside the zoo concerns no cell.
        """
        began = max(map(modified, files))
        named = self._of_cells(files)
        # A bisection, or other edits, make environments over the same one: that of this process stays.
        os.utime(sys.prefix)
        try:
            for file in files:
                require_syntax(file)
            if any(file.startswith(f"{root}/") for file in files for root in self._sources()):
                self.toolchain = chosen(self.options.toolchain)
            former, self.plan = self.plan, plan(self.options, True, self.toolchain)
            if self.plan.settings.interpreter != former.settings.interpreter or not self._hold():
                self.standby.end_all()
            concerned = self._concerned()
            if concerned and not named:
                # Saved while a log, which concerns no cell, was looked into.
                named = self._of_cells(self.saved.waiting())
            if not concerned and not named:
                return False
            names, cells = ", ".join(map(from_here, named or files)), count(len(concerned), "cell")
            say(f"saved: {names}: {cells} of {len(self.plan.cells)}")
            if concerned:
                self._check(concerned)
                say(f"{time.time() - began:.1f} s after it was saved")
        except HarnessError as error:
            if not named:
                return False
            say(str(error))
        return True

    def _of_cells(self, files: Iterable[str]) -> list[str]:
        """Return those of some files that a cell may depend on."""
        return [file for file in files if file.endswith(".py") or file in self.saved.files]

    def _check(self, cells: Sequence[Cell]) -> None:
        """Run one round; raise KeyboardInterrupt where that ended it."""
        self._listen()
        additions = (*self.options.additions, WatchOption(WATCH, self.standby))
        options = dataclasses.replace(self.options, additions=additions)
        run = Run(dataclasses.replace(self.plan, options=options, selected=frozenset(cells)))
        self.saved.run = run
        if run.reuse is not None:
            run.reuse.watched = self.saved.folders
        try:
            code = pytest.main([*self.words], plugins=[CellTests(run)])
        finally:
            self.saved.run = None
        if code == pytest.ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        now = self._keys()
        self.keys.update((cell, now[cell]) for cell in run.verdicts)
        self._listen()

    def _listen(self) -> None:
        """Watch what cells depend on, as far as the store knows."""
        self.saved.files, folders = self._dependencies()
        self.saved.within(folders)

    def _reuse(self) -> Reuse:
        found = self.plan.reuse()
        assert found is not None
        return found

    def _hold(self) -> bool:
        """Return whether all that templates have depended on is still so."""
        view = self._reuse().view(self.plan.settings)
        try:
            return not any(view.differing(view.facts(record)[0]) for record in self.standby.records())
        except UnknownDependencyError:
            return False

    def _wanted(self, cell: Cell) -> list[Wanted]:
        return [(cell, variation, ()) for variation in self.plan.variations]

    def _keys(self) -> Mapping[Cell, tuple[str | None, ...]]:
        """Return the exports in the store of each cell, as files are now."""
        lookup = self._reuse().lookup(self.plan.settings)

        def keys(cell: Cell) -> Iterator[str | None]:
            return (lookup.answer(digest(request(self.plan.settings, each))) for each in self._wanted(cell))

        return {cell: tuple(keys(cell)) for cell in self.plan.cells}

    def _concerned(self) -> list[Cell]:
        """Return the cells whose exports are not those that were judged."""
        return [cell for cell, keys in self._keys().items() if None in keys or keys != self.keys.get(cell)]

    def _dependencies(self) -> tuple[frozenset[str], set[str]]:
        """Return the files that cells depend on, and the folders to watch: of these, of the zoo, of a checkout."""
        wanted = (each for cell in self.plan.cells for each in self._wanted(cell))
        reuse, settings = self._reuse(), self.plan.settings
        # The last of such exports.
        keys = {key for each in wanted for key in reuse.store.answers(digest(request(settings, each)))[:1]}
        facts = {fact for name in facts_of(*keys) for fact in reuse.store.facts(name) or ()}
        places = {fact.place for fact in facts if fact.kind == FILE}
        path = reuse.view(settings).path
        files = {path(place) for place in places if not place.startswith(NOT_EDITED)}
        files_of_zoo = [Path(file) for file in self.plan.listed.files]
        roots = {file.parent for file in files_of_zoo if file.name == "__init__.py"}
        folders = {str(Path(file).parent) for file in files} | {str(file.parent) for file in files_of_zoo}
        return frozenset(files), folders | set(below({*roots, *self._sources()}))

    def _sources(self) -> list[Path]:
        """Return the folders of a checkout whose files are laid over the environment."""
        sources = Name.parse(self.options.toolchain).sources if self.options.toolchain else None
        if sources is None or sources.revision is not None:
            return []
        top = sources.checkout
        return [
            top / place / part for place in ("", PACKAGE) for part in PARTS if (top / place / part).is_dir()
        ]


def below(roots: Iterable[Path]) -> Iterator[str]:
    """Yield folders, and those in them that somebody may edit."""
    for root in roots:
        for folder, inner, _ in os.walk(root):
            inner[:] = [name for name in inner if name not in UNSEEN]
            yield folder


def require_syntax(file: str) -> None:
    """Raise UsageError where a saved file is no Python that can be compiled."""
    if not file.endswith(".py"):
        return
    try:
        compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    except OSError:
        return
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{from_here(file)}, line {line}" if line is not None else from_here(file)
        raise UsageError(f"{where}: {type(error).__name__}: {getattr(error, 'msg', error)}") from error


def modified(file: str) -> float:
    """Return when a file was saved, in seconds of `time.time`; now for one that is gone."""
    try:
        return Path(file).stat().st_mtime
    except OSError:
        return time.time()


def say(line: str) -> None:
    print(untrusted.escape_ci(line), flush=True)
