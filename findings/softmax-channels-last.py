import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

model = torch.nn.Sequential(torch.nn.MaxPool2d(2), torch.nn.Softmax(dim=-1)).eval()
x = torch.zeros(1, 2, 2, 8)  # equal values: a softmax over 4 of them is 1/4 everywhere
edge = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()])
method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
expected, actual = model(x).flatten(), method.execute((x,))[0].flatten()
print("expected:", expected)
print("actual:  ", actual)
raise SystemExit(not torch.allclose(expected, actual))
