"""An edit of the source of installed functions of ExecuTorch, and how it is made in the process that exports.

Importing this imports neither torch nor executorch; making an edit does.
"""

from __future__ import annotations
import __future__

import functools
import importlib
import inspect
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.patches.guard import resolve

#: Attribute of an edited function that holds its source.
SOURCE = "__edited_source__"


@dataclass(frozen=True)
class Edit:
    """One place in the source of one function, and its replacement.

    Attributes
    ----------
    function
        ``module:qualified.name``.
    old
        Occurs in the function's source exactly once.
    new
        Written with the same indentation.
    """

    function: str
    old: str
    new: str


def edited(function: str, edits: Sequence[Edit]) -> str:
    """Return the source of `function`, as it is indented, with `edits` of it made; raise EditError."""
    try:
        original = getattr(*place(function))
    except (ImportError, AttributeError, StopIteration) as error:
        raise EditError(function, "is not there") from error
    if hasattr(_written(original), "__wrapped__"):
        raise EditError(function, "is wrapped, by a patch for instance: the edit would undo that")
    # An edited function has no file to be read from.
    source = str(getattr(original, SOURCE, "")) or inspect.getsource(original)
    for edit in edits:
        if source.count(edit.old) != 1:
            raise EditError(function, f"has {source.count(edit.old)} times, not once: {edit.old!r}")
        source = source.replace(edit.old, edit.new)
    return source


def install(function: str, edits: Sequence[Edit]) -> None:
    """Replace `function` by the edited one: on its class, or in every module that holds it; raise EditError."""
    source = edited(function, edits)
    holder, name = place(function)
    original = getattr(holder, name)
    # A function within one: what the source calls `__class__`, as `super()` does, is found around it.
    within = textwrap.indent(textwrap.dedent(source), "    ")
    maker = f"def make(__class__):\n{within}\n    return {name}\n"
    flags = __future__.annotations.compiler_flag
    code = compile(maker, f"<mutant of {function}>", "exec", flags, dont_inherit=True)
    made: dict[str, Any] = {}
    exec(code, _written(original).__globals__, made)
    replacement = made["make"](holder)
    setattr(getattr(replacement, "__func__", replacement), SOURCE, source)
    if isinstance(holder, type):
        setattr(holder, name, replacement)
        return
    for module in list(sys.modules.values()):
        for held, value in list(vars(module).items()):
            if value is original:
                setattr(module, held, replacement)


def _written(original: Any) -> Any:
    """Return the content of a cache of Python's own: its source makes an empty one."""
    return original.__wrapped__ if isinstance(original, functools._lru_cache_wrapper) else original


def place(function: str) -> tuple[Any, str]:
    """Return the class or module that holds ``module:qualified.name``, and its name there."""
    module, _, qualified = function.partition(":")
    qualifier, _, name = qualified.rpartition(".")
    if not qualifier:
        return importlib.import_module(module), name
    holder = resolve(f"{module}:{qualifier}")
    if holder is None:
        # XNNPACK's decorator registers a visitor and leaves nothing where its class was defined.
        visitors = resolve("executorch.backends.xnnpack.operators.node_visitor:_node_visitor_dict").values()
        holder = next(cls for cls in visitors if (cls.__module__, cls.__qualname__) == (module, qualifier))
    return holder, name


class EditError(Exception):
    """An edit does not fit the ExecuTorch that is installed.

    Attributes
    ----------
    function
        ``module:qualified.name``.
    why
        Rest of the sentence that begins with it.
    """

    def __init__(self, function: str, why: str) -> None:
        super().__init__(function, why)
        self.function = function
        self.why = why

    def __str__(self) -> str:
        return f"{self.function} {self.why}"


@dataclass(frozen=True)
class Mutated(Cell):
    """A cell with a mutant in the processes that export it."""

    mutant: str

    def __str__(self) -> str:
        return f"{super().__str__()} with {self.mutant}"


#: Why no digest guards what a mutant edits.
UNGUARDED = "an edit is made where its text is found once, and is refused otherwise"


class Edited:
    """Something that edits installed functions."""

    edits: tuple[Edit, ...]

    def by_function(self) -> dict[str, list[Edit]]:
        """Return the edits of each function."""
        edits: dict[str, list[Edit]] = {}
        for edit in self.edits:
            edits.setdefault(edit.function, []).append(edit)
        return edits

    def install(self, release: str) -> None:
        """Edit functions installed in this process; raise EditError."""
        for function, edits in self.by_function().items():
            install(function, edits)
