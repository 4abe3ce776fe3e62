"""Models of the generator, each for some of all targets, which take turns."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, Case
from executorch_goldens.zoo.targets import TARGETS
from lab.conditioning import ANY_SQNR
from lab.further import shared
from lab.fuzz import names
from lab.pairs.cases import example_of

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

#: The seed, which no search used before, and how many models there are.
SEED, MODELS = 43, 1000
#: Targets of a model.
EACH = 2


def build(source: str, data: Data) -> Example:
    """Build a model from its source."""
    return example_of(source, "drawn_model")


_names = [names.name(SEED, number) for number in range(MODELS)]
for _name, _targets in shared(_names, tuple(TARGETS), EACH).items():
    _source = names.drawn(_name).source()
    _builder = functools.update_wrapper(functools.partial(build, _source), build)
    CASES.add(
        Case(
            name=_name,
            family="drawn",
            # Results of a different model of this name do not count.
            guards=f"a drawn model ({hashlib.sha256(_source.encode()).hexdigest()[:12]})",
            build=_builder,
            backends=_targets,
            also=tuple(target for target in _targets if TARGETS[target].opt_in),
            run_on=("example",),
            # Nobody chose its values so that quantization leaves something of them.
            sqnr=ANY_SQNR,
        )
    )
