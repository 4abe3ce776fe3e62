"""``python -m lab guest NAME``: the cells of a guest zoo, or of a matrix, against their compact goldens."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.judging.updating import require_a_person
from executorch_goldens.running.options import CORE, FULL, TIERS, Options
from executorch_goldens.running.plan import plan
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.words.verdicts import detail, reason
from lab.compact.runs import ACCEPTED, Compact, Found, Run
from lab.guests import ZOOS, GuestZoo, layer, listing
from lab.options import cases as options_of_lowering

#: Lines of a cell that are shown.
SHOWN = 20


def _of_guests(zoo: GuestZoo) -> Compact:
    return Compact(
        zoo.name,
        zoo.module,
        zoo.folder,
        functools.partial(listing.core, zoo.name),
        zoo.export_timeout,
        zoo.layered,
    )


#: The zoos, by name.
RECORDED: Mapping[str, Compact] = {
    **{zoo.name: _of_guests(zoo) for zoo in ZOOS.values()},
    "options": Compact("options", "lab.options.zoo", Path("options"), options_of_lowering.core),
}


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "guest",
        description="Export the cells of a guest zoo, or of a matrix, and compare them with their goldens.",
    )
    parser.add_argument("zoo", choices=tuple(RECORDED))
    parser.add_argument("--tier", choices=TIERS, default=CORE, help="default: %(default)s")
    parser.add_argument("--update", action="store_true", help="record what is right; note what is wrong")
    for name in ("--cell", "--variations", "--jobs", "--export-timeout", "--toolchain"):
        share(with_short(parser.add_argument), name)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what is not as its golden, and counts; return 0 where all is."""
    require_a_person(options.update, "--update")
    zoo = RECORDED[options.zoo]
    running = Run(zoo, plan(asked(zoo, options)), options.update)
    for found in running(running.cells(options.tier)):
        if not found.accepted:
            print(*lines(found), sep="\n", flush=True)
    stale = running.stale()
    for cell in stale:
        print(f"stale: {cell}: a golden with no matching cell")
    counts = ", ".join(f"{number} {label}" for label, number in running.counts.most_common())
    print(f"{zoo.name} on ExecuTorch {running.version}: {counts or 'no cell'}")
    return SAME if running.counts and not stale and running.counts.keys() <= {*ACCEPTED} else DIFFERENT


def asked(zoo: Compact, options: argparse.Namespace) -> Options:
    """Return the options of a run over every cell of a zoo; its core is chosen from these."""
    repository = config.load()
    limits = (options.export_timeout, repository.export_timeout, zoo.export_timeout)
    return Options(
        models=(zoo.module,),
        cells=tuple(options.cell or ()),
        goldens=repository.goldens / zoo.folder,
        sweeps=repository.sweeps / zoo.folder,
        # Many models, few findings: two variations show most of what four would.
        variations=options.variations or repository.variations or "quick",
        patches=repository.patches,
        toolchain=options.toolchain or layered(zoo),
        jobs=options.jobs or repository.jobs,
        repository=replace(repository, export_timeout=next(filter(None, limits), None)),
        no_shortcuts=options.update,
        tier=FULL,
    )


def layered(zoo: Compact) -> str | None:
    """Return the Python of the layer of this Python's release, where the models of a zoo need one and it has one."""
    python = layer.python_of(here().release.version) if zoo.layered else None
    return str(python) if python is not None else None


def lines(found: Found) -> Iterator[str]:
    """Yield the lines about a cell that is not as its golden."""
    judged = found.verdict
    yield f"{found.label}: {judged.cell}: {reason(judged)}"
    yield from (f"  {line}" for line in detail(judged)[:SHOWN])
