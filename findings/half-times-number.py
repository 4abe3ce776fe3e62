"""exir: a float16 tensor without dimensions times a number becomes float32."""

import sys

import torch
from executorch.exir import to_edge


class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * 3.14


x = torch.tensor(2.0, dtype=torch.float16)
edge = to_edge(torch.export.export(Scaled(), (x,))).exported_program()
given = edge.graph.output_node().args[0][0].meta["val"].dtype
if given != Scaled()(x).dtype:
    print(f"eager gives {Scaled()(x).dtype}, the program gives {given}")
    sys.exit(1)
print("not reproduced")
