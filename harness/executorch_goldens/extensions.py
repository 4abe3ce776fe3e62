"""Targets, patches and payload formats that installed distributions add through entry points.

Each of the three tables has a group. The name of an entry point is the name of what it gives, so that the names are
known before anything is imported. Nothing is imported until a table is asked for something that is not its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from importlib import metadata
from typing import TypeVar

from executorch_goldens.errors import UsageError

#: The groups: of `targets.Target`, `patches.Patch` and `decode.Format`.
TARGETS = "executorch_goldens.targets"
PATCHES = "executorch_goldens.patches"
DECODERS = "executorch_goldens.decoders"
GROUPS = (TARGETS, PATCHES, DECODERS)

T = TypeVar("T")


class ExtensionError(UsageError):
    """An entry point that gives nothing that can be used; the message names it and the distribution that brings it."""


@functools.cache
def points(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Return the entry points of `group` that this environment has, sorted by name; none is imported."""
    return tuple(sorted(metadata.entry_points(group=group), key=lambda point: (point.name, point.value)))


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
