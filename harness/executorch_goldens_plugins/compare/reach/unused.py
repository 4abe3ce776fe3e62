"""Edits that no program can run: of files that nothing imports which lowers a cell, and of what nothing there names."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from executorch_goldens_plugins.compare.reach.code import text_of
from executorch_goldens_plugins.compare.reach.edits import PACKAGES, CodeEdit, Edits
from executorch_goldens_plugins.compare.reach.map import ReachMap

#: ``from MODULE import NAMES``, with the names in brackets or not, and ``import MODULES``.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)|import[ \t]+([^\n#]+))", re.MULTILINE
)
_NAME = re.compile(r"\w+")


def unused(edits: Edits, known: ReachMap, head: Path) -> tuple[str, ...]:
    """Return the files, classes and functions that hold the edits, if nothing can run any of them; else none.

    Nothing can run a file that no code imports which lowers a cell. Nothing can run a class or a function if no cell of
    the map does, it is not decorated, which is how visitors are registered, and no file names it of which some cell
    runs a function, its own only where it defines it.
    """
    running = [each for each in known.functions if each.situations]
    files = {known.files[each.file] for each in running}
    run = {(known.files[each.file], each.name.partition(".")[0]) for each in running}
    there = imported(head, files)
    found = {edit.file for edit in edits.every if edit.file not in there}
    held = {(edit.file, name) for edit in edits.every if edit.file in there for name in _holding(edit)}
    if held & run or not all(name and _is_plain(head / file, name) for file, name in held):
        return ()
    texts = {file: text_of(head / file) for file in files | {file for file, _ in held}} if held else {}
    for file, name in held:
        word = re.compile(rf"\b{name}\b")
        elsewhere = any(
            word.search(text) for other, text in texts.items() if other != file and other in files
        )
        if elsewhere or len(word.findall(texts[file])) > 1:
            return ()
    return tuple(sorted(found | {name for _, name in held}))


def imported(site_packages: Path, files: Collection[str]) -> set[str]:
    """Return some files and those that they import, however far, by their paths below a folder of packages.

    What is imported by a name that is made while it runs is missed.
    """
    found: set[str] = set()
    waiting = [*files]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            for module in _imports(file, text_of(site_packages / file)):
                # A package is imported before what is in it.
                waiting += ["/".join((*module[:end], "__init__.py")) for end in range(1, len(module) + 1)]
                waiting.append(f"{'/'.join(module)}.py")
    return found


def _imports(file: str, text: str) -> Iterator[tuple[str, ...]]:
    """Yield what may be a module that a file imports: what is imported from a package may be one."""
    package = PurePosixPath(file).parent.parts
    for origin, names, plain in _IMPORT.findall(text):
        dots = len(origin) - len(origin.lstrip("."))
        within = package[: len(package) - dots + 1] if dots else ()
        module = (*within, *filter(None, origin.split(".")))
        every = [tuple(each.split()[0].split(".")) for each in plain.split(",") if each.strip()]
        every += [module, *((*module, name) for name in _NAME.findall(names))] if origin else []
        yield from (each for each in every if each and each[0] in PACKAGES)


def _holding(edit: CodeEdit) -> Iterator[str]:
    """Yield the class or function of the module that an edit is in; empty for what is in none."""
    if edit.function:
        yield edit.function.partition(".")[0]
    else:
        outside = (each for each in (*edit.base, *edit.head) if not each.is_import)
        yield from (each.names[0] if each.text.startswith("ClassDef") else "" for each in outside)


def _is_plain(file: Path, name: str) -> bool:
    """Return whether a file is Python, and defines a class or a function of this name without a decorator."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    try:
        body = ast.parse(text_of(file)).body
    except SyntaxError:
        return False
    defined = [each for each in body if isinstance(each, kinds) and each.name == name]
    return bool(defined) and not any(each.decorator_list for each in defined)
