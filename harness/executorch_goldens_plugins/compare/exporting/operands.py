"""What edited statements read, as far as they may decide on it: of numbers, how they are to 0, to 1 and to each other.

An edit of a condition, or of one name for another, shows only where such a relation is another one: two models in which
all are the same go one way through the statement. Names are read, with their attributes and items; nothing is called.

Where both sides have an expression without effects, both are evaluated. Where they give something else the edit infects
the program's state, without which it cannot show (P. Ammann, J. Offutt, Introduction to Software Testing, 2008).
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
#: What may be called on numbers and words.
PURE = {each.__name__: each for each in (abs, all, any, bool, float, int, len, list, max, min, sum, tuple)}
_OPERATIONS = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.List, ast.Tuple, ast.UnaryOp)


class Operands:
    """What the edited statements of a function read, and what was found there in an export.

    Attributes
    ----------
    read
        The expressions that each of these statements reads, or its neighbours of the base do, by its line and text.
    altered
        Expressions of each that the base has in another way, and what it has there, by line.
    infected
        Whether one of these gave something else.
    """

    def __init__(self, edit: CodeEdit, head: ast.AST, base: ast.AST | None) -> None:
        own, former = (
            {node.lineno: node for node in ast.walk(tree) if isinstance(node, ast.stmt)} if tree else {}
            for tree in (head, base)
        )
        of_base = [node for each in edit.base if (node := former.get(each.first)) is not None]
        of_head = [node for each in edit.head if (node := own.get(each.first)) is not None]
        self.read: dict[int, dict[str, ast.expr]] = {}
        for node in of_head:
            expressions = [part for each in (node, *of_base) for part in _own_operands(each)]
            self.read[node.lineno] = {ast.unparse(each): each for each in expressions}
        replaced = zip(of_head, of_base, strict=False)
        self.altered = {one.lineno: [*differing(one, other)] for one, other in replaced}
        self.infected = False
        self.found: dict[int, set[tuple[str, ...]]] = {}
        self.looks: dict[int, int] = {}

    def look(self, line: int) -> None:
        """Note what a statement is about to read, in the frame of the caller's caller."""
        frame = sys._getframe(2)
        self.looks[line] = self.looks.get(line, 0) + 1
        if self.looks[line] <= MOST:
            names = ChainMap(frame.f_locals, frame.f_globals)
            self.found.setdefault(line, set()).add(tuple(relations(self.read[line], names)))
            pairs = () if self.infected else self.altered.get(line, ())
            self.infected |= any(differ(*pair, names) for pair in pairs)

    def forget(self) -> None:
        self.infected = False
        self.found.clear()
        self.looks.clear()

    def taken(self) -> tuple[str, ...]:
        """Return what was found, each once."""
        lines = sorted(self.found.items())
        return tuple(f"{line}: {', '.join(each)}" for line, every in lines for each in sorted(every))


def _own_operands(node: ast.stmt) -> Iterator[ast.expr]:
    """Yield what a statement reads outside of the blocks in it."""
    for child in _read_parts(node):
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
    elif _is_whole(kind):
        yield name, str(value)[:LONGEST]


def differing(one: ast.AST, other: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the largest expressions without effects in which two statements differ, outside of the blocks in them.

    >>> sides = (ast.parse(text).body[0] for text in ("pad(x, h - 1, [h])", "pad(x, w - 1, [h])"))
    >>> [tuple(map(ast.unparse, pair)) for pair in differing(*sides)]
    [('h - 1', 'w - 1')]
    """
    mine, its = map(_read_parts, (one, other))
    if isinstance(one, ast.expr) and isinstance(other, ast.expr) and _is_pure(one) and _is_pure(other):
        if ast.dump(one) != ast.dump(other):
            yield one, other
    elif type(one) is type(other) and len(mine) == len(its):
        for pair in zip(mine, its, strict=True):
            for found in differing(*pair):
                # Of a condition it counts whether it holds.
                is_test = pair[0] is getattr(one, "test", None) and found == pair
                yield (_negated(found[0]), _negated(found[1])) if is_test else found


def _read_parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that it reads, without the blocks in it."""
    inner = {id(each) for block in blocks(node) for each in block} if isinstance(node, ast.stmt) else ()
    parts = (each for each in ast.iter_child_nodes(node) if id(each) not in inner)
    return [each for each in parts if not isinstance(getattr(each, "ctx", None), ast.Store)]


def _negated(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _is_pure(node: ast.expr) -> bool:
    """Return whether an expression of numbers and words has no effect."""
    if isinstance(node, ast.Call):
        of_known = isinstance(node.func, ast.Name) and node.func.id in PURE and not node.keywords
        return of_known and all(map(_is_pure, node.args))
    if isinstance(node, _OPERATIONS):
        return all(_is_pure(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
    return isinstance(node, ast.Constant) or _is_plain(node)


def differ(one: ast.expr, other: ast.expr, names: Mapping[str, Any]) -> bool:
    """Return whether two expressions without effects give something else; False where nobody knows.

    >>> sides = [ast.parse(text, mode="eval").body for text in ("h > k", "h > w")]
    >>> [differ(*sides, {"h": 2, "k": 1, "w": width}) for width in (1, 2, object())]
    [False, True, False]
    """
    gave, gives = (_given(each, names) for each in (one, other))
    if gave is NOTHING or gives is NOTHING:
        return False
    return gave is not gives and not (_is_word(gave) and _is_word(gives) and gave == gives)


def _given(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return what an expression without effects gives; `NOTHING` where it is of more than numbers and words."""
    if isinstance(node, ast.Constant) or _is_plain(node):
        return _value(node, names)
    if not _is_known(node, names):
        return NOTHING
    try:
        code = compile(ast.Expression(node), "<an edited expression>", "eval")
        return eval(code, {"__builtins__": PURE}, names)  # noqa: S307
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return NOTHING


def _is_known(node: ast.expr, names: Mapping[str, Any]) -> bool:
    """Return whether an expression without effects is of numbers and words; what ``is`` compares may be anything."""
    if isinstance(node, ast.Constant):
        return True
    if _is_plain(node):
        return _is_word(_value(node, names))
    if isinstance(node, ast.Compare) and all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
        sides = (node.left, *node.comparators)
        if all(isinstance(each, ast.Constant) or _is_plain(each) for each in sides):
            return all(_value(each, names) is not NOTHING for each in sides)
    parts = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return all(_is_known(each, names) for each in parts if isinstance(each, ast.expr))


def _is_word(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_word, value))
    return type(value) in (int, float) or _is_whole(type(value))


def _is_whole(kind: type) -> bool:
    return f"{kind.__module__}.{kind.__qualname__}" in WHOLE
