"""TOSA: a delegate declares its input as an output that no operator writes."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from tosa.TosaGraph import TosaGraph


class WrittenClone(torch.nn.Module):
    def forward(self, x, rows, y):
        written = x.clone()
        written[:, rows] = y  # int64 indices: stays outside the delegate
        return written, x + x


inputs = (torch.ones(2, 3), torch.tensor([2, 0]), torch.zeros(2, 2))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
program = torch.export.export(WrittenClone(), inputs)
module = to_edge_transform_and_lower(program, partitioner=[partitioner]).exported_program().graph_module
payload = module.lowered_module_0.processed_bytes
block = TosaGraph.GetRootAs(payload).Regions(0).Blocks(0)
operators = [block.Operators(i) for i in range(block.OperatorsLength())]
written = {operator.Outputs(i) for operator in operators for i in range(operator.OutputsLength())}
declared = [block.Outputs(i) for i in range(block.OutputsLength())]
if unwritten := [name.decode() for name in declared if name not in written]:
    print(f"{len(declared)} outputs, no operator writes {unwritten}")
    sys.exit(1)
print("not reproduced")
