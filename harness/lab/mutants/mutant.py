"""A mutant: a small edit of the source of installed functions of ExecuTorch, and its expected result.

Importing this imports neither torch nor executorch; installing a mutant does.
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
from executorch_goldens.patches import Patch
from executorch_goldens.patches.guard import resolve

#: Kinds of real defects of passes: every kind has a mutant.
KINDS = (
    "iterates over a set of strings",
    "iterates over a set of nodes",
    "iterates over id()s",
    "names by a global counter",
    "names by time",
    "names by the surroundings",
    "fold skips quantization parameters",
    "fold applies quantization parameters twice",
    "fold takes the wrong axis",
    "fold drops a zero point",
    "fold rounds differently",
    "fold overflows int8",
    "permutation swapped",
    "pads swapped",
    "strides swapped",
    "dims swapped",
    "RESCALE shift off by one",
    "RESCALE multiplier off by one",
    "table entry off by one",
    "output dropped",
    "output duplicated",
    "outputs reordered",
    "transpose lost between NHWC and NCHW",
    "clamp bound lost",
    "accumulator type changed",
    "delegate silently not lowered",
    "constant deduplicated across dtypes",
    "buffer mutated in place across exports",
    # Of the same family, and as frequent.
    "fold drops a statistic",
    "RESCALE of another scale",
    # Of what quantizes, ahead of all passes.
    "scale of an observer",
    "zero point of an observer",
    "range of an observer",
)


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


@dataclass(frozen=True)
class Mutant(Edited):
    """A deliberate defect.

    Attributes
    ----------
    name
        Its name in ``--patches``.
    kind
        One of `KINDS`.
    does
        One line: what is wrong once it is installed.
    cell
        ``TARGET/CASE`` it is tried on.
    verdict
        The expected verdict of the cell; ``stable`` for a mutant that survives.
    place
        Pass, partitioner, function or stage that the harness is to name; empty for a mutant that survives.
        Serialization of a delegate is the stage ``delegate_0``.
    edits
        Of installed code.
    shows
        Further text of the line that names the stage: the attribute, constant or boundary that a node visitor
        serialized wrongly. Empty where the pass is enough.
    caught_by
        An idea to catch a mutant that survives.
    """

    name: str
    kind: str
    does: str
    cell: str
    verdict: str
    place: str
    edits: tuple[Edit, ...]
    shows: str = ""
    caught_by: str = ""

    @property
    def expected(self) -> str:
        """The table's text for `place` and `shows`."""
        return f"{self.place}: {self.shows}" if self.shows else self.place or "-"

    def patch(self, release: str) -> Patch:
        """Return the mutant as something that ``--patches`` can name on `release`, whose code it edits."""
        return Patch(self.name, None, self.does, {release: {}}, self.install, UNGUARDED)
