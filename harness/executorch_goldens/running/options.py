"""The options of a run, each stated once: for ``goldens run``, pytest's command line and ``[tool.goldens]``."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from executorch_goldens import plugins
from executorch_goldens.errors import UsageError
from executorch_goldens.files.invocation import in_ci
from executorch_goldens.judging.updating import Updating
from executorch_goldens.running.additions import Addition
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import SHARED
from executorch_goldens.settings.exports import EXPORT_TIMEOUT
from executorch_goldens.sweep.shards import Shard
from executorch_goldens.sweep.store import default_root

CORE, FULL = TIERS = ("core", "full")
#: Default of ``--variations``: a core is checked often, the whole zoo before a release.
VARIATIONS = {CORE: "quick", FULL: "full"}

#: Values of ``--cache`` beside a folder.
ON, OFF = "on", "off"
#: The variable that names the command that a person typed, where that is a wrapper of ``goldens run``, such as nox.
CALLED_AS = "EXECUTORCH_GOLDENS_CALLED_AS"

#: Values of ``--explain``, and the seconds that a run looks for causes by further exports after its last cell.
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


@dataclass(frozen=True)
class RunOption:
    """An option of the command line.

    Attributes
    ----------
    name
        ``--jobs``.
    group
        One of `GROUPS`.
    how
        Arguments of ``add_argument`` beside the name; pytest's ``addoption`` takes the same.
    """

    name: str
    group: str
    how: Mapping[str, Any]


def _option(name: str, group: str, help: str = "", **how: Any) -> RunOption:
    """Return an option; `how` and `help` override the shared definition."""
    stated = {**SHARED.get(name, {}), **how}
    return RunOption(name, group, {**stated, "help": help or stated["help"]})


def _read_by(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader of an option's word that reports errors through argparse."""

    def reading(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return reading


def _cache(text: str) -> str:
    if text in (ON, OFF) or os.sep in text:
        return text
    raise ValueError(
        f"{text!r} is neither {ON} nor {OFF}; a folder is named with a {os.sep}, such as ./{text}"
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a run: the command line, completed by ``[tool.goldens]``.

    Fields that an option says are explained by the option's help. The others are:

    Attributes
    ----------
    repository
        ``[tool.goldens]``: what no option says.
    update
        Goldens that may be written.
    called
        The words of the command that a person typed.
    additions
        The options of plugins that it has.
    """

    models: Annotated[tuple[str, ...], _option("--models", SELECT)] = ()
    cells: Annotated[tuple[str, ...], _option("--cell", SELECT)] = ()
    tier: Annotated[
        str | None,
        _option(
            "--tier",
            SELECT,
            "the core, which catches what any cell is known to, or all cells (default: core; full where no core is "
            "committed, cells are chosen, or goldens may be written)",
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

    goldens: Annotated[Path, _option("--goldens", COMPARE)]
    variations: Annotated[
        str | None,
        _option(
            "--variations",
            COMPARE,
            f"{SHARED['--variations']['help']} (default: full; of the core quick, or one if that is the golden)",
        ),
    ] = None
    patches: Annotated[
        str,
        _option(
            "--patches",
            COMPARE,
            "patches to apply: those that the release declares, none, or some (default: of [tool.goldens], else none)",
            metavar="auto|none|NAME,...",
        ),
    ] = "none"

    toolchain: Annotated[str | None, _option("--toolchain", EXPORT)] = None
    jobs: Annotated[int | None, _option("--jobs", EXPORT)] = None
    no_shortcuts: Annotated[
        bool,
        _option(
            "--no-shortcuts",
            EXPORT,
            "export without the harness's speed-ups, as runs that record goldens do; output is identical",
            action="store_true",
        ),
    ] = False

    cache: Annotated[
        str,
        _option(
            "--cache",
            CACHE,
            "reuse exports of earlier runs: on, off, or on in this folder (default: on; off in CI)",
            type=_read_by(_cache),
            metavar="on|off|DIR",
        ),
    ] = dataclasses.field(default_factory=lambda: OFF if in_ci() else ON)

    explain: Annotated[
        str,
        _option(
            "--explain",
            DIAGNOSE,
            f"diagnose failures by further exports: for {EXPLAINED['some']:g} s, or of all cells (default: some)",
            choices=tuple(EXPLAINED),
        ),
    ] = "some"
    sweeps: Annotated[Path, _option("--sweeps", DIAGNOSE, "where results go (default: build/sweeps)")]

    #: Whether the command line states the cache's use: if not, a run does without an unusable one.
    cache_named: bool = False
    repository: config.Config = dataclasses.field(default_factory=config.load)
    update: Updating = dataclasses.field(default_factory=Updating)
    called: tuple[str, ...] = ("goldens", "run")
    additions: tuple[Addition, ...] = ()

    @property
    def updating(self) -> bool:
        """True if goldens may be written."""
        return self.update.any

    @property
    def caches(self) -> bool:
        """True if exports are taken from the cache, and put into it."""
        return self.cache != OFF

    @property
    def export_timeout(self) -> float:
        """Seconds that one export may take."""
        return self.repository.export_timeout or EXPORT_TIMEOUT

    @property
    def cache_dir(self) -> Path:
        """The folder of the cache."""
        if self.cache not in (ON, OFF):
            return Path(self.cache)
        return self.repository.cache_dir or default_root()

    @property
    def elsewhere(self) -> Addition | None:
        """What makes the exports elsewhere; None where they are made on this machine."""
        return next((each for each in self.additions if each.place), None)

    @property
    def budget(self) -> float:
        """The seconds that further exports may take after the last cell."""
        return EXPLAINED[self.explain]


#: The options, by the field of `Options` that each says.
DECLARED: Mapping[str, RunOption] = {
    field: option
    for field, hint in get_type_hints(Options, include_extras=True).items()
    for option in getattr(hint, "__metadata__", ())
}


#: Adds an option: an argparse group's ``add_argument``, or a pytest group's ``addoption``.
Adder = Callable[..., Any]


def add_to(adders: Mapping[str, Adder], names: Collection[str] | None = None) -> None:
    """Add the options of a run, which `read` reads.

    Parameters
    ----------
    adders
        Adds an option to a group, by the title of the group.
    names
        Names of the options to add; None adds all.
    """
    for field, option in DECLARED.items():
        if names is None or option.name in names:
            # No default: given options are distinguished from those left out.
            adders[option.group](option.name, **{**option.how, "dest": field})
    if names is None:
        plugins.add_options("run", adders[PLUGINS])


def read(arguments: argparse.Namespace, words: Sequence[str], zoo: bool = True) -> Options:
    """Return the options of the command line, completed by the repository's configuration.

    `words` is what pytest was called with, `zoo` whether it is over one. Raises `settings.config.ConfigError`,
    `errors.UsageError`.
    """
    repository = config.load()
    options = Options(
        models=repository.zoos(_of(arguments, "models")) if zoo else (),
        **dict(_stated(arguments, repository)),
        update=Updating(
            new=_of(arguments, "update_snapshots") or _of(arguments, "update_new_snapshots_only"),
            changed=_of(arguments, "update_snapshots"),
        ),
        repository=repository,
        cache_named=bool(_of(arguments, "cache")),
        called=tuple(shlex.split(os.environ.get(CALLED_AS, ""))) or ("python", "-m", "pytest", *words),
        additions=tuple(addition(name, value) for addition, name, value in plugins.asked("run", arguments)),
    )
    if options.elsewhere is not None and not _of(arguments, "cache"):
        options = dataclasses.replace(options, cache=ON, cache_named=True)
    if options.elsewhere is not None and not options.caches:
        raise UsageError(
            f"{options.elsewhere.option} brings artifacts back through the cache: leave --cache off out"
        )
    return options


def _of(arguments: argparse.Namespace, name: str) -> Any:
    """Return the value of an option; None where the command does not have it."""
    return getattr(arguments, name, None)


def _stated(arguments: argparse.Namespace, repository: config.Config) -> Iterator[tuple[str, Any]]:
    """Yield the fields of `Options` but `models` that the command line says, or else the repository's of that name."""
    for field in DECLARED.keys() - {"models"}:
        if value := _of(arguments, field) or getattr(repository, field, None):
            yield field, tuple(value) if isinstance(value, list) else value
