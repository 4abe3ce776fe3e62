import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer import xnnpack_quantizer
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

layer = torch.nn.Linear(1, 1).requires_grad_(False)
layer.weight.fill_(0.01)
layer.bias.fill_(1.0)
x = torch.tensor([[-100.0], [100.0]])
config = xnnpack_quantizer.get_symmetric_quantization_config()
quantizer = xnnpack_quantizer.XNNPACKQuantizer().set_global(config)
model = torch.export.export(torch.nn.Sequential(layer, layer).eval(), (x,)).module()
prepared = prepare_pt2e(model, quantizer)
prepared(x)
quantized = convert_pt2e(prepared)
edge = to_edge_transform_and_lower(torch.export.export(quantized, (x,)), partitioner=[XnnpackPartitioner()])
method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
expected, actual = quantized(x).flatten(), method.execute((x,))[0].flatten()
print("expected:", expected)
print("actual:  ", actual)
raise SystemExit(not torch.allclose(expected, actual, atol=0.05))
