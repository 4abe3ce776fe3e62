"""TOSA FP: a cast from float32 to bool is lowered, which TOSA 1.0 does not have."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from tosa.DType import DType
from tosa.Op import Op
from tosa.TosaGraph import TosaGraph


class Cast(torch.nn.Module):
    def forward(self, x):
        return x.bool()


partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Cast(), (torch.tensor([0.0, 0.25, 1.0]),))
edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    block = TosaGraph.GetRootAs(delegate.processed_bytes).Regions(0).Blocks(0)
    types = {}
    for n in range(block.TensorsLength()):
        types[block.Tensors(n).Name()] = block.Tensors(n).Type()
    for operator in (block.Operators(n) for n in range(block.OperatorsLength())):
        if operator.Op() == Op.CAST:
            given, made = types[operator.Inputs(0)], types[operator.Outputs(0)]
            if (given, made) == (DType.FP32, DType.BOOL):
                print("the payload casts FP32 to BOOL")
                sys.exit(1)
print("not reproduced")
