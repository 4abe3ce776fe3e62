"""The edits that lead from the Python sources of one toolchain to those of another: by function, in statements."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.reach.code import Function, Module, Statement, module

#: Packages whose Python lowers programs.
PACKAGES = ("executorch", "torchao")
#: Tests and examples of these packages: no export runs them.
_NO_CODE = re.compile(r"/(test|tests|testing|examples)/")
#: Endings of files of a package that no export reads.
_NOT_READ = (
    *(".pyc", ".pyi", ".typed", ".md", ".rst", ".txt", ".ipynb", ".sh", ".bzl", ".cmake"),
    *(".h", ".hpp", ".c", ".cc", ".cpp", ".cu"),
)


@dataclass(frozen=True)
class Edit:
    """A function that is not the same in two trees, or statements of a module outside of functions.

    Attributes
    ----------
    file
        Its path below site-packages.
    function
        Its name in the file; empty for what is outside of functions.
    head
        Statements of the head that the base lacks, and those behind which it lost something.
    base
        Statements of the base that the head lacks, and those that stand where the head has further ones: a cell that
        reaches them reaches the edit.
    users
        Of what is outside of functions: the functions that its names are used in, as (file, function).
    """

    file: str
    function: str
    head: tuple[Statement, ...] = ()
    base: tuple[Statement, ...] = ()
    users: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Edits:
    """All edits between two trees.

    Attributes
    ----------
    every
        Edits of Python.
    files
        Paths below site-packages of Python that differs.
    others
        Files that differ and are not Python: nothing says which cells they reach.
    """

    every: tuple[Edit, ...]
    files: tuple[str, ...]
    others: tuple[str, ...]


def between(base: Path, head: Path) -> Edits:
    """Return the edits between two folders of installed packages (site-packages).

    What is moved without a change, within a file or to another, is none.
    """
    changed = sorted(_differing(base, head))
    sources = {name: (_text(base / name), _text(head / name)) for name in changed if name.endswith(".py")}
    modules = {
        name: (_parsed(name, before), _parsed(name, after)) for name, (before, after) in sources.items()
    }
    found: list[Edit] = []
    was, there = set[str](), set[str]()
    for before, after in modules.values():
        was.update(each.digest for each in before.functions.values())
        there.update(each.digest for each in after.functions.values())
    for name, (before, after) in modules.items():
        found += _of_functions(name, before, after, was, there)
        found += _outside(name, before, after, base)
    others = tuple(name for name in changed if not name.endswith(".py"))
    return Edits(tuple(found), tuple(sources), others)


def _differing(base: Path, head: Path) -> Iterator[str]:
    """Yield the paths of files of `PACKAGES` that are not the same in both folders."""
    before, after = (dict(_files(folder)) for folder in (base, head))
    for name in before.keys() | after.keys():
        one, other = before.get(name), after.get(name)
        if (
            one is None
            or other is None
            or (not one.samefile(other) and one.read_bytes() != other.read_bytes())
        ):
            yield name


def _files(site_packages: Path) -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for folder, _, names in os.walk(site_packages / package):
            for name in names:
                path = Path(folder, name)
                inside = path.relative_to(site_packages).as_posix()
                if not name.endswith(_NOT_READ) and not _NO_CODE.search(f"/{inside}"):
                    yield inside, path


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _parsed(name: str, source: str) -> Module:
    """Return what a source defines; of one that is no Python, nothing: exports say so."""
    try:
        return module(source)
    except SyntaxError:
        return Module({}, ())


def _of_functions(
    file: str, before: Module, after: Module, was: Collection[str], there: Collection[str]
) -> Iterator[Edit]:
    """Yield the edits of a file's functions; what only moved is in `was` or `there`, digests of either side."""
    for name, function in after.functions.items():
        old = before.functions.get(name)
        if (old is None and function.digest not in was) or (
            old is not None and old.digest != function.digest
        ):
            yield _edit(file, name, old, function)
    for name, old in before.functions.items():
        if name not in after.functions and old.digest not in there:
            yield Edit(file, name, base=old.statements)


def _edit(file: str, name: str, old: Function | None, new: Function) -> Edit:
    if old is None:
        return Edit(file, name, head=new.statements)
    base: dict[Statement, None] = {}
    head: dict[Statement, None] = {}
    if old.head != new.head:
        base.update(dict.fromkeys(old.statements[:1]))
        head.update(dict.fromkeys(new.statements[:1]))
    texts = [[each.text for each in function.statements] for function in (old, new)]
    for kind, start, end, first, last in difflib.SequenceMatcher(
        None, texts[0], texts[1], False
    ).get_opcodes():
        if kind == "equal":
            continue
        base.update(dict.fromkeys(old.statements[start:end] or _around(old.statements, start)))
        head.update(dict.fromkeys(new.statements[first:last] or _around(new.statements, first)))
    return Edit(file, name, tuple(head), tuple(base))


def _around(statements: Sequence[Statement], place: int) -> Sequence[Statement]:
    """Return the statement before a place; the first one for the start."""
    return statements[max(place - 1, 0) : max(place, 1)]


def _outside(file: str, before: Module, after: Module, base: Path) -> Iterator[Edit]:
    """Yield an edit for what differs outside of functions, with the functions that use what it names."""
    texts = [[f"{within}:{each.text}" for within, each in found.outside] for found in (before, after)]
    had, has = before.outside, after.outside
    old: list[tuple[str, Statement]] = []
    new: list[tuple[str, Statement]] = []
    for kind, start, end, first, last in difflib.SequenceMatcher(
        None, texts[0], texts[1], False
    ).get_opcodes():
        if kind != "equal":
            old += had[start:end]
            new += has[first:last]
    if not old and not new:
        return
    every = [each for _, each in (*old, *new)]
    names = {name for each in every for name in each.names}
    classes = {within for within, _ in (*old, *new) if within}
    classes |= {name for each in every if each.text.startswith("ClassDef") for name in each.names}
    users = {
        (file, name)
        for name, function in before.functions.items()
        if function.uses & names or name.rpartition(".")[0] in classes
    }
    users.update(
        _elsewhere({name for each in every for name in each.names if not _imports(each)}, file, base)
    )
    if not users and any(not each.names for each in every):
        # Such as a call that registers something: nothing says who needs it.
        users = {(file, name) for name in before.functions}
    head, lost = (tuple(each for _, each in side) for side in (new, old))
    yield Edit(file, "", head, lost, tuple(sorted(users)))


def _imports(statement: Statement) -> bool:
    """Return whether a statement is an import."""
    return statement.text.startswith(("import ", "from "))


def _elsewhere(names: Iterable[str], file: str, base: Path) -> Iterator[tuple[str, str]]:
    """Yield the functions of other files that use a module's name."""
    wanted = {name: name.encode() for name in names if not name.startswith("__")}
    stem = Path(file).stem.encode()
    if not wanted:
        return
    for inside, path in _files(base):
        if inside == file or not inside.endswith(".py"):
            continue
        content = path.read_bytes()
        # A name is someone else's where its module is not mentioned.
        if stem not in content or not any(name in content for name in wanted.values()):
            continue
        for name, function in _parsed(inside, content.decode(errors="replace")).functions.items():
            if function.uses & wanted.keys():
                yield inside, name
