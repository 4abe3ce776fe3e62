"""The case of the program under trial; templates load this module after those of the cell's own case."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.registry import CASES, load

if TYPE_CHECKING:
    from harness import Data, Example

NAME = "repro-candidate"
#: Environment variables: the file that the program is written to, the case that it comes from, the zoos of that with
#: commas between them, quantizer settings.
FILE, ORIGIN = "GOLDENS_REPRO_FILE", "GOLDENS_REPRO_ORIGIN"
ZOOS, QUANTIZATION = "GOLDENS_REPRO_ZOOS", "GOLDENS_REPRO_QUANTIZATION"


def build(data: Data) -> Example:
    """Load the program as it is written at this moment; see `harness.exporting.program.Program.source`."""
    from harness import Example

    spec = importlib.util.spec_from_file_location("repro_candidate", Path(os.environ[FILE]))
    assert spec is not None
    assert spec.loader is not None
    # A strict export looks names up in the module that the model's class says it is of.
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shapes = getattr(module, "dynamic_shapes", None)
    return Example(module.Model(), module.inputs, fill=False, dynamic_shapes=shapes)


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
