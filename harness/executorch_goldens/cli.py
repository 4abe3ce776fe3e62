"""The command line: one subcommand per module of `executorch_goldens.commands`, and those of `plugins`.

Each module has a function `add_to`, which adds its parser and sets the parser's default ``run`` to a function of the
parsed arguments that returns the exit code, and ``forms`` to its `settings.arguments.Forms` if it has several. A module
is imported only when its subcommand is asked for: the list of all of them takes as long as Python itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module, metadata
from typing import Any, TextIO, cast

from executorch_goldens import plugins
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import interrupts, os_errors, untrusted
from executorch_goldens.settings.arguments import Forms

#: Subcommands, and what they are for.
COMMANDS = {
    "diff": "show how two payloads, goldens or releases differ",
    "env": "make, list and remove the environments of toolchains",
    "review": "review changed cells, cause by cause, and accept or reject them",
    "run": "check the cells of a zoo against their goldens",
    "show": "print a payload, a .pte or a cell as text",
}
#: The modules that bring them: one is imported when its subcommand is asked for, none for the list of them.
MODULES = {name: f"executorch_goldens.commands.{name}" for name in COMMANDS}

#: Commands that draw on the terminal themselves: they use `executorch_goldens.files.untrusted` where they write.
OWN_SCREEN = ("review", "run")

#: Exit codes, as of ``diff``.
SAME, DIFFERENT, ERROR = 0, 1, 2


class EscapedOutput:
    """An output that escapes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, words: str) -> int:
        return self.stream.write(untrusted.escape_controls(words))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def shown_output() -> Iterator[None]:
    """Escape control characters of everything printed within it."""
    with (
        contextlib.redirect_stdout(cast("TextIO", EscapedOutput(sys.stdout))),
        contextlib.redirect_stderr(cast("TextIO", EscapedOutput(sys.stderr))),
    ):
        yield


class _Version(argparse.Action):
    """Prints the versions that a bug report needs, and the kernels that programs run with."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for line in versions():
            print(line)
        parser.exit()


def versions() -> Iterator[str]:
    """Yield the versions of this project and of the exporting packages, and the kernels where a runtime has some."""
    for name in ("executorch-goldens", "executorch", "torch", "torchao", "tosa-tools"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"
    try:
        kernels = import_module("executorch_goldens.exporting.kernels")
    except ImportError:
        return
    if kernels.load():
        yield f"kernels {kernels.summary()}"


def of_plugins() -> str:
    """Return what plugins add to commands; raise `executorch_goldens.extensions.ExtensionError`."""
    lines = sorted(line for plugin in plugins.load().values() for line in plugin.lines())
    return "\n".join(("options of plugins:", *(f"  {typed:<26}{does}" for typed, does in lines)))


def parse(
    parser: argparse.ArgumentParser, words: Sequence[str], modules: Mapping[str, str]
) -> argparse.Namespace | None:
    """Return the parsed words, None where there are none; raise HarnessError.

    The parser gets the subcommand that they name, or all. Those of plugins are looked for where it is none of the core.
    """
    added: Mapping[str, str] = {}
    if modules is MODULES and next(iter(words), "") not in MODULES:
        added = plugins.commands(MODULES)
        parser.epilog = of_plugins()
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    named = next((word for word in words[:1] if word in (*modules, *added)), None)
    for name in sorted((*modules, *added)) if named is None else ():
        subparsers.add_parser(
            name, help=COMMANDS.get(name) or (plugins.help_of(name) if name in added else None)
        )
    if named is not None:
        module = plugins.command(named) if named in added else import_module(modules[named])
        module.add_to(subparsers)
    if not words:
        return None
    parsed, unknown = parser.parse_known_args(words)
    if unknown and not hasattr(parsed, "forwarded"):
        subparsers.choices.get(named or "", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    # A command that hands its words on gets them as they were given.
    parsed.forwarded = words[1:]
    forms: Forms | None = getattr(parsed, "forms", None)
    if forms is not None:
        forms.check(subparsers.choices[words[0]], words[1:], parsed)
    return parsed


def main(
    arguments: Sequence[str] | None = None,
    modules: Mapping[str, str] = MODULES,
    prog: str = "goldens",
    description: str = "Golden-artifact regression tests of ExecuTorch exports.",
) -> int:
    """Run a subcommand of `modules`, by name, and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show versions and kernels and exit")
    try:
        parsed = parse(parser, words, modules)
        if parsed is None:
            parser.print_help(sys.stderr)
            return ERROR
        run: Callable[[argparse.Namespace], int] = parsed.run
        shown = contextlib.nullcontext() if words[0] in OWN_SCREEN else shown_output()
        with interrupts.ended_in_order(), os_errors.as_user_error(), shown:
            code = run(parsed)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return interrupts.INTERRUPTED
    except HarnessError as error:
        print(untrusted.escape_controls(f"{parser.prog}: {error}"), file=sys.stderr)
        return ERROR
    except BrokenPipeError:
        # The reader has seen enough (a pager, head): not an error. Nothing more may be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # But for what was to check something, and has not come to its end.
        return interrupts.UNREAD if words[0] in OWN_SCREEN else SAME
