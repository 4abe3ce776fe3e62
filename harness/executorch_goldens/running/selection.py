"""What a run works on: the release that is installed, the cells that it and the zoo make, those that were chosen."""

from __future__ import annotations

import difflib
import fnmatch
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from executorch_goldens import extensions, patches, releases, targets
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError, some
from executorch_goldens.judging.updating import UPDATE
from executorch_goldens.settings import config
from executorch_goldens.settings.exports import Settings, default_interpreter, worker_environment
from executorch_goldens.settings.zoo import load_zoo

#: Seconds of processor time that one export may take. The slowest of the zoo takes 15 s on a busy machine of two cores.
EXPORT_TIMEOUT = 180.0
#: Seconds that an interpreter may take to say what is installed: a tenth of one on an idle machine.
PROBE_LIMIT = 600.0

#: Variations that a golden is recorded from, at least: it is what repeats agree on.
FEWEST_TO_RECORD = 2


@dataclass(frozen=True)
class Installed:
    """What stands in the exporting environment.

    Attributes
    ----------
    versions
        Public versions by distribution name.
    site_packages
        Where they are.
    extensions
        Names of the entry points of each group of `executorch_goldens.extensions`.
    """

    versions: dict[str, str]
    site_packages: Path
    extensions: dict[str, list[str]]

    @classmethod
    def probe(cls, interpreter: Path, named: str = "--interpreter") -> Installed:
        """Ask `interpreter` for its versions, without importing torch; raise UsageError.

        Parameters
        ----------
        named
            How the command line names it.
        """
        code = (
            "import json, sysconfig; from importlib import metadata as m\n"
            "def v(n):\n"
            "    try: return m.version(n)\n"
            "    except m.PackageNotFoundError: return ''\n"
            f"points = {{g: [p.name for p in m.entry_points(group=g)] for g in {extensions.GROUPS!r}}}\n"
            f"print(json.dumps([{{n: v(n) for n in {STACK!r}}}, sysconfig.get_path('purelib'), points]))"
        )
        try:
            printed = subprocess.run(
                [interpreter, "-c", code], capture_output=True, text=True, check=True, timeout=PROBE_LIMIT
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"{named} {interpreter} cannot be run: {error}") from error
        found, site_packages, points = json.loads(printed)
        versions = {name: version.partition("+")[0] for name, version in found.items() if version}
        return cls(versions, Path(site_packages), points)


def interpreter_of(release: str) -> Path:
    """Return this Python, or where it has a different release that of the environment that nox made, if it did."""
    made = config.load().root / ".nox" / f"goldens-{release.replace('.', '-')}" / "bin" / "python"
    here = default_interpreter()
    if made.exists() and Installed.probe(here).versions.get("executorch") != release:
        return made
    return here


@dataclass(frozen=True)
class Environment:
    """A release with the interpreter that has it, and where its packages are."""

    release: releases.Release
    python: Path
    site_packages: Path

    @classmethod
    def of(
        cls, wanted: str | None = None, python: Path | None = None, named: str = "--interpreter"
    ) -> Environment:
        """Return that of an interpreter, by default this one; raises as `Installed.probe` and `find_release`."""
        python = python or default_interpreter()
        installed = Installed.probe(python, named)
        return cls(find_release(installed, wanted), python, installed.site_packages)

    def settings(
        self, models: Sequence[str], jobs: int, limit: float = EXPORT_TIMEOUT, **others: Any
    ) -> Settings:
        """Return how cells are exported in it: with the release's own patches, unless `others` name some."""
        others.setdefault("patches", patches.select("auto", self.release.patches))
        return Settings(self.python, tuple(models), jobs=jobs, limit=limit, **others)


def environments(words: Sequence[str]) -> dict[str, Environment]:
    """Return the environments that words of the form RELEASE=PYTHON name, oldest first; raise UsageError."""
    found = {}
    for word in words:
        version, equals, python = word.partition("=")
        if not version or not equals or not python:
            raise UsageError(f"{word!r} is not RELEASE=PYTHON, e.g. 1.4.1=.nox/goldens-1-4-1/bin/python")
        interpreter = Path(python)
        if interpreter.is_dir():
            raise UsageError(f"{word}: {python} is a folder; name the Python in it")
        found[version] = Environment.of(version, interpreter, f"{version}:")
    return dict(sorted(found.items(), key=lambda item: Version(item[0])))


STACK = ("executorch", "torch", "torchao", "tosa-tools")


def find_release(
    installed: Installed, wanted: str | None, matrix_file: Path = releases.MATRIX
) -> releases.Release:
    """Return the matrix's release that is installed; raise UsageError where there is none, or a different one."""
    matrix = releases.load(matrix_file)
    if wanted is not None:
        wanted = matrix.release(wanted).version
    version = installed.versions.get("executorch")
    if version is None:
        example = wanted or matrix.default
        raise UsageError(
            f'no ExecuTorch is installed in the exporting environment; run: nox -s "goldens({example})"'
        )
    if wanted is not None and version != wanted:
        raise UsageError(
            f"release {wanted} is not installed in the exporting environment, {version} is; "
            f'run: nox -s "goldens({wanted})"'
        )
    release = matrix.release(version)
    if matrix_file == releases.MATRIX:
        # The harness's own matrix states those of its project's zoo; a zoo of someone else's has its own.
        known = releases.known_defects(config.load().known_defects)
        release = replace(release, known=known.get(version, {}))
    wrong = {
        n: installed.versions.get(n) for n, v in release.stack().items() if installed.versions.get(n) != v
    }
    if wrong:
        found = ", ".join(f"{name} {version or 'missing'}" for name, version in wrong.items())
        raise UsageError(
            f"the environment is not the one that releases.toml pairs with {release.version}: {found}; "
            f'run: nox -s "goldens({release.version})", or install {" ".join(release.requirements())}'
        )
    return release


def require_repeats(updating: bool, count: int, way_out: str) -> None:
    """Raise UsageError where goldens would be written from fewer than `FEWEST_TO_RECORD` variations."""
    if updating and count < FEWEST_TO_RECORD:
        raise UsageError(
            f"{UPDATE} needs at least {FEWEST_TO_RECORD} variations, and the run has {count}: a golden is what "
            f"repeats agree on. {way_out}"
        )


def require_flatc(interpreter: Path) -> None:
    """Raise UsageError unless the exporting environment has its own ``flatc``."""
    path = worker_environment(interpreter, 0)["PATH"].split(os.pathsep)[0]
    if shutil.which("flatc", path=path) is None:
        raise UsageError(
            f"no flatc in {path}: ExecuTorch's wheel installs one there, and lowering fails without it; "
            "make the environment anew (nox -r off: nox -s goldens), or reinstall executorch in it"
        )


def require_extensions(
    installed: Installed, interpreter: Path, cells: Iterable[Cell], names: Iterable[str]
) -> None:
    """Raise UsageError unless the exporting environment has each target and patch that distributions add here."""
    asked = {
        extensions.TARGETS: {cell.target for cell in cells} - set(targets.TARGETS),
        extensions.PATCHES: set(names) - set(patches.PATCHES),
    }
    for group, wanted in asked.items():
        there = installed.extensions[group]
        for point in extensions.points(group):
            if point.name in wanted and point.name not in there:
                raise UsageError(
                    f"{point.name!r} comes from {extensions.distribution(point)} (an entry point of group {group}), "
                    f"which --interpreter {interpreter} does not have: install it there, or choose cells and patches "
                    "without it"
                )


def require_supported(release: releases.Release, supported: Sequence[str]) -> None:
    """Raise UsageError if ``[tool.goldens]`` names the releases that its repository supports, and not this one."""
    if supported and release.version not in supported:
        raise UsageError(
            f"[tool.goldens] releases: {release.version} is installed, and the repository supports "
            f"{', '.join(supported)}; install one of these, or add {release.version}"
        )


def require_targets(names: Iterable[str], where: str) -> None:
    """Raise UsageError for a target that is named at `where`, ``[tool.goldens] targets``, and that there is not."""
    known = targets.available()
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"{where}: {targets.unknown(unknown[0])}")


def require_cells(budgets: Iterable[str], known: Iterable[Cell]) -> None:
    """Raise `UsageError` for the pattern of a budget that is of no case, on whatever target."""
    cells = [f"{target}/{cell.case}" for cell in known for target in targets.TARGETS]
    for pattern in budgets:
        if not fnmatch.filter(cells, pattern):
            raise UsageError(
                f"[tool.goldens] budgets: {pattern!r} is the pattern of no cell: it is TARGET/CASE, with wildcards"
            )


def load_cells(
    models: Sequence[str], release: releases.Release, wanted: Sequence[str] = ()
) -> tuple[Cell, ...]:
    """Import the modules that register cases and return every cell of `release`, target by target.

    Parameters
    ----------
    wanted
        The targets that every case is exported for; by default all but those that a case must ask for.
    """
    cases = load_zoo(models).values()
    require_targets(wanted, "[tool.goldens] targets")
    known = targets.available()
    opt_in = [name for name, target in known.items() if target.opt_in]
    common = wanted or [name for name in known if name not in opt_in]
    for case in cases:
        if unknown := [target for target in case.also if target not in opt_in]:
            raise UsageError(
                f"case {case.name!r} also wants {', '.join(unknown)}; targets to ask for are {', '.join(opt_in)}"
            )
        if void := [target for target in case.also if not known[target].is_for(case.backends)]:
            raise UsageError(
                f"case {case.name!r} also wants {', '.join(void)}, and its backends, {', '.join(case.backends)}, "
                "leave that out: name it there as well"
            )
    return tuple(
        Cell(target, case.name)
        for target in release.targets
        for case in cases
        if (not case.releases or release.version in case.releases)
        and known[target].is_for(case.backends)
        and (target in common or target in case.also)
    )


def of_families(known: Sequence[Cell], names: Sequence[str], models: Sequence[str]) -> Sequence[Cell]:
    """Return the cells whose cases are of some of the families named; all for none; raise UsageError."""
    if not names:
        return known
    family = {name: case.family for name, case in load_zoo(models).items()}
    families = sorted({family[cell.case] for cell in known})
    if unknown := [name for name in names if name not in families]:
        raise UsageError(f"--family {unknown[0]!r} is unknown; the families are {some(families)}")
    return [cell for cell in known if family[cell.case] in names]


def select(known: Sequence[Cell], patterns: Sequence[str] | None) -> frozenset[Cell]:
    """Return the cells that match some pattern ``TARGET/CASE``; raise UsageError for one that matches none."""
    if not patterns:
        return frozenset(known)
    found: set[Cell] = set()
    for pattern in patterns:
        matching = {cell for cell in known if fnmatch.fnmatchcase(str(cell), pattern)}
        if not matching:
            raise UsageError(_unknown_cell(pattern, known))
        found |= matching
    return frozenset(found)


def _unknown_cell(pattern: str, known: Sequence[Cell]) -> str:
    if not known:
        return f"--cell {pattern!r}: this zoo has no cell on this release"
    target, slash, case = pattern.partition("/")
    targets = list(dict.fromkeys(cell.target for cell in known))
    if not slash:
        return f"--cell {pattern!r} is not TARGET/CASE; e.g. {known[0]}"
    if not any(fnmatch.fnmatchcase(name, target) for name in targets):
        return f"--cell {pattern!r}: unknown target {target!r}; this release has {', '.join(targets)}"
    cases = list(dict.fromkeys(cell.case for cell in known))
    near = difflib.get_close_matches(case, cases, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"cases: {some(cases)}"
    return f"--cell {pattern!r}: unknown case {case!r}; {hint}"
