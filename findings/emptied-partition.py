"""TOSA: a padding by nothing, alone in its partition, becomes a delegate whose output no operator writes."""

import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from tosa.TosaGraph import TosaGraph


class PaddedByNothing(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.pad(x, (0, 0))


inputs = (torch.arange(6.0).reshape(2, 3),)
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(torch.export.export(PaddedByNothing(), inputs), partitioner=[partitioner])
if delegate := getattr(edge.exported_program().graph_module, "lowered_module_0", None):
    block = TosaGraph.GetRootAs(delegate.processed_bytes).Regions(0).Blocks(0)
    operators = [block.Operators(n) for n in range(block.OperatorsLength())]
    written = {each.Outputs(n) for each in operators for n in range(each.OutputsLength())}
    outputs = {block.Outputs(n) for n in range(block.OutputsLength())}
    if unwritten := outputs - written:
        print(f"{len(operators)} operators; none writes the output {b', '.join(unwritten).decode()}")
        sys.exit(1)
print("not reproduced")
