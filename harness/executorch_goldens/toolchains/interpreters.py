"""The Python that an environment is made with: the wheels of what its locks hold decide.

``locks/pythons.toml`` has, for each lock, the Pythons that all its distributions have wheels for. It is made from the
index with the locks: harness/lab/docs/supply-chain.md.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker, default_environment
from packaging.version import Version

from executorch_goldens.toolchains import locking
from executorch_goldens.toolchains.naming import ToolchainError

#: The file with the Pythons of each lock.
FILE = "pythons.toml"
#: One distribution of a lock: its line, and those below it that are indented.
ENTRY = re.compile(r"^\S.*\n(?:[ \t]+.*\n)*", re.MULTILINE)
#: Platforms of environments, as markers name them: packages for none of these are in no lock.
MACHINES = (
    ("linux", "Linux", "x86_64"),
    ("linux", "Linux", "aarch64"),
    ("darwin", "Darwin", "arm64"),
)


@dataclass(frozen=True)
class Interpreter:
    """A Python that environments are made with.

    Attributes
    ----------
    version
        Major and minor version, ``3.13``.
    request
        Word that uv and nox find it by: its path, or its version.
    """

    version: str
    request: str


def find_uv() -> str:
    """Return uv's program: beside this Python, where pip installs it, or on the PATH; raise `ToolchainError`."""
    with contextlib.suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin

        return str(find_uv_bin())
    found = shutil.which("uv")
    if found is None:
        raise ToolchainError("environments are made by uv, and there is none: pip install uv")
    return found


def own() -> str:
    """Return this Python's version; one that takes other wheels than CPython's default build has a name of its own."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    build = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return version + build if sys.implementation.name == "cpython" else f"{sys.implementation.name}{version}"


@functools.cache
def _stated(file: Path) -> Mapping[str, Sequence[str]]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def with_wheels(locks: Iterable[str]) -> tuple[str, ...]:
    """Return the Pythons that have wheels of all that locks hold, the newest first; this one where any has them."""
    stated = _stated(locking.FOLDER / FILE)
    held = [set(stated[lock]) for lock in locks if lock in stated]
    return tuple(sorted(set.intersection(*held), key=Version, reverse=True)) if held else (own(),)


def chosen(pythons: Sequence[str], is_made: Callable[[str], bool] = lambda version: False) -> Interpreter:
    """Return this Python if it is one of `pythons`, else one of them that is found, else the first, which uv downloads.

    Parameters
    ----------
    pythons
        Versions, the best first.
    is_made
        Whether the environment of a version is there already: it is taken before others that are found.
    """
    if own() in pythons:
        return Interpreter(own(), sys.executable)
    for version in pythons:
        if is_made(version):
            return Interpreter(version, version)
    for version in pythons:
        if (path := _found(version)) is not None:
            return Interpreter(version, path)
    return Interpreter(pythons[0], pythons[0])


@functools.cache
def _found(version: str) -> str | None:
    """Return the path of a Python that uv finds on this machine."""
    command = [find_uv(), "python", "find", "--system", "--no-python-downloads", version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def part_of(lock: str, python: str) -> str:
    """Return the text of a lock without what is for other versions of Python than ``3.13``, whatever the machine."""
    return ENTRY.sub(lambda entry: entry[0] if _applies(entry[0], python) else "", lock)


def _applies(entry: str, python: str) -> bool:
    _, separator, marker = entry.partition("\n")[0].removesuffix("\\").partition(" ; ")
    if not separator:
        return True
    at = {"python_version": python, "python_full_version": f"{python}.0"}
    environment: dict[str, Any] = {**default_environment(), **at, "implementation_name": "cpython"}
    return any(
        Marker(marker).evaluate(
            {**environment, "sys_platform": platform, "platform_system": system, "platform_machine": machine}
        )
        for platform, system, machine in MACHINES
    )
