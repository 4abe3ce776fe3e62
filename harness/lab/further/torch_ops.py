"""The samples of PyTorch's database of operators, each alone, for one target of all those that take its dtype."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from executorch_goldens.registry import CASES, Case
from executorch_goldens.targets import ANY_SQNR, TARGETS
from lab.further import turns
from lab.guests import sheets
from lab.guests.cases import QUANTIZATION
from lab.guests.listing import cut

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

ZOO = "torch-ops"


def build(number: int, data: Data) -> Example:
    """Build the model of a sample."""
    return sheets.built(ZOO, str(number))


def assigned() -> Iterator[tuple[int, str]]:
    """Yield the number of each sample with its target; those of one operator and dtype take turns, from a next one on.

    Of float32 these are all targets, of half of its digits those that do not quantize, of integers those of TOSA.
    """
    groups = {
        "float32": tuple(TARGETS),
        "float16": tuple(name for name, target in TARGETS.items() if not target.is_quantized),
        "integers": tuple(name for name in TARGETS if name.startswith("tosa")),
    }
    for group, targets in groups.items():
        numbers = [n for n, sample in enumerate(sheets.samples(ZOO)) if sample.group == group]
        yield from turns(numbers, targets)


for _number, _target in assigned():
    _sample = sheets.samples(ZOO)[_number]
    _builder = functools.update_wrapper(functools.partial(build, _number), build)
    CASES.add(
        Case(
            name=cut(_sample.name, hashlib.sha256(_sample.name.encode()).hexdigest()),
            family=_sample.operator,
            guards=_sample.line(),
            build=_builder,
            quantization=QUANTIZATION,
            backends=(_target,),
            also=(_target,) if TARGETS[_target].opt_in else (),
            run_on=("example",),
            sqnr=ANY_SQNR,
        )
    )
