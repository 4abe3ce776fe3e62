"""The part of a module that one of its functions may depend on, by the names in its text.

An export of a case depends on the module of the case. An edit of another case there does not change it. So definitions
that neither the function of the case nor the statements of the module name are left out. In doubt, all of it counts.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

#: Variables and attributes by which code reaches what it does not name.
OPAQUE_NAMES = frozenset(
    (
        *("globals", "locals", "vars", "eval", "exec", "compile", "__import__", "builtins"),
        *("sys", "inspect", "gc", "importlib", "CASES", "registry", "load_zoo"),
    )
)
OPAQUE_ATTRIBUTES = frozenset(("__globals__", "__subclasses__", "CASES", "load_zoo", "import_module"))
#: The decorator that registers a case, the package that it is of, and decorators of methods.
CASE, PACKAGE, METHODS = "case", "executorch_goldens", ("staticmethod", "classmethod", "property")
#: Base classes that do nothing with what is derived from them.
BASES = ("object", "Module")

Definition = ast.FunctionDef | ast.ClassDef


def part(text: str, function: str) -> str | None:
    r"""Return a module's text, where lines that `function` does not depend on are blank; None for all of it.

    A blank line stays a line: tracebacks and the places of operators name lines.

    >>> text = "def a():\n    return 1\ndef b():\n    return a()\ndef c():\n    return 2\n"
    >>> part(text, "a")
    'def a():\n    return 1'
    >>> part(text, "b")
    'def a():\n    return 1\ndef b():\n    return a()'
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    definitions: dict[str, list[Definition]] = {}
    statements: list[ast.AST] = []
    registering = set(_registering(module))
    for statement in module.body:
        if isinstance(statement, Definition) and _is_inert(statement, definitions, registering):
            definitions.setdefault(statement.name, []).append(statement)
        else:
            statements.append(statement)
    if function not in definitions:
        return None
    reached: set[str] = set()
    reading: list[ast.AST] = [*statements, *definitions[function]]
    waiting = {function}
    while waiting or reading:
        for node in reading:
            if any(map(_is_opaque, ast.walk(node))):
                return None
            waiting.update(_names(node))
        waiting -= reached
        reached |= waiting
        reading = [node for name in waiting for node in definitions.get(name, ())]
        waiting = set()
    lines = text.splitlines()
    for name, nodes in definitions.items():
        if name not in reached:
            for node in nodes:
                for number in _lines(node):
                    lines[number - 1] = ""
    return "\n".join(lines).rstrip("\n")


def _lines(node: Definition) -> range:
    first = min((node.lineno, *(each.lineno for each in node.decorator_list)))
    return range(first, (node.end_lineno or node.lineno) + 1)


def _is_opaque(node: ast.AST) -> bool:
    """Return whether code may reach by it what it does not name."""
    if isinstance(node, ast.Name):
        return node.id in OPAQUE_NAMES
    if isinstance(node, ast.Attribute):
        return node.attr in OPAQUE_ATTRIBUTES
    return isinstance(node, ast.alias) and not OPAQUE_NAMES.isdisjoint(node.name.split("."))


def _names(node: ast.AST) -> Iterator[str]:
    """Yield what may name a definition: variables, attributes, imports, and text, as of an annotation."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.alias):
            yield from each.name.split(".")
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
            # The name of a case has dashes.
            yield each.value.replace("-", "_")


def _is_inert(node: Definition, before: Container[str], registering: Container[str]) -> bool:
    """Return whether defining it, when the module is imported, only gives it its name, or registers a case.

    Parameters
    ----------
    before
        Names of earlier definitions that are so.
    registering
        Names of the decorator that registers a case.
    """
    if isinstance(node, ast.FunctionDef):
        decorators = all(_registers(each, registering) for each in node.decorator_list)
        return decorators and _is_plain(_defaults(node))
    known = all(
        _last(base) in BASES or (isinstance(base, ast.Name) and base.id in before) for base in node.bases
    )
    return known and not node.decorator_list and not node.keywords and all(map(_is_inert_within, node.body))


def _is_inert_within(node: ast.stmt) -> bool:
    """Return the same of a statement in a class."""
    if isinstance(node, ast.FunctionDef):
        known = all(isinstance(each, ast.Name) and each.id in METHODS for each in node.decorator_list)
        return known and node.name != "__init_subclass__" and _is_plain(_defaults(node))
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return _is_plain([node.value])
    return isinstance(node, ast.AnnAssign | ast.Pass) and _is_plain([node])


def _last(named: ast.expr) -> str:
    """Return the last part of a dotted name; nothing of another expression."""
    return named.id if isinstance(named, ast.Name) else getattr(named, "attr", "")


def _registering(module: ast.Module) -> Iterator[str]:
    """Yield the names by which a module calls the decorator that registers a case."""
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE and not node.level:
            yield from (each.asname or each.name for each in node.names if each.name == CASE)
        elif isinstance(node, ast.Import):
            yield from (f"{each.asname or each.name}.{CASE}" for each in node.names if each.name == PACKAGE)


def _registers(decorator: ast.expr, registering: Container[str]) -> bool:
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) not in registering:
        return False
    return _is_plain([*decorator.args, *(each.value for each in decorator.keywords)])


def _defaults(node: ast.FunctionDef) -> list[ast.expr]:
    """Return what may be evaluated where a function is defined: defaults and annotations."""
    arguments = node.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    annotations = [each.annotation for each in every if each is not None]
    found = [*arguments.defaults, *arguments.kw_defaults, *annotations, node.returns]
    return [each for each in found if each is not None]


def _is_plain(nodes: Sequence[ast.AST]) -> bool:
    """Return whether evaluating them has no effect."""
    return not any(
        isinstance(each, ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
        for node in nodes
        for each in ast.walk(node)
    )
