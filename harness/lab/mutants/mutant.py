"""An edit of the source of installed functions of ExecuTorch: as text of a file, and in the process that exports.

Importing this imports neither torch nor executorch; making an edit in the process does.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens_plugins.compare.reach import code
from lab.mutants import installing
from lab.mutants.installing import EditError

#: Why no digest guards what a mutant edits.
UNGUARDED = "an edit is made where its text is found once, and is refused otherwise"


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

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    def within(self, text: str) -> tuple[str, code.Function]:
        """Return the name and the place of the function that is edited, in its module; raise EditError.

        Of a function within one it is the outer one.
        """
        functions, name = code.module(text).functions, self.function.partition(":")[2]
        while name and name not in functions:
            name = name.rpartition(".")[0]
        if not name:
            raise EditError(self.function, "is not there")
        return name, functions[name]


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return the text of a module with edits of its functions made; raise EditError."""
    for edit in edits:
        _, function = edit.within(text)
        lines = text.splitlines(keepends=True)
        first, last = function.first - 1, function.last
        source = "".join(lines[first:last])
        if source.count(edit.old) != 1:
            raise EditError(edit.function, f"has {source.count(edit.old)} times, not once: {edit.old!r}")
        text = "".join((*lines[:first], source.replace(edit.old, edit.new), *lines[last:]))
    return text


def install(edits: Sequence[Edit]) -> None:
    """Edit one function in this process, by its source as it is in its file; raise EditError."""
    first = edits[0]
    try:
        file = importlib.import_module(first.module).__file__
    except ImportError as error:
        raise EditError(first.function, "is not there") from error
    name, function = first.within(Path(str(file)).read_text(encoding="utf-8"))
    made = functools.partial(edited, edits=edits)
    installing.install(first.module, name, function.first, lambda source: made(source.decode()).encode())


@dataclass(frozen=True)
class Mutated(Cell):
    """A cell with a mutant in the processes that export it."""

    mutant: str

    def __str__(self) -> str:
        return f"{super().__str__()} with {self.mutant}"


class Edited:
    """Something that edits installed functions."""

    edits: tuple[Edit, ...]

    def install(self, release: str) -> None:
        """Edit functions of `release`, which is installed, in this process; raise EditError."""
        by_function: dict[str, list[Edit]] = {}
        for edit in self.edits:
            by_function.setdefault(edit.function, []).append(edit)
        for edits in by_function.values():
            install(edits)
