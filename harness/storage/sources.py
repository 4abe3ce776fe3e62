"""What a module's source depends on, found without importing it: the modules it imports, the files it names.

`harness.storage.keys` makes keys of it, `harness.changed` asks what a change can reach. Everything is read from the
text: an import in a function counts like one at the top, and what the text does not settle is taken to matter.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

#: What can import or look up a name that the text does not spell: all of such a module's folder counts, and all of its
#: text.
DYNAMIC = re.compile(
    r"\b(importlib|__import__|pkgutil|runpy|exec|eval|globals|locals|vars|sys\.modules|__init_subclass__|metaclass)\b"
)
#: Longest text that is taken for the name of a file.
LONGEST_NAME = 200
#: Of these folders no file is data of a module.
NO_DATA = frozenset(("__pycache__", "node_modules"))


@dataclass(frozen=True)
class Source:
    """One module's file.

    Attributes
    ----------
    name
        Of the module, as it is imported.
    is_package
        Whether it is a package's ``__init__``.
    """

    name: str
    file: Path
    is_package: bool = False

    @property
    def is_text(self) -> bool:
        return self.file.suffix == ".py"

    def text(self) -> str:
        """Return what stands in it; nothing for an extension module."""
        return self.file.read_text(encoding="utf-8", errors="surrogateescape") if self.is_text else ""

    def digest(self) -> str:
        return digest_of(self.file)


#: Size, modification time and inode of a file; None for one that is not there.
State = tuple[int, int, int] | None


def state_of(file: Path) -> State:
    """Return what changes when a file does, without reading it."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return (stat.st_size, stat.st_mtime_ns, stat.st_ino)


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal; ``missing`` for one that cannot be read."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return "missing"


class Modules:
    """Finds modules as an interpreter with some path would, and follows what they import.

    Parameters
    ----------
    paths
        Where modules are looked for, in order.
    mapping
        Top-level names that stand elsewhere, for instance those of editable installations, to a folder or file.
    outside
        Directories whose modules are not looked at: the standard library, ``site-packages``.
    leaves
        Top-level names whose modules are found, and not followed.
    dynamic
        Whether a module that imports by computed names is taken to import everything beside it.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        mapping: Mapping[str, Path] | None = None,
        outside: Sequence[Path] = (),
        leaves: Collection[str] = (),
        dynamic: bool = True,
    ) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self.mapping = dict(mapping or {})
        self.outside = tuple(path.resolve() for path in outside)
        self.leaves = leaves
        self.dynamic = dynamic
        self._found: dict[str, Source | None] = {}
        self._imports: dict[Source, tuple[Source, ...]] = {}

    def find(self, name: str) -> Source | None:
        """Return the module called `name`; None for one that is outside, a namespace, or nowhere."""
        if name not in self._found:
            places = self._places(name)
            file = next((place for place in places if place.is_file()), None)
            is_package = file is not None and file.name == "__init__.py"
            inside = file is not None and not any(
                file.resolve().is_relative_to(folder) for folder in self.outside
            )
            self._found[name] = Source(name, file, is_package) if file is not None and inside else None
        return self._found[name]

    def _places(self, name: str) -> Iterator[Path]:
        top, *inner = name.split(".")
        if top in self.mapping:
            here = self.mapping[top].joinpath(*inner)
            yield from _files_of(here)
            if not inner:
                yield here
            return
        for path in self.paths:
            yield from _files_of(path.joinpath(top, *inner))

    def imports(self, source: Source) -> tuple[Source, ...]:
        """Return the modules that `source` imports, and the packages around each and around itself."""
        if source not in self._imports:
            is_leaf = source.name.partition(".")[0] in self.leaves
            self._imports[source] = () if is_leaf else tuple(self._imported(source))
        return self._imports[source]

    def _imported(self, source: Source) -> Iterator[Source]:
        names = list(_around(source.name))
        text = source.text()
        for name in imported(text, source.name, source.is_package):
            names += [*_around(name), name]
        for name in dict.fromkeys(names):
            found = self.find(name)
            if found is not None and found != source:
                yield found
        if self.dynamic and DYNAMIC.search(text):
            yield from self._beside(source)

    def _beside(self, source: Source) -> Iterator[Source]:
        prefix = source.name if source.is_package else source.name.rpartition(".")[0]
        for file in sorted(source.file.parent.glob("*.py")):
            if file.stem == "__init__":
                continue
            found = self.find(f"{prefix}.{file.stem}" if prefix else file.stem)
            if found is not None and found != source:
                yield found

    def closure(self, starts: Iterable[Source], without: Collection[str] = ()) -> dict[str, Source]:
        """Return `starts` and everything that they import, by name; nothing is followed into `without`."""
        reached: dict[str, Source] = {}
        waiting = list(starts)
        while waiting:
            source = waiting.pop()
            if source.name in reached:
                continue
            reached[source.name] = source
            waiting += [found for found in self.imports(source) if found.name not in without]
        return reached


def _files_of(place: Path) -> Iterator[Path]:
    yield place / "__init__.py"
    yield from (place.with_name(place.name + suffix) for suffix in (".py", *EXTENSION_SUFFIXES))


def _around(name: str) -> Iterator[str]:
    """Yield the names of the packages around a module, the outermost first.

    >>> list(_around("a.b.c"))
    ['a', 'a.b']
    """
    parts = name.split(".")
    yield from (".".join(parts[:length]) for length in range(1, len(parts)))


@functools.lru_cache(maxsize=1024)
def imported(text: str, name: str, is_package: bool = False) -> tuple[str, ...]:
    r"""Return the names that the module `name` may import; ``from a import b`` gives ``a`` and ``a.b``.

    >>> imported("import os.path\nfrom . import data", "zoo.models")
    ('os.path', 'zoo', 'zoo.data')
    """
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, name, is_package)
            found += [base, *(f"{base}.{alias.name}" for alias in node.names if alias.name != "*")]
    return tuple(dict.fromkeys(found))


def _base(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    kept = len(parts) - node.level + is_package
    return ".".join([*parts[: max(kept, 0)], *([node.module] if node.module else [])])


def text_for(text: str, function: str) -> str:
    r"""Return what of a module's text the top-level `function` can depend on.

    Left out are functions and classes that neither it nor a statement of the module mentions, directly or through
    others, and comments between statements. All of the text is returned where the text does not settle that.

    Examples
    --------
    >>> module = "A = 1\ndef one():\n    return two()\ndef two():\n    return A\ndef three():\n    return 3\n"
    >>> print(text_for(module, "one"))
    A = 1
    def one():
        return two()
    def two():
        return A
    """
    statements = _statements(text)
    builders = [each for each in statements if each.is_function and each.name == function]
    if len(builders) != 1 or DYNAMIC.search(text):
        return text
    optional: dict[str, list[_Statement]] = {}
    for statement in statements:
        if statement.is_optional and statement is not builders[0]:
            optional.setdefault(statement.name, []).append(statement)
    waiting = [each for each in statements if not each.is_optional or each is builders[0]]
    kept = []
    while waiting:
        statement = waiting.pop()
        kept.append(statement)
        for name in statement.mentions & optional.keys():
            waiting += optional.pop(name)
    return "\n".join(each.text for each in sorted(kept, key=lambda each: each.line))


@dataclass(frozen=True)
class _Statement:
    """A statement of a module: its text, the names that it mentions, and the one that it defines."""

    line: int
    text: str
    mentions: frozenset[str]
    name: str
    is_function: bool
    is_optional: bool


@functools.lru_cache(maxsize=64)
def _statements(text: str) -> tuple[_Statement, ...]:
    lines = text.splitlines()
    return tuple(
        _Statement(
            _first_line(node),
            "\n".join(lines[_first_line(node) - 1 : node.end_lineno]),
            frozenset(_mentioned(node)),
            getattr(node, "name", ""),
            isinstance(node, ast.FunctionDef),
            _may_be_left_out(node),
        )
        for node in ast.parse(text).body
    )


def _may_be_left_out(node: ast.stmt) -> bool:
    """Whether a statement does nothing but define a name, or register a case."""
    if isinstance(node, ast.ClassDef):
        return not node.decorator_list
    return isinstance(node, ast.FunctionDef) and all(map(_registers_a_case, node.decorator_list))


def _registers_a_case(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name == "case"


def _mentioned(node: ast.stmt) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            # A name in quotes: a forward reference, or what getattr is asked for.
            yield inner.value


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def files_named(text: str, places: Sequence[Path], without: Collection[Path] = ()) -> Iterator[Path]:
    """Yield the files that the strings of a module name, relative to one of `places`; of a folder, every file."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        name = node.value
        if not 0 < len(name) <= LONGEST_NAME or "\n" in name or "\0" in name or set(name) <= set("./\\"):
            continue
        for place in places:
            path = place / name
            if path.is_file():
                yield path
            elif path.is_dir() and path not in without:
                yield from files_in(path, without)


def files_in(folder: Path, without: Collection[Path] = ()) -> Iterator[Path]:
    """Yield every file under `folder`, sorted, hidden folders and byte-code aside."""
    for root, folders, names in os.walk(folder):
        here = Path(root)
        folders[:] = sorted(
            name
            for name in folders
            if name not in NO_DATA and not name.startswith(".") and here / name not in without
        )
        yield from (here / name for name in sorted(names) if not name.endswith(".pyc"))
