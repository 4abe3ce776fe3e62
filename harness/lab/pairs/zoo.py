"""The matrix as a zoo: each row of ``rows.tsv`` is a case, for the one target that the row names."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.registry import CASES, Case
from executorch_goldens.targets import ANY_SQNR, TARGETS
from lab.pairs import rows, text
from lab.pairs.factors import Row

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

#: Releases that have goldens of it: those that fixes are taken back in (docs/history.md).
RELEASES = ("1.3.1", "1.5.1")
#: Every so many a row is of the core.
CORE = 8


def build(row: Row, data: Data) -> Example:
    """Build the model of a row."""
    from executorch_goldens.exporting.program import example_in

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pairs_model.py")
        file.write_text(text.source(row), encoding="utf-8")
        return example_in(file, "pairs_model")


for _number, (_name, _row) in enumerate(rows.read().items()):
    _builder = functools.update_wrapper(functools.partial(build, _row), build)
    CASES.add(
        Case(
            name=_name,
            family=_row.operator,
            guards=text.in_words(_row),
            build=_builder,
            backends=(_row.target,),
            core=RELEASES if _number % CORE == 0 else (),
            also=(_row.target,) if TARGETS[_row.target].opt_in else (),
            # Nobody chose its values so that quantization leaves something of them.
            sqnr=ANY_SQNR,
        )
    )
