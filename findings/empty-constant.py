"""TOSA FP: a constant without elements is lowered, which TOSA does not have."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from tosa.TosaGraph import TosaGraph


class Empty(torch.nn.Module):
    def forward(self, x, y):
        return torch.linspace(x, y, 0, dtype=torch.int32)


partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(Empty(), (torch.tensor(-2.0), torch.tensor(-3)))
edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    block = TosaGraph.GetRootAs(delegate.processed_bytes).Regions(0).Blocks(0)
    for tensor in (block.Tensors(n) for n in range(block.TensorsLength())):
        if 0 in (shape := [tensor.Shape(n) for n in range(tensor.ShapeLength())]):
            print(f"the payload has a tensor of shape {shape}")
            sys.exit(1)
print("not reproduced")
