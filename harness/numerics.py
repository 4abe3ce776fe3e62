"""Runs what was exported, and says what it should have given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from harness.artifact import Tensor

#: Operators of the quantized eager graph, by name: torchao registers them with torch.
QUANTIZE = "quantize_per_tensor"
DEQUANTIZE = "dequantize_per_tensor"


def flatten(outputs: Any) -> tuple[Tensor, ...]:
    """Return a model's outputs, of whatever structure, as tensors in order."""
    leaves = pytree.tree_leaves(outputs)
    return tuple(Tensor.of(leaf.detach().contiguous().numpy()) for leaf in leaves)


def run_pte(pte: bytes, inputs: Sequence[torch.Tensor]) -> tuple[Tensor, ...]:
    """Run method ``forward`` of a ``.pte`` in ExecuTorch's own runtime.

    The runtime starts a thread pool of its own: call this in a process that will not fork afterwards.
    """
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    module = _load_for_executorch_from_buffer(pte)
    # Outputs may be views of the program's memory plan: copy them before the module goes.
    return flatten([output.clone() for output in module.run_method("forward", tuple(inputs))])


class _OutputCodes(torch.fx.Interpreter):
    """Notes the argument of the last dequantize before each output: the output in integer codes."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[torch.fx.Node, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        self.values[n] = super().run_node(n)
        return self.values[n]


def output_codes(converted: torch.fx.GraphModule) -> tuple[Tensor, ...]:
    """Return the integer codes of each output of a quantized eager graph that takes no inputs.

    Outputs are ``dequantize(codes)`` in a graph that the quantizer annotated to its end; an output that is not is
    returned as the float tensor it is.
    """
    interpreter = _OutputCodes(converted)
    with torch.no_grad():
        interpreter.run()
    (output,) = (node for node in converted.graph.nodes if node.op == "output")
    found = []
    for node in pytree.tree_leaves(output.args[0]):
        source = node.args[0] if DEQUANTIZE in str(node.target) else node
        found.append(interpreter.values[source])
    return flatten(found)
