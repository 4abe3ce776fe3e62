"""TOSA INT: a constant of int64 that is an output becomes int32."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Zeros(torch.nn.Module):
    def forward(self, x):
        return x.new_zeros((2, 3))


inputs = (torch.arange(5),)
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec)
quantizer.set_global(get_symmetric_quantization_config())
prepared = prepare_pt2e(torch.export.export(Zeros(), inputs).module(check_guards=False), quantizer)
prepared(*inputs)
program = torch.export.export(convert_pt2e(prepared), inputs)
edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)])
(output,) = edge.exported_program().graph_module.graph.output_node().args[0]
if output.meta["val"].dtype != torch.int64:
    print(f"the output is {output.meta['val'].dtype}, and eager gives torch.int64")
    sys.exit(1)
print("not reproduced")
