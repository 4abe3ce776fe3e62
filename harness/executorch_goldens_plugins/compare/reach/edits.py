"""The edits that lead from the Python sources of one toolchain to those of another: by function, in statements."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executorch_goldens_plugins.compare.reach.code import Function, Module, Statement, module_of

#: Packages whose Python lowers programs.
PACKAGES = ("executorch", "torchao")
#: Tests and examples of these packages: no export runs them.
_NO_CODE = re.compile(r"/(test|tests|testing|examples)/")
_NAME = re.compile(r"\w+")
_OF_ATEN = re.compile(r"\baten\.(\w+)")
#: Endings of files of a package that no export reads.
_NOT_READ = (
    *(".pyc", ".pyi", ".typed", ".md", ".rst", ".txt", ".ipynb", ".sh", ".bzl", ".cmake"),
    *(".h", ".hpp", ".c", ".cc", ".cpp", ".cu"),
)


@dataclass(frozen=True)
class CodeEdit:
    """A function that is not the same in two trees, or statements of a module outside of functions.

    Attributes
    ----------
    file
        Its path below site-packages.
    function
        Its name in the file; empty for what is outside of functions.
    head
        Statements of the head that the base lacks, and those that stand where it lost something.
    base
        Statements of the base that the head lacks, and those that stand where the head has further ones: a cell that
        reaches them reaches the edit.
    users
        Functions that use the names of what is outside of functions, as (file, function).
    former
        The file's path in the base, where that is another.
    """

    file: str
    function: str
    head: tuple[Statement, ...] = ()
    base: tuple[Statement, ...] = ()
    users: tuple[tuple[str, str], ...] = ()
    former: str = ""

    @property
    def base_file(self) -> str:
        """Its path below the base's site-packages."""
        return self.former or self.file

    @property
    def words(self) -> frozenset[str]:
        """The names, parts of dotted ones each, that one side has where the other has something else.

        >>> def edit(*sides):
        ...     return CodeEdit("a.py", "f", *((Statement(text, 1, 1),) for text in sides))
        >>> sorted(edit("run(A(), B(), C())", "run(B(), A(), C())").words)
        ['A']
        """
        old, new = map(_NAME.findall, self._texts)
        return frozenset(word for gone, there in _differences(old, new) for word in (*old[gone], *new[there]))

    @property
    def names(self) -> frozenset[str]:
        """The names in its statements, parts of dotted ones each."""
        return frozenset(word for text in self._texts for word in _NAME.findall(text))

    @property
    def operators(self) -> frozenset[str]:
        """Those of `words` that are operators of ATen, without overload.

        >>> edit = CodeEdit("a.py", "f", (), (Statement("x in (aten.add.Tensor, aten.slice.Tensor)", 1, 1),))
        >>> sorted(edit.operators)
        ['add', 'slice']
        """
        return self.words & {name for text in self._texts for name in _OF_ATEN.findall(text)}

    @property
    def _texts(self) -> tuple[str, str]:
        base, head = (" ".join(each.text for each in side) for side in (self.base, self.head))
        return base, head


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

    every: tuple[CodeEdit, ...]
    files: tuple[str, ...]
    others: tuple[str, ...]


def between(base: Path, head: Path) -> Edits:
    """Return the edits between two folders of installed packages (site-packages).

    What is moved without a change, within a file or to another, is none, nor is a file under another name.
    """
    before, after = (dict(_files(folder)) for folder in (base, head))
    changed = sorted(_differing(before, after))
    modules = {
        name: (module_of(base / name), module_of(head / name)) for name in changed if name.endswith(".py")
    }
    found: list[CodeEdit] = []
    was, there = set[str](), set[str]()
    for old, new in modules.values():
        was.update(each.digest for each in old.functions.values())
        there.update(each.digest for each in new.functions.values())
    renamed = {name: was_named for name in modules if (was_named := _renamed(name, modules[name][1], before))}
    gone = {name for name in renamed.values() if name not in after}
    for name, (old, new) in modules.items():
        if name in gone:
            continue
        former = renamed.get(name, "")
        if former:
            old = module_of(before[former])
            if _code(old) == _code(new):
                continue
        edits = [*of_functions(former or name, old, new, was, there)]
        edits += _outside(former or name, old, _with_former_names(new, renamed), before)
        found += (replace(each, file=name, former=former) for each in edits)
    others = tuple(name for name in changed if not name.endswith(".py"))
    return Edits(tuple(found), tuple(modules), others)


def probed(edits: Edits, base: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the functions that decide what the edits change: see `settings.exports.Instrumentation.probes`.

    Parameters
    ----------
    base
        The base's site-packages.
    """
    former = {each.file: each.base_file for each in edits.every}
    names: dict[str, dict[str, None]] = {each.file: {} for each in edits.every}
    for edit in edits.every:
        for file, name in [(edit.file, edit.function)] if edit.function else edit.users:
            names.setdefault(file, {})[name] = None
    return {file: (str(base / former.get(file, file)), tuple(of_file)) for file, of_file in names.items()}


def _differing(before: Mapping[str, Path], after: Mapping[str, Path]) -> Iterator[str]:
    """Yield the paths of files that differ between two folders, which `_files` listed."""
    for name in before.keys() | after.keys():
        one, other = before.get(name), after.get(name)
        if (
            one is None
            or other is None
            or (not one.samefile(other) and one.read_bytes() != other.read_bytes())
        ):
            yield name


def _renamed(name: str, new: Module, before: Mapping[str, Path]) -> str:
    """Return the file of the base that has most functions of a new file; empty where none has half of them."""
    if name in before or not new.functions:
        return ""
    first = min(new.functions).partition(".")[0].encode()
    had: dict[str, int] = {}
    for inside, path in before.items():
        if inside.endswith(".py") and first in path.read_bytes():
            old = module_of(path).functions
            had[inside] = sum(
                own in old and old[own].digest == each.digest for own, each in new.functions.items()
            )
    best = max(had, key=had.__getitem__, default="")
    return best if best and 2 * had[best] >= len(new.functions) else ""


def _with_former_names(module: Module, renamed: Mapping[str, str]) -> Module:
    """Return a module whose imports name renamed files as the base does."""
    former = {Path(new).stem: Path(old).stem for new, old in renamed.items()}
    outside = tuple(
        (within, replace(each, text=_NAME.sub(lambda found: former.get(found[0], found[0]), each.text)))
        if each.is_import
        else (within, each)
        for within, each in module.outside
    )
    return replace(module, outside=outside)


def _code(module: Module) -> object:
    outside = [(within, each.text) for within, each in module.outside if not each.is_import]
    return outside, {name: function.digest for name, function in module.functions.items()}


def _files(site_packages: Path) -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for folder, _, names in os.walk(site_packages / package):
            for name in names:
                path = Path(folder, name)
                inside = path.relative_to(site_packages).as_posix()
                if not name.endswith(_NOT_READ) and not _NO_CODE.search(f"/{inside}"):
                    yield inside, path


def of_functions(
    file: str, before: Module, after: Module, was: Collection[str] = (), there: Collection[str] = ()
) -> Iterator[CodeEdit]:
    """Yield the edits of a file's functions; what only moved is in `was` or `there`, digests of either side."""
    for name, function in after.functions.items():
        old = before.functions.get(name)
        if (old is None and function.digest not in was) or (
            old is not None and old.digest != function.digest
        ):
            yield _edit(file, name, old, function)
    for name, old in before.functions.items():
        if name not in after.functions and old.digest not in there:
            yield CodeEdit(file, name, base=old.statements)


def _edit(file: str, name: str, old: Function | None, new: Function) -> CodeEdit:
    if old is None:
        return CodeEdit(file, name, head=new.statements)
    base: dict[Statement, None] = {}
    head: dict[Statement, None] = {}
    if old.head != new.head:
        base.update(dict.fromkeys(old.statements[:1]))
        head.update(dict.fromkeys(new.statements[:1]))
    texts = [[each.text for each in function.statements] for function in (old, new)]
    for lost, come in _differences(*texts):
        gone, there = old.statements[lost], new.statements[come]
        base.update(dict.fromkeys(gone or _beside(old.statements, lost.start, there[0].depth)))
        head.update(dict.fromkeys(there or _beside(new.statements, come.start, gone[0].depth)))
    return CodeEdit(file, name, tuple(head), tuple(base))


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[slice, slice]]:
    """Yield the differing parts of both; one may be empty."""
    for kind, start, end, first, last in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if kind != "equal":
            yield slice(start, end), slice(first, last)


def _beside(statements: Sequence[Statement], place: int, depth: int) -> Sequence[Statement]:
    """Return the statement that runs where one of a depth would: the next of its block, else the one before it.

    That may be one with a block that ends here; what is inside of that need not run.
    """
    if place < len(statements) and statements[place].depth == depth:
        return statements[place : place + 1]
    before = [each for each in statements[:place] if each.depth <= depth]
    return before[-1:] or statements[:1]


def _outside(file: str, before: Module, after: Module, files: Mapping[str, Path]) -> Iterator[CodeEdit]:
    """Yield an edit for what differs outside of functions, with the functions that use what it names."""
    texts = [[f"{within}:{each.text}" for within, each in found.outside] for found in (before, after)]
    parts = list(_differences(*texts))
    old = [each for lost, _ in parts for each in before.outside[lost]]
    new = [each for _, come in parts for each in after.outside[come]]
    if not old and not new:
        return
    every = [each for _, each in (*old, *new)]
    names = {name for each in every for name in each.names}
    classes = {within for within, _ in (*old, *new) if within}
    classes |= {name for each in every if each.text.startswith("ClassDef") for name in each.names}
    defined = {name for each in every for name in each.names if not each.is_import}
    users = set(_elsewhere(_made_of(before, _made_of(after, defined)), file, files))
    for module in (before, after):
        used = names | _made_of(module, defined)
        users.update(
            (file, name)
            for name, function in module.functions.items()
            if function.uses & used or name.rpartition(".")[0] in classes
        )
    if not users and any(not each.names for each in every):
        # Such as a call that registers something: nothing says who needs it.
        users = {(file, name) for name in before.functions}
    head, lost = (tuple(each for _, each in side) for side in (new, old))
    yield CodeEdit(file, "", head, lost, tuple(sorted(users)))


def _made_of(module: Module, names: Collection[str]) -> set[str]:
    """Return names, and those that a module binds outside of functions by means of them: tables made of tables."""
    found = set(names)
    while True:
        further = {
            name
            for _, each in module.outside
            if not each.is_import and not found.isdisjoint(_NAME.findall(each.text))
            for name in each.names
        }
        if further <= found:
            return found
        found |= further


def _elsewhere(names: Iterable[str], file: str, files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield the functions of other files that use a module's name.

    Parameters
    ----------
    files
        All files of the base, by their paths below site-packages.
    """
    wanted = {name: name.encode() for name in names if not name.startswith("__")}
    stem = Path(file).stem.encode()
    if not wanted:
        return
    for inside, path in files.items():
        if inside == file or not inside.endswith(".py"):
            continue
        content = path.read_bytes()
        # A name is someone else's where its module is not mentioned.
        if stem not in content or not any(name in content for name in wanted.values()):
            continue
        module = module_of(path)
        used = _made_of(module, wanted)
        yield from (
            (inside, name)
            for name, function in module.functions.items()
            if not used.isdisjoint(function.uses)
        )
