"""The drawn models in a folder, as a zoo: each file ``<name>.py`` is a case of that name.

The environment variable `lab.fuzz.FOLDER` names the folder. A file is loaded where its case is exported, as it
is at that moment.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, Case, ZooError
from lab.conditioning import ANY_SQNR
from lab.fuzz import FOLDER

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example


def build(file: Path, data: Data) -> Example:
    """Load a model as it is written at this moment."""
    from executorch_goldens_plugins.repro.program import example_in

    return example_in(file, "drawn_model")


def register(folder: Path) -> None:
    for file in sorted(folder.glob("*.py")):
        builder = functools.update_wrapper(functools.partial(build, file), build)
        # Nobody chose its values so that quantization leaves something of them.
        CASES.add(Case(name=file.stem, family="drawn", guards="a drawn model", build=builder, sqnr=ANY_SQNR))


if FOLDER not in os.environ:
    raise ZooError(
        f"the environment variable {FOLDER} must name a folder of drawn models (harness/lab/docs/generator.md)"
    )
register(Path(os.environ[FOLDER]).absolute())
