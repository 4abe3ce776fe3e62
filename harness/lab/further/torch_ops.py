"""The samples of PyTorch's database of operators, each alone, for one target of all those that take its dtype.

Those of float32 come in bfloat16 as well.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, Case
from executorch_goldens.zoo.targets import TARGETS
from lab.conditioning import ANY_SQNR
from lab.further import turns
from lab.guests import QUANTIZATION, sheets
from lab.guests.listing import cut

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

ZOO = "torch-ops"
#: Targets that take bfloat16 take turns twice as often as those that leave it to portable kernels.
BFLOAT16 = ("tosa-bf16", "tosa-fp", "tosa-bf16", "xnnpack-fp32")


def build(sample: sheets.Sample, data: Data) -> Example:
    """Build the model of a sample."""
    return sheets.example([sample])


def in_bfloat16(sample: sheets.Sample) -> sheets.Sample:
    """Return a sample of float32 with bfloat16 in its place, in its tensors and in its call."""
    call = sample.call.replace("torch.float32", "torch.bfloat16")
    tensors = [
        replace(each, dtype="bfloat16") if each.dtype == "float32" else each for each in sample.tensors
    ]
    return sheets.Sample(sample.name.replace("-float32-", "-bfloat16-"), call, tuple(tensors))


def bfloat16() -> Iterator[tuple[sheets.Sample, str]]:
    """Yield each sample of float32 in bfloat16, with its target."""
    yield from turns([in_bfloat16(each) for each in sheets.samples(ZOO) if each.group == "float32"], BFLOAT16)


def assigned() -> Iterator[tuple[sheets.Sample, str]]:
    """Yield each sample with its target; those of one operator and dtype take turns, from a next one on.

    Of float32 these are all targets, of half of its digits those that do not quantize, of integers those of TOSA.
    """
    groups = {
        "float32": tuple(TARGETS),
        "float16": tuple(name for name, target in TARGETS.items() if not target.is_quantized),
        "integers": tuple(name for name in TARGETS if name.startswith("tosa")),
    }
    for group, targets in groups.items():
        yield from turns([sample for sample in sheets.samples(ZOO) if sample.group == group], targets)


for _sample, _target in (*assigned(), *bfloat16()):
    _builder = functools.update_wrapper(functools.partial(build, _sample), build)
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
