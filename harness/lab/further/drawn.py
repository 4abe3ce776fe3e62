"""Models of the generator, each for some of all targets, which take turns."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens.registry import CASES, Case
from executorch_goldens.targets import ANY_SQNR, TARGETS
from lab.further import turns
from lab.fuzz import names

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

#: The seed, which no search used before, and how many models there are.
SEED, MODELS = 43, 1000
#: Targets of a model.
EACH = 2


def build(name: str, data: Data) -> Example:
    """Build the model of a name."""
    from executorch_goldens.exporting.program import example_in

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "drawn_model.py")
        file.write_text(names.drawn(name).source(), encoding="utf-8")
        return example_in(file, "drawn_model")


def assigned() -> dict[str, tuple[str, ...]]:
    """Return the targets of each model by its name: `EACH` of them, all taking turns."""
    drawn = [names.name(SEED, number) for number in range(MODELS) for _ in range(EACH)]
    found: dict[str, list[str]] = {}
    for name, target in turns(drawn, tuple(TARGETS)):
        found.setdefault(name, []).append(target)
    return {name: tuple(targets) for name, targets in found.items()}


for _name, _targets in assigned().items():
    _builder = functools.update_wrapper(functools.partial(build, _name), build)
    CASES.add(
        Case(
            name=_name,
            family="drawn",
            guards="a drawn model",
            build=_builder,
            backends=_targets,
            also=tuple(target for target in _targets if TARGETS[target].opt_in),
            run_on=("example",),
            # Nobody chose its values so that quantization leaves something of them.
            sqnr=ANY_SQNR,
        )
    )
