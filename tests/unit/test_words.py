"""docs/words.md: each word has one meaning, and the names that have it are where the page says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests import REPOSITORY

PACKAGE = REPOSITORY / "harness" / "executorch_goldens"
PAGE = REPOSITORY / "docs" / "words.md"
#: Parts of a name: ``KnownDefect`` and ``known_defect`` have the same two.
PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Row:
    """A row of the page.

    Attributes
    ----------
    words
        The word, and its forms in names.
    places
        The row's names: rooms ``report/``, modules ``judging/known.py``, names ``artifact.py: Sample``, options.
    """

    words: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True)
class Name:
    """A public name of the package: a module, a class, a function, a field or an option."""

    module: str
    name: str

    def parts(self) -> set[str]:
        return {part.lower() for part in PART.findall(self.name)}


def rows() -> list[Row]:
    table = PAGE.read_text(encoding="utf-8").partition("## In the code")[2]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert all(len(row) == 3 for row in cells), cells
    return [Row(tuple(word.split(", ")), tuple(re.findall(r"`([^`]+)`", where))) for word, _, where in cells]


def names() -> Iterator[Name]:
    for path in sorted(PACKAGE.rglob("*.py")):
        module = str(path.relative_to(PACKAGE))
        yield Name(module, path.parent.name if path.name == "__init__.py" else path.stem)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in of_node(node):
                # The names of its hooks are pytest's.
                if not name.startswith(("_", "pytest_")):
                    yield Name(module, name)


def of_node(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node gives: of a class with its fields, a function, a method, an option."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    if isinstance(node, ast.ClassDef):
        yield from (
            field.target.id
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        )
    if isinstance(node, ast.Call):
        words = [word.value for word in node.args if isinstance(word, ast.Constant)]
        yield from (word for word in words if isinstance(word, str) and re.fullmatch(r"--[a-z-]+", word))


NAMES = tuple(names())
ROWS = rows()


def is_at(name: Name, place: str) -> bool:
    """Return whether a name is in a place: a room, a module, the module of a name, or that option."""
    if place.startswith("--"):
        return name.name == place
    module = place.partition(": ")[0]
    return name.module.startswith(module) if module.endswith("/") else name.module == module


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.words[0])
def test_what_a_row_names_exists(row: Row) -> None:
    assert row.places
    for place in row.places:
        module, _, wanted = place.partition(": ")
        if place.startswith("--"):
            assert any(name.name == place for name in NAMES), place
        elif wanted:
            found = [name.name for name in NAMES if name.module == module]
            assert set(wanted.split(".")) <= set(found), place
        else:
            assert (PACKAGE / module).exists(), place


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.words[0])
def test_a_name_that_has_the_word_stands_where_the_row_says(row: Row) -> None:
    elsewhere = [
        f"{name.module}: {name.name}"
        for name in NAMES
        if name.parts() & set(row.words) and not any(is_at(name, place) for place in row.places)
    ]
    assert not elsewhere


def test_no_word_has_two_rows() -> None:
    words = [word for row in ROWS for word in row.words]
    assert len(words) == len(set(words))
