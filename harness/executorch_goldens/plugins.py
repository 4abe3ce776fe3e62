"""What plugins add: commands, options and forms of the core's commands, hints, shortcuts of exports.

A plugin is a `Plugin` that an entry point of the group `extensions.PLUGINS` gives. Its table is data: what it names is
imported when a person asks for it. The core calls what plugins name and imports none of them; docs/plugins/README.md.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

from executorch_goldens import extensions

#: Commands that take options of plugins, and those that take forms.
WITH_OPTIONS = ("compare", "run")
WITH_FORMS = ("diff", "run", "show")


@dataclass(frozen=True)
class Command:
    """A command of a plugin.

    Attributes
    ----------
    help
        Purpose, in a line.
    module
        A module with ``add_to``, as the modules of `executorch_goldens.commands` have.
    """

    help: str
    module: str


@dataclass(frozen=True)
class Option:
    """An option that a plugin adds to a command of the core.

    Attributes
    ----------
    command
        One of `WITH_OPTIONS`.
    name
        ``--cluster``.
    how
        Arguments of ``add_argument`` beside the name.
    hook
        ``module:name`` of what is called where the option is given. Of ``run``, a class of
        `executorch_goldens.running.additions.Addition`, with the option and its value. Of ``compare``, a function that
        takes the comparison, as its plugin has it, and returns a `executorch_goldens.results.compared.Column`, or None.
    """

    command: str
    name: str
    how: Mapping[str, Any]
    hook: str

    @property
    def destination(self) -> str:
        """The attribute of parsed arguments that has its value."""
        return self.name.lstrip("-").replace("-", "_")


@dataclass(frozen=True)
class Form:
    """A further form of a command of the core.

    Attributes
    ----------
    command
        One of `WITH_FORMS`.
    name
        Name in messages.
    help
        Purpose, in a line.
    module
        A module with ``OPTIONS``, the names of the options that the form takes; ``add_to(parser)``, which adds those
        that the command lacks; ``takes(arguments)``, whether parsed arguments are of this form; and
        ``run(arguments)``, which returns the exit code. ``run`` gives it pytest's words as ``arguments.forwarded``, and
        needs no ``OPTIONS``: any goes with any.
    """

    command: str
    name: str
    help: str
    module: str


@dataclass(frozen=True)
class Hint:
    """A command that a plugin proposes for a cell that needs a look.

    Attributes
    ----------
    purpose
        One word, beside ``accept`` and ``again``.
    line
        The line of the cell's message.
    """

    purpose: str
    command: str
    line: str


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """What a plugin adds.

    Attributes
    ----------
    name
        Name of its entry point.
    commands
        Commands by name.
    hint
        ``module:name`` of a function that takes a `executorch_goldens.judging.verdict.Verdict`, the release and the
        words of the command that was typed, and returns a `Hint` or None; empty for none.
    shortcuts
        ``module:name`` of each `executorch_goldens.patches.patch.Patch`, by its name, that spares exports some work and
        changes nothing of what they make: exporting processes install them, but for runs that record goldens.
    zoos
        Modules that register cases, by a word for ``--models``.
    """

    name: str
    commands: Mapping[str, Command] = field(default_factory=dict)
    options: Sequence[Option] = ()
    forms: Sequence[Form] = ()
    hint: str = ""
    shortcuts: Mapping[str, str] = field(default_factory=dict)
    zoos: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield each thing that it adds to commands, as it is typed, with its help."""
        yield from ((f"{each.command} {each.name}", each.how["help"]) for each in self.options)
        yield from ((f"{each.command} {each.name}", each.help) for each in self.forms)


@functools.cache
def load() -> Mapping[str, Plugin]:
    """Return the plugins of this environment, by name; raise `extensions.ExtensionError`."""
    found = extensions.load(extensions.PLUGINS, Plugin, lambda plugin: plugin.name, ())
    for plugin in found.values():
        for each in plugin.options:
            _require(plugin, each.name, each.command, WITH_OPTIONS, "options")
        for form in plugin.forms:
            _require(plugin, form.name, form.command, WITH_FORMS, "forms")
    return found


def _require(plugin: Plugin, name: str, command: str, taking: Sequence[str], what: str) -> None:
    if command not in taking:
        raise refusal(plugin, f"adds {name} to {command!r}: only {', '.join(taking)} take {what} of plugins")


def refusal(plugin: Plugin, what: str) -> extensions.ExtensionError:
    """Return the error to raise for a plugin that cannot be used as it is."""
    (point,) = (each for each in extensions.points(extensions.PLUGINS) if each.name == plugin.name)
    return extensions.refusal(point, what)


def commands(taken: Mapping[str, str]) -> dict[str, str]:
    """Return the modules of the commands of plugins, by name; raise ExtensionError for a name of `taken` or of two."""
    return _by_name(
        "command",
        lambda plugin: {name: command.module for name, command in plugin.commands.items()},
        taken,
    )


def shortcuts() -> dict[str, str]:
    """Return ``module:name`` of the shortcuts of plugins, by name; raise ExtensionError for a name of two."""
    return _by_name("shortcut", lambda plugin: plugin.shortcuts)


def zoos() -> dict[str, str]:
    """Return the zoos of plugins, by the word for each; raise ExtensionError for a word of two."""
    return _by_name("zoo", lambda plugin: plugin.zoos)


def _by_name(
    what: str, added: Callable[[Plugin], Mapping[str, str]], taken: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    found: dict[str, str] = {}
    for plugin in load().values():
        for name, place in added(plugin).items():
            if name in taken or name in found:
                raise refusal(plugin, f"adds the {what} {name!r}, which there is")
            found[name] = place
    return found


def add_options(command: str, add: Callable[..., Any]) -> None:
    """Add the options that plugins have for a command of the core by `add`, an ``add_argument`` or an ``addoption``."""
    for plugin in load().values():
        for option in plugin.options:
            if option.command == command:
                try:
                    add(option.name, **option.how)
                except (argparse.ArgumentError, TypeError, ValueError) as error:
                    raise refusal(plugin, f"adds an option that {command} cannot take: {error}") from error


def asked(command: str, arguments: argparse.Namespace) -> Iterator[tuple[Callable[..., Any], str, Any]]:
    """Yield what the options of plugins call that a command was given, with their names and values."""
    for plugin in load().values():
        for option in plugin.options:
            if option.command == command and (value := getattr(arguments, option.destination, None)):
                yield hook(plugin, option.hook), option.name, value


def command(name: str) -> ModuleType:
    """Return the module of a plugin's command."""
    plugin = _plugin_of(name)
    return _module(plugin, plugin.commands[name].module)


def help_of(name: str) -> str:
    """Return the purpose of a plugin's command, in a line."""
    return _plugin_of(name).commands[name].help


def _plugin_of(name: str) -> Plugin:
    (plugin,) = (each for each in load().values() if name in each.commands)
    return plugin


def forms(command: str) -> dict[str, Any]:
    """Return the modules of the forms that plugins add to a command of the core, by the name of the form."""
    return {
        form.name: _module(plugin, form.module)
        for plugin in load().values()
        for form in plugin.forms
        if form.command == command
    }


def hints(judged: Any, release: str, called: Sequence[str]) -> list[Hint]:
    """Return what plugins propose for a verdict; see `Plugin.hint`."""
    hooks = [hook(plugin, plugin.hint) for plugin in load().values() if plugin.hint]
    return [hint for each in hooks if (hint := each(judged, release, called)) is not None]


def hook(plugin: Plugin, name: str) -> Callable[..., Any]:
    """Return what a plugin names by ``module:name``; raise ExtensionError."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] | None = getattr(_module(plugin, module), attribute, None)
    if found is None:
        raise refusal(plugin, f"names {name}, which there is not")
    return found


def _module(plugin: Plugin, name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise refusal(plugin, f"names {name}, which cannot be imported ({error})") from error
