import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

torch.manual_seed(0)
x = torch.randn(1, 256).half()
model = torch.nn.LayerNorm(256, elementwise_affine=False)
program = to_edge_transform_and_lower(torch.export.export(model, (x,))).to_executorch()
method = Runtime.get().load_program(program.buffer).load_method("forward")
expected, actual = model(x), method.execute((x,))[0]
print("expected:", expected[0, :4])
print("actual:  ", actual[0, :4])
raise SystemExit(not torch.allclose(expected, actual, atol=0.01))
