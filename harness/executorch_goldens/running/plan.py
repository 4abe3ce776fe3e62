"""Plan of a run: settled before anything is exported or written, and printed by ``goldens run --plan``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens import patches, variations
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden, roots
from executorch_goldens.judging import expectations, known
from executorch_goldens.judging.expectations import Expectations
from executorch_goldens.judging.updating import require_a_person
from executorch_goldens.patches import shortcuts
from executorch_goldens.releases import Release
from executorch_goldens.running import core, reporting
from executorch_goldens.running.options import FULL, VARIATIONS, Options
from executorch_goldens.running.selection import (
    cells_of,
    of_families,
    require_cells,
    require_extensions,
    require_flatc,
    require_repeats,
    require_supported,
    require_targets,
    select,
)
from executorch_goldens.settings.exports import Settings, cores
from executorch_goldens.settings.zoo import Zoo, list_zoo
from executorch_goldens.store.reuse import Reuse
from executorch_goldens.store.store import Store
from executorch_goldens.toolchains.installed import Installed
from executorch_goldens.toolchains.toolchain import Fit, Toolchain
from executorch_goldens.toolchains.toolchain import chosen as chosen_toolchain
from executorch_goldens.variations import Variation
from executorch_goldens.workers import seconds


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Attributes
    ----------
    options
        Its options.
    release
        The packages of the exporting environment, with the known defects of the root of the goldens.
    goldens
        Root of the goldens.
    compact
        Whether its goldens are compact: see `executorch_goldens.goldens.roots`.
    listed
        What the zoo registers.
    zoo
        Every cell that the zoo and the release make, in the zoo's order.
    tier
        ``core`` or ``full``.
    left_out
        Cells that were asked for, and that are not of the tier.
    asked
        Those that are of it.
    selected
        Those of them that are of the shard: what is exported and judged.
    expectations
        Goldens that are expected to be failures, or of programs that delegate nothing.
    variations
        The variations of each of them.
    settings
        Settings of exports; without a store yet.
    """

    options: Options
    release: Release
    goldens: Path
    compact: bool
    listed: Zoo
    zoo: tuple[Cell, ...]
    tier: str
    left_out: frozenset[Cell]
    asked: frozenset[Cell]
    selected: frozenset[Cell]
    expectations: Expectations
    variations: tuple[Variation, ...]
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
        if not (asked.takes or asked.keeps):
            return None
        store = Store(asked.cache_dir, asked.cache_size)
        return Reuse(store, asked.recheck, asked.takes, asked.keeps, needed=asked.cache_named)

    def lines(self) -> Iterator[str]:
        """Yield the plan for a person: the facts, and then a line per cell."""
        asked, cells = self.options, self.cells
        stack = " ".join(f"{name}=={version}" for name, version in self.release.stack().items())
        yield f"release:    {self.release.version} ({stack}), in {self.settings.interpreter}"
        yield f"zoo:        {', '.join(asked.models)}: {count(len(self.zoo), 'cell')} on this release"
        yield f"goldens:    {self.root}; {self._recording(cells)}"
        yield f"tier:       {self.tier}" + (
            f"; {count(len(self.left_out), 'cell')} left out" if self.left_out else ""
        )
        if asked.shard is not None:
            yield f"shard:      {asked.shard}, of {count(len(self.asked), 'cell')}"
        yield f"variations: {' '.join(variation.name for variation in self.variations)}"
        yield f"patches:    {', '.join(self.settings.patches) or 'none'}"
        where = asked.elsewhere.place if asked.elsewhere else f"{self.settings.jobs} at a time"
        yield f"exports:    {len(cells) * len(self.variations)}, {where}; {self._cost(cells)}"
        yield f"cache:      {asked.cache}, {asked.cache_dir}"
        yield f"results:    {asked.sweeps / self.release.version}"
        yield f"cells:      {len(cells)}"
        yield from (f"  {cell}" for cell in cells)

    def _recording(self, cells: Iterable[Cell]) -> str:
        unrecorded = [cell for cell in cells if not golden.directory(self.root, cell).is_dir()]
        known_defects = sum(str(cell) in self.release.known for cell in unrecorded)
        there = f"{len(unrecorded) - known_defects} of these cells have none"
        if known_defects:
            there += f", {known_defects} more are known defects"
        if not self.options.updating:
            return f"{there}; none is written"
        return f"{there}; {'those are' if not self.options.update.changed else 'right cells are'} recorded"

    def _cost(self, cells: Iterable[Cell]) -> str:
        """Return how long they take, by the committed table."""
        table = seconds.committed(self.root)
        if not table.measured:
            return "nothing is known yet of how long they take"
        total = sum(map(table.of, cells)) * len(self.variations)
        return f"some {total:.0f} core seconds by {self.root / seconds.TABLE}, without the start of templates"


def plan(options: Options, again: bool = False, toolchain: Toolchain | None = None) -> Plan:
    """Settle the plan of a run over some cells of the installed release.

    Parameters
    ----------
    again
        Whether files of the zoo may have changed since this process listed it.
    toolchain
        The one that exports; None for the one that the options name.

    Raises
    ------
    UsageError
        For what cannot be done as asked.
    HarnessError
        For a root of goldens or a core that cannot be used.
    """
    require_a_person(options.updating)
    if options.report is not None:
        reporting.require(options.report)
    toolchain = toolchain or chosen_toolchain(options.toolchain)
    interpreter, release = toolchain.python, toolchain.release
    installed = Installed.probe(interpreter)
    listed = list_zoo(options.models, again)
    zoo, settings = _settings(options, toolchain, listed)
    for addition in options.additions:
        settings = addition.settings(settings)
    goldens = options.goldens.resolve()
    roots.check(goldens, options.models, options.adopting, options.updating)
    release = _with_own_defects(release, goldens)
    compact = roots.is_compact(goldens)
    root = goldens / release.version
    wished = select(of_families(zoo, options.families, listed.cases), options.cells)
    tier = core.tier(options, root, compact)
    asked = _of_tier(
        tier, wished, options, release, root, zoo, _stated_core(listed, release) if compact else None
    )
    varied = _variations(options, tier)
    require_flatc(interpreter)
    require_extensions(installed, interpreter, asked, settings.patches)
    selected = asked
    if options.shard is not None:
        # Seconds remembered on this machine would give other shards than elsewhere.
        in_order = [cell for cell in zoo if cell in asked]
        selected = options.shard.of(in_order, seconds.committed(root))
    return Plan(
        options=options,
        release=release,
        goldens=goldens,
        compact=compact,
        listed=listed,
        zoo=zoo,
        tier=tier,
        left_out=wished - asked,
        asked=asked,
        selected=selected,
        expectations=Expectations(
            goldens,
            release.version,
            expectations.read(goldens),
            {name: case.expects for name, case in listed.cases.items() if case.expects},
            # The cases of a compact root are declared nowhere here.
            cases=not compact,
        ),
        variations=varied,
        settings=settings,
    )


def _settings(options: Options, toolchain: Toolchain, listed: Zoo) -> tuple[tuple[Cell, ...], Settings]:
    """Return every cell that the zoo and the release make, and how cells are exported; raise UsageError."""
    release = toolchain.release
    try:
        require_supported(release, options.releases)
        require_targets(options.tolerances, "[tool.goldens] tolerances")
        cells = cells_of(listed.cases.values(), release, options.targets)
        require_cells(options.budgets, cells)
        # A module that registers cases may register patches as well.
        chosen = patches.select(options.patches, release.patches, listed.patches)
        spared = shortcuts.select(options.shortcuts)
    except ValueError as error:
        raise UsageError(str(error)) from error
    fit = Fit.of(toolchain, chosen, spared)
    if options.patches == "auto":
        chosen = fit.those("patch", fit.patches)
    return cells, Settings(
        interpreter=toolchain.python,
        models=options.models,
        patches=chosen,
        jobs=options.jobs or cores(),
        limit=options.export_timeout,
        memory=options.export_memory,
        isolation=options.isolation,
        shortcuts=fit.those("shortcut", fit.shortcuts),
        tolerances=options.tolerances,
        modules=listed.modules,
    )


def _with_own_defects(release: Release, goldens: Path) -> Release:
    """Return a release with the known defects that the root of the goldens states, where it has its own."""
    if not known.own(goldens, release.version):
        # The repository's file states the defects of its own zoo.
        return release
    root = goldens / release.version
    return dataclasses.replace(
        release, known=known.read(root, release.version), known_in=str(root / known.FILE)
    )


def _of_tier(
    tier: str,
    wished: frozenset[Cell],
    options: Options,
    release: Release,
    root: Path,
    zoo: tuple[Cell, ...],
    of_cases: frozenset[str] | None,
) -> frozenset[Cell]:
    """Return those of the cells chosen that are of the tier; raise UsageError where none is.

    Parameters
    ----------
    of_cases
        The cases of the core, where the cases state it.
    """
    if tier == FULL:
        return wished
    if of_cases is not None:
        return frozenset(cell for cell in wished if cell.case in of_cases)
    within = core.within(root, wished, zoo, release.known)
    if not within:
        raise UsageError(f"none of the cells chosen is in the core, {root / core.FILE}: pass --tier full")
    return within


def _stated_core(listed: Zoo, release: Release) -> frozenset[str]:
    """Return the cases that say that they are of the core of a release."""
    return frozenset(name for name, case in listed.cases.items() if release.version in case.core)


def _variations(options: Options, tier: str) -> tuple[Variation, ...]:
    """Return the variations of the cells; raise UsageError for too few to record from."""
    try:
        found = variations.variations(variations.named(options.variations or VARIATIONS[tier]))
    except variations.HashSeedError as error:
        raise UsageError(str(error)) from error
    require_repeats(options.updating, len(found), "Pass --variations quick, or leave it out.")
    return found
