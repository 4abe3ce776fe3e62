"""``goldens repro RELEASE TARGET/CASE``: one script that shows a cell's defect by itself."""

from __future__ import annotations

import argparse
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable
from executorch_goldens.running.selection import load_cells, require_flatc, select
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, cores, default_interpreter, worker_environment
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.toolchains import handing
from executorch_goldens.toolchains.installed import Installed
from executorch_goldens.toolchains.toolchain import Toolchain, here
from executorch_goldens.zoo import targets
from executorch_goldens_plugins.repro.edited import EditedPackage
from executorch_goldens_plugins.repro.issue import issue
from executorch_goldens_plugins.repro.reproduction import Repro, TrialSettings, confirm, say

#: One seed for each order of issue #19045.
VARIATIONS = "0,4"
#: Environment variable of the process in the toolchain's Python: where its ExecuTorch comes from, in words.
SOURCE = "GOLDENS_REPRO_SOURCE"
#: Options with one value.
OPTIONS = ("output", "variations", "toolchain", "jobs", "export_timeout")


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "repro",
        description="Export a cell as the release was published and write one script that shows its defect by "
        "itself. There is one for a cell that is order-only, unstable, corrupt or crashed, or that fails to "
        "lower; none for changed, new and timed-out.",
    )
    parser.add_argument("release", metavar="RELEASE", help="an ExecuTorch version of releases.toml")
    parser.add_argument("cell", metavar="TARGET/CASE")
    parser.add_argument("--minimize", action="store_true", help="shrink the model first")
    parser.add_argument(
        "--issue",
        action="store_true",
        help="write an issue for the tracker, in Markdown, with the script, the verdict and the environment in it",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    share(parser.add_argument, "--variations", default=VARIATIONS, help="default: %(default)s")
    share(parser.add_argument, "--models")
    share(with_short(parser.add_argument), "--toolchain", help="another that has RELEASE (default: RELEASE)")
    share(parser.add_argument, "--jobs", default=cores())
    share(parser.add_argument, "--export-timeout", default=EXPORT_TIMEOUT)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the script."""
    wanted = releases.load().release(arguments.release).version
    toolchain = _toolchain(wanted, arguments.toolchain)
    release, interpreter = toolchain.release, toolchain.python
    if toolchain.site_packages != Path(sysconfig.get_path("purelib")):
        return _elsewhere(toolchain, arguments)
    models = config.load().zoos(arguments.models)
    cell = _cell(arguments.cell, load_cells(models, release))
    if cell.target == targets.BUILD:
        raise UsageError(
            f"{cell} makes its whole program by itself: the function of the case is the script. goldens run --cell "
            f"{cell} shows the defect, and goldens show {cell} its result"
        )
    output = arguments.output
    if output is not None and output.exists():
        raise UsageError(f"{output} exists: delete it, or name another file")
    if output is not None and not os.access(output.parent, os.W_OK):
        raise UsageError(f"{output} cannot be written: {output.parent} is no folder that can be written to")
    require_flatc(interpreter)
    asked = TrialSettings(
        arguments.variations,
        models,
        arguments.jobs,
        arguments.export_timeout,
    )
    with tempfile.TemporaryDirectory(prefix="goldens-repro-") as folder:
        edited = EditedPackage.from_toolchain(toolchain, os.environ.get(SOURCE, toolchain.source))
        script = Repro(cell, release, interpreter, asked, Path(folder), edited).script(arguments.minimize)
        seen = confirm(script.text, interpreter)
    say(f"the script by itself: {seen}")
    text = issue(script, cell.target, release, seen) if arguments.issue else script.text
    if output is None:
        print(text, end="")
    else:
        _write(text, output)
    return SAME


def _toolchain(wanted: str, named: str | None) -> Toolchain:
    """Return the toolchain named, else this Python's if it has the release, else the release's; raise UsageError."""
    if named is None and Installed.probe(default_interpreter()).versions.get("executorch") == wanted:
        return here()
    toolchain = Toolchain.from_name(named or wanted, config.load())
    if toolchain.release.version != wanted:
        raise UsageError(f"--toolchain {named!r} is ExecuTorch {toolchain.release.version}, and not {wanted}")
    return toolchain


def _elsewhere(toolchain: Toolchain, arguments: argparse.Namespace) -> int:
    """Run the command in the environment of the release: graphs are changed by the torch that exported them."""
    interpreter = toolchain.python
    given = {**vars(arguments), "toolchain": interpreter}
    words = [f"--{name.replace('_', '-')}={given[name]}" for name in OPTIONS if given[name] is not None]
    words += [f"--models={module}" for module in arguments.models or ()]
    words += [f"--{name}" for name in ("minimize", "issue") if getattr(arguments, name)]
    command = [*with_harness(interpreter, handing.MAIN), "repro", arguments.release, arguments.cell, *words]
    environment = {**worker_environment(interpreter, 0), SOURCE: toolchain.source}
    return subprocess.run(command, env=environment).returncode


def _cell(name: str, cells: Sequence[Cell]) -> Cell:
    try:
        chosen = select(cells, [name])
    except UsageError as error:
        raise UsageError(str(error).removeprefix("--cell ")) from error
    if len(chosen) > 1:
        raise UsageError(f"{name!r} is {len(chosen)} cells; name one, e.g. {min(chosen)}")
    (cell,) = chosen
    return cell


def _write(text: str, output: Path) -> None:
    """Write the script, whole or not at all."""
    try:
        durable.replace(output, text)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error}") from error
    say(f"wrote {output}")
