"""Nothing decides on a sentence: what comes from ``words`` is shown, and neither matched, compared nor taken apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_rooms import PACKAGE, PLUGINS, modules, tree_of

WORDS = f"{PACKAGE}.words"
#: Ways of asking a text.
ASKING = {
    *(
        "startswith",
        "endswith",
        "partition",
        "rpartition",
        "split",
        "rsplit",
        "splitlines",
        "find",
        "index",
        "count",
    ),
    *("removeprefix", "removesuffix", "fullmatch", "match", "search", "findall", "finditer", "sub"),
}
#: Structs of ``diff`` that have words of their own, these words, and what holds such structs.
DIFFERENCES = {"Edit", "Change"}
THEIR_WORDS = {"what", "detail", "line", "lines", "title", "entry", "subject"}
HOLDING = {"edits", "changes"}


def sentences(tree: ast.Module) -> set[str]:
    """Return the names that a module imports from ``words``: functions that make sentences, and modules of these."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(WORDS)
        for alias in node.names
        if not alias.name.isupper()
    }


def root(node: ast.expr) -> str:
    """Return the name that an attribute or a call begins with."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def asked(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that ask a sentence."""
    makers = sentences(tree)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            yield from _asked(function, makers)


def differences(function: ast.FunctionDef) -> set[str]:
    """Return the names in a function of differences: those of such a type, and those that what holds some yields."""
    arguments = (*function.args.args, *function.args.kwonlyargs)
    found = {
        each.arg for each in arguments if each.annotation and ast.unparse(each.annotation) in DIFFERENCES
    }
    for node in ast.walk(function):
        if isinstance(node, ast.For | ast.comprehension):
            read = {each.attr for each in ast.walk(node.iter) if isinstance(each, ast.Attribute)}
            if read & HOLDING:
                found |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    return found


def _asked(function: ast.FunctionDef, makers: set[str]) -> Iterator[int]:
    said = set[str]()
    differing = differences(function)

    def is_said(node: ast.AST | None) -> bool:
        match node:
            case ast.Call(func=ast.Name("str"), args=[ast.Name(name)]) if name in differing:
                return True
            case ast.Call(func=ast.Name("list" | "tuple" | "next" | "iter")):
                return any(map(is_said, node.args))
            case ast.Call():
                return root(node) in makers or (isinstance(node.func, ast.Attribute) and is_said(node.func))
            case ast.Attribute(value=ast.Name(name), attr=attribute) if name in differing:
                return attribute in THEIR_WORDS
            case ast.IfExp():
                return is_said(node.body) or is_said(node.orelse)
            case ast.Tuple() | ast.List():
                return any(map(is_said, node.elts))
            case ast.GeneratorExp() | ast.ListComp():
                return is_said(node.elt)
            case ast.JoinedStr():
                return any(
                    is_said(each.value) for each in node.values if isinstance(each, ast.FormattedValue)
                )
            case ast.Subscript():
                return is_said(node.value)
        return isinstance(node, ast.Name) and node.id in said

    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and is_said(node.value):
            said |= {
                each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)
            }
        if isinstance(node, ast.For | ast.comprehension) and is_said(node.iter):
            said |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and any(map(is_said, (node.left, *node.comparators))):
            yield node.lineno
        is_asking = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING
        )
        if is_asking and any(map(is_said, (node.func.value, *node.args))):
            yield node.lineno


EXAMPLES = {
    "in": 'return "values differ" in reason(judged)',
    "method": 'return reason(judged).startswith("output")',
    "regex": 're.search("output", reason(judged))',
    "variable": "said = reason(judged)\n    return said.partition(':')",
    "loop": "return [line for line in detail(judged) if line.startswith(' ')]",
    "equal": "return reason(one) == reason(other)",
    "part": "return detail(judged)[0] == ''",
    "either": "was, now = (reason(one) if one else detail(one) for one in judged)\n    return was == now",
    "composed": "return f'{judged.name}: {reason(judged)}'.startswith('corrupt')",
    "edit": "return [edit.what.rpartition('.')[2] for edit in judged.edits]",
    "text of an edit": "return [edit for edit in judged.edits if judged.detail not in (edit.title, str(edit))]",
    "change": "return [next(change.lines()).partition(': ')[0] for change in judged.changes]",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_way_of_asking_a_sentence_is_seen(name: str) -> None:
    source = f"from {WORDS}.verdicts import detail, reason\ndef f(judged):\n    {EXAMPLES[name]}\n"
    assert list(asked(ast.parse(source)))


def test_showing_a_sentence_asks_nothing_of_it() -> None:
    source = f"from {WORDS}.verdicts import reason\ndef f(judged):\n    yield f'{{judged.name}}: {{reason(judged)}}'\n"
    assert not list(asked(ast.parse(source)))


@pytest.mark.parametrize("folder", [PACKAGE, PLUGINS, "lab"])
def test_no_module_outside_of_words_asks_a_sentence(folder: str) -> None:
    found = {
        f"{name}:{line}"
        for name, path in modules(folder).items()
        if not name.startswith(WORDS)
        for line in asked(tree_of(Path(path)))
    }
    assert not found
