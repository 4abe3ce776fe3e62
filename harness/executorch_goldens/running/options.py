"""The options of a run, each stated once: for ``goldens run``, pytest's command line and ``[tool.goldens]``."""

from __future__ import annotations

import argparse
import dataclasses
import math
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from executorch_goldens import plugins
from executorch_goldens.errors import UsageError
from executorch_goldens.files.invocation import in_ci
from executorch_goldens.judging.updating import FEWER, UPDATE, Updating
from executorch_goldens.running.additions import Addition
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import SHARED, amount
from executorch_goldens.settings.exports import EXPORT_TIMEOUT
from executorch_goldens.store.reuse import Recheck
from executorch_goldens.store.store import SIZE, default_root
from executorch_goldens.workers.shards import Shard

CORE, FULL = TIERS = ("core", "full")
#: Default of ``--variations``: a core is checked often, the whole zoo before a release.
VARIATIONS = {CORE: "quick", FULL: "full"}

#: Values of ``--cache``: whether exports are then taken from the cache, and put into it.
CACHES = {"on": (True, True), "fill": (False, True), "read": (True, False), "off": (False, False)}

#: What ``--explain`` may be, and the seconds that a run looks for causes by further exports after its last cell.
EXPLAINED = {"off": 0.0, "some": 60.0, "all": math.inf}

#: The groups of ``goldens run --help``.
SELECT = "selection of cells"
COMPARE = "comparison"
RECORD = "recording"
EXPORT = "exporting"
CACHE = "exports of earlier runs"
DIAGNOSE = "reporting"
PLUGINS = "plugins"
GROUPS = (SELECT, COMPARE, RECORD, EXPORT, CACHE, DIAGNOSE, PLUGINS)

#: Of syrupy: pytest has them, and ``goldens run --help`` lists them.
SYRUPYS: Mapping[str, dict[str, Any]] = {
    UPDATE: {
        "dest": "update_snapshots",
        "action": "store_true",
        "help": "record new and changed cells that are right and repeat",
    },
    f"{UPDATE}-new-only": {
        "dest": "update_new_snapshots_only",
        "action": "store_true",
        "help": "record cells that have no golden",
    },
}


@dataclass(frozen=True)
class Option:
    """An option of the command line.

    Attributes
    ----------
    name
        ``--jobs``.
    group
        One of `GROUPS`.
    how
        Arguments of ``add_argument`` beside the name; pytest's ``addoption`` takes the same.
    key
        Field of `settings.config.Config` that has it where the command line does not; empty for none.
    first
        Whether it is in the first help, or in that of ``--help-all`` alone.
    """

    name: str
    group: str
    how: Mapping[str, Any]
    key: str = ""
    first: bool = True


def _option(name: str, group: str, help: str = "", key: str = "", first: bool = True, **how: Any) -> Option:
    """Return an option; `how` and `help` override the shared definition."""
    stated = {**SHARED.get(name, {}), **how}
    return Option(name, group, {**stated, "help": help or stated["help"]}, key, first)


def _read_by(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader of an option's word that reports errors through argparse."""

    def reading(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return reading


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a run: the command line, completed by ``[tool.goldens]``.

    Fields that an option says are explained by the option's help. The others are:

    Attributes
    ----------
    update
        Goldens that may be written.
    targets, releases, tolerances, budgets, allow
        See `executorch_goldens.settings.config.Config`.
    called
        The words of the command that a person typed.
    additions
        The options of plugins that it has.
    """

    models: Annotated[tuple[str, ...], _option("--models", SELECT, key="models")] = ()
    cells: Annotated[tuple[str, ...], _option("--cell", SELECT)] = ()
    families: Annotated[
        tuple[str, ...],
        _option(
            "--family", SELECT, "only cases of these families; repeatable", action="append", metavar="NAME"
        ),
    ] = ()
    tier: Annotated[
        str | None,
        _option(
            "--tier",
            SELECT,
            "cells that reach all that the zoo reaches, or all cells (default: core; full where no core is committed, "
            "cells are chosen, or goldens may be written)",
            choices=TIERS,
        ),
    ] = None
    shard: Annotated[
        Shard | None,
        _option(
            "--shard",
            SELECT,
            "only this part of the cells, e.g. 2/5; merge joins them",
            type=_read_by(Shard.named),
            metavar="N/COUNT",
        ),
    ] = None

    goldens: Annotated[Path, _option("--goldens", COMPARE, key="goldens")]
    variations: Annotated[
        str | None,
        _option(
            "--variations",
            COMPARE,
            f"{SHARED['--variations']['help']} (default: full; quick for the core)",
            key="variations",
        ),
    ] = None
    patches: Annotated[
        str,
        _option(
            "--patches",
            COMPARE,
            "patches to apply: those that the release declares, none, or some (default: of [tool.goldens], else none)",
            key="patches",
            metavar="auto|none|NAME,...",
        ),
    ] = "none"

    pruning: Annotated[
        bool,
        _option(
            "--prune",
            RECORD,
            f"with {UPDATE} and every cell green: delete goldens with no matching cell",
            action="store_true",
        ),
    ] = False
    adopting: Annotated[
        bool,
        _option(
            "--adopt",
            RECORD,
            f"with {UPDATE}: goldens that do not say whose they are become those of --models",
            first=False,
            action="store_true",
        ),
    ] = False
    fewer: Annotated[
        bool,
        _option(
            FEWER,
            RECORD,
            f"with {UPDATE}: also replace goldens that more variations agreed on than this run has",
            first=False,
            action="store_true",
        ),
    ] = False

    toolchain: Annotated[str | None, _option("--toolchain", EXPORT)] = None
    jobs: Annotated[int | None, _option("--jobs", EXPORT, key="jobs")] = None
    export_timeout: Annotated[
        float,
        _option(
            "--export-timeout",
            EXPORT,
            f"limit per export, of processor time (default: {EXPORT_TIMEOUT:g})",
            key="export_timeout",
            first=False,
        ),
    ] = EXPORT_TIMEOUT
    export_memory: Annotated[
        int | None,
        _option(
            "--export-memory",
            EXPORT,
            "data that an exporting process may have, e.g. 4GiB (default: no limit)",
            key="export_memory",
            first=False,
            type=_read_by(amount),
            metavar="BYTES",
        ),
    ] = None
    isolation: Annotated[
        str,
        _option(
            "--isolation",
            EXPORT,
            "fork a warm template, or start fresh (default: fork)",
            first=False,
            choices=("fork", "fresh"),
        ),
    ] = "fork"
    shortcuts: Annotated[
        str,
        _option(
            "--shortcuts",
            EXPORT,
            "speed-ups that exports use; output is identical (default: all)",
            first=False,
            metavar="all|none|NAME,...",
        ),
    ] = "all"

    cache: Annotated[
        str,
        _option(
            "--cache",
            CACHE,
            "take exports from the cache and put them there, only put them, only take them, or neither (default: on; "
            "off in CI)",
            choices=tuple(CACHES),
        ),
    ] = dataclasses.field(default_factory=lambda: "off" if in_ci() else "on")
    recheck: Annotated[
        Recheck,
        _option(
            "--cache-verify",
            CACHE,
            "make this part of the exports that are taken again, and compare",
            type=_read_by(Recheck.of),
            metavar="PART%[:SEED]",
        ),
    ] = dataclasses.field(default_factory=Recheck)
    cache_dir: Annotated[
        Path,
        _option(
            "--cache-dir",
            CACHE,
            "the cache (default: executorch-goldens in your cache directory)",
            key="cache_dir",
            first=False,
            type=Path,
            metavar="DIR",
        ),
    ] = dataclasses.field(default_factory=default_root)
    cache_size: Annotated[
        int,
        _option(
            "--cache-size",
            CACHE,
            "how large the cache may become, e.g. 500M (default: 10GiB)",
            first=False,
            type=_read_by(amount),
            metavar="BYTES",
        ),
    ] = SIZE

    explain: Annotated[
        str,
        _option(
            "--explain",
            DIAGNOSE,
            f"diagnose failures by further exports: for {EXPLAINED['some']:g} s, or of all cells (default: some)",
            choices=tuple(EXPLAINED),
        ),
    ] = "some"
    report: Annotated[
        Path | None,
        _option("--html", DIAGNOSE, "write the results as one HTML file", type=Path, metavar="FILE"),
    ] = None
    sweeps: Annotated[
        Path, _option("--sweeps", DIAGNOSE, "where results go (default: build/sweeps)", key="sweeps")
    ]

    #: Whether the command line states the cache's use: if not, a run does without an unusable one.
    cache_named: bool = False
    update: Updating = dataclasses.field(default_factory=Updating)
    targets: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    tolerances: Mapping[str, float] = dataclasses.field(default_factory=dict)
    budgets: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    allow: tuple[str, ...] = ()
    called: tuple[str, ...] = ("goldens", "run")
    additions: tuple[Addition, ...] = ()

    @property
    def updating(self) -> bool:
        """True if goldens may be written."""
        return self.update.any

    @property
    def takes(self) -> bool:
        """True if exports are taken from the cache."""
        return CACHES[self.cache][0]

    @property
    def keeps(self) -> bool:
        """True if exports are put into the cache."""
        return CACHES[self.cache][1]

    @property
    def elsewhere(self) -> Addition | None:
        """What makes the exports elsewhere; None where they are made on this machine."""
        return next((each for each in self.additions if each.place), None)

    @property
    def budget(self) -> float:
        """The seconds that further exports may take after the last cell."""
        return EXPLAINED[self.explain]


#: The options, by the field of `Options` that each says.
DECLARED: Mapping[str, Option] = {
    field: option
    for field, hint in get_type_hints(Options, include_extras=True).items()
    for option in getattr(hint, "__metadata__", ())
}


#: Adds an option: an argparse group's ``add_argument``, or a pytest group's ``addoption``.
Adder = Callable[..., Any]


def add_to(adders: Mapping[str, Adder], every: bool = True, names: Collection[str] | None = None) -> None:
    """Add the options of a run, which `read` reads.

    Parameters
    ----------
    adders
        Adds an option to a group, by the title of the group.
    every
        Whether the help lists all, or the first alone.
    names
        Of the options to add; None adds all.
    """
    for field, option in DECLARED.items():
        if names is not None and option.name not in names:
            continue
        # No default: given options are distinguished from those left out.
        stated = {**option.how, "dest": field}
        _add(adders[option.group], option.name, stated, every or option.first)
    if names is None:
        plugins.add_options("run", adders[PLUGINS])


def add_syrupys(adders: Mapping[str, Adder], every: bool = True) -> None:
    """Add the options that pytest has of syrupy, to a command line that is not pytest's."""
    for name, stated in SYRUPYS.items():
        _add(adders[RECORD], name, stated, every or name == UPDATE)


def _add(add: Adder, name: str, stated: Mapping[str, Any], shown: bool) -> None:
    add(name, **(stated if shown else {**stated, "help": argparse.SUPPRESS}))


def read(arguments: argparse.Namespace, words: Sequence[str]) -> Options:
    """Return the options of the command line, completed by the repository's configuration.

    `words` is what pytest was called with. Raises `settings.config.ConfigError`, `errors.UsageError`.
    """
    repository = config.load()
    options = Options(
        **dict(_stated(arguments, repository)),
        update=Updating(
            new=_of(arguments, "update_snapshots") or _of(arguments, "update_new_snapshots_only"),
            changed=_of(arguments, "update_snapshots"),
            fewer=_of(arguments, "fewer"),
        ),
        targets=repository.targets,
        releases=repository.releases,
        tolerances=repository.tolerances,
        # They are those of the repository's own zoo.
        budgets={} if _of(arguments, "models") else repository.budgets,
        allow=repository.allow,
        cache_named=bool(_of(arguments, "cache")),
        called=tuple(shlex.split(_of(arguments, "called_as") or "")) or ("python", "-m", "pytest", *words),
        additions=tuple(addition(name, value) for addition, name, value in plugins.asked("run", arguments)),
    )
    if options.elsewhere is not None and not _of(arguments, "cache"):
        options = dataclasses.replace(options, cache="on", cache_named=True)
    _require_agreeing(options)
    return options


def _of(arguments: argparse.Namespace, name: str) -> Any:
    """Return the value of an option; None where the command does not have it."""
    return getattr(arguments, name, None)


def _stated(arguments: argparse.Namespace, repository: config.Config) -> Iterator[tuple[str, Any]]:
    """Yield the fields of `Options` that the command line says, or else the repository."""
    for field, option in DECLARED.items():
        value = _of(arguments, field)
        if field == "models":
            value = repository.zoos(value)
        elif not value and option.key:
            value = getattr(repository, option.key)
        if value:
            yield field, tuple(value) if isinstance(value, list) else value


def _require_agreeing(options: Options) -> None:
    """Raise UsageError for options that contradict each other."""
    for option, asked in (("--prune", options.pruning), ("--adopt", options.adopting)):
        if asked and not options.updating:
            raise UsageError(f"{option} changes the root of the goldens: pass {UPDATE} as well")
    if options.recheck.part and not options.takes:
        raise UsageError(
            f"--cache-verify makes some of the exports again that are taken, and --cache {options.cache} takes none: "
            "pass --cache on"
        )
    if options.elsewhere is not None and options.cache != "on":
        raise UsageError(
            f"{options.elsewhere.option} brings artifacts back through the cache: leave --cache {options.cache} out"
        )
