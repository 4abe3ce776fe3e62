"""Makes the rows of an array cases: each for the one target that the row names."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.registry import CASES, SAMPLES, Case
from executorch_goldens.targets import ANY_SQNR, TARGETS
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


def register(
    array: rows.Array, module: str, of_core: tuple[str, ...] = (), run_on: tuple[str, ...] = SAMPLES
) -> None:
    """Register the models of an array as cases of `module`.

    Parameters
    ----------
    of_core
        Releases whose core has every `CORE`-th.
    """
    for number, (name, row) in enumerate(rows.read(array).items()):
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
                core=of_core if number % CORE == 0 else (),
                also=(row.target,) if TARGETS[row.target].opt_in else (),
                run_on=run_on,
                # Nobody chose its values so that quantization leaves something of them.
                sqnr=ANY_SQNR,
            )
        )
