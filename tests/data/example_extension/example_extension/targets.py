"""Two targets: XNNPACK with a delegate for each operator, and with weights quantized per tensor."""

from executorch_goldens.zoo.targets import RUNTIME, XNNPACK, Target

OPERATORS = Target(
    name="example-operators",
    description="XNNPACK, float32, a delegate for each operator",
    backend=XNNPACK,
    runs=RUNTIME,
    partitioner="example_extension.lowering:partitioner",
)
INT8 = Target(
    name="example-int8",
    description="XNNPACK, int8, weights quantized per tensor",
    backend=XNNPACK,
    runs=RUNTIME,
    opt_in=True,
    quantizer="example_extension.lowering:quantizer",
)
