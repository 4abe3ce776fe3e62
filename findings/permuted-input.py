"""TOSA: an input that is permuted in memory has one shape in the payload, and what reads it another."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from tosa.Op import Op
from tosa.TosaGraph import TosaGraph


class Negated(torch.nn.Module):
    def forward(self, x):
        return -x


program = torch.export.export(Negated(), (torch.rand(6, 5).T,))
edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))])
payload = edge.exported_program().graph_module.lowered_module_0.processed_bytes
block = TosaGraph.GetRootAsTosaGraph(payload, 0).Regions(0).Blocks(0)
shapes = {
    tensor.Name(): tensor.ShapeAsNumpy().tolist()
    for tensor in map(block.Tensors, range(block.TensorsLength()))
}
for operator in map(block.Operators, range(block.OperatorsLength())):
    if operator.Op() == Op.NEGATE:
        given, made = shapes[operator.Inputs(0)], shapes[operator.Outputs(0)]
        if given != made:
            print(f"NEGATE of {given} gives {made}")
            sys.exit(1)
print("not reproduced")
