"""The zoo of a run, from the repository that it is in.

A run needs what `Listed` has of its cases. Their functions, and torch with them, are imported where cases are exported.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

import msgspec

from executorch_goldens import patches
from executorch_goldens.errors import HarnessError
from executorch_goldens.settings import config
from executorch_goldens.zoo import registry
from executorch_goldens.zoo.registry import Case, ZooError


class Listed(msgspec.Struct, frozen=True):
    """A case without its function; see `executorch_goldens.zoo.registry.Case`."""

    name: str
    module: str
    backends: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    is_build: bool = False

    @classmethod
    def from_case(cls, case: Case) -> Listed:
        return cls(**{name: getattr(case, name) for name in cls.__struct_fields__})


class Zoo(msgspec.Struct, frozen=True):
    """What importing some zoos registers.

    Attributes
    ----------
    cases
        Cases by name, in order of registration.
    files
        The files of the zoos' own modules.
    patches
        Names of all patches that there are then.
    """

    cases: Mapping[str, Listed]
    files: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()

    @property
    def modules(self) -> dict[str, str]:
        """The module of each case."""
        return {name: case.module for name, case in self.cases.items()}


def load_zoo(models: Sequence[str]) -> dict[str, Case]:
    """Import the zoos named, from the repository of the run before anywhere else; raise `registry.ZooError`."""
    _look_here_first()
    return registry.load(models)


def list_zoo(models: Sequence[str], again: bool = False) -> Zoo:
    """Return what the zoos named register; raises as `load_zoo`.

    A child of this process imports them, and this process does not get the 600 MiB that torch takes. Where torch
    has been imported, it imports them itself.

    Parameters
    ----------
    again
        Whether their files may have changed since they were listed last: a child imports them then.
    """
    _look_here_first()
    if again:
        _listed_in_child.cache_clear()
    elif "torch" in sys.modules:
        return _listed(models)
    return _listed_in_child(tuple(models), tuple(sys.path))


def _look_here_first() -> None:
    first = [str(path) for path in config.load().import_paths()]
    # Also where they come later on the path: a package `models` elsewhere would be found first.
    sys.path[:] = [*first, *(path for path in sys.path if path not in first)]


def _listed(models: Sequence[str]) -> Zoo:
    cases = {name: Listed.from_case(case) for name, case in registry.load(models).items()}
    files = (getattr(sys.modules[name], "__file__", None) for name in models)
    return Zoo(cases, tuple(filter(None, files)), tuple(patches.PATCHES))


@functools.cache
def _listed_in_child(models: tuple[str, ...], path: tuple[str, ...]) -> Zoo:
    """Return `_listed` from a child: once for each path that modules are imported from, as imports are."""
    fork = multiprocessing.get_context("fork")
    reader, writer = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(models, writer))
    child.start()
    writer.close()
    try:
        found: Zoo | str | None = reader.recv()
    except EOFError:
        found = None
    child.join()
    if isinstance(found, str):
        raise ZooError(found)
    if found is None:
        status = child.exitcode or 0
        how = f"signal {-status}" if status < 0 else f"status {status}"
        raise ZooError(f"--models {' '.join(models)}: the process that imports it ended with {how}")
    return found


def _answer(models: Sequence[str], answer: Connection) -> None:
    try:
        answer.send(_listed(models))
    except HarnessError as error:
        answer.send(str(error))
