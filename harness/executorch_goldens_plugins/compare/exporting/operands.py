"""What edited statements read, as far as they may decide on it: of numbers, how they are to 0, to 1 and to each other.

An edit of a condition, or of one name for another, shows only where such a relation is another one: two models in which
all are the same go one way through the statement. Names are read, with their attributes and items; nothing is called.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

from executorch_goldens_plugins.compare.reach.code import blocks
from executorch_goldens_plugins.compare.reach.edits import CodeEdit

#: Items of a list that are looked at, numbers of a statement, and times that it is looked at in an export.
ITEMS, NUMBERS, MOST = 4, 12, 200
#: What is compared as a whole; of torch, by names, for this is imported before torch may be.
WHOLE = (
    "builtins.bool",
    "builtins.str",
    "builtins.NoneType",
    "torch.dtype",
    "torch.memory_format",
    "torch.layout",
)
LONGEST = 40
#: What is read of a tensor: other attributes may be calls, which a trace would have.
OF_TENSORS = ("shape", "ndim", "dtype", "layout", "requires_grad")
#: What is nothing that can be compared.
NOTHING = object()


class Operands:
    """What the edited statements of a function read, and what was found there in an export.

    Attributes
    ----------
    read
        The expressions that each of these statements reads, or its neighbours of the base do, by its line and text.
    """

    def __init__(self, edit: CodeEdit, head: ast.AST, base: ast.AST | None) -> None:
        own, former = (
            {node.lineno: node for node in ast.walk(tree) if isinstance(node, ast.stmt)} if tree else {}
            for tree in (head, base)
        )
        of_base = [node for each in edit.base if (node := former.get(each.first)) is not None]
        self.read: dict[int, dict[str, ast.expr]] = {}
        for statement in edit.head:
            if (node := own.get(statement.first)) is not None:
                expressions = [part for each in (node, *of_base) for part in _own_operands(each)]
                self.read[node.lineno] = {ast.unparse(each): each for each in expressions}
        self.found: dict[int, set[tuple[str, ...]]] = {}
        self.looks: dict[int, int] = {}

    def look(self, line: int) -> None:
        """Note what a statement is about to read, in the frame of the caller's caller."""
        frame = sys._getframe(2)
        self.looks[line] = self.looks.get(line, 0) + 1
        if self.looks[line] <= MOST:
            names = ChainMap(frame.f_locals, frame.f_globals)
            self.found.setdefault(line, set()).add(tuple(relations(self.read[line], names)))

    def forget(self) -> None:
        self.found.clear()
        self.looks.clear()

    def taken(self) -> tuple[str, ...]:
        """Return what was found, each once."""
        lines = sorted(self.found.items())
        return tuple(f"{line}: {', '.join(each)}" for line, every in lines for each in sorted(every))


def _own_operands(node: ast.stmt) -> Iterator[ast.expr]:
    """Yield what a statement reads outside of the blocks in it."""
    inner = {id(each) for block in blocks(node) for each in block}
    for child in ast.iter_child_nodes(node):
        if id(child) not in inner:
            yield from _operands(child)


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the names, attributes, items by a constant and numbers in an expression that are in no other such one."""
    if _is_plain(node) or (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        assert isinstance(node, ast.expr)
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _operands(child)


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_plain(node.value)
    if isinstance(node, ast.Attribute):
        return _is_plain(node.value)
    return isinstance(node, ast.Name)


def relations(read: Mapping[str, ast.expr], names: Mapping[str, Any]) -> Iterator[str]:
    """Yield how what some expressions read is related.

    >>> read = {name: ast.parse(name, mode="eval").body for name in ("height", "width", "2")}
    >>> list(relations(read, {"height": 1, "width": 2}))
    ['height = 1', 'width > 1', '2 > 1', 'height < width', 'height < 2', 'width = 2']
    """
    numbers: list[tuple[str, float]] = []
    for text, expression in read.items():
        for name, value in _parts(text, _value(expression, names)):
            if type(value) in (int, float):
                numbers.append((name, value))
            else:
                yield f"{name} is {value}"
    del numbers[NUMBERS:]
    yield from (f"{name} {_sign(value, value > 0)} {int(value > 0)}" for name, value in numbers)
    for (one, first), (other, second) in itertools.combinations(numbers, 2):
        yield f"{one} {_sign(first, second)} {other}"


def _sign(one: float, other: float) -> str:
    return "=" if one == other else "<" if one < other else ">"


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return what an expression reads; `NOTHING` where that needs a call."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, NOTHING)
    assert isinstance(node, ast.Attribute | ast.Subscript)
    of = _value(node.value, names)
    if isinstance(node, ast.Attribute):
        is_call = isinstance(inspect.getattr_static(of, node.attr, NOTHING), property)
        is_call |= hasattr(type(of), "__torch_function__") and node.attr not in OF_TENSORS
        return NOTHING if is_call else getattr(of, node.attr, NOTHING)
    assert isinstance(node.slice, ast.Constant)
    item: Any = node.slice.value
    try:
        return of[item] if isinstance(of, list | tuple | dict) else NOTHING
    except (IndexError, KeyError, TypeError):
        return NOTHING


def _parts(name: str, value: Any, deep: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield numbers and words that a value is, or has."""
    kind = type(value)
    if isinstance(value, list | tuple) and not deep:
        yield f"len({name})", len(value)
        for number, each in enumerate(value[:ITEMS]):
            yield from _parts(f"{name}[{number}]", each, deep=True)
    elif kind in (int, float):
        yield name, value
    elif f"{kind.__module__}.{kind.__qualname__}" in WHOLE:
        yield name, str(value)[:LONGEST]
