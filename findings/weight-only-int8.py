import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis

model = torch.nn.Sequential(torch.nn.Linear(4, 2, bias=False)).eval().requires_grad_(False)
model[0].weight.data = torch.tensor([[1.0, 2.0, 3.0, 4.0], [-0.1, 0.2, -0.3, 0.4]])
quantize_(model, IntxWeightOnlyConfig(torch.int8, PerAxis(0)))
x = torch.ones(1, 4)
edge = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()])
method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
expected, actual = model(x), method.execute((x,))[0]
print("expected:", expected)
print("actual:  ", actual)
raise SystemExit(not torch.allclose(expected, actual, atol=0.01))
