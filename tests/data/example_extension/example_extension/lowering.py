"""Functions that the targets name; imported in exporting processes only."""

from typing import Any

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)


def partitioner() -> Any:
    return XnnpackPartitioner(per_op_mode=True)


def quantizer(settings: str) -> Any:
    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=False))
