"""The samples of PyTorch's database of modules, each for as many targets as all have their turn."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, Case
from executorch_goldens.zoo.targets import TARGETS
from lab.conditioning import ANY_SQNR
from lab.further import shared
from lab.guests import modules

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

#: Targets of a sample.
EACH = 4


def build(number: int, data: Data) -> Example:
    """Build the model of a sample."""
    return modules.example(modules.samples()[number])


for _number, _targets in shared(range(len(modules.samples())), tuple(TARGETS), EACH).items():
    _sample = modules.samples()[_number]
    _builder = functools.update_wrapper(functools.partial(build, _number), build)
    CASES.add(
        Case(
            name=_sample.name,
            family=_sample.name.rpartition("-")[0],
            guards=_sample.line(),
            build=_builder,
            backends=_targets,
            also=tuple(target for target in _targets if TARGETS[target].opt_in),
            run_on=("example",),
            sqnr=ANY_SQNR,
        )
    )
