import torch
import tosa_reference_model
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower


class Stacked(torch.nn.Module):
    def forward(self, x):
        return torch.stack([x, x], dim=1).t()


x = torch.arange(3.0)
program = torch.export.export(Stacked(), (x,))
edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))])
delegate = edge.exported_program().graph_module.lowered_module_0
(given,), _ = tosa_reference_model.run(delegate.processed_bytes, [x.numpy()])
expected, actual = Stacked()(x).tolist(), given.tolist()
print("expected:", expected)
print("actual:  ", actual)
raise SystemExit(expected != actual)
