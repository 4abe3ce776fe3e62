"""Finding same-padding-even-kernel: a padding that is not quantized on both sides is not delegated to TOSA INT.

A convolution with ``padding="same"`` and an even kernel has a padding between it and its dequantize. The partitioner
refuses the convolution, whose input is no dequantize, and takes dequantize and padding: the delegate gives codes where
the program expects float.

Installed, `CheckProperQuantization` asks the same of a padding as of a convolution, and both stay outside.
"""

from __future__ import annotations

from executorch_goldens.patches.patch import Patch

CHECK = "executorch.backends.arm.operator_support.tosa_supported_operators:CheckProperQuantization"

FITS = {
    "1.2.0": {
        CHECK: "cecb1b2923f6a382a0365a06b8598650381ba6d3018c58a7341fb933819c4166",
    },
    "1.3.1": {
        CHECK: "cecb1b2923f6a382a0365a06b8598650381ba6d3018c58a7341fb933819c4166",
    },
    "1.4.1": {
        CHECK: "e1682f7dcc85eb6a95cef78601368a0d4257a860e3559ab5c4ce3474bbb1840e",
    },
    "1.5.1": {
        CHECK: "ad07a0949af25607affc60f04f1441cc6cabb454f3748f2a7b3faaf4f99cdd75",
    },
}


def _install(release: str) -> None:
    from executorch.backends.arm.operator_support.tosa_supported_operators import CheckProperQuantization
    from executorch.exir.dialects._ops import ops

    CheckProperQuantization.targeted_ops += (ops.edge.aten.constant_pad_nd.default,)


PATCH = Patch(
    name="same-padding-even-kernel",
    issue=None,
    summary="a padding that is not quantized on both sides is not delegated to TOSA INT",
    fits=FITS,
    install=_install,
)
