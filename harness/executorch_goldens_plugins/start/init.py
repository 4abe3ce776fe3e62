"""``goldens init``: goldens in a repository that has none, up to the first one."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.files.invocation import UPDATE
from executorch_goldens.running.selection import require_flatc
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.settings.exports import worker_environment
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.toolchains import handing, interpreters
from executorch_goldens.toolchains.naming import Name
from executorch_goldens.toolchains.toolchain import Toolchain, chosen
from executorch_goldens.zoo import targets
from executorch_goldens_plugins.start.files import StarterFiles, write
from executorch_goldens_plugins.start.model import model_named, stated

DISTRIBUTION = "executorch-goldens"
#: Ways to treat a model's weights.
KEPT = "its weights are kept (fill=False): they are the same each time it is made"
DRAWN = "its weights differ each time it is made, so the harness draws them; a function that loads yours keeps them"


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "init",
        description="Write [tool.goldens], a zoo with your model, a nox session and a workflow into the working "
        "directory, export the model once and record its first golden. A noxfile or workflow that is there stays.",
    )
    parser.add_argument(
        "model", metavar="FILE:NAME", help="the class of your model, or a function that returns it"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SHAPE[:DTYPE]",
        help="an input of the model, e.g. 1,3,224,224 or 1,16:int64; once for each",
    )
    parser.add_argument(
        "--target",
        action="append",
        metavar="TARGET",
        help="target to export for; repeatable (default: those of every case)",
    )
    share(
        with_short(parser.add_argument),
        "--toolchain",
        help="ExecuTorch release, e.g. 1.4.1 (default: the one this Python has, else the newest)",
    )
    parser.add_argument(
        "--harness",
        metavar="REQUIREMENT",
        help="requirement that installs this project in the session (default: its own origin)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write, and record the first golden; return the exit code of that run."""
    toolchain = chosen(arguments.toolchain)
    if handing.is_needed(toolchain.python):
        # The Python that takes over cannot know where this project is installed from.
        own = None if arguments.harness is not None else installed_from()
        words = ["init", *arguments.forwarded, *(["--harness", own] if own else [])]
        handing.over(toolchain.python, words, (), config.load())
    folder = Path.cwd()
    release, interpreter = toolchain.release, toolchain.python
    require_flatc(interpreter)
    beginning = beginning_of(folder, arguments, toolchain)
    texts = beginning.texts(folder)
    write(folder, texts)
    newest = releases.load().newest
    if arguments.toolchain is None and release.version != newest:
        print(
            f"this Python has ExecuTorch {release.version}, so goldens are of that; -t {newest} takes the newest"
        )
    print(f"{beginning.model} takes {', '.join(map(str, beginning.inputs)) or 'no input'}")
    print(KEPT if beginning.has_own_weights else DRAWN)
    print(f"wrote {', '.join(map(str, texts))}")
    if "file:" in beginning.harness:
        print(
            f"only this machine has {beginning.harness}: put a requirement that CI can install into noxfile.py"
        )
    cell = Cell(beginning.targets[0], beginning.case)
    words = ["run", "--cell", str(cell), UPDATE]
    print(f"$ {shlex.join(['goldens', *words])}", flush=True)
    command = [*with_harness(interpreter, handing.MAIN), *words, "-q"]
    code = subprocess.run(command, env=worker_environment(interpreter, 0)).returncode
    if code:
        print("the files stay as written: once the model is right, the command above records its golden")
        return code
    others = f"goldens run {UPDATE} records the other targets; " if len(beginning.targets) > 1 else ""
    print(f"next: {others}review goldens/ and commit")
    return SAME


def beginning_of(folder: Path, arguments: argparse.Namespace, toolchain: Toolchain) -> StarterFiles:
    """Return the sources of the files, once the model has run; raise UsageError."""
    from executorch_goldens_plugins.start import first

    model = model_named(arguments.model, folder)
    inputs = [stated(text) for text in arguments.input]
    chosen = _targets(arguments.target, toolchain.release)
    harness = _harness(arguments.harness)
    module, has_own_weights = first.built(folder, model)
    return StarterFiles(
        model=model,
        inputs=first.named(module, inputs),
        has_own_weights=has_own_weights,
        targets=chosen,
        # An environment that is here has no name on other machines.
        toolchain=toolchain.release.version if Name.parse(toolchain.name).python else toolchain.name,
        harness=harness,
        python=interpreters.own(),
    )


def _targets(given: Sequence[str] | None, release: releases.Release) -> tuple[str, ...]:
    of_every_case = [
        name for name, target in targets.TARGETS.items() if not target.opt_in and name in release.targets
    ]
    for name in given or ():
        targets.find(name)
        if name not in release.targets:
            raise UsageError(
                f"ExecuTorch {release.version} has no target {name!r}: {release.unsupported[name]}"
            )
    return tuple(dict.fromkeys(given or of_every_case))


def _harness(given: str | None) -> str:
    requirement = given or installed_from() or ""
    try:
        Requirement(requirement)
    except InvalidRequirement as error:
        raise UsageError(f"--harness {requirement!r} installs nothing: {error}") from error
    return requirement


def installed_from() -> str | None:
    """Return the requirement that this project was installed by, or None where it is not installed.

    The record is ``direct_url.json`` (PEP 610); what has none came from an index.
    """
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
    record = distribution.read_text("direct_url.json")
    if record is None:
        return f"{DISTRIBUTION}=={distribution.version}"
    origin = json.loads(record)
    if "vcs_info" in origin:
        return (
            f"{DISTRIBUTION} @ {origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}"
        )
    return f"{DISTRIBUTION} @ {origin['url']}"
