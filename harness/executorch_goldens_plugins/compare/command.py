"""``goldens compare BASE HEAD``: the same models exported by two toolchains."""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from executorch_goldens import plugins
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.files.plain import plain
from executorch_goldens.files.waits import saying
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import positive_float, share
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, Settings, cores
from executorch_goldens.toolchains import handing
from executorch_goldens.toolchains.environments import say
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens.zoo import variations
from executorch_goldens_plugins.compare import clone
from executorch_goldens_plugins.compare.calls import CHANGING

EXAMPLES = """\
examples, the first two in a clone of pytorch/executorch:
  goldens compare
  goldens compare HEAD~3
  goldens compare 1.4.1 1.5.1
  goldens compare 1.5.1 "1.5.1 + ../executorch"
  goldens compare 1.5.1 "1.5.1 + ../executorch" --pass RewriteConvPass
  goldens compare "1.5.1 + ../executorch@main" "1.5.1 + ../executorch" --markdown
  goldens compare 1.5.1 "1.5.1 + torch==2.15.0" --cell 'xnnpack-*/*'
  goldens compare path/to/base/bin/python path/to/head/bin/python

exit code:
  0  all cells identical, but for what --allow names; an edited line was reached
  1  a cell differs; no edited line was reached; or what --require names is missing
  2  error
"""
#: Default of ``--budget``, in minutes.
BUDGET = 5.0
#: Default folder of artifacts.
FOLDER = Path("build/compare")


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        description="Export a zoo with two toolchains, judge both, and list the differences: worst first, by cause. No "
        "golden is read or written. A toolchain is a release, a release with other versions or with the Python "
        "sources of a checkout, or the Python of an environment. In a clone of ExecuTorch no name is needed: its "
        "working tree is compared with the commit of upstream that it is from.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="BASE HEAD",
        help="two toolchains, e.g. 1.5.1 '1.5.1 + ../executorch'; in a clone of ExecuTorch one revision or release to "
        "compare the working tree with, or none for its merge base with upstream's main",
    )
    share(
        parser.add_argument,
        "--models",
        help=f"zoo: a module that registers cases; repeatable; or {config.ZOO} (default: of [tool.goldens], else that)",
    )
    share(parser.add_argument, "--cell")
    parser.add_argument(
        "--tier",
        choices=("core", "full"),
        help="the core of the base's release, or all cells (default: cells that reach the edit; core where there is "
        "none and one is committed)",
    )
    parser.add_argument(
        "--pass",
        dest="of_pass",
        metavar="NAME",
        help="cells that reach a pass of this name: of these, those whose graph it changes on the base, or that fail "
        "in it",
    )
    share(parser.add_argument, "--variations", default="quick", help="on both sides (default: %(default)s)")
    parser.add_argument(
        "--patches",
        metavar="auto|none|NAME,...",
        help="on both sides; auto: those that both releases declare (default: of [tool.goldens], else none)",
    )
    parser.add_argument(
        "--budget",
        type=positive_float,
        default=BUDGET,
        metavar="MINUTES",
        help="of cells that reach the edit, compare what so many minutes are enough for (default: %(default)g)",
    )
    parser.add_argument(
        "--allow",
        default="",
        metavar="renames,order,unreached",
        help="what does not make the exit code 1: differences, or that no edited line was reached",
    )
    parser.add_argument(
        "--require",
        default="",
        metavar="reached,all",
        help="what else makes the exit code 1: an edited line that was not reached and does not only raise; a cell "
        "left out for time",
    )
    parser.add_argument(
        "--first",
        action="store_true",
        help="end at the first cell that differs and is not allowed: git bisect asks for no more",
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a comment")
    parser.add_argument("--json", action="store_true", help="print JSON")
    share(parser.add_argument, "--jobs", default=cores())
    share(parser.add_argument, "--export-timeout", default=EXPORT_TIMEOUT)
    parser.add_argument(
        "--cache", choices=("on", "off"), default="on", help="reuse earlier exports (default: %(default)s)"
    )
    share(parser.add_argument, "--sweeps", help=f"where results go (default: below {FOLDER})")
    plugins.add_options("compare", parser.add_argument)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare; print the differences; return the exit code. Raises CommandError and errors of toolchains and sweeps."""
    from executorch_goldens_plugins.compare.page import asked_for

    try:
        decided = asked_for(arguments.allow, arguments.require)
        varied = variations.variations(variations.named(arguments.variations))
    except ValueError as error:
        raise CommandError(str(error)) from error
    if len(varied) < 2:
        raise CommandError(
            "--variations: one variation cannot show that exports repeat; pass --variations quick"
        )
    arguments.models = config.take_zoo(arguments.models)
    repository = config.load()
    named = clone.taken(arguments.names, Path.cwd())
    base, head = (Toolchain.from_name(word, repository) for word in (named.base, named.head))
    zoos = repository.zoos(arguments.models)
    # Zoos import torch, and those of a release's wheels are sure to have what the harness needs.
    driver = next((each for each in (base, head) if each.is_declared), base)
    if handing.is_needed(driver.python):
        handing.over(driver.python, ["compare", *arguments.forwarded], zoos, repository)
    if named.why:
        say(named.why)
    return compare(arguments, base, head, varied, *decided)


def compare(
    arguments: argparse.Namespace,
    base: Toolchain,
    head: Toolchain,
    varied: Sequence[variations.Variation],
    kinds: Sequence[str],
    required: Sequence[str],
) -> int:
    """Compare in this process, whose Python can import the zoo."""
    from executorch_goldens.results.compared import KINDS
    from executorch_goldens.sweep.store import Store, default_root
    from executorch_goldens_plugins.compare.asked import WRONG, Asked
    from executorch_goldens_plugins.compare.exporting.instrument import instrument
    from executorch_goldens_plugins.compare.making import Comparison, changed_by
    from executorch_goldens_plugins.compare.outcome import REACHED
    from executorch_goldens_plugins.compare.page import ComparisonPage
    from executorch_goldens_plugins.compare.reach.edits import probed
    from executorch_goldens_plugins.compare.sides import Sides

    started, repository = time.monotonic(), config.load()
    with saying("reading what was edited"):
        asked = Asked.parse(base, head, arguments, repository)
    if REACHED in required and asked.edits is None:
        raise CommandError(
            "--require reached: which lines were edited is known only of a head that is the base with other Python"
        )
    known = asked.seconds(repository.goldens / str(base.release.version))
    how = Settings(
        interpreter=base.python,
        models=asked.zoos,
        patches=(),
        jobs=arguments.jobs,
        limit=arguments.export_timeout,
        tolerances=repository.tolerances,
        instrument=instrument(asked.files),
        changing=CHANGING,
    )
    with saying("reading the zoo with both toolchains"):
        sides = Sides.between(base, head, how, repository.targets, arguments.patches or repository.patches)
    if asked.edits is not None and not asked.edits.others and not arguments.of_pass:
        sides = sides.probing(probed(asked.edits, base.site_packages))
    folder = arguments.sweeps or FOLDER / slug(base.name, head.name)
    there = frozenset(sides.cells)
    further = {cell: why for cell, why in asked.left_out.items() if cell in there}
    comparison = Comparison(
        sides,
        chosen(sides, arguments, asked, known),
        tuple(varied),
        folder.resolve(),
        Store(repository.cache_dir or default_root()) if arguments.cache == "on" else None,
        beside=asked.edits is not None,
        known=known,
        seconds=60 * arguments.budget if asked.choice is not None else math.inf,
        started=started,
        further=tuple(further),
        last=frozenset(cell for cell, why in further.items() if why == WRONG),
        enough=frozenset(KINDS).difference(kinds) if arguments.first else frozenset(),
    )
    comparison.run(changed_by(arguments.of_pass) if arguments.of_pass else lambda *_: True, asked.search)
    if arguments.of_pass and not comparison.found:
        raise CommandError(f"--pass {arguments.of_pass}: it changes the graph of no cell that was chosen")
    made = [column(comparison) for column, _, _ in plugins.asked("compare", arguments)]
    columns = [column for column in made if column is not None]
    page = ComparisonPage(comparison, kinds, columns, asked, required)
    with saying("grouping by cause"):
        data = page.data()
        data.write(comparison.folder)
        lines = (
            [json.dumps(plain(data), indent=1)]
            if arguments.json
            else [*(page.markdown() if arguments.markdown else page.lines())]
        )
    print("\n".join(lines))
    say(f"report: {shlex.join(['goldens', 'report', str(comparison.folder), '--html', 'report.html'])}")
    return SAME if not page.is_red and all(column.is_right for column in columns) else DIFFERENT


def chosen(sides: Any, arguments: argparse.Namespace, asked: Any, known: Any) -> tuple[Any, ...]:
    """Return the cells to compare, of those that both sides have; raise UsageError."""
    from executorch_goldens.running import core
    from executorch_goldens.running.selection import select

    if asked.choice is not None:
        there = frozenset(sides.cells)
        return tuple(cell for cell in asked.cells if cell in there)
    selected = select(sides.cells, arguments.cell)
    root = config.load().goldens / str(sides.base.release.version)
    file = root / core.FILE
    narrowed = arguments.tier is None and not arguments.cell and not arguments.models and file.is_file()
    if arguments.tier == "core" or narrowed:
        selected &= frozenset(core.read(file))
    if not selected:
        raise CommandError("none of the cells chosen is in the core that both have: pass --tier full")
    return tuple(known.longest_first(cell for cell in sides.cells if cell in selected))


def slug(*words: str) -> str:
    """Return the name of a folder for a comparison of two toolchains.

    >>> slug("1.4.1", "1.4.1 + ../executorch@main")
    '1.4.1-1.4.1-executorch-main'
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words).replace("../", "")).strip("-.")
