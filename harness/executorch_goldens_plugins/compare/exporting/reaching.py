"""Records which statements of named files run: each calls `reached` with its number before it runs.

The calls are put in when a file is imported; on the disk nothing changes. What a template imported, its children have,
and each begins with an empty set. A call of a function with a cache counts what ran when the result was computed.

No library does this: what coverage.py traces costs 1.6 to 2.0 times an export, and a probe of SlipCover fires once, so
that a child would not see what the template's warm-up ran.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Protocol

from executorch_goldens_plugins.compare.reach.code import blocks

#: Name under which statements find `reached`, among those that every module has.
NAME = "__executorch_goldens_reached__"
#: Bits of a number that are the line; the others are the file.
BITS = 24

#: Numbers of the statements that have run in this process since `begin`.
RUN: set[int] = set()
#: The files, by their paths as they were asked for.
FILES: list[str] = []

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Probes(Protocol):
    """What compares edited functions: `executorch_goldens_plugins.compare.exporting.probing.Prober`."""

    def marked(self, inside: str, source: bytes) -> ast.Module: ...
    def loaded(self, inside: str, module: ModuleType) -> None: ...


def install(packages: Path, wanted: Sequence[str], probes: Probes | None = None) -> None:
    """Record what is imported from now on.

    Parameters
    ----------
    packages
        The folder of installed packages.
    wanted
        Files and folders in it, by their paths below it.
    probes
        What compares their edited functions; None for nothing.
    """
    setattr(builtins, NAME, reached)
    sys.meta_path.insert(0, _Finder(packages.resolve(), tuple(wanted), probes))


def reached(number: int) -> None:
    """Count a statement as run."""
    RUN.add(number)


# As `torch._dynamo.assume_constant_result` marks a function: a model that a pass exports itself, with ``strict=True``,
# is read by Dynamo, which then calls this and leaves nothing of it in the graph.
vars(reached)["_dynamo_marked_constant"] = True


def begin() -> None:
    """Forget what has run."""
    RUN.clear()


def taken() -> dict[str, tuple[int, ...]]:
    """Return the first lines of the statements that have run, by file; negative for an ``if`` that was false."""
    found: dict[str, list[int]] = {}
    for number in sorted(RUN):
        file, line = divmod(number, 1 << BITS)
        half = 1 << (BITS - 1)
        found.setdefault(FILES[file], []).append(line if line < half else half - line)
    return {file: tuple(lines) for file, lines in found.items()}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the sources of the files that are asked for."""

    def __init__(self, packages: Path, wanted: tuple[str, ...], probes: Probes | None) -> None:
        self.packages = packages
        self.wanted = wanted
        self.probes = probes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if path is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not isinstance(spec.loader, _SOURCE):
            return None
        try:
            inside = Path(spec.origin).resolve().relative_to(self.packages).as_posix()
        except ValueError:
            return None
        if any(inside == each or inside.startswith(f"{each}/") for each in self.wanted):
            spec.loader = _Loader(fullname, spec.origin, inside, self.probes)
        return spec


_SOURCE = importlib.machinery.SourceFileLoader


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a source with its calls, and neither reads nor writes byte-code."""

    def __init__(self, fullname: str, path: str, inside: str, probes: Probes | None) -> None:
        super().__init__(fullname, path)
        self.inside = inside
        self.probes = probes

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        FILES.append(self.inside)
        parsed = self.probes.marked(self.inside, source) if self.probes is not None else ast.parse(source)
        tree = _Calls(len(FILES) - 1).visit(parsed)
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, value in list(vars(module).items()):
            if isinstance(value, _CACHED) and value.__module__ == module.__name__:
                setattr(module, name, _recorded(value))
        if self.probes is not None:
            self.probes.loaded(self.inside, module)


#: The class of functions that `functools.lru_cache` and `functools.cache` make.
_CACHED = functools._lru_cache_wrapper


def _recorded(cached: functools._lru_cache_wrapper[Any]) -> Callable[..., Any]:
    """Return a function with a cache, which counts as run, however it was called, what ran to fill the cache."""
    ran: set[int] = set()
    function: Callable[..., Any] = cached.__wrapped__

    def compute(*given: Any, **named: Any) -> Any:
        before = RUN.copy()
        RUN.clear()
        try:
            return function(*given, **named)
        finally:
            ran.update(RUN)
            RUN.update(before)

    parameters = cached.cache_parameters()
    filled = functools.lru_cache(parameters["maxsize"], parameters["typed"])(compute)

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        found = filled(*given, **named)
        RUN.update(ran)
        return found

    vars(call).update(cache_clear=filled.cache_clear, cache_info=filled.cache_info)
    return call


class _Calls(ast.NodeTransformer):
    """Puts a call before each statement of functions, and where an ``if`` without ``else`` is false."""

    def __init__(self, file: int) -> None:
        self.first = file << BITS

    def _function(self, node: Function) -> Function:
        begins = node.body[: ast.get_docstring(node, clean=False) is not None]
        node.body = [*begins, *self._block(node.body[len(begins) :])]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815

    def _block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in body:
            found += (self._call(node, node.lineno), self._inside(node))
        return found

    def _inside(self, node: ast.stmt) -> ast.stmt:
        """Return a statement with calls in its blocks."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return self.visit(node)  # type: ignore[no-any-return]
        for block in blocks(node):
            block[:] = self._block(block)
        if isinstance(node, ast.If) and not node.orelse:
            node.orelse = [self._call(node, (1 << (BITS - 1)) + node.lineno)]
        return node

    def _call(self, node: ast.stmt, line: int) -> ast.stmt:
        call = ast.Call(ast.Name(NAME, ast.Load()), [ast.Constant(self.first + line)], [])
        return ast.copy_location(ast.Expr(ast.copy_location(call, node)), node)
