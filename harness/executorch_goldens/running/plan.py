"""Plan of a run: settled before anything is exported or written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens import patches, plugins
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files.invocation import require_a_person
from executorch_goldens.goldens import golden, roots
from executorch_goldens.goldens.decisions import Decisions
from executorch_goldens.running import core
from executorch_goldens.running.options import CORE, FULL, VARIATIONS, Options
from executorch_goldens.running.selection import (
    cells_of,
    require_cells,
    require_extensions,
    require_flatc,
    require_repeats,
    require_supported,
    require_targets,
    select,
)
from executorch_goldens.running.zoo import Zoo, list_zoo
from executorch_goldens.settings.exports import Settings, cores
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep import seconds
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.store import Store
from executorch_goldens.toolchains.installed import Installed
from executorch_goldens.toolchains.toolchain import Fit, Toolchain
from executorch_goldens.toolchains.toolchain import chosen as chosen_toolchain
from executorch_goldens.zoo import variations
from executorch_goldens.zoo.variations import Variation


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Attributes
    ----------
    options
        Its options.
    release
        The packages of the exporting environment.
    goldens
        Root of the goldens.
    listed
        Cases and sources that the zoo registers.
    zoo
        Every cell that the zoo and the release make, in the zoo's order.
    tier
        ``core`` or ``full``.
    left_out
        Cells that were asked for, and that are not of the tier.
    asked
        Cells of the tier that were asked for.
    selected
        Cells of these in the shard: they are exported and judged.
    decided
        The decisions of the root of the goldens about cells of the release.
    variations
        The variations of each of them.
    beside
        Cells of these that are exported under the last variation alone, unless they then differ from their golden: see
        `_beside`.
    settings
        Settings of exports; without a store yet.
    """

    options: Options
    release: Release
    goldens: Path
    listed: Zoo
    zoo: tuple[Cell, ...]
    tier: str
    left_out: frozenset[Cell]
    asked: frozenset[Cell]
    selected: frozenset[Cell]
    decided: Decisions
    variations: tuple[Variation, ...]
    beside: frozenset[Cell]
    settings: Settings

    @property
    def root(self) -> Path:
        """Directory of the release's goldens."""
        return self.goldens / self.release.version

    @property
    def cells(self) -> list[Cell]:
        """The cells that are selected, in the zoo's order."""
        return [cell for cell in self.zoo if cell in self.selected]

    def reuse(self) -> Reuse | None:
        """Return the run's access to the cache; None without one."""
        asked = self.options
        return Reuse(Store(asked.cache_dir), needed=asked.cache_named) if asked.caches else None


def plan(options: Options, again: bool = False, toolchain: Toolchain | None = None) -> Plan:
    """Settle the plan of a run over some cells of the installed release.

    Parameters
    ----------
    again
        Whether files of the zoo may have changed since this process listed it.
    toolchain
        The toolchain that exports; None for the one that the options name.

    Raises
    ------
    UsageError
        For what cannot be done as asked.
    HarnessError
        For a root of goldens or a core that cannot be used.
    """
    require_a_person(options.updating)
    toolchain = toolchain or chosen_toolchain(options.toolchain)
    interpreter, release = toolchain.python, toolchain.release
    installed = Installed.probe(interpreter)
    listed = list_zoo(options.models, again)
    goldens = options.goldens.resolve()
    decided = Decisions.of_root(goldens, release.version)
    # A module that registers cases may register patches as well.
    settings = settings_of(options, toolchain, listed.patches, modules=listed.modules)
    zoo = cells_of(listed.cases.values(), release, options.repository.targets)
    for addition in options.additions:
        settings = addition.settings(settings)
    roots.check(goldens, options.models, options.updating)
    require_cells(decided, listed.cases)
    root = goldens / release.version
    wished = select(zoo, options.cells)
    tier = core.tier(options, root)
    asked = _of_tier(tier, wished, decided, root, zoo)
    varied = variations_of(options, VARIATIONS[tier], "Pass --variations quick")
    require_extensions(installed, interpreter, asked, settings.patches)
    selected = asked
    if options.shard is not None:
        # Seconds remembered on this machine would give other shards than elsewhere.
        in_order = [cell for cell in zoo if cell in asked]
        selected = options.shard.select(in_order, seconds.committed(root))
    return Plan(
        options=options,
        release=release,
        goldens=goldens,
        listed=listed,
        zoo=zoo,
        tier=tier,
        left_out=wished - asked,
        asked=asked,
        selected=selected,
        decided=decided,
        variations=varied,
        beside=_beside(options, toolchain, tier, decided, root, selected),
        settings=settings,
    )


def variations_of(options: Options, default: str, way_out: str) -> tuple[Variation, ...]:
    """Return the variations that each cell is exported under; raise UsageError where they are too few to record."""
    found = variations.variations(variations.named(options.variations or default))
    require_repeats(options.updating, len(found), f"{way_out}, or leave it out.")
    return found


def settings_of(
    options: Options, toolchain: Toolchain, registered: Sequence[str] = (), **others: Any
) -> Settings:
    """Return how cells are exported with a toolchain; raise UsageError where that cannot be done as asked.

    Parameters
    ----------
    registered
        Names of patches that exporting processes know beside the harness's.
    others
        Further settings.
    """
    release, repository = toolchain.release, options.repository
    require_supported(release, repository.releases)
    require_targets(repository.tolerances, "[tool.goldens] tolerances")
    require_flatc(toolchain.python)
    chosen = patches.select(options.patches, release.patches, registered)
    # Goldens are recorded with the toolchain as it is.
    wanted = {} if options.no_shortcuts or options.updating else plugins.shortcuts()
    fit = Fit.verify(toolchain, chosen, wanted)
    if options.patches == "auto":
        chosen = fit.those("patch", fit.patches)
    return toolchain.settings(
        options.models,
        options.jobs or cores(),
        options.export_timeout,
        patches=chosen,
        memory=repository.export_memory,
        shortcuts={name: wanted[name] for name in fit.those("shortcut", fit.shortcuts)},
        tolerances=repository.tolerances,
        **others,
    )


def _of_tier(
    tier: str, wished: frozenset[Cell], decided: Decisions, root: Path, zoo: tuple[Cell, ...]
) -> frozenset[Cell]:
    """Return those of the cells chosen that are of the tier; raise UsageError where none is."""
    if tier == FULL:
        return wished
    within = core.within(root, wished, zoo, decided.known(zoo))
    if not within:
        raise UsageError(f"none of the cells chosen is in the core, {root / core.FILE}: pass --tier full")
    return within


def _beside(
    options: Options,
    toolchain: Toolchain,
    tier: str,
    decided: Decisions,
    root: Path,
    cells: Iterable[Cell],
) -> frozenset[Cell]:
    """Return the cells that one export, beside the variations that agreed on their golden, is enough for.

    The packages of a release do not change, and several variations agreed on what they made: if an export with a
    different hash seed, heap and surroundings makes the same again, there are three that agree. What its golden was not
    recorded with (an edited toolchain, other patches) is exported under each variation, and so is what is recorded.
    """
    # Somebody may have edited the packages of a Python that no name made.
    as_made = toolchain.is_declared and options.toolchain is not None
    as_recorded = as_made and options.patches == "auto"
    if options.variations or options.updating or options.elsewhere or tier != CORE or not as_recorded:
        return frozenset()
    there = frozenset(cell for cell in cells if golden.file_of(root, cell).is_file())
    return there - decided.known(there)
