"""Makes the rows of the matrix cases: each for the one target that the row names."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, Case
from executorch_goldens.zoo.targets import ANY_SQNR, TARGETS
from lab.pairs import rows, text
from lab.pairs.factors import Row

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

#: Every so many a row is of the core.
CORE = 8


def build(row: Row, data: Data) -> Example:
    """Build the model of a row."""
    return example_of(text.source(row), "pairs_model")


def example_of(source: str, name: str) -> Example:
    """Load a model from its source, as a Python module called `name`."""
    from executorch_goldens_plugins.repro.program import example_in

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{name}.py")
        file.write_text(source, encoding="utf-8")
        return example_in(file, name)


def core(_: str) -> frozenset[str]:
    """Return the names of the pairs of the core, on any release: every `CORE`-th."""
    return frozenset(list(rows.read())[::CORE])


def register(module: str) -> None:
    """Register the models of the matrix as cases of `module`."""
    for name, row in rows.read().items():
        builder = functools.update_wrapper(functools.partial(build, row), build)
        # A case is of the module of its builder.
        builder.__module__ = module
        CASES.add(
            Case(
                name=name,
                family=row.operator,
                guards=text.in_words(row),
                build=builder,
                backends=(row.target,),
                also=(row.target,) if TARGETS[row.target].opt_in else (),
                # Nobody chose its values so that quantization leaves something of them.
                sqnr=ANY_SQNR,
            )
        )
