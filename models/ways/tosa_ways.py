"""Ways to lower to TOSA that no target has: quantizers of another class or by parts, branches quantized with samples of
their own, block-scaled floats, options of the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Build, case
from models.situations.limits import Function

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager

Inputs = tuple[torch.Tensor, ...]
INT8 = "TOSA-1.0+INT"
#: The releases that have what most of these ask for.
NEWEST = ("1.5.1",)


def lowered(
    model: nn.Module, inputs: Inputs, compile_spec: Any, dynamic_shapes: Any = None
) -> ExecutorchProgramManager:
    """Export a module, quantized or not, and lower it to TOSA."""
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    return to_edge_transform_and_lower(
        torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes),
        partitioner=[TOSAPartitioner(compile_spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    ).to_executorch()


def quantized(
    build: Build, model: nn.Module, inputs: Inputs, quantizer: Any, dynamic_shapes: Any = None
) -> nn.Module:
    """Quantize a method's module by its example."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    exported = torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(*inputs)
    return build.quantized(convert_pt2e(prepared))


# --- Block-scaled floats


class LinearOfBlocks(nn.Module):
    """A linear layer whose channels are whole blocks of 32.

    Parameters
    ----------
    bias
        Whether it has a bias.
    rank
        Of its input, from 2 to 4.
    """

    def __init__(self, bias: bool, rank: int) -> None:
        super().__init__()
        self.rank = rank
        self.layer = nn.Linear(64, 8, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2.0
        return functional.relu(self.layer({2: y[0], 3: y, 4: y.unsqueeze(1)}[self.rank]))


class ConvolutionOfBlocks(nn.Module):
    """A convolution whose channels are whole blocks of 32."""

    def __init__(self, bias: bool, padding: int) -> None:
        super().__init__()
        self.layer = nn.Conv2d(32, 8, 3, padding=padding, stride=2, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.layer(x))


#: By name: the type of the weights as torch or torchao names it, whether there are biases, and the input's rank.
BLOCKS: Mapping[str, tuple[str, bool, int]] = {
    "float8": ("float8_e4m3fn", True, 3),
    "wide-float8": ("float8_e5m2", False, 4),
    "float6": ("fp6_e2m3", True, 2),
    "wide-float6": ("fp6_e3m2", True, 3),
    "float4": ("float4_e2m1fn_x2", False, 3),
}


def add_blocks(
    name: str, what: str, dtype: str, make: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    @case(
        name=name,
        guards=f"{what} whose weights are blocks of {dtype} keeps type, scales and shape",
        releases=NEWEST,
        # Of two or three bits little is right, and a rounding moves much.
        sqnr={"built": 0},
        imprecise={"built": 0.25},
    )
    def build(build: Build) -> ExecutorchProgramManager:
        from executorch.backends.arm.ao_ext import MXFPOpConfig, to_mxfp
        from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

        inputs = (build.data.tensor("x", *shape),)
        model = build.method(build.data.fill(make()), inputs)
        to_mxfp(model, MXFPOpConfig(weight_dtype=getattr(torch, dtype, dtype)))
        specification = TosaCompileSpec("TOSA-1.1+FP+mxfp+fp8e4m3+fp8e5m2")
        return lowered(build.quantized(model), inputs, specification)


for _name, (_dtype, _bias, _rank) in BLOCKS.items():
    add_blocks(
        f"blocks-of-{_name}", "a linear layer", _dtype, partial(LinearOfBlocks, _bias, _rank), (1, 3, 64)
    )
# TOSA 1.1 has an extension of its own for these, which ExecuTorch does not know.
for _name, _padding in (("float8", 1), ("float4", 0)):
    _make = partial(ConvolutionOfBlocks, bool(_padding), _padding)
    add_blocks(f"convolved-blocks-of-{_name}", "a convolution", BLOCKS[_name][0], _make, (1, 32, 5, 5))


# --- Options of the pipeline


def guarded(x: torch.Tensor) -> torch.Tensor:
    """Return a softmax whose rows are zeros where nothing is left of a row, as attention writes it out."""
    kept = torch.logical_not(torch.logical_not(x == float("-inf")).any(2, True))
    y = torch.softmax(x, 2)
    return torch.where(kept, torch.full_like(y, 0), y)


def with_options(build: Build, module: nn.Module, inputs: Inputs, specification: str, **options: Any) -> Any:
    """Lower a module by other options of the pipeline."""
    from executorch.backends.arm.common.pipeline_config import ArmPassPipelineConfig
    from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    compile_spec = TosaCompileSpec(specification)
    compile_spec.set_pass_pipeline_config(ArmPassPipelineConfig(**options))
    model = build.method(module.eval(), inputs)
    if "INT" in specification:
        config = get_symmetric_quantization_config(is_per_channel=True)
        model = quantized(build, model, inputs, TOSAQuantizer(compile_spec).set_global(config))
    return lowered(model, inputs, compile_spec)


@case(guards="the guard of a softmax whose rows may be empty goes where that is allowed", releases=NEWEST)
def softmax_guard_removed(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.arm.common.pipeline_config import SDPASafeSoftmaxGuardPolicy

    module, inputs = Function(guarded), (build.data.tensor("x", 2, 3, 4),)
    policy = SDPASafeSoftmaxGuardPolicy.REMOVE
    return with_options(build, module, inputs, "TOSA-1.0+FP", sdpa_safe_softmax_guard=policy)


@case(guards="what resembles the guard of a softmax stays", releases=NEWEST)
def softmax_guards_alike(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.arm.common.pipeline_config import SDPASafeSoftmaxGuardPolicy

    def alike(x: torch.Tensor) -> Inputs:
        y = torch.softmax(x, 2)
        zeros, ones = torch.full_like(y, 0), torch.full_like(y, 1)
        infinite = x == float("-inf")
        kept = torch.logical_not(torch.logical_not(infinite).any(-1, True))
        return (
            torch.where(kept, zeros, y),
            torch.where(kept, ones, y),
            torch.where(kept, y, zeros),
            torch.where(infinite, zeros, y),
            torch.where(torch.logical_not(infinite), zeros, y),
            torch.where(torch.logical_not(infinite.any(2, True)), zeros, y),
            torch.where(torch.logical_not(torch.logical_not(x > 0.5).any(2, True)), zeros, y),
            torch.where(torch.logical_not(torch.logical_not(x == 0.5).any(2, True)), zeros, y),
            torch.where(torch.logical_not(torch.logical_not(infinite).any(1, True)), zeros, y),
            torch.where(
                torch.logical_not(torch.logical_not(x * 2.0 == float("-inf")).any(2, True)), zeros, y
            ),
        )

    inputs = (build.data.tensor("x", 2, 3, 4),)
    policy = SDPASafeSoftmaxGuardPolicy.REMOVE
    return with_options(build, Function(alike), inputs, "TOSA-1.0+FP", sdpa_safe_softmax_guard=policy)


# --- Quantized branches and loops


class ChosenLayers(nn.Module):
    """A layer that an input's sum chooses."""

    def __init__(self, make: Callable[[], nn.Module], before: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.before = make(), make(), before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.before(x)
        return torch.cond(x.sum() > 0.0, self.first.forward, self.second.forward, [y])  # type: ignore[no-any-return]


class Branches(nn.Module):
    """Two results of two inputs, by either of two ways."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def more(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x + y, torch.sigmoid(x) * y

        def less(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            z = x - y
            return z, x + z

        return torch.cond((x * y).sum() > 0.0, more, less, [x, y])  # type: ignore[no-any-return]


class Faded(nn.Module):
    """A tensor that is halved until its sum is below a limit that the model holds."""

    limit: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("limit", torch.tensor((2.0,)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def large(x: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
            return torch.gt(x.sum(), limit).squeeze()

        def smaller(x: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor]:
            return (x * 0.5,)

        return torch.ops.higher_order.while_loop(large, smaller, (torch.abs(x),), (self.limit,))[0]  # type: ignore[no-any-return]


class Halved(nn.Module):
    """A tensor that is halved, and a number of times."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        def large(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            total = torch.sum(torch.abs(x))
            return torch.gt(total, torch.full_like(total, 1.0)).squeeze()

        def smaller(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 0.5, y + x

        x, y = torch.ops.higher_order.while_loop(large, smaller, (x, y), ())
        return x + y


def unchanged(x: torch.Tensor) -> torch.Tensor:
    return x


IMAGE, ROWS = (1, 2, 4, 4), (3, 4)
#: By name: what is guarded, the module, and the shapes of its inputs.
CHOICES: Mapping[str, tuple[str, Callable[[], nn.Module], Sequence[tuple[int, ...]]]] = {
    "convolutions": (
        "biases in branches get the scale of what is summed",
        lambda: ChosenLayers(lambda: nn.Conv2d(2, 3, 2), unchanged),
        (IMAGE,),
    ),
    "depthwise": (
        "depthwise convolutions in branches keep their weights",
        lambda: ChosenLayers(lambda: nn.Conv2d(2, 4, 3, groups=2, padding=1), unchanged),
        (IMAGE,),
    ),
    "transposed": (
        "transposed convolutions in branches keep their weights",
        lambda: ChosenLayers(lambda: nn.ConvTranspose2d(2, 3, 2, stride=2), unchanged),
        (IMAGE,),
    ),
    "linears": (
        "linear layers in branches get the scale of what is summed",
        lambda: ChosenLayers(lambda: nn.Linear(4, 3), unchanged),
        (ROWS,),
    ),
    "two-results": ("each of a branch's results gets its scale", Branches, (ROWS, ROWS)),
    "faded": ("a loop over a quantized sum ends where the float one does", Faded, (ROWS,)),
    "halved": ("a loop with two quantized states keeps the scale of each", Halved, (ROWS, ROWS)),
}


def add_choice(
    name: str, guards: str, make: Callable[[], nn.Module], shapes: Sequence[tuple[int, ...]], **how: Any
) -> None:
    @case(name=f"quantized-choice-{name}", guards=guards, releases=NEWEST)
    def build(build: Build) -> ExecutorchProgramManager:
        from executorch.backends.arm import quantizer as quantizers
        from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

        inputs = tuple(build.data.tensor(name, *shape) for name, shape in zip("xy", shapes, strict=False))
        model = build.method(build.data.fill(make()), inputs)
        compile_spec = TosaCompileSpec(how.get("specification", "TOSA-1.0+INT+cf"))
        config = getattr(quantizers, how.get("config", "get_symmetric_quantization_config"))(
            is_per_channel=how.get("is_per_channel", True)
        )
        quantizer = quantizers.TOSAQuantizer(compile_spec).set_global(config)
        samples = [
            tuple(each * sign + shift for each in inputs) for sign, shift in ((1, 1), (-1, -1), (1, 0))
        ]
        graph = torch.export.export(model, inputs).module(check_guards=False)
        with torch.no_grad():
            made = quantizer._quantize_with_submodules(graph, samples)
        return lowered(build.quantized(made), inputs, compile_spec)


for _name, _choice in CHOICES.items():
    add_choice(_name, *_choice)
_guards, _make_chosen, _shapes = CHOICES["convolutions"]
add_choice("per-tensor", f"{_guards}, one for all weights", _make_chosen, _shapes, is_per_channel=False)

# --- Other quantizers


class Warped(nn.Module):
    """An image that is sampled where a flow says, as frames are interpolated.

    Parameters
    ----------
    swapped
        Whether the flow is the first of the grid's terms.
    first
        The first of the flow's two channels that are read.
    """

    def __init__(self, swapped: bool, first: int) -> None:
        super().__init__()
        self.swapped, self.first = swapped, first

    def forward(self, image: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
        _, _, height, width = flow.shape
        across = torch.linspace(-1.0, 1.0, width).view(1, 1, 1, width).expand(1, -1, height, -1)
        down = torch.linspace(-1.0, 1.0, height).view(1, 1, height, 1).expand(1, -1, -1, width)
        base = torch.cat([across, down], 1).to(torch.float32)
        moved = flow[:, self.first : self.first + 2]
        grid = moved + base if self.swapped else base + moved
        return functional.grid_sample(
            image, grid.permute(0, 2, 3, 1), mode="bilinear", padding_mode="border", align_corners=True
        )


def add_warped(name: str, guards: str, module: Warped, channels: int) -> None:
    @case(name=name, guards=guards, releases=NEWEST)
    def build(build: Build) -> ExecutorchProgramManager:
        from executorch.backends.arm.quantizer import VgfQuantizer, get_symmetric_quantization_config
        from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
        from executorch.backends.arm.vgf import VgfCompileSpec

        inputs = (build.data.tensor("image", 1, channels, 4, 5), build.data.tensor("flow", 1, 4, 4, 5) / 8)
        model = build.method(module, inputs)
        config = get_symmetric_quantization_config(is_per_channel=True)
        quantizer = VgfQuantizer(VgfCompileSpec()).set_global(config)
        return lowered(quantized(build, model, inputs, quantizer), inputs, TosaCompileSpec("TOSA-1.0+FP+INT"))


add_warped(
    "warped-by-flow", "an image sampled by a flow keeps codes that a texture can have", Warped(False, 0), 3
)
add_warped("warped-by-second-flow", "the second flow of two samples as the first", Warped(True, 2), 4)
