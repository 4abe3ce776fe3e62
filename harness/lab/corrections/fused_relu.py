"""Finding fused-relu: an int8 convolution whose ReLU is fused cuts off at its least code.

`FuseQuantizedActivationPass` drops the ReLU after a convolution and raises the least code of the output to its zero
point, that is to zero. `RewriteConvPass` makes a RESCALE of scale, zero point and dtype, which saturates at the dtype's
least code. From 1.5.1 the ReLU is dropped where the two codes differ as well.

Installed, a CLAMP at the zero point follows the RESCALE there.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from executorch_goldens.patches.patch import Patch

PASSES = "executorch.backends.arm._passes"
RESCALE = f"{PASSES}.rewrite_conv_pass:RewriteConvPass.insert_output_rescale"
FUSE = f"{PASSES}.fuse_quantized_activation_pass:FuseQuantizedActivationPass._set_quant_qmin_to_zp"

FITS = {
    "1.5.1": {
        RESCALE: "d343f063c398dbe20cb922375000c8bd2531b44b7e07b46a4ec7c23cf25ab7ce",
        FUSE: "3c0b9eb1fcc0fe001bb077eebdd80078d5f596e4b1fe0ad938c52162de56bc0b",
    },
}


def _install(release: str) -> None:
    import torch
    from executorch.backends.arm._passes.arm_pass_utils import create_node
    from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass
    from executorch.exir.dialects._ops import ops

    clamp = ops.backend.tosa.CLAMP.default
    upstream = RewriteConvPass.insert_output_rescale

    @wraps(upstream)
    def insert_output_rescale(
        self: Any, graph_module: Any, source_node: Any, conv_node: Any, conv_fake_tensor: Any
    ) -> tuple[Any, Any]:
        rescale, value = upstream(self, graph_module, source_node, conv_node, conv_fake_tensor)
        output = self._get_effective_output_qparams(source_node)[0]
        least, largest = output.qmin, torch.iinfo(output.dtype).max
        is_raised = least == output.get_zp_per_tensor() and least > torch.iinfo(output.dtype).min
        # An int16 convolution gets further branches from the RESCALE itself.
        if output.dtype != torch.int8 or not is_raised:
            return rescale, value
        with graph_module.graph.inserting_after(rescale):
            node = create_node(
                graph=graph_module.graph,
                op_target=clamp,
                args=(rescale, least, largest),
                from_node=source_node,
            )
        return node, clamp(value, least, largest)

    RewriteConvPass.insert_output_rescale = insert_output_rescale


PATCH = Patch(
    name="fused-relu",
    issue=None,
    summary="an int8 convolution whose ReLU is fused cuts off at its least code",
    fits=FITS,
    install=_install,
)
