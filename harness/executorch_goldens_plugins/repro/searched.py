"""A model that the search of ``goldens compare`` found, made smaller while both sides differ in the same way."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.artifact import Cell
from executorch_goldens.files.wording import count
from executorch_goldens.results.compared import Column
from executorch_goldens.zoo.targets import TARGETS
from executorch_goldens_plugins.repro import candidate
from executorch_goldens_plugins.repro.reproduction import program_of

if TYPE_CHECKING:
    from executorch_goldens_plugins.compare.making import Comparison
    from executorch_goldens_plugins.compare.searching import Try
    from executorch_goldens_plugins.repro.program import GraphProgram

#: Seconds after which no further program is tried.
LONGEST = 120.0
#: The module that a shrunk model is kept in, in the folder of the comparison.
FILE = "found.py"


def shrunk(comparison: Comparison) -> Column | None:
    """Return where a smaller model is; None where the search found none."""
    from executorch_goldens_plugins.repro.program import NoProgramError
    from executorch_goldens_plugins.repro.shrink import shrink

    model = comparison.model
    if model is None:
        return None
    # What torch logs of its imports is nothing of a comparison.
    logging.disable(logging.WARNING)
    try:
        program = program_of(model.made(), model.target, "example")
    except NoProgramError as error:
        return _column([f"{model.cell} is not made smaller: {error}"])
    finally:
        logging.disable(logging.NOTSET)
    (found,) = (each for each in comparison.found if each.cell == model.cell)
    with tempfile.TemporaryDirectory(prefix="goldens-found-") as folder:
        written = Path(folder, "candidate.py")
        environment = {
            candidate.FILE: str(written),
            candidate.ORIGIN: model.case.name,
            candidate.ZOOS: model.case.module,
            candidate.QUANTIZATION: model.case.quantization,
        }
        cell = Cell(model.target, candidate.NAME)
        with comparison.again(cell, candidate.__name__, environment) as exported:
            trial = Trial(found.kind, exported, written)
            if not trial.shows(program):
                return _column([f"{model.cell} is not made smaller: its exported graph shows something else"])
            small = shrink(program, trial.shows)
    file = comparison.folder / FILE
    file.write_text(zoo_of(small, model), encoding="utf-8")
    sizes = f"{program.size()[0]} operators to {small.size()[0]}, {count(trial.tried, 'program')} tried"
    return _column([f"{model.cell}, made smaller ({sizes}), is a case in {file}"])


def _column(lines: list[str]) -> Column:
    """Return a column that the table does not have."""
    return Column("", "shrunk", {}, lines)


class Trial:
    """Programs exported, run and judged on both sides of a comparison: see `Comparison.again`."""

    def __init__(self, kind: str, exported: Callable[[], str], file: Path) -> None:
        self.kind = kind
        self.exported = exported
        self.file = file
        self.tried = 0
        self.end = time.monotonic() + LONGEST

    def shows(self, program: GraphProgram) -> bool:
        """Return whether a program differs in the way that was found; False once the time is over."""
        if time.monotonic() > self.end:
            return False
        self.tried += 1
        self.file.write_text(program.file(), encoding="utf-8")
        return self.exported() == self.kind


def zoo_of(program: GraphProgram, model: Try) -> str:
    """Return a module of a zoo with a program as a case, for the target of a model."""
    fields = {
        "guards": f"an edit of the toolchain changes it ({model.cell})",
        "name": model.cell.case,
        "backends": (model.target,),
        "quantization": model.case.quantization,
    }
    if model.target in TARGETS and TARGETS[model.target].opt_in:
        fields["also"] = (model.target,)
    arguments = "".join(f"    {name}={value!r},\n" for name, value in fields.items())
    if (least := model.case.sqnr.get(model.target)) is not None:
        arguments += f'    sqnr={{"{model.target}": float("{least}")}},\n'
    shapes = ", dynamic_shapes=dynamic_shapes" if program.shapes() else ""
    return (
        f"from executorch_goldens import Data, Example, case\n{program.file()}\n\n@case(\n{arguments})\n"
        f"def found(data: Data) -> Example:\n    return Example(Model(), inputs, fill=False{shapes})\n"
    )
