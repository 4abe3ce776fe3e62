"""Selection of a run: the installed release, all cells of it and the zoo, and the chosen ones."""

from __future__ import annotations

import difflib
import fnmatch
import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from executorch_goldens import extensions, patches
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files.invocation import UPDATE
from executorch_goldens.files.wording import some
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import FILE, Decisions
from executorch_goldens.running.zoo import Listed, load_zoo
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import worker_environment
from executorch_goldens.toolchains.installed import Installed
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import Case

#: Variations that a golden is recorded from, at least: it is what repeats agree on.
FEWEST_TO_RECORD = 2


def require_repeats(updating: bool, count: int, way_out: str) -> None:
    """Raise UsageError where goldens would be written from fewer than `FEWEST_TO_RECORD` variations."""
    if updating and count < FEWEST_TO_RECORD:
        raise UsageError(
            f"{UPDATE} needs at least {FEWEST_TO_RECORD} variations that agree, and the run has {count}. "
            f"{way_out}"
        )


def require_flatc(interpreter: Path) -> None:
    """Raise UsageError unless the exporting environment has its own ``flatc``."""
    path = worker_environment(interpreter, 0)["PATH"].split(os.pathsep)[0]
    if shutil.which("flatc", path=path) is None:
        raise UsageError(
            f"no flatc in {path}: ExecuTorch's wheel installs one there, and lowering fails without it; "
            "make the environment again (nox -r off: nox -s goldens), or reinstall executorch in it"
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
                    f"which the environment of {interpreter} lacks: install it there, or choose cells and patches "
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


def require_cells(decided: Decisions, cases: Iterable[str]) -> None:
    """Raise `UsageError` for a decision about the release that is of no case of the zoo, on whatever target."""
    cells = {f"{target}/{case}" for case in cases for target in targets.available()}
    for name, stated in decided.by_name.items():
        # Of a golden whose case is gone the end of the run says that it is stale.
        is_stale = (decided.root / decided.release / f"{name}{golden.SUFFIX}").is_file()
        if name not in cells and not is_stale and not fnmatch.filter(cells, name):
            near = difflib.get_close_matches(name, sorted(cells), n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise UsageError(
                f'{decided.root / FILE}: what = "{stated[0].what}": {name!r} is of no cell{meant}. '
                "Correct the name, which is TARGET/CASE, or delete it there"
            )


def load_cells(
    models: Sequence[str], release: releases.Release, wanted: Sequence[str] = ()
) -> tuple[Cell, ...]:
    """Import the modules that register cases and return their cells as `cells_of` does."""
    return cells_of(load_zoo(models).values(), release, wanted)


def cells_of(
    cases: Collection[Case] | Collection[Listed], release: releases.Release, wanted: Sequence[str] = ()
) -> tuple[Cell, ...]:
    """Return every cell of some cases on `release`, target by target.

    Parameters
    ----------
    wanted
        The targets that every case is exported for; by default all but those that a case must ask for.
    """
    require_targets(wanted, "[tool.goldens] targets")
    known = {name: target for name, target in targets.available().items() if name != targets.BUILD}
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

    def is_asked(target: str, case: Case | Listed) -> bool:
        asked = target in common or target in case.also
        return not case.is_build and asked and known[target].is_for(case.backends)

    return tuple(
        Cell(target, case.name)
        for target in release.targets
        for case in cases
        if (not case.releases or release.version in case.releases)
        and (is_asked(target, case) if target in known else case.is_build)
    )


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
