import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime


class Remainder(torch.nn.Module):
    def forward(self, n):
        return n % 4


n = torch.tensor([-1, -4, -6, 5], dtype=torch.int32)
program = to_edge_transform_and_lower(torch.export.export(Remainder(), (n,))).to_executorch()
method = Runtime.get().load_program(program.buffer).load_method("forward")
expected, actual = Remainder()(n), method.execute((n,))[0]
print("expected:", expected)
print("actual:  ", actual)
raise SystemExit(not torch.equal(expected, actual))
