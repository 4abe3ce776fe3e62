"""Opens a cell in Google's Model Explorer: its golden and a run's result side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.errors import CommandError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.outline import OutlineError
from executorch_goldens.results.rows import OF_PLUGINS
from executorch_goldens.settings import config
from executorch_goldens_plugins.explorer import origins
from executorch_goldens_plugins.explorer.cell import OpenedCell

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
    found = OpenedCell.find(cell, release, sweeps or repository.sweeps, root)
    server.require_free(port)
    models, panes = _models(found)
    with tempfile.TemporaryDirectory(prefix="goldens-explore-") as folder:
        server.serve(server.config(models, panes, Path(folder)), port, browser)


def _models(found: OpenedCell) -> tuple[list[Model], int]:
    """Return the graphs of a cell, and how many are side by side; raise CommandError."""
    from executorch_goldens_plugins.explorer import adapters, graphs
    from executorch_goldens_plugins.explorer.overlays import on_adapted, overlays
    from executorch_goldens_plugins.explorer.server import Model

    one, other = found.labels
    if found.member is not None:
        artifacts = {one: found.member.before, other: found.member.after}
    else:
        one = other = f"{found.sides.old} and run"
        artifacts = {other: golden.read(golden.file_of(found.goldens / found.row.release, found.row.cell))}
    try:
        drawn = graphs.drawn(artifacts)
    except OutlineError as error:
        raise CommandError(f"{found.name} cannot be read: {error}: run its cell again") from error
    if not drawn:
        raise CommandError(
            f"{found.name} has no graph to show, it is {found.row.verdict}: {found.row.reason or 'known'}"
        )
    made_by = _made_by(drawn, found)
    models = []
    for name, each in drawn.items():
        variation = None if name == found.sides.old else found.variation(name)
        known = overlays(each, found, variation, made_by[name])
        models.append(Model(name, [each.graph], {of: {each.graph.id: data} for of, data in known.items()}))
        record = artifacts[name]
        if name == other and record is not None:
            for adapted in adapters.adapted(found.folder / found.variation(name), record):
                if adapted.graphs:
                    models.append(Model(adapted.name, adapted.graphs, on_adapted(known, each, adapted)))
                else:
                    print(f"{adapted.name}: not shown: {adapted.why}")
    return models, len(drawn)


def _made_by(drawn: Mapping[str, Drawn], found: OpenedCell) -> dict[str, Mapping[str, Sequence[str]]]:
    """Return the origin of the operators of each artifact, by node; print a note if no run has kept it."""
    from executorch_goldens_plugins.explorer.overlays import ORIGIN, made_by, of_same

    kept = {
        name: origins.read(found.folder / OF_PLUGINS, found.variation(name))
        for name in drawn
        if name != found.sides.old
    }
    if None in kept.values():
        print(f"{ORIGIN}: not recorded: goldens run --cell {found.row.cell} --origins records it")
    known = {name: made_by(drawn[name], each) for name, each in kept.items() if each is not None}
    return {
        name: known.get(name) or of_same(each, known.get(found.sides.new, {})) for name, each in drawn.items()
    }
