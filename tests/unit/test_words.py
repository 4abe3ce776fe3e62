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
    *("removeprefix", "removesuffix", "fullmatch", "match", "search", "findall", "finditer"),
}


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


def _asked(function: ast.FunctionDef, makers: set[str]) -> Iterator[int]:
    said = set[str]()

    def is_said(node: ast.AST | None) -> bool:
        if isinstance(node, ast.Call):
            return root(node) in makers or (
                root(node) in ("list", "tuple", "next", "iter") and any(map(is_said, node.args))
            )
        if isinstance(node, ast.Subscript):
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
