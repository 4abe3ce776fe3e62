"""Python sources as functions and statements: what an edit changes, and what a reach map refers to.

A function is one that a module or a class of it defines; what is defined inside of it is part of it. Everything is read
from the text: nothing is imported.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Hexadecimal digits of a digest.
DIGITS = 16
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
#: Statements of which no code is made, or none of their own.
_WITHOUT_CODE = (ast.Global, ast.Nonlocal, ast.Try, ast.Pass)


@dataclass(frozen=True)
class Statement:
    """A statement, without the statements in it.

    Attributes
    ----------
    text
        Its code, normalized: neither comments nor line breaks count.
    first, last
        Its lines, from 1; of one with a body, those up to the body.
    raises
        True if what it leads to is an exception: its block ends in ``raise``, and has no ``return``.
    names
        Names that it binds, or defines.
    skips
        True for an ``if`` without ``else``, which may do nothing.
    depth
        Number of statements that it is in, in its function.
    """

    text: str
    first: int
    last: int
    raises: bool = False
    names: tuple[str, ...] = ()
    skips: bool = False
    depth: int = 0

    @property
    def is_import(self) -> bool:
        """True for an import."""
        return self.text.startswith(("import ", "from "))


@dataclass(frozen=True)
class Function:
    """A function of a module or of a class.

    Attributes
    ----------
    name
        Dotted, in its module: ``Class.method``.
    first, last
        Its lines, from 1, with decorators.
    digest
        Digest of its code, without docstrings, comments and places.
    statements
        Statements that run when it is called, in order.
    head
        Its parameters and decorators, normalized.
    uses
        Names that it mentions, attributes included.
    """

    name: str
    first: int
    last: int
    digest: str
    statements: tuple[Statement, ...]
    head: str
    uses: frozenset[str]


@dataclass(frozen=True)
class Module:
    """A module's functions, and its statements outside of functions, by the class they are in (empty for none)."""

    functions: dict[str, Function]
    outside: tuple[tuple[str, Statement], ...]


@functools.lru_cache(maxsize=4096)
def module(source: str) -> Module:
    """Return the functions and other statements of a source; raise SyntaxError."""
    functions: dict[str, Function] = {}
    outside: list[tuple[str, Statement]] = []

    def walk(body: Sequence[ast.stmt], within: str) -> None:
        for node in body:
            name = ".".join(filter(None, (within, getattr(node, "name", ""))))
            if isinstance(node, _FUNCTIONS):
                # Of a name that is defined again, for instance under a condition, each counts.
                while name in functions:
                    name += "'"
                functions[name] = _function(node, name)
            elif isinstance(node, ast.ClassDef):
                outside.append((within, _statement(node, False)))
                walk(node.body, name)
            elif inner := [*blocks(node)]:
                outside.append((within, _statement(node, False)))
                for block in inner:
                    walk(block, within)
            elif _has_code(node):
                outside.append((within, _statement(node, False)))

    walk(ast.parse(source).body, "")
    return Module(functions, tuple(outside))


def module_of(path: Path) -> Module:
    """Return what a file defines; nothing for one that is not there, or is no Python: exports say so."""
    try:
        return module(text_of(path))
    except SyntaxError:
        return Module({}, ())


def text_of(path: Path) -> str:
    """Return the text of a file; nothing for one that is not there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Function:
    statements = tuple(_statements(node.body))
    head = " ".join((*map(ast.unparse, node.decorator_list), ast.unparse(node.args)))
    content = "\n".join((head, *(statement.text for statement in statements)))
    digest = hashlib.sha256(content.encode()).hexdigest()[:DIGITS]
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    uses = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    uses.update(each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute))
    return Function(name, first, node.end_lineno or first, digest, statements, head, frozenset(uses))


def _statements(body: Sequence[ast.stmt], raises: bool = False, depth: int = 0) -> Iterator[Statement]:
    """Yield the statements of a block and of the blocks in it, in order."""
    raises = raises or _only_raises(body)
    for node in body:
        if _has_code(node):
            yield _statement(node, raises, depth)
        for block in blocks(node):
            yield from _statements(block, raises, depth + 1)


def _only_raises(body: Sequence[ast.stmt]) -> bool:
    """Return whether a block ends in ``raise`` and nothing in it leaves it in another way."""
    leaves = (ast.Return, ast.Break, ast.Continue)
    return isinstance(body[-1], ast.Raise) and not any(
        isinstance(each, leaves) for node in body for each in ast.walk(node)
    )


def _has_code(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return False
    return not isinstance(node, _WITHOUT_CODE)


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of statements in a statement, in order."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        parts = getattr(node, field, None)
        if parts and isinstance(parts[0], ast.stmt):
            yield parts
        elif parts:
            yield from (handler.body for handler in parts)


def _statement(node: ast.stmt, raises: bool, depth: int = 0) -> Statement:
    text, last = _own(node)
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    skips = isinstance(node, ast.If) and not node.orelse
    return Statement(text, first, max(last, node.lineno), raises, tuple(_bound(node)), skips, depth)


def _own(node: ast.stmt) -> tuple[str, int]:
    """Return a statement's code without the blocks in it, and its last line."""
    inner = [*blocks(node)]
    if not inner:
        return ast.unparse(node), node.end_lineno or node.lineno
    fields = {
        name: value
        for name, value in ast.iter_fields(node)
        if name not in ("body", "orelse", "finalbody", "lineno")
    }
    if isinstance(node, _FUNCTIONS):
        fields.pop("returns", None)
    text = " ".join((type(node).__name__, *(f"{name}={_shown(value)}" for name, value in fields.items())))
    return text, max(node.lineno, inner[0][0].lineno - 1)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, ast.ExceptHandler):
        return f"{_shown(value.type)} {value.name}"
    if isinstance(value, ast.match_case):
        return f"{_shown(value.pattern)} {_shown(value.guard)}"
    return ast.unparse(value) if isinstance(value, ast.AST) else repr(value)


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement outside of functions gives a meaning."""
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from _assigned(target)


def _assigned(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment to a target gives a meaning, or changes; not those that it only reads."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr
        yield from _assigned(target.value)
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _assigned(target.value)
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _assigned(each)
