"""TOSA INT: a sum of int32 that is divided by a float is read as int8."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph


class Variance(torch.nn.Module):
    def forward(self, x, mask):
        return torch.masked.var(x, dim=0, keepdim=True, mask=mask, unbiased=True)


def lowered(inputs):
    spec = TosaCompileSpec("TOSA-1.0+INT")
    quantizer = TOSAQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(Variance(), inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    program = torch.export.export(convert_pt2e(prepared), inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)])
    return edge.exported_program().graph_module


try:
    module = lowered((torch.arange(5, dtype=torch.int32), torch.tensor([True, False, True, True, False])))
except Exception as error:
    while error.__cause__:
        error = error.__cause__
    message = next(line for line in str(error).splitlines() if line)
    print(f"lowering stops: {type(error).__name__}: {message}")
    sys.exit(1)
for node in module.graph.nodes:
    if "dequantize_per_tensor" not in str(node.target) or "getitem" not in node.args[0].name:
        continue
    call, place = node.args[0].args
    block = TosaGraph.GetRootAs(getattr(module, call.args[0].target).processed_bytes).Regions(0).Blocks(0)
    tensors = (block.Tensors(n) for n in range(block.TensorsLength()))
    types = {tensor.Name(): tensor.Type() for tensor in tensors}
    if node.args[5] == torch.int8 and types[block.Outputs(place)] == DType.INT32:
        print("the payload gives INT32, and the program reads int8")
        sys.exit(1)
print("not reproduced")
