"""Passes of a user's own choice between those of TOSA's pipeline: dynamic tanh folds into a table and a convolution.

A dynamic tanh (``gamma * tanh(alpha * x) + beta``, channels last) takes the place of a norm. ExecuTorch has two passes
that fold it, and its pipeline has neither: who wants them inserts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from executorch_goldens import Build, case

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager

#: The releases that have the passes.
WITH_PASSES = ("1.5.1",)
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@contextmanager
def inserted() -> Iterator[None]:
    """Insert both passes where ranks are even and tables are not made yet; the pipeline is as before afterwards."""
    from executorch.backends.arm import _passes as passes
    from executorch.backends.arm._passes import arm_pass_manager

    folds = [passes.FoldDyTAlphaIntoLUTPass(None), passes.FoldDyTAffineIntoConvPass(None)]
    arm_pass_manager.register_pass_insertions_before(passes.DecomposeNotEqualPass, folds)
    try:
        yield
    finally:
        arm_pass_manager.clear_registered_pass_insertions()


def to_tosa(
    build: Build, module: nn.Module, config: str = "", dynamic_shapes: Any = None, **arguments: bool
) -> ExecutorchProgramManager:
    """Quantize a module of one image, and lower it with both passes."""
    from executorch.backends.arm import quantizer as quantizers
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = (build.data.tensor("x", 1, 3, 4, 4),)
    model = build.method(build.data.fill(module).eval(), inputs, dynamic_shapes=dynamic_shapes)
    specification = TosaCompileSpec("TOSA-1.0+INT+int16" if "16" in config else "TOSA-1.0+INT")
    of_config = getattr(quantizers, config or "get_symmetric_quantization_config")(**arguments)
    quantizer = quantizers.TOSAQuantizer(specification).set_global(of_config)
    exported = torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(*inputs)
    converted = build.quantized(convert_pt2e(prepared))
    with inserted():
        return to_edge_transform_and_lower(
            torch.export.export(converted, inputs, dynamic_shapes=dynamic_shapes),
            partitioner=[TOSAPartitioner(specification)],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        ).to_executorch()


class DynamicTanh(nn.Module):
    """A dynamic tanh between two convolutions.

    Parameters
    ----------
    last
        The second convolution.
    gamma, beta
        The factor of each channel, and what is added to it.
    site
        What is computed, from the module and an image with channels last; the dynamic tanh by default.
    behind
        The second convolution's input, from that image.
    """

    alpha: torch.Tensor
    gamma: torch.Tensor
    beta: torch.Tensor

    def __init__(
        self,
        last: nn.Module,
        gamma: tuple[float, ...] = (1.0, 1.0, 1.0),
        beta: tuple[float, ...] = (0.0, 0.0, 0.0),
        alpha: tuple[float, ...] = (0.5,),
        site: Callable[[DynamicTanh, torch.Tensor], torch.Tensor] | None = None,
        behind: Callable[[torch.Tensor], torch.Tensor] = lambda y: y.permute(FIRST),
    ) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 3, 1), last
        self.site, self.behind = site or DynamicTanh.scaled, behind
        # Buffers: `fill` draws parameters.
        for name, values in (("alpha", alpha), ("gamma", gamma), ("beta", beta)):
            self.register_buffer(name, torch.tensor(values))

    def scaled(self, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.alpha * y) * self.gamma + self.beta

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.site(self, self.first(x).permute(LAST))
        return self.last(self.behind(y))  # type: ignore[no-any-return]


def point(**others: Any) -> nn.Module:
    return nn.Conv2d(3, 4, 1, **others)


class Branches(nn.Module):
    """A convolution of an image, and a number of times the image itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + x  # type: ignore[no-any-return]


def tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x)


#: By name of the case: what it guards, and the module.
SITES: Mapping[str, tuple[str, Callable[[], nn.Module]]] = {
    "folded": (
        "an affine map of ones and zeros goes into the convolution after it",
        lambda: DynamicTanh(point()),
    ),
    "padded": (
        "an affine map that changes no code goes before a convolution that pads",
        lambda: DynamicTanh(nn.Conv2d(3, 4, 3, padding=1), beta=(0.25,) * 3),
    ),
    "halved": (
        "a factor that changes no code goes, and what is added stays",
        lambda: DynamicTanh(point(), (0.5,) * 3, (0.25,) * 3),
    ),
    "signs": (
        "factors of both signs go into the weights of their channels",
        lambda: DynamicTanh(point(), (1.0, -1.0, 1.0)),
    ),
    "faded": (
        "a channel that is constant goes into the bias",
        lambda: DynamicTanh(point(), (1.0, 0.0, 1.0), (0.0, 0.5, 0.0)),
    ),
    "uneven": (
        "factors that round as no integers do stay where they are",
        lambda: DynamicTanh(point(), (1.0, 0.75, 0.375), (0.0, 0.25, -0.5)),
    ),
    "depthwise": (
        "an affine map goes into a convolution in groups",
        lambda: DynamicTanh(nn.Conv2d(3, 3, 2, groups=3), (1.0, -1.0, 1.0)),
    ),
    "unbiased": (
        "an affine map goes into a convolution without a bias",
        lambda: DynamicTanh(point(bias=False), (1.0, -1.0, 1.0)),
    ),
    "transposed": (
        "an affine map before a transposed convolution stays",
        lambda: DynamicTanh(nn.ConvTranspose2d(3, 3, 2)),
    ),
    "cut": (
        "an affine map goes through a slice of rows",
        lambda: DynamicTanh(point(), behind=lambda y: y.permute(FIRST)[:, :, 1:]),
    ),
    "cut-channels": (
        "an affine map does not go through a slice of channels",
        lambda: DynamicTanh(nn.Conv2d(2, 3, 1), behind=lambda y: y.permute(FIRST)[:, 1:]),
    ),
    "read-twice": (
        "an affine map that a sum reads as well does not go into the convolution",
        lambda: DynamicTanh(Branches()),
    ),
    "turned": (
        "an affine map before an image with height and width swapped stays",
        lambda: DynamicTanh(point(), behind=lambda y: y.permute(0, 3, 2, 1)),
    ),
    "unturned": (
        "an affine map before an image as it is stays",
        lambda: DynamicTanh(nn.Conv2d(4, 3, 1), behind=lambda y: y + 0.0),
    ),
    "swapped-operands": (
        "constants are found on either side",
        lambda: DynamicTanh(point(), site=lambda m, y: m.beta + m.gamma * torch.tanh(y * m.alpha)),
    ),
    "alpha-of-channels": (
        "an alpha of each channel is in no table, nor is the map after it",
        lambda: DynamicTanh(point(), alpha=(0.5, 1.0, 0.25)),
    ),
    "two-inputs": (
        "a tanh of a product of two activations is no dynamic tanh",
        lambda: DynamicTanh(point(), site=lambda m, y: torch.tanh(y * y) * m.gamma + m.beta),
    ),
    "viewed": (
        "a product with what was viewed is no dynamic tanh",
        lambda: DynamicTanh(
            point(),
            site=lambda m, y: (
                torch.tanh(m.alpha * y.reshape(1, 16, 3)).reshape(1, 4, 4, 3) * m.gamma + m.beta
            ),
        ),
    ),
    "shared-product": (
        "a product that a sum reads as well stays",
        lambda: DynamicTanh(
            point(), site=lambda m, y: (tanh(scaled := y * m.alpha) + scaled) * m.gamma + m.beta
        ),
    ),
    "plain": (
        "a tanh without alpha is no dynamic tanh",
        lambda: DynamicTanh(point(), site=lambda m, y: torch.tanh(y) * m.gamma + m.beta),
    ),
    "summed": (
        "a tanh of a sum is no dynamic tanh",
        lambda: DynamicTanh(point(), site=lambda m, y: torch.tanh(y + m.alpha) * m.gamma + m.beta),
    ),
    "unscaled": (
        "a table with no factor after it stays",
        lambda: DynamicTanh(point(), site=lambda m, y: torch.tanh(y * m.alpha) + m.beta),
    ),
    "unshifted": (
        "a table with nothing added after its factor stays",
        lambda: DynamicTanh(point(), site=lambda m, y: torch.tanh(y * m.alpha) * m.gamma),
    ),
    "gated": (
        "a product of two tables is no affine map",
        lambda: DynamicTanh(
            point(), site=lambda m, y: torch.tanh(y * m.alpha) * torch.tanh(y * m.alpha) + m.beta
        ),
    ),
    "joined": (
        "a sum of two tables is no affine map",
        lambda: DynamicTanh(
            point(),
            site=lambda m, y: torch.tanh(y * m.alpha) * m.gamma + torch.tanh(y * m.gamma),
        ),
    ),
    "one-factor": (
        "one factor for all channels, and what is added to each",
        lambda: DynamicTanh(point(), (1.0,)),
    ),
    "one-channel": (
        "one channel: factor and alpha are alike",
        lambda: DynamicTanh(nn.Conv2d(1, 3, 1), (1.0,), (0.0,), behind=lambda y: y.permute(FIRST)[:, :1]),
    ),
}


def add(name: str, guards: str, make: Callable[[], nn.Module], **how: Any) -> None:
    @case(name=f"dynamic-tanh-{name}", guards=guards, releases=WITH_PASSES)
    def build(build: Build) -> ExecutorchProgramManager:
        return to_tosa(build, make(), **{"is_per_channel": True, **how})


for _name, (_guards, _make) in SITES.items():
    add(_name, _guards, _make)
add(
    "per-tensor",
    "an affine map goes into weights with one scale",
    lambda: DynamicTanh(point(), (1.0, -1.0, 1.0)),
    is_per_channel=False,
)
add(
    "int16",
    "a table of int16 is no dynamic tanh's",
    lambda: DynamicTanh(point()),
    config="get_symmetric_a16w8_quantization_config",
)
