"""TOSA: the order of a convolution's vectors in the payload depends on the compiler of the serializer."""

import platform
import sys

import torch
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import to_edge_transform_and_lower
from tosa.Conv2dAttribute import Conv2dAttribute
from tosa.Op import Op
from tosa.TosaGraph import TosaGraph

exported = torch.export.export(torch.nn.Conv2d(2, 3, 3, padding=1), (torch.ones(1, 2, 8, 8),))
partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
edge = to_edge_transform_and_lower(exported, partitioner=[partitioner])
block = (
    TosaGraph.GetRootAs(edge.exported_program().graph_module.lowered_module_0.processed_bytes)
    .Regions(0)
    .Blocks(0)
)
operators = [block.Operators(n) for n in range(block.OperatorsLength())]
(attribute,) = (each.Attribute() for each in operators if each.Op() == Op.CONV2D)
conv = Conv2dAttribute()
conv.Init(attribute.Bytes, attribute.Pos)
# A field's number in the vtable is 4 and twice its place in the schema; a FlatBuffer is built from its end.
fields = {"pad": 4, "stride": 6, "dilation": 8}
places = {name: conv._tab.Vector(conv._tab.Offset(entry)) for name, entry in fields.items()}
made = sorted(places, key=lambda name: -places[name])
if made != list(fields):
    print(
        f"on {platform.machine()} the vectors are made in the order {', '.join(made)}, declared as {', '.join(fields)}"
    )
    sys.exit(1)
print("not reproduced")
