"""What a user adds to a lowering: a pass, and a check of a partitioner."""

from __future__ import annotations

from typing import Any

import torch
from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass
from torch.fx.passes.operator_support import OperatorSupportBase

_EDGE = ops.edge.aten
#: Operators whose operands it exchanges.
EXCHANGED = (_EDGE.add.Tensor, _EDGE.mul.Tensor)


#: What a ``relu`` is not cut off at.
LARGEST = torch.finfo(torch.float32).max


class OwnPass(ExportPass):
    """Rewrites what has the same results: ``relu`` as ``hardtanh``, ``x + y`` as ``y + x``.

    As ``clamp``, XNNPACK's partitioner would refuse a quantized layer before it, and leave a delegate that writes no
    output: findings/refused-quantized-conv.md.
    """

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if op is _EDGE.relu.default:
            return super().call_operator(_EDGE.hardtanh.default, (args[0], 0.0, LARGEST), {}, meta)
        if op in EXCHANGED:
            return super().call_operator(op, (args[1], args[0]), kwargs, meta)
        return super().call_operator(op, args, kwargs, meta)


class Idle(ExportPass):
    """Leaves a program as it is."""


class NoLinear(OperatorSupportBase):
    """Takes everything but linear layers."""

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node.target not in (_EDGE.linear.default, _EDGE.addmm.default)
