"""The texts of a cell: of its golden, or of a run's later artifact."""

from __future__ import annotations

import contextlib
from importlib import metadata
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import CommandError
from executorch_goldens.goldens import golden
from executorch_goldens.results import proposals
from executorch_goldens.results.rows import VARIATION_FOLDERS
from executorch_goldens.settings import releases


def latest(cell: Cell, release: str | None, goldens: Path, sweeps: Path) -> tuple[str, dict[str, str]]:
    """Return where the texts of a cell are from, in words, and the texts, by section.

    Parameters
    ----------
    release
        An ExecuTorch version; None for that of this environment, or else the default one.
    goldens, sweeps
        Roots of the goldens and of results.

    Raises
    ------
    CommandError
        Where there is neither a golden nor a result.
    executorch_goldens.settings.releases.UnknownReleaseError
        For a release that there is not.
    executorch_goldens.goldens.golden.GoldenError
        For a golden that cannot be read.
    """
    with contextlib.suppress(metadata.PackageNotFoundError):
        release = release or metadata.version("executorch")
    known = releases.load()
    version = known.release(release or known.default).version
    reviewed = golden.file_of(goldens / version, cell)
    place = sweeps / version / cell.target / cell.case
    made = sorted(place.glob(f"{VARIATION_FOLDERS}/{proposals.MADE}"))
    if made and _written(made[0]) > _written(reviewed) and (texts := golden.read(made[0])) is not None:
        return f"the result of a run, newer than the golden ({made[0]})", texts
    found = golden.read(reviewed)
    if found is None:
        raise CommandError(
            f"{cell} has no golden on ExecuTorch {version} ({goldens}) and no result ({sweeps}): goldens run "
            f"--cell {cell} checks it, --release names a different release"
        )
    return f"the golden ({reviewed})", found


def _written(file: Path) -> float:
    """Return when a golden, or a run's artifact, was written; 0 if missing."""
    return file.stat().st_mtime if file.exists() else 0.0
