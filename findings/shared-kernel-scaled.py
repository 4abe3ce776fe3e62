"""Arm: of two convolutions with one kernel, each times a number of its own, the second gets the first one's number."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from tosa.Op import Op
from tosa.TosaGraph import TosaGraph


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 3, kernel_size=2, bias=False)

    def forward(self, x, y):
        return self.conv(x) * 0.5, self.conv(y) * 0.75


inputs = (torch.rand(1, 2, 3, 4), torch.rand(2, 2, 3, 4))
program = torch.export.export(Scaled(), inputs)
edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))])
payload = edge.exported_program().graph_module.lowered_module_0.processed_bytes
block = TosaGraph.GetRootAsTosaGraph(payload, 0).Regions(0).Blocks(0)
operators = [block.Operators(number) for number in range(block.OperatorsLength())]
kernels = {operator.Inputs(1) for operator in operators if operator.Op() == Op.CONV2D}
products = sum(operator.Op() == Op.MUL for operator in operators)
if products == 0 and len(kernels) == 1:
    print("two convolutions times 0.5 and 0.75 read one kernel, and nothing multiplies")
    sys.exit(1)
print("not reproduced")
