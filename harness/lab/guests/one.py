"""``python -m lab guest NAME``: the cells of a guest zoo, or of a matrix, against what is known to be wrong of them."""

from __future__ import annotations

import argparse
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.files.invocation import require_a_person
from executorch_goldens.running.options import CORE, FULL, TIERS, Options
from executorch_goldens.running.plan import plan
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.toolchains.toolchain import here
from executorch_goldens.words.verdicts import detail, reason
from lab import known
from lab.guests import ZOOS, GuestZoo, layer, listing
from lab.known import ACCEPTED, BETTER, LISTED, Found, Zoo
from lab.options import cases as options_of_lowering

#: Lines of a cell that are shown.
SHOWN = 20
#: The zoos, by name.
KNOWN_ZOOS: Mapping[str, Zoo] = {
    **{name: Zoo(name, zoo.module, functools.partial(listing.core, name)) for name, zoo in ZOOS.items()},
    "options": Zoo("options", "lab.options.zoo", options_of_lowering.core),
}


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "guest",
        description="Export the cells of a guest zoo, or of a matrix: which are newly wrong, or better?",
    )
    parser.add_argument("zoo", choices=tuple(KNOWN_ZOOS))
    parser.add_argument("--tier", choices=TIERS, default=CORE, help="default: %(default)s")
    parser.add_argument(
        "--update", action="store_true", help="bring the list of what is known to what was found"
    )
    for name in ("--cell", "--variations", "--jobs", "--export-timeout", "--toolchain"):
        share(with_short(parser.add_argument), name)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what is not as it is known, and counts; return 0 where all is, or was written."""
    require_a_person(options.update, "--update")
    zoo, every = KNOWN_ZOOS[options.zoo], list[Found]()
    planned = plan(asked(zoo, options))
    release = planned.release.version
    try:
        for found in known.run(zoo, planned, options.tier):
            every.append(found)
            if found.label not in ACCEPTED:
                print(*lines(found), sep="\n", flush=True)
    finally:
        if options.update:
            known.update(zoo, release, every)
    if options.update and every and not options.cell:
        known.count(zoo, release, options.tier, every)
    counts = Counter(found.label for found in every)
    in_words = ", ".join(f"{number} {label}" for label, number in counts.most_common())
    print(f"{zoo.name} on ExecuTorch {release}: {in_words or 'no cell'}")
    return SAME if counts and counts.keys() <= {*ACCEPTED, *(LISTED if options.update else ())} else DIFFERENT


def asked(zoo: Zoo, options: argparse.Namespace) -> Options:
    """Return the options of a run over every cell of a zoo; its core is chosen from these."""
    repository, guests = config.load(), ZOOS.get(zoo.name)
    limits = (options.export_timeout, repository.export_timeout, guests.export_timeout if guests else None)
    return Options(
        models=(zoo.module,),
        cells=tuple(options.cell or ()),
        goldens=zoo.folder,
        sweeps=repository.sweeps / zoo.name,
        # Many models, few findings: two variations show most of what four would.
        variations=options.variations or repository.variations or "quick",
        patches=repository.patches,
        toolchain=options.toolchain or layered(guests),
        jobs=options.jobs or repository.jobs,
        repository=replace(repository, export_timeout=next(filter(None, limits), None)),
        no_shortcuts=options.update,
        tier=FULL,
    )


def layered(guests: GuestZoo | None) -> str | None:
    """Return the Python of the layer of this Python's release, where the models of a zoo need one and it has one."""
    python = layer.python_of(here().release.version) if guests is not None and guests.layered else None
    return str(python) if python is not None else None


def lines(found: Found) -> Iterator[str]:
    """Yield the lines about a cell that is not as it is known."""
    judged = found.verdict
    name = "" if found.label in (BETTER, judged.name) else f"{judged.name}: "
    yield f"{found.label}: {judged.cell}: {name}{reason(judged)}"
    yield from (f"  {line}" for line in detail(judged)[:SHOWN])
