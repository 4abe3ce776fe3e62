"""TOSA INT: after training with quantization, a batch norm is not folded where the model has an adaptive pool."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torchao.quantization.pt2e import move_exported_model_to_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

torch.manual_seed(0)
layers = (torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1))
model = torch.nn.Sequential(*layers).train()
inputs = (torch.randn(2, 3, 8, 8),)
config = get_symmetric_quantization_config(is_qat=True)
quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT")).set_global(config)
prepared = prepare_qat_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
prepared(*inputs)
move_exported_model_to_eval(prepared)
converted = convert_pt2e(prepared)
left = [str(node.target) for node in converted.graph.nodes if "batch_norm" in str(node.target)]
if left:
    print(f"{left[0]} is left after convert_pt2e: it is not folded into the convolution before it")
    sys.exit(1)
print("not reproduced")
