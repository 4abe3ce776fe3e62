"""The command ``run``: check the cells of a zoo against their goldens, by pytest."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.files import untrusted
from executorch_goldens.running import options, reporting
from executorch_goldens.running.plan import plan
from executorch_goldens.settings.arguments import with_short
from executorch_goldens.toolchains import handing

#: The command that a wrapper of this one was called with, for messages: nox, for instance.
CALLED_AS = "EXECUTORCH_GOLDENS_CALLED_AS"

#: Options with which pytest runs the cells, and nothing of the current project.
PYTEST = (
    *(
        "-p",
        "executorch_goldens.running.plugin",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
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
    _add_options(parser, every=False)
    parser.set_defaults(run=run, forwarded=())


def _add_options(parser: argparse.ArgumentParser, every: bool) -> None:
    parser.add_argument(
        "--help-all", action=_HelpAll, nargs=0, help="show the options that few need as well, and exit"
    )
    adders = {title: with_short(parser.add_argument_group(title).add_argument) for title in options.GROUPS}
    adders[options.SELECT]("--plan", action="store_true", help="print the plan of the run and exit")
    adders[options.EXPORT](
        "--watch",
        action="store_true",
        help="keep templates, and check cells again when a file that they depend on is saved",
    )
    options.add_syrupys(adders, every)
    options.add_to(adders, every)


class _HelpAll(argparse.Action):
    """Prints the help of every option."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        complete(parser).print_help()
        parser.exit()


def complete(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return a parser of every option, which describes the command as `parser` does."""
    full = argparse.ArgumentParser(
        usage=parser.usage, description=parser.description, epilog=parser.epilog, add_help=False
    )
    _add_options(full, every=True)
    return full


def run(arguments: argparse.Namespace) -> int:
    """Call pytest with the words that were given; return its exit code. Raises `executorch_goldens.errors.UsageError`.

    The toolchain's Python takes the place of this one: zoos import torch.
    """
    words = list(_long(arguments.forwarded))
    called = os.environ.pop(CALLED_AS, "") or shlex.join(["goldens", "run", *arguments.forwarded])
    # A report is drawn where the command was typed: no release's environment has what draws.
    drawing = os.environ.get(reporting.PYTHON, sys.executable)
    handing.over_if_needed(arguments, ["run", *words], {CALLED_AS: called, reporting.PYTHON: drawing})
    if arguments.plan:
        for line in plan(options.read(arguments, words)).lines():
            print(untrusted.escape_controls(line))
        return SAME
    if arguments.watch:
        from executorch_goldens.running.watching import Watching

        # What it prints to type is no watch.
        arguments.called_as = called.replace(" --watch", "")
        words.remove("--watch")
        options_of_run = options.read(arguments, words)
        return Watching.of(options_of_run, [*PYTEST, f"--called-as={arguments.called_as}", *words]).run()
    import pytest

    quiet = () if any(VERBOSITY.fullmatch(word) for word in words) else ("-q",)
    return int(pytest.main([*PYTEST, *quiet, f"--called-as={called}", *words]))


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
