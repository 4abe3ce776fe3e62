"""Finding folded-scales: a scale that is folded into a convolution is not written to the model that was given.

Before a model is quantized, `FoldScalarMulIntoConvPass` multiplies the weight and the bias of a convolution by what its
output is multiplied by. It copies the products into the tensors that are there, which are the model's own: the model
computes something else from then on, and whoever exports it again folds the scale once more.

Installed, it writes to copies.
"""

from __future__ import annotations

from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import Patch, replaces

FITS = by_release(
    """
    executorch.backends.arm._passes.fold_scalar_mul_into_conv_pass:FoldScalarMulIntoConvPass._set_get_attr_tensor
        6c1e789add76a1e6 1.4.1 1.5.1
    """
)


def _install(release: str) -> None:
    import torch
    from executorch.backends.arm._passes.fold_scalar_mul_into_conv_pass import FoldScalarMulIntoConvPass

    @replaces(FoldScalarMulIntoConvPass, "_set_get_attr_tensor")
    def set_get_attr_tensor(upstream: Any, self: Any, node: torch.fx.Node, tensor: torch.Tensor) -> bool:
        if node.graph.owning_module is not None:
            path, _, name = str(node.target).rpartition(".")
            owner = node.graph.owning_module.get_submodule(path)
            held = getattr(owner, name)
            copy = held.detach().clone()
            if isinstance(held, torch.nn.Parameter):
                copy = torch.nn.Parameter(copy, held.requires_grad)
            setattr(owner, name, copy)
        return bool(upstream(self, node, tensor))


PATCH = Patch(
    name="folded-scales",
    issue=None,
    summary="a scale that is folded into a convolution is not written to the model that was given",
    fits=FITS,
    install=_install,
    verdicts={"corrupt": {"kind": "changed-model"}},
)
