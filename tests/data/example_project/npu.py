"""The target that this product ships to, beside XNNPACK."""

from executorch_goldens.zoo.targets import REFERENCE_MODEL, TOSA, Target

TARGET = Target(
    name="npu",
    description="TOSA-1.0+FP, for our NPU",
    backend=TOSA,
    runs=REFERENCE_MODEL,
    specification="TOSA-1.0+FP",
)
