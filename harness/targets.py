"""Quantizer, partitioner and lowering options of each target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from executorch.backends.arm.quantizer import get_symmetric_quantization_config as tosa_symmetric
from executorch.backends.arm.quantizer.quantization_config import QuantizationConfig as TosaQuantizationConfig
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    get_symmetric_quantization_config as xnnpack_symmetric,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer_utils import (
    QuantizationConfig as XnnpackQuantizationConfig,
)
from executorch.exir import EdgeCompileConfig
from torchao.quantization.pt2e import FixedQParamsObserver
from torchao.quantization.pt2e.quantizer import QuantizationSpec

from harness import compat


@dataclass(frozen=True)
class Target:
    """How a case is quantized, partitioned and run.

    Attributes
    ----------
    name
        Name in releases.toml.
    quantizer
        From the case's quantizer settings to a quantizer; None for float targets.
    partitioner
        Makes the partitioner.
    runtime
        Whether ExecuTorch's runtime here has the backend: then the ``.pte`` is run in it. Otherwise the lowered
        program is, with its delegates in the TOSA reference model.
    bound
        How far its outputs may be from the (quantized) eager ones, as a part of the largest absolute value.
    """

    name: str
    partitioner: Callable[[], Any]
    bound: float
    quantizer: Callable[[str], Any] | None = None
    runtime: bool = False

    def compile_config(self) -> EdgeCompileConfig:
        # The verifier rejects some of the zoo's edge graphs on 1.1.0 before any backend sees them; the upstream
        # reports switch it off as well, and their graph digests depend on nothing else.
        return EdgeCompileConfig(_check_ir_validity=False)


def snorm_int8() -> QuantizationSpec:
    """Return the fixed SNORM int8 specification: scale 1/127, zero point 0, codes -127..127 (report #18971)."""
    return QuantizationSpec(
        dtype=torch.int8,
        observer_or_fake_quant_ctr=FixedQParamsObserver.with_args(
            scale=1.0 / 127.0,
            zero_point=0,
            dtype=torch.qint8,
            qscheme=torch.per_tensor_symmetric,
            quant_min=-127,
            quant_max=127,
        ),
        quant_min=-127,
        quant_max=127,
        qscheme=torch.per_tensor_symmetric,
        is_dynamic=False,
    )


#: Quantizer settings that a case may name, for each family of targets.
TOSA_SETTINGS: Mapping[str, Callable[[], Any]] = {
    "symmetric": lambda: tosa_symmetric(is_per_channel=True),
    "snorm-int8": lambda: TosaQuantizationConfig(snorm_int8(), snorm_int8(), None, None),
}
XNNPACK_SETTINGS: Mapping[str, Callable[[], Any]] = {
    "symmetric": lambda: xnnpack_symmetric(is_per_channel=True),
    "snorm-int8": lambda: XnnpackQuantizationConfig(snorm_int8(), snorm_int8(), None, None),
}


def _tosa(name: str) -> Callable[[], Any]:
    return lambda: TOSAPartitioner(TosaCompileSpec(name))


def _tosa_int_quantizer(settings: str) -> Any:
    config = TOSA_SETTINGS[settings]()
    return compat.tosa_quantizer(TosaCompileSpec("TOSA-1.0+INT")).set_global(config).set_io(config)


def _xnnpack_quantizer(settings: str) -> Any:
    return XNNPACKQuantizer().set_global(XNNPACK_SETTINGS[settings]())


#: Both sides compute in float32 and differ in the order of sums and in the exponential: some units in the last place
#: (2**-24 = 6e-8) per layer.
FLOAT32_BOUND = 1e-5
#: One code of an int8 output, whose 255 codes span at most twice the largest absolute value. XNNPACK requantizes with a
#: rounding of its own; TOSA's RESCALE rounds the scale to 32 bits, which moves a sum of several terms by one code where
#: the eager graph's float32 sum falls next to a half.
INT8_BOUND = 2.0 / 255.0

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("tosa-fp", _tosa("TOSA-1.0+FP"), FLOAT32_BOUND),
        Target("tosa-int", _tosa("TOSA-1.0+INT"), INT8_BOUND, _tosa_int_quantizer),
        Target("xnnpack-fp32", XnnpackPartitioner, FLOAT32_BOUND, runtime=True),
        Target("xnnpack-int8", XnnpackPartitioner, INT8_BOUND, _xnnpack_quantizer, runtime=True),
    )
}
