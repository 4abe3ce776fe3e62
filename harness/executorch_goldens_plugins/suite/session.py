"""Single modules that the tests of a suite export, judged like cells: the fixture `golden_export`.

The module and its inputs are pickled, and exporting children load them: its class must be in a module that a fresh
interpreter can import with the path that the test has. Goldens are beside those of cells, under
``<root>/tests/<release>/<target>/<name>/``.
"""

from __future__ import annotations

import argparse
import contextlib
import pickle
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.errors import HarnessError, UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.files.invocation import UPDATE, require_a_person
from executorch_goldens.goldens import roots
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.judging.judge import Judge
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.running.messages import message
from executorch_goldens.running.options import Options, read
from executorch_goldens.running.plan import settings_of, variations_of
from executorch_goldens.running.selection import require_targets
from executorch_goldens.settings.exports import Machine, Settings
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.folder import Folder
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import NAME_PATTERN
from executorch_goldens.zoo.variations import Variation

#: Directory under the root of the goldens that those of tests are in: apart from cells, which a run prunes.
FOLDER = "tests"
#: Seconds to wait for the goldens' lock: other tests, in workers of pytest-xdist for instance, hold it while they write
#: one golden; a run over cells holds it to its end.
PATIENCE = 5.0


@dataclass
class Suite:
    """State shared by the tests of a session: a release, warm templates, and the names in use.

    Attributes
    ----------
    root
        Directory of this release's goldens.
    folder
        Folder for the pickled modules, by name.
    owners
        Name of a golden to the test that it is of.
    """

    options: Options
    release: Release
    settings: Settings
    variations: tuple[Variation, ...]
    folder: Folder
    sweep: Sweep | None = None
    owners: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_options(cls, given: argparse.Namespace) -> Suite:
        """Return the suite of a session; raise HarnessError where it cannot export as asked."""
        # Options of other plugins of pytest may have names that a run has.
        updating = {name: getattr(given, name) for name in ("update_snapshots", "update_new_snapshots_only")}
        options = read(argparse.Namespace(**updating), (), zoo=False)
        require_a_person(options.updating)
        toolchain = here()
        require_targets(options.repository.targets, "[tool.goldens] targets")
        varied = variations_of(options, "quick", 'Say variations = "quick" in [tool.goldens]')
        # A child can import everything that the test imports.
        machine = Machine(paths=tuple(Path(path or ".").absolute() for path in sys.path))
        settings = settings_of(options, toolchain, machine=machine)
        folder = Folder.make()
        return cls(options, toolchain.release, replace(settings, pickled=folder.path), varied, folder)

    @property
    def root(self) -> Path:
        return self.options.goldens.resolve() / FOLDER / self.release.version

    def targets(self, named: Sequence[str] | None) -> tuple[str, ...]:
        """Return the targets to export for: those named, or the repository's, or all that no case must ask for."""
        wanted = tuple(named or self.options.repository.targets)
        require_targets(wanted, "golden_export targets")
        if missing := [name for name in named or () if name not in self.release.targets]:
            raise UsageError(
                f"golden_export targets: {missing[0]} is not supported on ExecuTorch {self.release.version}: "
                f"{self.release.unsupported[missing[0]]}"
            )
        known = targets.available()
        wanted = wanted or tuple(name for name in known if not known[name].opt_in)
        return tuple(name for name in wanted if name in self.release.targets)

    def take(self, name: str, test: str) -> None:
        """Let `name` be that of a golden of `test`; raise `UsageError` for an unusable or a taken one."""
        if not NAME_PATTERN.fullmatch(name):
            raise UsageError(
                f"golden_export: {name!r} is no name of a golden: pass name=..., 'lower-case-words' of at most 64 "
                "characters"
            )
        if name in self.owners:
            raise UsageError(
                f"golden_export: {name!r} is the golden of {self.owners[name]} already: pass name=... in {test}"
            )
        self.owners[name] = test

    def outcomes(self, cells: Sequence[Cell]) -> dict[Cell, tuple[Outcome, ...]]:
        """Export `cells` in templates that are warm from the second time on; raise `SweepError`."""
        if self.sweep is None:
            warmed = {cell.target for cell in cells}
            self.sweep = Sweep((), self.variations, self.settings, lasting=True, targets=sorted(warmed))
            self.sweep.start()
        try:
            for cell in cells:
                self.sweep.add(cell, self.variations)
            return {cell: self.sweep.outcomes(cell, self.variations) for cell in cells}
        except SweepError:
            # The next test gets templates of its own.
            self.sweep.stop()
            self.sweep = None
            raise

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the goldens' lock, where they may be written; raise GoldenError where a run over cells holds it."""
        if not self.options.updating:
            yield
            return
        lock = roots.lock(self.options.goldens.resolve(), self.release.version)
        roots.open_for_writing(self.root, lock, PATIENCE)
        try:
            yield
        finally:
            lock.release()

    @property
    def judge(self) -> Judge:
        """Judges the cells of tests as those of a zoo are; raise `DecisionError`."""
        return Judge(
            self.root,
            Decisions.of_root(self.root.parent, self.release.version, of_zoo=False),
            OwnFiles.in_repository(self.options.repository.root),
            self.options.update,
            allow=self.options.repository.allow,
            alone=self.writing,
        )

    def stop(self) -> None:
        if self.sweep is not None:
            self.sweep.stop()
        self.folder.delete()


@dataclass(frozen=True)
class SuiteExports:
    """The fixture's value: exports a module for one test."""

    suite: Suite
    test: str
    snapshot: SnapshotAssertion

    def __call__(
        self,
        module: Any,
        inputs: Sequence[Any],
        targets: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        """Export `module` on `inputs`; fail the test unless exports agree, are right and equal their goldens.

        Parameters
        ----------
        module
            A ``torch.nn.Module``.
        inputs
            Its positional inputs, tensors.
        targets
            Names of targets, by default those of ``[tool.goldens]``.
        name
            Name of the golden; by default the test's, with dashes.
        """
        __tracebackhide__ = True
        try:
            judged = self._judged(module, tuple(inputs), targets, name or named_after(self.test))
            failed = [self._message(each) for each in judged if not each.accepted]
        except HarnessError as error:
            failed = [str(error)]
        if failed:
            pytest.fail("\n".join(failed), pytrace=False)

    def _judged(
        self, module: Any, inputs: tuple[Any, ...], targets: Sequence[str] | None, name: str
    ) -> list[Verdict]:
        wanted = self.suite.targets(targets)
        self.suite.take(name, self.test)
        pickle_to(self.suite.folder.path / name, module, inputs)
        outcomes = self.suite.outcomes([Cell(target, name) for target in wanted])
        judge, release = self.suite.judge, self.suite.release
        return [
            judge.judge(cell, of_cell, release, self.snapshot).verdict for cell, of_cell in outcomes.items()
        ]

    def _message(self, judged: Verdict) -> str:
        again = shlex.join(["pytest", self.test])
        typed = {"accept": f"{again} {UPDATE}", "again": again}
        suite = self.suite
        lines = message(judged, suite.release, suite.options, suite.settings.patches, typed, zoo=False)
        return untrusted.escape_ci("\n".join(lines))


def named_after(test: str) -> str:
    """Return the name of the golden of a test that gives none.

    >>> named_after("tests/test_models.py::TestAudio::test_keyword_spotter")
    'keyword-spotter'
    """
    function = test.rpartition("::")[2]
    return function.removeprefix("test_").replace("_", "-")


def pickle_to(file: Path, module: Any, inputs: tuple[Any, ...]) -> None:
    """Write an object for the exporting child; raise `UsageError` if that could not load it."""
    try:
        file.write_bytes(pickle.dumps((module, inputs)))
    except Exception as error:
        what = re.sub(r" at 0x[0-9a-f]+", "", str(error))
        raise UsageError(
            f"golden_export: the module or its inputs cannot be pickled, which is how fresh interpreters get them: "
            f"{what}. Define the class at the top of a module"
        ) from error
