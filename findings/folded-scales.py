"""TOSA INT: preparing a model for quantization writes a folded scale to the weights of the model that was given."""

import sys

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 1)
        self.conv.weight.data.fill_(1.0)
        self.conv.bias.data.fill_(0.0)

    def forward(self, x):
        return self.conv(x) * 0.5


model = Scaled().eval()
x = torch.tensor([2.0, 4.0]).reshape(1, 1, 1, 2)
before = model(x).flatten().tolist()
quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT")).set_global(get_symmetric_quantization_config())
prepare_pt2e(torch.export.export(model, (x,)).module(check_guards=False), quantizer)
after = model(x).flatten().tolist()
if after != before:
    print(f"the model gave {before} before it was prepared for quantization, and gives {after} after that")
    sys.exit(1)
print("not reproduced")
