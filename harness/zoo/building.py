"""Build backend: setuptools, over a copy of this folder with what `goldens compare` reads of the repository around it.

A source distribution has these files already; a build from one copies nothing else.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any

from setuptools import build_meta

HERE = Path(__file__).resolve().parent
#: This project's repository, where this folder is in it.
REPOSITORY = HERE.parents[1]
#: The part of it that the distribution has.
PART = Path("executorch_goldens_zoo", "repository")
#: Files of a release: its map of reach, its core, and what its cells take.
OF_A_RELEASE = ("reach.xz", "core.txt", "seconds.txt", "release.toml")
#: Sources of maps of reach beside the zoo with goldens: tests/commands/test_wheel.py compares with the maps.
FURTHER = ("models.ways", "lab.options.zoo")
#: Files that modules of zoos read, relative to the folder of the module.
DATA = ("*.npz", "*.tsv", "*/*.samples.txt")


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build the wheel in `folder`; return its name (PEP 517)."""
    folder = str(Path(folder).absolute())
    with assembled():
        return str(build_meta.build_wheel(folder, settings, metadata))


def build_sdist(folder: str, settings: Any = None) -> str:
    """Build the source distribution in `folder`; return its name (PEP 517)."""
    folder = str(Path(folder).absolute())
    with assembled():
        return str(build_meta.build_sdist(folder, settings))


@contextlib.contextmanager
def assembled() -> Iterator[None]:
    """Work in a complete copy of this folder: what an earlier build left is in none."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "zoo")
        shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
        if not (HERE / PART).is_dir():
            shutil.copy2(REPOSITORY / "LICENSE", copy)
            for file in sorted(needed()):
                target = copy / PART / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPOSITORY / file, target)
            (copy / PART / "pyproject.toml").write_text(table())
        with contextlib.chdir(copy):
            yield


def needed() -> Iterator[Path]:
    """Yield the files that are copied as they are, relative to the repository."""
    modules = {file for file in map(Path, imported()) if file.is_relative_to(REPOSITORY)}
    data = {file for module in modules for pattern in DATA for file in module.parent.glob(pattern)}
    releases = {file for name in OF_A_RELEASE for file in (REPOSITORY / "goldens").glob(f"[0-9]*/{name}")}
    yield from (file.relative_to(REPOSITORY) for file in modules | data | releases)


def imported() -> Iterator[str]:
    """Yield the files of the zoos, and of what they import and the harness does not bring, also within functions."""
    folders = [str(REPOSITORY / "harness"), str(REPOSITORY)]
    finder = ModuleFinder(folders, excludes=["executorch_goldens", "executorch_goldens_plugins"])
    for zoo in zoos():
        finder.import_hook(zoo)
    yield from (file for module in finder.modules.values() if (file := getattr(module, "__file__", None)))


def zoos() -> Iterator[str]:
    """Yield the modules that register the cells of maps: those that roots of goldens name, and further ones."""
    yield from FURTHER
    for pattern in ("zoo.txt", "*/zoo.txt"):
        for file in (REPOSITORY / "goldens").glob(pattern):
            yield from re.findall(r"^models: (\S+)$", file.read_text(), re.MULTILINE)


def table() -> str:
    """Return the table ``[tool.goldens]`` of the repository, as it is written."""
    text = (REPOSITORY / "pyproject.toml").read_text()
    (found,) = re.findall(r"^\[tool\.goldens\]\n(?:[^\[\n].*\n)+", text, re.MULTILINE)
    return str(found)
