"""Finds the files that modules of a package import, from their text: for modules that no process has run yet."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


def imported_from(root: Path, starts: Iterable[str], without: Collection[str] = ()) -> set[Path]:
    """Return the files of modules and of everything of the same package that they import, in functions as well.

    Parameters
    ----------
    root
        Directory of the package.
    without
        Names of modules that are not followed.
    """
    files: set[Path] = set()
    known: set[str] = set(without)
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        place = root.joinpath(*name.split("."))
        found = next(filter(Path.is_file, (place / "__init__.py", place.with_name(f"{place.name}.py"))), None)
        if name in known or (found is None and not place.is_dir()):
            continue
        known.add(name)
        # A package is imported before what is in it.
        waiting += [around for around in [name.rpartition(".")[0]] if around]
        if found is not None:
            files.add(found)
            top = name.partition(".")[0]
            waiting += [each for each in _imported(found, name) if each.partition(".")[0] == top]
    return files


def _imported(file: Path, name: str) -> Iterator[str]:
    """Yield possible imports of a module; ``from a import b`` gives ``a`` and ``a.b``."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*around, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
