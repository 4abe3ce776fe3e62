"""The TOSA IDENTITY of issue #18866: dialect operator, serializer visitor and the pass that places it.

Importing this module registers the operator and the visitor with ExecuTorch; only `unique_outputs` imports
it, and only to install itself on 1.1.0 and 1.2.0, which have neither.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import tosa_serializer as ts
from executorch.backends.arm._passes.arm_pass import ArmPass
from executorch.backends.arm._passes.arm_pass_utils import create_node
from executorch.backends.arm.operators.node_visitor import NodeVisitor, register_node_visitor
from executorch.backends.arm.operators.operator_validation_utils import (
    validate_num_inputs,
    validate_same_dtype,
    validate_valid_dtype,
)
from executorch.backends.arm.tosa.dialect.ops_registration import register_fake_tosa_op
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import PassResult

#: Data types of IDENTITY by what a specification must have for them (TOSA 1.0, table of supported data types
#: of IDENTITY): bool and the integers up to 32 bits in both profiles, floats in FP, the rest by extension.
INTEGERS = (ts.DType.BOOL, ts.DType.INT8, ts.DType.INT16, ts.DType.INT32)
FLOATS = (ts.DType.FP16, ts.DType.FP32)
EXTENSIONS = {
    "int4": ts.DType.INT4,
    "int16": ts.DType.INT48,
    "bf16": ts.DType.BF16,
    "fp8e4m3": ts.DType.FP8E4M3,
    "fp8e5m2": ts.DType.FP8E5M2,
}


def supported_dtypes(tosa_spec: Any) -> list[Any]:
    """Return the data types that IDENTITY takes under `tosa_spec`, a `TosaSpecification`."""
    return [
        *INTEGERS,
        *(FLOATS if tosa_spec.support_float() else ()),
        *(dtype for extension, dtype in EXTENSIONS.items() if tosa_spec.support_extension(extension)),
    ]


def IDENTITY(value: torch.Tensor) -> torch.Tensor:  # noqa: N802 - the operator's name in the specification
    """Return a fake tensor of the same shape, data type and strides."""
    return torch.empty_like(value)


register_fake_tosa_op("IDENTITY(Tensor input) -> Tensor", NodeVisitor.tosa_specs)(IDENTITY)


@register_node_visitor
class IdentityVisitor(NodeVisitor):
    """Serializes IDENTITY; raises ValueError for a data type that the specification in force lacks."""

    target = "tosa.IDENTITY.default"
    tosa_specs = NodeVisitor.tosa_specs

    def define_node(self, node: Any, tosa_graph: Any, inputs: list[Any], output: Any) -> None:
        validate_num_inputs(self.target, inputs, 1)
        validate_same_dtype(self.target, [*inputs, output], ts)
        validate_valid_dtype(self.target, [*inputs, output], supported_dtypes(self.tosa_spec), self.tosa_spec)
        attribute = ts.TosaSerializerAttribute()
        attribute.IdentityAttribute()
        self._serialize_operator(node, tosa_graph, ts.Op.IDENTITY, [inputs[0].name], [output.name], attribute)


class UniqueOutputNodesPass(ArmPass):
    """Gives each output slot of a node that is in several of them an IDENTITY of that node.

    Parameters
    ----------
    exported_program
        Not used. Passes are made both as ``Pass()`` and as ``Pass(exported_program)``; taken here, the
        program is not bound to `ArmPass`'s first parameter, which would make this a pass of the annotation
        pipeline.
    """

    _passes_required_after: set[Any] = set()  # noqa: RUF012 - the declaration that ArmPass asks for

    def __init__(self, exported_program: Any = None) -> None:
        super().__init__(tfa_pass=False)

    def call(self, graph_module: Any) -> Any:
        graph = graph_module.graph
        output = graph.output_node()
        places = Counter(_nodes(output.args[0]))
        if not any(count > 1 for count in places.values()):
            return PassResult(graph_module, False)

        def own_node(slot: Any) -> Any:
            if isinstance(slot, (list, tuple)):
                return type(slot)(own_node(item) for item in slot)
            if places[slot] < 2:
                return slot
            with graph.inserting_before(output):
                return create_node(graph, exir_ops.backend.tosa.IDENTITY.default, (slot,), from_node=slot)

        output.args = (own_node(output.args[0]), *output.args[1:])
        graph_module.recompile()
        return PassResult(super().call(graph_module).graph_module, True)


def _nodes(slots: Any) -> list[Any]:
    if isinstance(slots, (list, tuple)):
        return [node for slot in slots for node in _nodes(slot)]
    return [slots] if isinstance(slots, torch.fx.Node) else []
