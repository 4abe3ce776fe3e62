import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime


class Nonzero(torch.nn.Module):
    def forward(self, x):
        return torch.nonzero(x > 0.5)


x = torch.eye(3)
program = to_edge_transform_and_lower(torch.export.export(Nonzero(), (x,))).to_executorch()
method = Runtime.get().load_program(program.buffer).load_method("forward")
expected, actual = Nonzero()(x), method.execute((x,))[0]
print("expected:", expected.tolist())
print("actual:  ", actual.tolist())
raise SystemExit(not torch.equal(expected, actual))
