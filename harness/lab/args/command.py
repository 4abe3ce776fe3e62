"""``python -m lab args``: models of one call of an operator each, drawn from the operators' schemas.

``--update`` draws what is new: for each operator of ATen that a pass, visitor, partitioner, quantizer or support check
of a release names, by importing these, a covering array over what its arguments can be and what is around the call.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import mmap
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import positive_float, share
from executorch_goldens.settings.exports import cores
from executorch_goldens.toolchains.toolchain import Toolchain, here
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.calls import CallModel
from lab import pages
from lab.args import kept, table, trying

#: Bytes of the text of a model.
LONGEST = 1 << 14


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("args", description=__doc__)
    parser.add_argument("--show", metavar="NAME", help="print a model")
    parser.add_argument(
        "--try", dest="tries", action="store_true", help="export and judge on the installed release"
    )
    parser.add_argument("--minutes", type=positive_float, help="begin no export after (default: none)")
    share(parser.add_argument, "--jobs", default=cores())
    parser.add_argument(
        "--update",
        action="store_true",
        help="draw models of new operators and levels, and write them behind the others",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="put what sessions found into the committed results, and write their page",
    )
    parser.add_argument("--json", action="store_true", help="print the table of operators as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Draw the models, show one, or count them."""
    if options.update:
        update()
    if options.tries:
        toolchain = here()
        results = kept.read(toolchain.release.version, calls.read().values())
        trying.run(toolchain, results, options.jobs, time.monotonic() + 60 * (options.minutes or math.inf))
        return SAME
    if options.keep:
        kept.keep()
        pages.update(["args"])
    if options.json:
        print(table.as_json().decode())
    if options.keep or options.json:
        return SAME
    known = calls.read()
    if options.show:
        if options.show not in known:
            raise UsageError(f"no model is called {options.show!r}; list them by: goldens run --list")
        print(known[options.show].line)
        return SAME
    operators = collections.Counter(each.operator for each in known.values())
    print(f"{len(known)} models of {len(operators)} operators")
    return SAME


def update() -> None:
    """Write the models of new operators, and of the levels that came last, behind those that are there."""
    from lab.args import drawing

    of_releases = {release: frozenset(operators_of(release)) for release in releases.load().releases}
    every = [each for each in sorted(frozenset().union(*of_releases.values())) if drawing.is_drawn(each)]
    found = []
    for model in extended([each for each in calls.read().values() if each.operator in every], every):
        named = tuple(release for release, operators in of_releases.items() if model.operator in operators)
        found.append(msgspec.structs.replace(model, releases=named if len(named) < len(of_releases) else ()))
    durable.replace(calls.FILE, calls.encoded(found))
    durable.replace(calls.BECOMES, f"{json.dumps(drawing.becomes(found), indent=0)}\n")
    calls.read.cache_clear()
    print(f"seed {drawing.SEED}: {calls.FILE.stat().st_size:,} bytes")


def extended(known: Sequence[CallModel], operators: Sequence[str]) -> list[CallModel]:
    """Return models, with those of operators that have none and those of the levels that came last behind them.

    Maps and results name models by their numbers, and another PyTorch refuses others: none is drawn again.
    """
    from lab.args import drawing

    found, held = [*known], {each.operator for each in known}
    there = {(each.operator, each.line) for each in known}
    numbers: dict[str, int] = collections.defaultdict(int)
    for each in known:
        beginning, _, number = each.name.rpartition("-")
        numbers[beginning] = max(numbers[beginning], int(number) + 1)
    for family in drawing.families(operators):
        began, models = drawn(family)
        for place, model in enumerate(models):
            is_new = place >= began and (model.operator, model.line) not in there
            if is_new or model.operator not in held:
                beginning = drawing.slug(model.operator)
                found.append(msgspec.structs.replace(model, name=f"{beginning}-{numbers[beginning]:04}"))
                numbers[beginning] += 1
    return sorted(found, key=lambda model: model.name)


def operators_of(release: str) -> Iterator[str]:
    """Yield the operators that the sources of an installed release name, as ``name.overload``."""
    interpreter = Toolchain.from_name(release, config.load()).python
    command = [str(interpreter), "-m", "executorch_goldens_plugins.compare.exporting.operators"]
    environment = {**os.environ, "PYTHONPATH": str(Path(calls.__file__).parents[2])}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=tempfile.gettempdir()
    )
    for of_file in json.loads(done.stdout.splitlines()[-1]).values():
        for operators in of_file.values():
            yield from operators


def drawn(family: Any) -> tuple[int, Sequence[CallModel]]:
    """Draw the models of a family in a process of its own: what ends that by a signal is left out.

    Returns the place of the first model of the levels that came last, and the models.
    """
    from lab.args.drawing import Drawing

    crashing: set[str] = set()
    with mmap.mmap(-1, LONGEST) as last:
        while True:
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                os.close(reading)
                status = 1
                try:
                    made = Drawing(family, crashing, last)
                    made.draw()
                    with os.fdopen(writing, "wb") as stream:
                        stream.write(msgspec.json.encode((made.last_began, made.models)))
                    status = 0
                finally:
                    os._exit(status)
            os.close(writing)
            with os.fdopen(reading, "rb") as stream:
                data = stream.read()
            _, status = os.waitpid(child, 0)
            if not status:
                return msgspec.json.decode(data, type=tuple[int, list[CallModel]])
            if os.waitstatus_to_exitcode(status) > 0:
                raise RuntimeError(f"{family.operators}: cannot be drawn")
            crashing.add(last[:].decode().rstrip())
