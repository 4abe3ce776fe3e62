"""Hands a command over to the Python of a toolchain: zoos import torch, which a person's environment need not have."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from executorch_goldens import extensions
from executorch_goldens.files.waits import saying
from executorch_goldens.settings import config
from executorch_goldens.settings.config import Config
from executorch_goldens.settings.exports import absolute, default_interpreter
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.toolchains.toolchain import chosen

#: Says to the process that takes over that it need not hand over again.
HANDED = "EXECUTORCH_GOLDENS_HANDED_OVER"
#: Code that the other Python runs.
MAIN = "from executorch_goldens.cli import main; sys.exit(main())"


def over_if_needed(
    arguments: argparse.Namespace, words: Sequence[str], variables: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Hand a command over that exports in one toolchain, where that is not this Python's.

    Parameters
    ----------
    arguments
        Arguments with ``toolchain`` and ``models``, as they were said.
    variables
        Variables of the environment of the process that takes over.

    Raises
    ------
    UsageError
        Where there is no such toolchain.
    """
    repository = config.load()
    with saying("reading the toolchain"):
        python = chosen(arguments.toolchain).python
    if is_needed(python):
        os.environ.update(variables)
        over(python, words, repository.zoos(arguments.models), repository)


def is_needed(python: Path) -> bool:
    """Return whether a command has to continue in a toolchain's Python, which is not this one."""
    return os.environ.get(HANDED) != str(absolute(python)) and absolute(default_interpreter()) != absolute(
        python
    )


def over(python: Path, words: Sequence[str], zoos: Iterable[str], repository: Config) -> NoReturn:
    """Go on with the command that `words` are in another Python, in the place of this process.

    Parameters
    ----------
    zoos
        Modules that register cases: what this Python finds outside of the repository, it finds there as well.
    """
    places = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *map(str, _places(zoos, repository))]
    environment = {
        **os.environ,
        **extensions.handed_on(),
        HANDED: str(python),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, places))),
    }
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(python, [*with_harness(python, MAIN), *words], environment)


def _places(zoos: Iterable[str], repository: Config) -> Iterator[Path]:
    """Yield the directories that zoos come from which are installed here from a folder of somebody's."""
    for zoo in zoos:
        package = zoo.partition(".")[0]
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            continue
        origin = Path(found.origin)
        folder = origin.parent.parent if found.submodule_search_locations else origin.parent
        if "site-packages" not in folder.parts and folder not in repository.import_paths():
            yield folder
