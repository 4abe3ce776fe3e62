import torch
import tosa_reference_model
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Skip(torch.nn.Module):
    weight = torch.ones(1, 1, 1, 1)

    def forward(self, x):
        return torch.cat((x, torch.relu(torch.conv2d(x, self.weight))))


x = torch.tensor([-128.0, -64.0, 64.0, 127.0]).reshape(1, 1, 2, 2)  # a scale of 1: int8 codes are values
spec, config = TosaCompileSpec("TOSA-1.0+INT"), get_symmetric_quantization_config()
quantizer = TOSAQuantizer(spec).set_global(config).set_io(config)
prepared = prepare_pt2e(torch.export.export(Skip(), (x,)).module(check_guards=False), quantizer)
prepared(x)
quantized = convert_pt2e(prepared)
edge = to_edge_transform_and_lower(torch.export.export(quantized, (x,)), partitioner=[TOSAPartitioner(spec)])
delegate = edge.exported_program().graph_module.lowered_module_0
(given,), _ = tosa_reference_model.run(delegate.processed_bytes, [x.to(torch.int8).numpy()])
expected, actual = ([round(value) for value in y[1].flatten().tolist()] for y in (quantized(x), given))
print("expected:", expected)
print("actual:  ", actual)
raise SystemExit(expected != actual)
