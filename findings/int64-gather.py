"""TOSA INT: a gather that stays outside of the delegate gets int32 places, which the runtime refuses."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Gather(torch.nn.Module):
    def forward(self, x, places):
        return torch.gather(x, 0, places)


inputs = (torch.arange(6.0).reshape(2, 3), torch.tensor([[1, 0, 1]]))
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec).set_global(get_symmetric_quantization_config())
prepared = prepare_pt2e(torch.export.export(Gather(), inputs).module(check_guards=False), quantizer)
prepared(*inputs)
program = torch.export.export(convert_pt2e(prepared), inputs)
partitioner = TOSAPartitioner(spec)
pte = to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch().buffer
try:
    _load_for_executorch_from_buffer(pte).run_method("forward", inputs)
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    sys.exit(1)
print("not reproduced")
