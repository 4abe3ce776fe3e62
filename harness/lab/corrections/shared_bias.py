"""Finding shared-bias: an XNNPACK bias with several users is serialized once for each scale that it is read at.

XNNPACK takes the bias of a statically quantized layer as int32 codes of scale *input scale x weight scale*.
`NodeVisitor.define_tensor` serializes a node once, with the quantization parameters of its first user; a second layer
reads the same codes at its own scale.

Installed, a bias is looked up by its node and its scale. What has one user, or one scale, is serialized as before.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from executorch_goldens.patches.patch import Patch

DEFINE = "executorch.backends.xnnpack.operators.node_visitor:NodeVisitor.define_tensor"
BIAS = "executorch.backends.xnnpack.operators.quant_params:QuantParams.from_bias"

#: The same in every release.
SOURCES = {
    DEFINE: "fb701c753127ea861a8014d734499eff8fe337b5e695225b0bd75fe6834410b0",
    BIAS: "12f28a744bddfecfa957373226a6e359fa41248b47d079bb7af278420ca40f2c",
}
FITS = dict.fromkeys(("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"), SOURCES)


def _install(release: str) -> None:
    import torch
    from executorch.backends.xnnpack.operators.node_visitor import NodeVisitor

    upstream = NodeVisitor.define_tensor

    @wraps(upstream)
    def define_tensor(
        self: Any,
        tensor: Any,
        xnn_graph: Any,
        vals_to_ids: dict[Any, int],
        *args: Any,
        quant_params: Any = None,
        **kwargs: Any,
    ) -> None:
        # Only a bias is int32, and it is the constant itself: `from_bias` names the node as the one quantized.
        if quant_params is None or quant_params.dtype != torch.int32:
            upstream(self, tensor, xnn_graph, vals_to_ids, *args, quant_params=quant_params, **kwargs)
            return
        # What visitors look up is the node alone, right after this call.
        key = (tensor, tuple(torch.as_tensor(quant_params.scale).flatten().tolist()))
        vals_to_ids.pop(tensor, None)
        if key in vals_to_ids:
            vals_to_ids[tensor] = vals_to_ids[key]
        upstream(self, tensor, xnn_graph, vals_to_ids, *args, quant_params=quant_params, **kwargs)
        vals_to_ids[key] = vals_to_ids[tensor]

    NodeVisitor.define_tensor = define_tensor


PATCH = Patch(
    name="shared-bias",
    issue=None,
    summary="an XNNPACK bias is serialized once for each scale that it is read at",
    fits=FITS,
    install=_install,
)
