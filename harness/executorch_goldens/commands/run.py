"""The command ``run``: check the cells of a zoo against their goldens, by pytest."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from executorch_goldens import plugins
from executorch_goldens.files.invocation import UPDATE
from executorch_goldens.running import options
from executorch_goldens.running.options import CALLED_AS
from executorch_goldens.settings.arguments import with_short
from executorch_goldens.toolchains import handing

#: Options with which pytest runs the cells, and nothing of the current project.
PYTEST = (
    *(
        "-p",
        "executorch_goldens.running.plugin",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "--noconftest",
        "--pyargs",
        "executorch_goldens.running.cells",
    ),
    # The plugin shows the progress.
    *("-o", "console_output_style=classic", "--no-header"),
    # ExecuTorch brings packages with plugins that no cell needs: hypothesis' takes a second at the end to find that
    # there is nothing to say, to import the others takes a tenth of a run that exports nothing.
    *("-p", "no:hypothesispytest", "-p", "no:hydra_pytest", "-p", "no:anyio"),
    # That of 1.1.0 and 1.2.0 has a thread that waits for workers: from Python 3.12 on, a fork beside one is a warning.
    *("-p", "no:rerunfailures"),
    # No module of the harness asserts for pytest to rewrite.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


#: The variable with options for every pytest of a shell: some take cells away, or end pytest before it runs one.
ADDOPTS = "PYTEST_ADDOPTS"
#: A word that says how much pytest prints: without one, nothing of its own but its last line.
VERBOSITY = re.compile(r"-[vq]+|--verbose|--quiet|--verbosity(=.*)?")


def add_to(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "run",
        description="Export the cells of a zoo and compare them with their goldens.",
        epilog="pytest's own options (-x, -q, -v, -k, --junit-xml) are passed on.",
        usage=f"{subparsers._prog_prefix} run [OPTION ...] [an option of pytest's ...]",
        allow_abbrev=False,
    )
    groups = {title: parser.add_argument_group(title) for title in options.GROUPS}
    adders = {title: with_short(group.add_argument) for title, group in groups.items()}
    adders[options.RECORD](
        UPDATE,
        dest="update_snapshots",
        action="store_true",
        help="record new and changed cells that are right and repeat",
    )
    options.add_to(adders)
    for form in plugins.forms("run").values():
        form.add_to(groups[options.PLUGINS])
    parser.set_defaults(run=run, forwarded=())


def run(arguments: argparse.Namespace) -> int:
    """Call pytest with the words that were given; return its exit code. Raises `executorch_goldens.errors.UsageError`.

    The toolchain's Python takes the place of this one: zoos import torch.
    """
    words = list(_long(arguments.forwarded))
    called = os.environ.get(CALLED_AS) or shlex.join(["goldens", "run", *arguments.forwarded])
    handing.over_if_needed(arguments, ["run", *words], {CALLED_AS: called})
    os.environ[CALLED_AS] = called
    if further := os.environ.pop(ADDOPTS, ""):
        print(f"{ADDOPTS} is ignored ({further}): a run has the options of its command line", file=sys.stderr)
    arguments.forwarded = words
    for form in plugins.forms("run").values():
        if form.takes(arguments):
            code: int = form.run(arguments)
            return code
    import pytest

    quiet = () if any(VERBOSITY.fullmatch(word) for word in words) else ("-q",)
    return int(pytest.main([*PYTEST, *quiet, *words]))


def _long(words: Sequence[str]) -> Iterator[str]:
    """Yield words with ``--toolchain=NAME`` for all ways to say it.

    pytest keeps short options to itself, and takes a path by itself for a test, whose folder becomes its root.
    """
    listed = iter(words)
    for word in listed:
        if word in ("-t", "--toolchain"):
            word = f"--toolchain={next(listed, '')}"
        elif word.startswith("-t"):
            word = f"--toolchain={word[2:].removeprefix('=')}"
        yield word
