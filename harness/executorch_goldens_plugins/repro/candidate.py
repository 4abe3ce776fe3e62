"""The case of the program under trial; templates load this module after those of the cell's own case."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, load

if TYPE_CHECKING:
    from executorch_goldens import Data, Example

NAME = "repro-candidate"
#: Environment variables: the file that the program is written to, the case that it comes from, the zoos of that with
#: commas between them, quantizer settings.
FILE, ORIGIN = "GOLDENS_REPRO_FILE", "GOLDENS_REPRO_ORIGIN"
ZOOS, QUANTIZATION = "GOLDENS_REPRO_ZOOS", "GOLDENS_REPRO_QUANTIZATION"


def build(data: Data) -> Example:
    """Load the program as it is written at this moment."""
    from executorch_goldens_plugins.repro.program import example_in

    return example_in(Path(os.environ[FILE]), "repro_candidate")


if ORIGIN in os.environ:
    CASES.add(
        dataclasses.replace(
            load(os.environ[ZOOS].split(","))[os.environ[ORIGIN]],
            name=NAME,
            build=build,
            quantization=os.environ[QUANTIZATION],
            constant_outputs=False,
            run_on=("example",),
        )
    )
