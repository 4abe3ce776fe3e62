import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

first, second = torch.nn.BatchNorm2d(1, affine=False), torch.nn.BatchNorm2d(1, affine=False)
second.running_mean.fill_(-100.0)
model = torch.nn.Sequential(first, torch.nn.ReLU(), second).eval()
x = torch.ones(1, 1, 1, 1)
edge = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()])
method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
expected, actual = model(x).flatten(), method.execute((x,))[0].flatten()
print("expected:", expected)
print("actual:  ", actual)
raise SystemExit(not torch.allclose(expected, actual, atol=0.01))
