"""Opens a cell in Google's Model Explorer: its golden and a run's result side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.errors import CommandError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.outline import OutlineError
from executorch_goldens.report.gathering import CellResult, gather
from executorch_goldens.results.evidence import Evidence
from executorch_goldens.results.proposals import VARIATION_FOLDERS
from executorch_goldens.results.rows import OF_PLUGINS
from executorch_goldens.settings import config
from executorch_goldens_plugins.explorer import origins

if TYPE_CHECKING:
    from executorch_goldens_plugins.explorer.graphs import Drawn
    from executorch_goldens_plugins.explorer.server import Model


def serve(
    cell: str, release: str | None, sweeps: Path | None, goldens: Path | None, port: int, browser: bool
) -> None:
    """Serve a cell until a person interrupts it; raise CommandError, and errors of the files.

    Parameters
    ----------
    cell
        ``TARGET/CASE``.
    release
        Release of the results; None for the only one there is.
    sweeps, goldens
        None for those of the repository.
    """
    try:
        from executorch_goldens_plugins.explorer import server
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed, which shows a cell: nox -s explore has it, or install "
            "'executorch-goldens[explore]'"
        ) from error
    repository = config.load()
    root = (goldens or repository.goldens).resolve()
    found = _found(cell, release, sweeps or repository.sweeps, root, repository)
    server.require_free(port)
    models, panes = _models(found, root)
    with tempfile.TemporaryDirectory(prefix="goldens-explore-") as folder:
        server.serve(server.config(models, panes, Path(folder)), port, browser)


def _found(
    name: str, release: str | None, sweeps: Path, goldens: Path, repository: config.Config
) -> CellResult:
    """Return the findings of runs for a cell; raise CommandError, and errors of the files."""
    gathered = gather([sweeps], goldens, repository)
    of_cell = {each.release: each for each in gathered.found if str(each.cell) == name}
    if release in of_cell:
        return of_cell[release]
    if not of_cell or release is not None:
        which = f" on {release}" if release else ""
        raise CommandError(
            f"{sweeps} has no results of {name}{which}: run it (goldens run --cell {name}), or name results "
            "with --sweeps"
        )
    if len(of_cell) > 1:
        raise CommandError(f"{name} has results on {', '.join(of_cell)}: name one with --release")
    return next(iter(of_cell.values()))


def _models(found: CellResult, goldens: Path) -> tuple[list[Model], int]:
    """Return the graphs of a cell, and how many are side by side; raise CommandError."""
    from executorch_goldens_plugins.explorer import adapters, graphs
    from executorch_goldens_plugins.explorer.overlays import on_adapted, overlays
    from executorch_goldens_plugins.explorer.server import Model

    evidence = found.evidence()
    one, other = found.labels(evidence)
    if found.member is not None:
        artifacts = {one: found.member.before, other: found.member.after}
    else:
        one = other = f"{found.sides[0]} and run"
        artifacts = {other: golden.read(golden.file_of(goldens / found.release, found.cell))}
    try:
        drawn = graphs.drawn(artifacts)
    except OutlineError as error:
        raise CommandError(f"{found.name} cannot be read: {error}: run its cell again") from error
    if not drawn:
        raise CommandError(
            f"{found.name} has no graph to show, it is {found.row.verdict}: {found.row.reason or 'known'}"
        )
    made_by = _made_by(drawn, found, evidence)
    models = []
    for name, each in drawn.items():
        known = overlays(
            each,
            found,
            evidence,
            None if name == found.sides[0] else _variation(name, found, evidence),
            made_by[name],
        )
        models.append(Model(name, [each.graph], {of: {each.graph.id: data} for of, data in known.items()}))
        record = artifacts[name]
        if name == other and record is not None:
            for adapted in adapters.adapted(found.folder / _variation(name, found, evidence), record):
                if adapted.graphs:
                    models.append(Model(adapted.name, adapted.graphs, on_adapted(known, each, adapted)))
                else:
                    print(f"{adapted.name}: not shown: {adapted.why}")
    return models, len(drawn)


def _made_by(
    drawn: Mapping[str, Drawn], found: CellResult, evidence: Evidence
) -> dict[str, Mapping[str, Sequence[str]]]:
    """Return the origin of the operators of each artifact, by node; print a note if no run has kept it."""
    from executorch_goldens_plugins.explorer.overlays import ORIGIN, made_by, of_same

    kept = {
        name: origins.read(found.folder / OF_PLUGINS, _variation(name, found, evidence))
        for name in drawn
        if name != found.sides[0]
    }
    if None in kept.values():
        print(f"{ORIGIN}: not recorded: goldens run --cell {found.cell} --origins records it")
    known = {name: made_by(drawn[name], each) for name, each in kept.items() if each is not None}
    return {
        name: known.get(name) or of_same(each, known.get(found.sides[1], {})) for name, each in drawn.items()
    }


def _variation(label: str, found: CellResult, evidence: Evidence) -> str:
    """Return under which variation an artifact was made; empty where a run kept nothing of it."""
    kept = [folder.name for folder in sorted(found.folder.glob(VARIATION_FOLDERS))]
    agreeing = [names[0] for names in evidence.agreeing]
    return next((name for name in [*([label] if label in kept else ()), *agreeing, *kept]), "")
