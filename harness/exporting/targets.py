"""Quantizer, partitioner and lowering options of each target."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from executorch.backends.arm.quantizer import (
    get_symmetric_a16w8_quantization_config as tosa_symmetric_a16w8,
)
from executorch.backends.arm.quantizer import (
    get_symmetric_quantization_config as tosa_symmetric,
)
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
from torchao.quantization.pt2e import FixedQParamsObserver, HistogramObserver
from torchao.quantization.pt2e.quantizer import QuantizationSpec

from harness import Example
from harness.exporting import compat
from harness.exporting.observers import GridObserver


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
    dtype
        What the model's floating weights and inputs are cast to before anything else; None leaves them.
    bound
        How far its outputs may be from the (quantized) eager ones, as a part of the largest absolute value.
    """

    name: str
    partitioner: Callable[[], Any]
    bound: float
    quantizer: Callable[[str], Any] | None = None
    runtime: bool = False
    dtype: torch.dtype | None = None

    def cast(self, example: Example) -> Example:
        """Return `example` with its floating weights, buffers and inputs in the target's dtype."""
        if self.dtype is None:
            return example
        inputs = tuple(x.to(self.dtype) if x.is_floating_point() else x for x in example.inputs)
        return dataclasses.replace(example, module=example.module.to(self.dtype), inputs=inputs)

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


def on_grid(config: Any) -> Any:
    """Replace the histogram observers of a quantization config, a dataclass of specifications, by `GridObserver`."""
    specs = {
        field.name: dataclasses.replace(
            spec, observer_or_fake_quant_ctr=GridObserver.with_args(**made.keywords)
        )
        for field in dataclasses.fields(config)
        if isinstance(spec := getattr(config, field.name), QuantizationSpec)
        and (made := spec.observer_or_fake_quant_ctr.p).func is HistogramObserver
    }
    return dataclasses.replace(config, **specs)


#: Quantizer settings that a case may name, for each family of targets. ``histogram`` is what the release ships;
#: with ``int8-head`` the submodule ``head`` stays int8 where the rest is int16.
TOSA_SETTINGS: Mapping[str, Callable[[], Any]] = {
    "symmetric": lambda: on_grid(tosa_symmetric(is_per_channel=True)),
    "histogram": lambda: tosa_symmetric(is_per_channel=True),
    "int8-head": lambda: on_grid(tosa_symmetric(is_per_channel=True)),
    "snorm-int8": lambda: TosaQuantizationConfig(snorm_int8(), snorm_int8(), None, None),
}
TOSA_INT16_SETTINGS: Mapping[str, Callable[[], Any]] = {
    **TOSA_SETTINGS,
    "symmetric": lambda: on_grid(tosa_symmetric_a16w8(is_per_channel=True)),
    "histogram": lambda: tosa_symmetric_a16w8(is_per_channel=True),
    "int8-head": lambda: on_grid(tosa_symmetric_a16w8(is_per_channel=True)),
}
XNNPACK_SETTINGS: Mapping[str, Callable[[], Any]] = {
    "symmetric": lambda: on_grid(xnnpack_symmetric(is_per_channel=True)),
    "histogram": lambda: xnnpack_symmetric(is_per_channel=True),
    "int8-head": lambda: on_grid(xnnpack_symmetric(is_per_channel=True)),
    "snorm-int8": lambda: XnnpackQuantizationConfig(snorm_int8(), snorm_int8(), None, None),
}


#: What ``EthosUCompileSpec`` lowers for an Ethos-U55; what Vela then makes of it is not looked at.
ETHOS_U55 = "TOSA-1.0+INT+int16+int4+u55"


def _tosa(name: str) -> Callable[[], Any]:
    return lambda: TOSAPartitioner(TosaCompileSpec(name))


def _tosa_int8(name: str) -> Callable[[str], Any]:
    def quantizer(settings: str) -> Any:
        config = TOSA_SETTINGS[settings]()
        return compat.tosa_quantizer(TosaCompileSpec(name)).set_global(config).set_io(config)

    return quantizer


def _tosa_int16_quantizer(settings: str) -> Any:
    config = TOSA_INT16_SETTINGS[settings]()
    quantizer = compat.tosa_quantizer(TosaCompileSpec("TOSA-1.0+INT+int16")).set_global(config).set_io(config)
    if settings == "int8-head":
        quantizer.set_module_name("head", TOSA_SETTINGS[settings]())
    return quantizer


def _tosa_mixed_quantizer(settings: str) -> Any:
    """Quantize what multiplies by weights; the rest stays float32."""
    quantizer = compat.tosa_quantizer(TosaCompileSpec("TOSA-1.0+INT+FP"))
    config = TOSA_SETTINGS[settings]()
    for module in (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d):
        quantizer.set_module_type(module, config)
    return quantizer


def _xnnpack_quantizer(settings: str) -> Any:
    return XNNPACKQuantizer().set_global(XNNPACK_SETTINGS[settings]())


def _xnnpack_dynamic_quantizer(settings: str) -> Any:
    return XNNPACKQuantizer().set_global(xnnpack_symmetric(is_per_channel=True, is_dynamic=True))


#: Both sides compute in float32 and differ in the order of sums and in the exponential: some units in the last place
#: (2**-24 = 6e-8) per layer.
FLOAT32_BOUND = 1e-5
#: One code of an int8 output whose largest absolute value lies 127 codes from its zero, and a little for the float32
#: product of code and scale. XNNPACK requantizes with a rounding of its own; TOSA's RESCALE rounds the scale to 32
#: bits, which moves a sum of several terms by one code where the eager graph's float32 sum falls next to a half.
INT8_BOUND = (1.0 + 1e-6) / 127.0

#: Two codes of an int16 output. TOSA rescales the 48-bit accumulator with a multiplier of 16 bits, which is off by up
#: to 2**-16 of the value, half a code at full range, beside the rounding itself; bias and scale add theirs.
INT16_BOUND = 4.0 / 65535.0
#: Eight roundings to bfloat16's 8 significant bits, 2**-9 each: TOSA and eager round after different operators.
BFLOAT16_BOUND = 2.0**-6

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("tosa-fp", _tosa("TOSA-1.0+FP"), FLOAT32_BOUND),
        Target("tosa-int", _tosa("TOSA-1.0+INT"), INT8_BOUND, _tosa_int8("TOSA-1.0+INT")),
        Target("tosa-int16", _tosa("TOSA-1.0+INT+int16"), INT16_BOUND, _tosa_int16_quantizer),
        Target("tosa-fp+cf", _tosa("TOSA-1.0+FP+cf"), FLOAT32_BOUND),
        Target("tosa-u55", _tosa(ETHOS_U55), INT8_BOUND, _tosa_int8(ETHOS_U55)),
        Target("tosa-fp+int", _tosa("TOSA-1.0+INT+FP"), INT8_BOUND, _tosa_mixed_quantizer),
        Target("tosa-bf16", _tosa("TOSA-1.0+FP+bf16"), BFLOAT16_BOUND, dtype=torch.bfloat16),
        Target("xnnpack-fp32", XnnpackPartitioner, FLOAT32_BOUND, runtime=True),
        Target("xnnpack-int8", XnnpackPartitioner, INT8_BOUND, _xnnpack_quantizer, runtime=True),
        Target("xnnpack-dynamic", XnnpackPartitioner, INT8_BOUND, _xnnpack_dynamic_quantizer, runtime=True),
    )
}
