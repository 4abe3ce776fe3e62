"""Targets, patches, payload formats and plugins that installed distributions add through entry points.

Each of the four tables has a group. The name of an entry point is the name of what it gives, so that the names are
known before anything is imported. Nothing is imported until a table is asked for something that is not its own.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Collection
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from executorch_goldens.errors import UsageError

#: The groups: of `targets.Target`, `patches.Patch` and `decode.Format`.
TARGETS = "executorch_goldens.targets"
PATCHES = "executorch_goldens.patches"
DECODERS = "executorch_goldens.decoders"
GROUPS = (TARGETS, PATCHES, DECODERS)
#: The group of `plugins.Plugin`: it is of the environment that a command is typed in, and no export's.
PLUGINS = "executorch_goldens.plugins"

#: Variable with the plugins of the process that started this one, for a Python that has none: see `handed_on`.
HANDED_ON = "EXECUTORCH_GOLDENS_PLUGINS"

T = TypeVar("T")


class ExtensionError(UsageError):
    """An entry point that gives nothing that can be used; the message names it and the distribution that brings it."""


@functools.cache
def points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Return the entry points of `group` that this environment has, sorted by name; none is imported."""
    found = sorted(metadata.entry_points(group=group), key=lambda point: (point.name, point.value))
    if group != PLUGINS:
        return tuple(found)
    # What was handed on takes the place of what an environment happens to have of the same name.
    handed = [metadata.EntryPoint(name, value, group) for name, value, _ in _RECEIVED]
    names = {point.name for point in handed}
    return (*handed, *(point for point in found if point.name not in names))


@functools.cache
def packages() -> tuple[str, ...]:
    """Return the top-level packages whose code is the harness's: its own, and those of plugins."""
    return ("executorch_goldens", *dict.fromkeys(map(_package, points(PLUGINS))))


def _package(point: metadata.EntryPoint) -> str:
    return point.module.partition(".")[0]


#: Plugins that were handed on to this process: name, value, and the folder that the package is in.
_RECEIVED: list[tuple[str, str, str]] = []


@functools.cache
def handed_on() -> dict[str, str]:
    """Return the variable by which a Python that this process starts finds its plugins: `receive` reads it."""
    rows = [(point.name, point.value, _folder(_package(point))) for point in points(PLUGINS)]
    return {HANDED_ON: json.dumps(rows)}


def _folder(package: str) -> str:
    """Return the folder that a package or module is imported from; empty where there is none."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    place = Path(spec.origin).parent
    return str(place.parent if spec.submodule_search_locations else place)


def receive() -> None:
    """Let this process find the plugins of the one that started it: their packages, and nothing beside these."""
    rows = json.loads(os.environ.get(HANDED_ON, "[]"))
    _RECEIVED.extend((name, value, folder) for name, value, folder in rows)
    if _RECEIVED:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    """Finds the packages of plugins that were handed on."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        folder = next(
            (each for _, value, each in _RECEIVED if value.startswith((f"{name}.", f"{name}:"))), ""
        )
        return PathFinder.find_spec(name, [folder]) if folder and path is None else None


def distribution(point: metadata.EntryPoint) -> str:
    """Return name and version of the distribution that brings an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unnamed distribution"


def refusal(point: metadata.EntryPoint, what: str) -> ExtensionError:
    """Return the error to raise for a broken entry point."""
    brought_by = distribution(point)
    return ExtensionError(
        f"entry point {point.name!r} = {point.value!r} of {brought_by}, group {point.group}, {what}. "
        f"Correct it there, or uninstall {brought_by.partition(' ')[0]}"
    )


def load(group: str, kind: type[T], name_of: Callable[[T], str], taken: Collection[str]) -> dict[str, T]:
    """Import the entry points of `group` and return their objects, by name.

    Parameters
    ----------
    kind
        The required type of each.
    name_of
        Its own name, which its entry point repeats.
    taken
        The names that are not free.

    Raises
    ------
    ExtensionError
        For one that cannot be imported, is of a different kind, or has a name that is taken or not the entry point's.
    """
    found: dict[str, T] = {}
    for point in points(group):
        if point.name in taken:
            raise refusal(point, "has a name that is one of the harness's own")
        if point.name in found:
            others = " and ".join(distribution(each) for each in points(group) if each.name == point.name)
            raise refusal(point, f"has a name that several distributions use: {others}")
        try:
            given = point.load()
        except Exception as error:
            raise refusal(point, f"cannot be imported ({type(error).__name__}: {error})") from error
        if not isinstance(given, kind):
            article = f"a {kind.__name__} of {kind.__module__}"
            raise refusal(point, f"is of type {type(given).__name__}, not {article}")
        if name_of(given) != point.name:
            raise refusal(point, f"gives {name_of(given)!r}: both must have one name")
        found[point.name] = given
    return found
