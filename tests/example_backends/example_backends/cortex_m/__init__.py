"""Cortex-M: no delegate; passes put CMSIS-NN's operators into the program, which runs in their Python references."""

from executorch_goldens.zoo.targets import EAGER, INT8_FLOOR, Target

INT8 = Target(
    name="cortex-m55",
    description="CMSIS-NN for a Cortex-M55, int8",
    backend="cortex-m",
    runs=EAGER,
    floor=INT8_FLOOR,
    quantizer="example_backends.cortex_m.lowering:quantizer",
    delegates=False,
    unsupported={"1.3.1": "its passes import cmsis_nn, which is not in that wheel"},
    lower="example_backends.cortex_m.lowering:lower",
)
