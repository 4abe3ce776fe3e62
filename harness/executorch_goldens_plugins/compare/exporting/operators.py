"""Which operators of ATen each function and class of installed files names: tables, comparisons, patterns, visitors.

The files are imported, and names in their sources are looked up in what that made: an attribute of
``exir_ops.edge.aten`` is an operator, and so is what is in a table that a function mentions.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

#: Folders of the package ``executorch`` whose Python lowers programs.
FOLDERS = ("backends/arm", "backends/xnnpack", "backends/transforms", "exir")
#: Parts of paths of what lowers nothing.
ELSEWHERE = frozenset(("test", "tests", "scripts", "runtime", "third-party", "_clang_pybind"))
#: How deep tables are looked into.
DEPTH = 3
PREFIX = "aten."


def named(
    packages: Path, files: Iterable[str], sources: Mapping[str, str] | None = None
) -> dict[str, dict[str, list[str]]]:
    """Return the operators of ATen that definitions of files name: by file, then by function, ``Class.method``.

    Those that it compares with, or has in a table, come first: what it decides on. The others it may make. What a
    module or a class names outside of functions is under the class, or under the empty name; what registers a class or
    function, as a decorator or beside it in a table, is under that too.

    Parameters
    ----------
    packages
        The site-packages that files are below and are imported from; one that cannot be imported names none.
    sources
        Text of files in place of what is installed.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for file in files:
        module = _imported(file)
        if module is None:
            continue
        text = (sources or {}).get(file) or (packages / file).read_text(encoding="utf-8")
        asked: dict[str, set[str]] = {}
        every: dict[str, set[str]] = {}
        body = ast.parse(text).body
        for name, node in (*_definitions(body, ""), *_registered(body)):
            own = _own(node)
            of_module = {name: value for name, value in vars(module).items() if name not in own}
            for each in _deciding(node):
                asked.setdefault(name, set()).update(_operators(each, of_module))
            every.setdefault(name, set()).update(_operators(node, of_module))
        found[file] = {
            name: [*sorted(asked.get(name, ())), *sorted(operators - asked.get(name, set()))]
            for name, operators in every.items()
            if operators
        }
    return found


def files_of(packages: Path) -> Iterator[str]:
    """Yield the files below site-packages that lower programs."""
    for folder in FOLDERS:
        for path in sorted((packages / "executorch" / folder).rglob("*.py")):
            file = path.relative_to(packages)
            if ELSEWHERE.isdisjoint(file.parts):
                yield file.as_posix()


def _imported(file: str) -> Any:
    name = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit):
        # A backend that is not installed, or a script.
        return None


def _definitions(body: Iterable[ast.stmt], within: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        name = ".".join(filter(None, (within, getattr(node, "name", ""))))
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, name)
        else:
            yield (name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else within), node


def _registered(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Yield decorators and parts of tables, each with the class or function of the module that it names."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {each.name for each in body if isinstance(each, kinds)}
    for statement in body:
        if isinstance(statement, kinds):
            yield from ((statement.name, each) for each in statement.decorator_list)
            continue
        for part in _parts(statement):
            names = {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
            yield from ((name, part) for name in sorted(names & defined))


def _own(node: ast.AST) -> set[str]:
    """Return the names that a function gives values: what the module has by these is not what it means."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    bound = (
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )
    return {*bound, *(each.arg for each in ast.walk(node) if isinstance(each, ast.arg))}


def _parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the entries of a table that a statement assigns, each with its key; else the statement."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Dict):
        yield from (
            ast.Tuple([each for each in pair if each]) for pair in zip(value.keys, value.values, strict=True)
        )
    elif isinstance(value, ast.List | ast.Tuple | ast.Set):
        yield from value.elts
    else:
        yield statement


def _deciding(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what of a definition is a comparison, a pattern or a table: all of it where it is outside of functions."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
        return
    yield from (each for each in ast.walk(node) if isinstance(each, ast.Compare | ast.MatchValue))


def _operators(node: ast.AST, names: Mapping[str, Any]) -> Iterator[str]:
    # Of a dotted name the whole, and not what it begins with; of a table that is written to what is put there.
    parts = {
        id(each.value)
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        or (isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store))
    }
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute | ast.Name) and id(each) not in parts:
            yield from _in(_value(each, names), DEPTH)
        elif isinstance(each, ast.Constant):
            yield from _in(each.value, 0)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return what a dotted name is in a module; None where that follows from more than its names."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (held := _value(node.value, names)) is not None:
        return _attribute(held, node.attr)
    return None


def _attribute(held: Any, name: str) -> Any:
    """Return an attribute; None where there is none, or a namespace of operators refuses the name."""
    try:
        return getattr(held, name, None)
    except Exception:
        return None


def _in(value: Any, depth: int) -> Iterator[str]:
    """Yield the operators in a value: itself, or what it holds."""
    if isinstance(value, type):
        return
    of_aten = torch._ops.OpOverload | torch._ops.OpOverloadPacket
    # An operator of the edge dialect has ATen's.
    operator = value if isinstance(value, of_aten) else _attribute(value, "_op") or value
    if isinstance(operator, torch._ops.OpOverload):
        yield from _of_aten(str(operator))
    elif isinstance(operator, torch._ops.OpOverloadPacket):
        yield from _of_aten(f"{operator}.*")
    elif isinstance(value, str):
        # As visitors and tables have their operators: ``"aten.cat.default"``.
        name, _, overload = value.removeprefix(PREFIX).partition(".")
        if value.startswith(PREFIX) and overload in dir(getattr(torch.ops.aten, name, None)):
            yield f"{name}.{overload}"
    elif depth and isinstance(value, list | tuple | set | frozenset | dict):
        for each in value:
            yield from _in(each, depth - 1)
        yield from _in([*value.values()], depth - 1) if isinstance(value, dict) else ()
    elif depth and dataclasses.is_dataclass(value):
        yield from _in([getattr(value, field.name, None) for field in dataclasses.fields(value)], depth - 1)


def _of_aten(name: str) -> Iterator[str]:
    if name.startswith(PREFIX):
        yield name.removeprefix(PREFIX)


if __name__ == "__main__":
    site = Path(importlib.import_module("executorch").__path__[0]).parent
    json.dump(named(site, files_of(site)), sys.stdout)
