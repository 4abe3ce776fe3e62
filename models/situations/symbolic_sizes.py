"""Layers whose sizes are symbolic inside the delegate, which takes TOSA 1.1 and its extension for shapes.

What a pass asks of a size, whether it divides, whether padding fits, how long a slice is, it must then ask of an
expression, and what it computes of one becomes operators of the payload. Each is run at the example's sizes, at the
least and at the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional

from executorch_goldens import Data, Example, case

FLOAT, INTEGER = "tosa-fp+shape", "tosa-int+shape"
#: The releases whose tosa-tools gives the sizes that a payload leaves open: 1.3.1 lowers these, and cannot run them.
RUN = ("1.4.1", "1.5.1")


class Of(nn.Module):
    """A function of the inputs."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class OfTwo(Of):
    """A function of two inputs."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return self.function(x, y)


@dataclass(frozen=True)
class Layer:
    """A layer with symbolic sizes.

    Attributes
    ----------
    make
        Makes it.
    shapes
        Of its inputs.
    open
        The dimensions of every input that are symbolic: their least and largest size.
    guards
        The visible failure.
    targets
        The targets.
    every
        The factor of their sizes.
    releases
        The releases; all by default.
    """

    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    open: Mapping[int, tuple[int, int]]
    guards: str
    targets: tuple[str, ...] = (FLOAT,)
    every: int = 1
    releases: tuple[str, ...] = ()


BATCH = {0: (2, 8)}
IMAGE = {2: (4, 16), 3: (4, 12)}
#: With windows of three, four apart, and one row of padding: no row is left over, or one, which is padding.
FEW = {2: (9, 10)}
BOTH = (FLOAT, INTEGER)

#: By name of the case.
LAYERS: Mapping[str, Layer] = {
    "linear": Layer(
        lambda: nn.Linear(4, 3),
        ((6, 4),),
        BATCH,
        "a linear layer keeps a symbolic batch symbolic (#18092)",
        (INTEGER,),
    ),
    "linear-of-rows": Layer(
        lambda: nn.Linear(4, 3),
        ((6, 2, 4),),
        BATCH,
        "a linear layer multiplies a symbolic batch and its rows (#18092)",
        BOTH,
    ),
    "conv2d-fitting": Layer(
        lambda: nn.Conv2d(3, 2, 3, padding=1),
        ((1, 3, 8, 9),),
        IMAGE,
        "a convolution whose padding fits at every size is lowered with symbolic height and width (#18941)",
        BOTH,
        releases=RUN,
    ),
    # The example, the least and the largest are odd: there the padding fits.
    "conv2d-odd": Layer(
        lambda: nn.Conv2d(3, 2, 3, stride=2, padding=1),
        ((1, 3, 7, 9),),
        {2: (5, 15), 3: (5, 13)},
        "a strided convolution whose padding may fit is lowered, and is right where it does",
        BOTH,
        releases=RUN,
    ),
    "conv2d-not-fitting": Layer(
        lambda: nn.Conv2d(3, 2, 3, stride=2, padding=1),
        ((1, 3, 8, 9),),
        IMAGE,
        "a convolution whose padding fits at some sizes only has padding that follows the size (#18941)",
        BOTH,
    ),
    "conv2d-cut": Layer(
        lambda: nn.Conv2d(3, 2, 3, stride=2),
        ((1, 3, 7, 8),),
        IMAGE,
        "a strided convolution without padding leaves off what no whole window takes at a symbolic size (#18941)",
    ),
    "conv-transpose2d": Layer(
        lambda: nn.ConvTranspose2d(2, 3, 2, stride=2),
        ((1, 2, 4, 5),),
        IMAGE,
        "a transposed convolution is lowered with symbolic height and width",
    ),
    "max-pool": Layer(
        lambda: nn.MaxPool2d(2),
        ((1, 2, 8, 8),),
        IMAGE,
        "a max pool is lowered with symbolic height and width, whole windows or not",
    ),
    "avg-pool": Layer(
        lambda: nn.AvgPool2d(2),
        ((1, 2, 8, 8),),
        IMAGE,
        "an average pool is lowered with symbolic height and width, whole windows or not",
    ),
    "adaptive-avg-batch": Layer(
        lambda: nn.AdaptiveAvgPool2d(2),
        ((6, 2, 4, 6),),
        BATCH,
        "an adaptive average pool that divides its image keeps a symbolic batch",
        BOTH,
    ),
    "adaptive-avg-uneven-batch": Layer(
        lambda: nn.AdaptiveAvgPool2d((2, 3)),
        ((6, 2, 5, 7),),
        BATCH,
        "an adaptive average pool of uneven windows keeps a symbolic batch",
    ),
    "adaptive-avg": Layer(
        lambda: nn.AdaptiveAvgPool2d(2),
        ((1, 2, 8, 8),),
        IMAGE,
        "an adaptive average pool of symbolic height and width has windows that follow the size",
    ),
    "adaptive-avg-divisible": Layer(
        lambda: nn.AdaptiveAvgPool2d(2),
        ((1, 2, 8, 6),),
        IMAGE,
        "an adaptive average pool that divides symbolic height and width at every size is one pool",
        BOTH,
        every=2,
    ),
    "adaptive-avg-whole": Layer(
        lambda: nn.AdaptiveAvgPool2d(1),
        ((1, 2, 8, 8),),
        IMAGE,
        "an adaptive average pool to a single pixel is the mean of symbolic height and width",
    ),
    "adaptive-max-batch": Layer(
        lambda: nn.AdaptiveMaxPool2d(2),
        ((6, 2, 4, 6),),
        BATCH,
        "an adaptive max pool with a symbolic batch is lowered, or stays outside",
    ),
    "flatten": Layer(
        lambda: Of(lambda x: torch.flatten(x * 2.0, 1) + 1.0),
        ((6, 3, 4),),
        BATCH,
        "a view that joins dimensions after a symbolic batch keeps it",
        BOTH,
    ),
    "flatten-batch": Layer(
        lambda: Of(lambda x: torch.flatten(x * 2.0, 0, 1) + 1.0),
        ((6, 3, 4),),
        BATCH,
        "a view that joins a symbolic batch with another dimension multiplies it",
    ),
    "unsqueeze": Layer(
        lambda: Of(lambda x: (x * 2.0).unsqueeze(1) + 1.0),
        ((6, 4),),
        BATCH,
        "a dimension of one after a symbolic batch",
    ),
    "slice": Layer(
        lambda: Of(lambda x: (x * 2.0)[:, 1:] + 1.0),
        ((6, 4),),
        BATCH,
        "a slice keeps the symbolic batch beside it whole",
        BOTH,
    ),
    "slice-of-batch": Layer(
        lambda: Of(lambda x: (x * 2.0)[1:] + 1.0),
        ((6, 4),),
        # A slice of one would be another program.
        {0: (3, 8)},
        "a slice that leaves off the first of a symbolic batch is one shorter",
    ),
    "cat": Layer(
        lambda: Of(lambda x: torch.cat([x, x * 2.0], 1)),
        ((6, 4),),
        BATCH,
        "a concatenation beside a symbolic batch keeps it",
        BOTH,
        releases=RUN,
    ),
    "cat-of-batches": Layer(
        lambda: Of(lambda x: torch.cat([x, x * 2.0], 0) + 1.0),
        ((6, 4),),
        BATCH,
        "a concatenation of symbolic batches is as long as they together",
        releases=RUN,
    ),
    "expand": Layer(
        lambda: Of(lambda x: (x * 2.0).unsqueeze(1).expand(-1, 3, -1) + 1.0),
        ((6, 4),),
        BATCH,
        "an expansion after a symbolic batch repeats no more than it says",
    ),
    "expand-to-batch": Layer(
        lambda: OfTwo(lambda x, y: (y[:1] * 2.0).expand(x.shape[0], -1) + x),
        ((6, 4), (6, 4)),
        BATCH,
        "an expansion to a symbolic batch repeats as often as that is long",
    ),
    "greater": Layer(
        lambda: OfTwo(lambda x, y: torch.where(x > y, x, y * 0.5)),
        ((6, 4), (6, 4)),
        BATCH,
        "a comparison and what it selects keep a symbolic batch",
        BOTH,
        releases=RUN,
    ),
    "resize": Layer(
        lambda: Of(lambda x: functional.interpolate(x, scale_factor=2.0, mode="nearest")),
        ((1, 2, 4, 5),),
        IMAGE,
        "a nearest resize doubles symbolic height and width",
        releases=RUN,
    ),
    "resize-bilinear": Layer(
        lambda: Of(lambda x: functional.interpolate(x, scale_factor=2.0, mode="bilinear")),
        ((1, 2, 8, 6),),
        IMAGE,
        "a bilinear resize doubles symbolic height and width",
        releases=RUN,
    ),
    "conv3d": Layer(
        lambda: nn.Conv3d(2, 3, 3, stride=2, padding=1),
        ((1, 2, 8, 6, 5),),
        IMAGE,
        "a convolution in three dimensions is lowered with symbolic depth and height",
        BOTH,
        releases=RUN,
    ),
    "conv2d-of-few-sizes": Layer(
        lambda: nn.Conv2d(2, 3, 3, stride=4, padding=1),
        ((1, 2, 9, 9),),
        FEW,
        "no image that a convolution can get is longer than its windows and their padding: none is cut",
        releases=RUN,
    ),
    "max-pool-of-few-sizes": Layer(
        lambda: nn.MaxPool2d(3, stride=4, padding=1),
        ((1, 2, 9, 9),),
        FEW,
        "no image that a max pool can get is longer than its windows and their padding: none is cut",
        releases=RUN,
    ),
    "mean": Layer(
        lambda: Of(lambda x: x.mean(-1)),
        ((6, 3, 4),),
        BATCH,
        "a mean that drops its dimension keeps a symbolic batch",
        BOTH,
    ),
    "mean-of-image": Layer(
        lambda: Of(lambda x: x.mean((2, 3))),
        ((1, 2, 4, 5),),
        IMAGE,
        "a mean over symbolic height and width divides by as many as there are",
    ),
    "softmax": Layer(
        lambda: nn.Softmax(-1),
        ((6, 4),),
        BATCH,
        "a softmax keeps a symbolic batch",
        BOTH,
        releases=RUN,
    ),
    "layer-norm": Layer(
        lambda: nn.LayerNorm(4),
        ((6, 4),),
        BATCH,
        "a layer norm keeps a symbolic batch",
    ),
    "pad": Layer(
        lambda: Of(lambda x: functional.pad(x * 2.0, (1, 2, 0, 1))),
        ((6, 3, 4),),
        BATCH,
        "a padding beside a symbolic batch leaves it as it is",
        releases=RUN,
    ),
}


def dimension(at: int, least: int, most: int, every: int) -> Dim:
    if every == 1:
        return Dim(f"d{at}", min=least, max=most)
    return every * Dim(f"d{at}", min=least // every, max=most // every)


def add(name: str, layer: Layer) -> None:
    @case(
        name=f"symbolic-{name}",
        guards=layer.guards,
        also=layer.targets,
        backends=layer.targets,
        releases=layer.releases,
    )
    def build(data: Data) -> Example:
        names = ("x", "y")
        inputs = tuple(data.tensor(each, *shape) for each, shape in zip(names, layer.shapes, strict=False))
        dims = {at: dimension(at, *sizes, layer.every) for at, sizes in layer.open.items()}
        return Example(layer.make(), inputs, dynamic_shapes=(dims,) * len(inputs))


for _name, _layer in LAYERS.items():
    add(_name, _layer)
