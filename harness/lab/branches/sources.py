"""The branches that a release's sources have, and whose they are; needs coverage.py."""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens.errors import UsageError
from lab.branches import BACKENDS, FOLDERS
from lab.branches.imports import imported_from
from lab.branches.records import Jumps


def require_coverage() -> None:
    """Raise UsageError where coverage.py is not installed."""
    if importlib.util.find_spec("coverage") is None:
        raise UsageError(
            "coverage.py is not installed: the sessions of nox for branches, fuzz and mutants install it; by hand, "
            'pip install "executorch-goldens[branches]"'
        )


@dataclass(frozen=True, order=True)
class Branch:
    """A jump that a line of a function may make, where there are several.

    Attributes
    ----------
    file
        Relative to the package ``executorch``.
    start, end
        Lines, from 1; `end` is below 0 where the function is left.
    owner
        The class that the function is of: a pass, a visitor; of a function of none, the module.
    function
        With its class.
    raises
        Whether the line at `end` raises: an export that goes there fails.
    """

    file: str
    start: int
    end: int
    owner: str
    function: str
    raises: bool


class Sources:
    """The sources of `lab.branches.FOLDERS` in one environment.

    Parameters
    ----------
    package
        The folder of the package ``executorch``.
    """

    def __init__(self, package: Path) -> None:
        self.package = package

    @functools.cached_property
    def files(self) -> dict[str, _File]:
        """Every file that has branches and that one of the backends imports, by its name relative to the package."""
        imported = self._imported()
        found = {
            name.as_posix(): _File(self.package, name)
            for name in self._names(FOLDERS)
            if self.package / name in imported
        }
        return {name: file for name, file in found.items() if file.branches}

    def _names(self, folders: Iterable[str]) -> Iterator[Path]:
        """Yield the files of some folders, tests apart, relative to the package."""
        for folder in folders:
            for path in sorted((self.package / folder).rglob("*.py")):
                name = path.relative_to(self.package)
                if "test" not in name.parts:
                    yield name

    def _imported(self) -> set[Path]:
        """Return the files of the backends, and those that they import."""
        names = (".".join(("executorch", *name.with_suffix("").parts)) for name in self._names(BACKENDS))
        return imported_from(self.package.parent, names)

    def branches(self) -> Iterator[Branch]:
        for file in self.files.values():
            yield from file.branches.values()

    def taken(self, jumps: Jumps) -> set[Branch]:
        """Return the recorded branches."""
        return {
            branch
            for name, of_file in jumps.items()
            if name in self.files
            for branch in self.files[name].taken(of_file)
        }


class _File:
    def __init__(self, package: Path, path: Path) -> None:
        from coverage import Coverage
        from coverage.python import PythonFileReporter

        name = path.as_posix()
        self.reporter = PythonFileReporter(str(package / path), Coverage(config_file=False, data_file=None))
        owners = _of_lines(self.reporter.code_regions(), "class")
        functions = _of_lines(self.reporter.code_regions(), "function")
        raising = {
            node.lineno for node in ast.walk(ast.parse(self.reporter.source())) if isinstance(node, ast.Raise)
        }
        several = {line for line, exits in self.reporter.exit_counts().items() if exits > 1}
        several -= self.reporter.no_branch_lines()
        #: By its two lines; what runs when a module is imported is none.
        self.branches = {
            (start, end): Branch(
                name, start, end, owners.get(start, path.stem), functions[start], end in raising
            )
            for start, end in sorted(self.reporter.arcs())
            if start in several and start in functions and end not in self.reporter.excluded_lines()
        }

    def taken(self, jumps: Iterable[tuple[int, int]]) -> Iterator[Branch]:
        # A statement may be on several lines.
        for jump in self.reporter.translate_arcs(jumps):
            if jump in self.branches:
                yield self.branches[jump]


def _of_lines(regions: Iterable[Any], kind: str) -> dict[int, str]:
    """Return the innermost class or function that each line is in."""
    of_kind = [region for region in regions if region.kind == kind]
    found: dict[int, str] = {}
    for region in sorted(of_kind, key=lambda region: -len(region.lines)):
        found.update(dict.fromkeys(region.lines, region.name))
    return found
