"""One layer with a dynamic batch, and nothing beside it that would make its shapes plain."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Of(nn.Module):
    """A function of the input."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


TOSA, FLOAT, QUANTIZED = "tosa", "xnnpack-fp32", "xnnpack-int8"
ALL = (TOSA, FLOAT, QUANTIZED)

#: By name of the case: the layer, the shape of one element of the batch, and the backends.
LAYERS: Mapping[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[str, ...]]] = {
    "linear": (lambda: nn.Linear(4, 3), (4,), (TOSA, FLOAT)),
    "linear-of-rows": (lambda: nn.Linear(4, 3), (2, 4), ("tosa-int", FLOAT)),
    "layer-norm": (lambda: nn.LayerNorm(4), (4,), (TOSA, FLOAT)),
    "conv1d": (lambda: nn.Conv1d(3, 2, 3, padding=1), (3, 5), ALL),
    "conv2d": (lambda: nn.Conv2d(3, 2, 3, padding=1), (3, 4, 5), ALL),
    "max-pool": (lambda: nn.MaxPool2d(2), (2, 4, 4), (TOSA, QUANTIZED)),
    "softmax": (lambda: nn.Softmax(-1), (4,), (TOSA, QUANTIZED)),
    "sum": (lambda: Of(lambda x: x.sum(1)), (4,), (TOSA,)),
    "mean": (lambda: Of(lambda x: x.mean(-1)), (3, 4), ("tosa-fp", QUANTIZED)),
    "amax": (lambda: Of(lambda x: x.amax(1)), (4,), (TOSA,)),
    "select": (lambda: Of(lambda x: x.select(1, 2)), (4,), ALL),
    "split": (lambda: Of(lambda x: torch.cat(torch.split(x, 2, 1)[::-1], 1)), (4,), ALL),
    "transpose": (lambda: Of(lambda x: x.transpose(1, 2) * 0.5), (3, 4), ALL),
    "attention": (
        lambda: Of(lambda x: functional.scaled_dot_product_attention(x, x, x)),
        (1, 3, 4),
        (TOSA, QUANTIZED),
    ),
}


def add(name: str, layer: Callable[[], nn.Module], shape: tuple[int, ...], backends: tuple[str, ...]) -> None:
    @case(
        name=f"dynamic-batch-{name}",
        guards=f"{name} with a dynamic batch is lowered, or stays outside",
        backends=backends,
    )
    def build(data: Data) -> Example:
        shapes = ({0: Dim("batch", min=2, max=16)},)
        return Example(layer(), (data.tensor("x", 6, *shape),), dynamic_shapes=shapes)


for _name, _of_layer in LAYERS.items():
    add(_name, *_of_layer)
