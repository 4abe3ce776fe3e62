"""Edits functions in the process that exports.

The code is replaced within the function: whoever holds it, a table of visitors or a decorator's closure, runs the edit.
Results of it that are kept (`functools.lru_cache`) are forgotten: they are of the code before.
Importing this imports neither torch nor executorch; installing does.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.errors import UsageError


class EditError(UsageError):
    """An edit does not fit the ExecuTorch that is installed: the function, and why."""

    def __init__(self, function: str, why: str) -> None:
        super().__init__(f"{function} {why}")


def install(module: str, function: str, line: int, edit: Callable[[bytes], bytes]) -> None:
    """Make an edit of the source of a function; raise EditError where no function of this process has that code.

    Parameters
    ----------
    function
        Its qualified name within the module.
    line
        Where it begins in the file, its decorators included; from 1.
    """
    name = function.rpartition(".")[2]
    functions = holding(module, name, line)
    if not functions:
        raise EditError(f"{module}:{function}", "is not there")
    file = functions[0].__code__.co_filename
    source = Path(file).read_bytes()
    edited = ast.parse(edit(source))
    definition = _definition(edited, line)
    defaults = _changed_defaults(_definition(ast.parse(source), line).args, definition.args)
    _mention(definition, functions[0].__code__.co_freevars)
    code = next(
        each
        for each in _codes(compile(edited, file, "exec", dont_inherit=True))
        if (each.co_name, each.co_firstlineno) == (name, line)
    )
    if further := {*code.co_freevars} - {*functions[0].__code__.co_freevars}:
        raise EditError(
            f"{module}:{function}", f"would read {' and '.join(sorted(further))}, which is not around it"
        )
    for each in functions:
        each.__code__ = code
        for where, value in defaults.items():
            _set_default(each, where, value)
    for cached in _caches():
        if cached.__wrapped__ in functions:
            cached.cache_clear()


def holding(module: str, name: str, line: int) -> list[types.FunctionType]:
    """Return the functions of a module, which is imported, that begin at a line; none where nothing keeps them."""
    file = importlib.import_module(module).__file__
    # A template freezes what it has imported: the collector lists nothing of that.
    gc.unfreeze()
    return [
        each
        for each in gc.get_objects()
        if type(each) is types.FunctionType
        and each.__code__.co_firstlineno == line
        and each.__code__.co_name == name
        and each.__code__.co_filename == file
    ]


def forget(package: str) -> None:
    """Empty the caches of all functions of a package: of one that calls an edited function as well."""
    for cached in _caches():
        if (cached.__module__ or "").partition(".")[0] == package:
            cached.cache_clear()


def _caches() -> Iterator[functools._lru_cache_wrapper[Any]]:
    # An object that is only a proxy of a dead one has no class to ask for.
    return (each for each in gc.get_objects() if type(each) is functools._lru_cache_wrapper)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _mention(function: ast.FunctionDef | ast.AsyncFunctionDef, names: Sequence[str]) -> None:
    """Have a function use `names`, which nothing runs: an edit may have taken the only use of a variable around it."""
    if names:
        uses: list[ast.stmt] = [ast.Expr(ast.Name(name, ast.Load())) for name in names]
        never = ast.If(ast.Constant(False), uses, [])
        function.body.append(ast.fix_missing_locations(ast.copy_location(never, function.body[-1])))


def _definition(tree: ast.Module, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the function that begins at a line."""
    return next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and min(each.lineno for each in (node, *node.decorator_list)) == line
    )


def _changed_defaults(before: ast.arguments, after: ast.arguments) -> dict[int | str, object]:
    """Return the defaults that differ, by their number from the end or by keyword."""

    def by_place(arguments: ast.arguments) -> Iterator[tuple[int | str, ast.expr]]:
        yield from enumerate(arguments.defaults, -len(arguments.defaults))
        for keyword, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                yield keyword.arg, default

    new = dict(by_place(after))
    return {
        where: ast.literal_eval(new[where])
        for where, old in by_place(before)
        if ast.dump(old) != ast.dump(new[where])
    }


def _set_default(function: types.FunctionType, where: int | str, value: object) -> None:
    if isinstance(where, str):
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), where: value}
    else:
        defaults = list(function.__defaults__ or ())
        defaults[where] = value
        function.__defaults__ = tuple(defaults)
