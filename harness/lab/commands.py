"""Every command with its arguments, from the argument parsers: a part of docs/commands.md."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import import_module

from executorch_goldens import cli, plugins
from lab import markdown
from lab.pages import Part

#: The commands of the core and of plugins.
COMMANDS = dict(
    sorted((cli.COMMANDS | {name: plugins.help_of(name) for name in plugins.commands(cli.MODULES)}).items())
)
#: Arguments whose default follows the machine: the page does not show it.
OF_MACHINES = ("jobs", "cache_dir")


def parts() -> Iterator[Part]:
    """Yield the commands of docs/commands.md."""
    yield Part("docs/commands.md", "commands", lines)


def lines() -> Iterator[str]:
    """Yield the lines of that part."""
    yield ""
    yield from markdown.head(("command", "does"))
    yield from (
        markdown.row((f"[`goldens {name}`](#goldens-{name})", does)) for name, does in COMMANDS.items()
    )
    for name in COMMANDS:
        yield ""
        yield from section(name)
    yield ""


def section(name: str) -> Iterator[str]:
    """Yield the part of one command."""
    command = parser(name)
    yield f"## goldens {name}"
    yield ""
    yield " ".join((command.description or "").split())
    yield ""
    yield from markdown.head(("argument", "means"))
    yield from (
        markdown.row((called(action), meaning(action))) for action in command._actions if shown(action)
    )


def parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand."""
    subparsers = argparse.ArgumentParser(prog="goldens").add_subparsers()
    import_module((cli.MODULES | plugins.commands(cli.MODULES))[name]).add_to(subparsers)
    found: argparse.ArgumentParser = subparsers.choices[name]
    return found


def shown(action: argparse.Action) -> bool:
    """Return whether the page has a row for an argument."""
    return action.help is not argparse.SUPPRESS and "-h" not in action.option_strings


def called(action: argparse.Action) -> str:
    """Return an argument as it is typed: its names, and the name of its value."""
    value = action.metavar or (action.choices and "|".join(map(str, action.choices))) or action.dest.upper()
    named = " ".join(value) if isinstance(value, tuple) else str(value)
    if not action.option_strings:
        return f"`{named}`"
    names = ", ".join(action.option_strings)
    return f"`{names}`" if action.nargs == 0 else f"`{names} {named}`"


def meaning(action: argparse.Action) -> str:
    """Return the help of an argument, with its default unless that is of this machine."""
    values = vars(action) | {"prog": "goldens"}
    text = (action.help or "") % values
    if action.dest in OF_MACHINES:
        text = re.sub(r"default: [^;)]+", "default: by machine", text)
    return " ".join(text.split())
