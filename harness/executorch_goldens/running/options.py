"""The options of a run: one table for pytest's command line and for ``goldens run``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executorch_goldens.files.invocation import in_ci
from executorch_goldens.judging.updating import FEWER, Updating
from executorch_goldens.releases import MATRIX
from executorch_goldens.running.selection import EXPORT_TIMEOUT
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import amount, share
from executorch_goldens.store.reuse import Recheck
from executorch_goldens.store.store import SIZE, default_root
from executorch_goldens.workers.shards import Shard

CORE, FULL = TIERS = ("core", "full")
#: What ``--variations`` is by default: a core is checked often, the whole zoo before a release.
VARIATIONS = {CORE: "quick", FULL: "full"}

#: Cells of a run for which the factor is sought that their disagreement follows: it takes as long as the export of a
#: few dozen cells, and many cells mostly disagree for one reason.
FACTORS = 3

#: Passes of a run without which a cell is exported again.
OMISSIONS = 3


@dataclass(frozen=True)
class Options:
    """What a run was asked for: the command line, read.

    Attributes
    ----------
    release
        The release that must be installed; None takes whichever is.
    matrix
        The file that says what there is of releases.
    cells
        Patterns ``TARGET/CASE``; empty selects every cell.
    families
        Names of families that cells are taken from; empty takes all.
    tier
        ``core`` or ``full``; None is what `executorch_goldens.running.core.tier` makes of it.
    variations, hash_seeds
        What ``--variations`` says, unless ``--hash-seeds`` names them one by one; None is the tier's default.
    interpreter
        Python of the exporting environment; None is this one.
    goldens, sweeps
        Directories that hold one directory per release.
    update
        Which goldens may be written.
    pruning
        Whether goldens with no matching cell are deleted after a green run of every cell.
    adopting
        Whether goldens that do not say whose they are become those of `models`.
    shard
        The part of the cells that the run is over; None is all of them.
    targets, releases, tolerances
        See `executorch_goldens.settings.config.Config`.
    changed_since
        Revision: only cells that what has changed since can reach; None is all.
    cluster
        Address of the Dask scheduler whose workers export; None exports here.
    reuse
        Whether exports are taken from the store of artifacts.
    keeping
        Whether exports are put into the store.
    store, store_size
        Its directory, and how many bytes it may take.
    recheck
        Which of the reused exports are made again and compared.
    factors
        For how many cells that disagree the factor is sought that the disagreement follows.
    omissions
        For how many passes that are blamed a cell is exported without the pass.
    origins
        Whether exports say which pass made each operator, which is left beside the results.
    report
        The HTML file that is written of the run; None for none.
    budgets
        See `executorch_goldens.settings.config.Config`.
    export_memory
        See `executorch_goldens.settings.config.Config`.
    called
        The words of the command that a person typed.
    """

    release: str | None
    matrix: Path
    cells: tuple[str, ...]
    families: tuple[str, ...]
    variations: str | None
    hash_seeds: str | None
    jobs: int | None
    export_timeout: float
    patches: str
    shortcuts: str
    models: tuple[str, ...]
    goldens: Path
    sweeps: Path
    interpreter: Path | None
    isolation: str
    update: Updating
    targets: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    tolerances: Mapping[str, float] = field(default_factory=dict)
    pruning: bool = False
    adopting: bool = False
    tier: str | None = None
    shard: Shard | None = None
    changed_since: str | None = None
    reuse: bool = False
    keeping: bool = False
    cluster: str | None = None
    store: Path = Path()
    store_size: int = SIZE
    recheck: Recheck = field(default_factory=Recheck)
    factors: int = FACTORS
    omissions: int = OMISSIONS
    origins: bool = False
    report: Path | None = None
    budgets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    export_memory: int | None = None
    called: tuple[str, ...] = ("goldens", "run")

    @property
    def updating(self) -> bool:
        """Whether goldens may be written."""
        return self.update.any


def add_to(add: Callable[..., Any]) -> None:
    """Add every option by `add`, an argparse parser's ``add_argument`` or a pytest group's ``addoption``."""
    share(add, "--release")
    share(add, "--cell")
    add("--family", action="append", metavar="NAME", help="only cases of these families; repeatable")
    add(
        "--tier",
        choices=TIERS,
        help="cells that reach all that the zoo reaches, or all cells (default: core; full where no core is committed, "
        "cells are chosen, or goldens may be written)",
    )
    add(
        "--shard",
        type=_shard,
        metavar="N/COUNT",
        help="only this part of the cells, e.g. 2/5; merge joins them",
    )
    share(add, "--models")
    share(add, "--goldens")
    add(
        "--prune",
        action="store_true",
        help="with --snapshot-update and every cell green: delete goldens with no matching cell",
    )
    add(
        "--adopt",
        action="store_true",
        help="with --snapshot-update: goldens that do not say whose they are become those of --models",
    )
    share(
        add,
        "--variations",
        help="how many variations of what must not matter (default: full; quick for the core)",
    )
    add(
        FEWER,
        action="store_true",
        help="with --snapshot-update: also replace goldens that more variations agreed on than this run has",
    )
    add("--hash-seeds", metavar="N,...", help="these variations instead: one for each hash seed, e.g. 0,3,7")
    add(
        "--patches",
        default="auto",
        metavar="auto|none|NAME,...",
        help="patches to apply (default: %(default)s)",
    )
    add(
        "--shortcuts",
        default="all",
        metavar="all|none|NAME,...",
        help="what exports are spared, with the same bytes (default: %(default)s)",
    )
    share(add, "--jobs")
    share(add, "--export-timeout", help=f"limit per export, of processor time (default: {EXPORT_TIMEOUT:g})")
    add(
        "--export-memory",
        type=_bytes,
        metavar="BYTES",
        help="data that an exporting process may have, e.g. 4GiB (default: no limit)",
    )
    add("--isolation", choices=("fork", "fresh"), default="fork", help="fork a warm template, or start fresh")
    share(add, "--sweeps", help="where results go (default: build/sweeps)")
    share(add, "--interpreter")
    add(
        "--matrix",
        type=Path,
        default=MATRIX,
        metavar="FILE",
        help="a releases.toml in place of the harness's own",
    )
    add(
        "--changed-since",
        metavar="REV",
        help="only cells that what has changed since a git revision can reach",
    )
    add(
        "--cluster",
        metavar="tcp://HOST:PORT",
        help="export on the workers of a Dask scheduler; artifacts come back through the store, as with --reuse",
    )
    add("--reuse", action="store_true", help="take exports from the store of artifacts")
    add(
        "--no-keep",
        action="store_true",
        help="put no exports into the store (default: all are put there, and in CI with --reuse alone)",
    )
    add(
        "--store",
        type=Path,
        metavar="DIR",
        help="the store (default: executorch-goldens in the cache directory)",
    )
    add(
        "--store-size",
        type=_bytes,
        metavar="BYTES",
        help="how large the store may become, e.g. 500M (default: 10GiB)",
    )
    add(
        "--reuse-check",
        type=_recheck,
        metavar="PART%[:SEED]",
        help="with --reuse: make a sample of the reused exports again, and compare",
    )
    add(
        "--factors",
        type=_count,
        default=FACTORS,
        metavar="N",
        help="name what the disagreement follows (hash seed, heap, ...) of so many cells, by exporting them up to 32 "
        "times more; 0 exports none again (default: %(default)s)",
    )
    add(
        "--omissions",
        type=_count,
        default=OMISSIONS,
        metavar="N",
        help="for so many passes that are blamed, export a cell without the pass and say what that proves; 0 exports "
        "none again (default: %(default)s)",
    )
    add(
        "--origins",
        action="store_true",
        help="leave which pass made each operator of a delegate, of every cell; explore shows it",
    )
    add("--report", type=Path, metavar="FILE", help="write what the run finds as one HTML file")
    # The command that a wrapper was called with, for messages.
    add("--called-as", default="", help=argparse.SUPPRESS)


def read(option: argparse.Namespace, words: Sequence[str]) -> Options:
    """Return what pytest's options say, and the repository's configuration where they say nothing.

    `words` is what pytest was called with. Raises `settings.config.ConfigError`, `errors.UsageError`.
    """
    repository = config.load()
    return Options(
        release=option.release,
        matrix=option.matrix,
        cells=tuple(option.cell or ()),
        families=tuple(option.family or ()),
        variations=option.variations or repository.variations,
        hash_seeds=option.hash_seeds,
        jobs=option.jobs or repository.jobs,
        export_timeout=option.export_timeout or repository.export_timeout or EXPORT_TIMEOUT,
        patches=option.patches,
        shortcuts=option.shortcuts,
        models=repository.zoos(option.models),
        goldens=option.goldens or repository.goldens,
        sweeps=option.sweeps or repository.sweeps,
        interpreter=option.interpreter,
        isolation=option.isolation,
        update=Updating(
            new=option.update_snapshots or option.update_new_snapshots_only,
            changed=option.update_snapshots,
            fewer=option.fewer_variations,
        ),
        targets=repository.targets,
        releases=repository.releases,
        tolerances=repository.tolerances,
        pruning=option.prune,
        adopting=option.adopt,
        tier=option.tier,
        shard=option.shard,
        changed_since=option.changed_since,
        reuse=option.reuse or option.cluster is not None,
        keeping=not option.no_keep and (option.reuse or option.cluster is not None or not in_ci()),
        cluster=option.cluster,
        store=option.store or repository.store or default_root(),
        store_size=option.store_size or SIZE,
        recheck=option.reuse_check or Recheck(),
        factors=option.factors,
        omissions=option.omissions,
        origins=option.origins,
        report=option.report,
        # They are those of the repository's own zoo.
        budgets={} if option.models else repository.budgets,
        export_memory=option.export_memory or repository.export_memory,
        called=tuple(shlex.split(option.called_as)) or ("python", "-m", "pytest", *words),
    )


def _shard(text: str) -> Shard:
    try:
        return Shard.named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number: say 0 or more")
    return int(text)


def _bytes(text: str) -> int:
    try:
        return amount(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _recheck(text: str) -> Recheck:
    try:
        return Recheck.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
