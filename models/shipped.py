"""Models that people ship and no target of the harness makes, and two networks that ship on most targets.

Programs are trained with quantization, have weights in a file, a memory plan of their own, float16 or integers.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from executorch_goldens import Build, Data, Example, case
from models.image_networks import conv_bn
from models.sequence_networks import EncoderBlock

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager


class SpeechEncoder(nn.Module):
    """Whisper's encoder: two convolutions over a spectrogram, the second halves its length, then attention."""

    places: torch.Tensor

    def __init__(self, bands: int, frames: int, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *(nn.Conv1d(bands, width, 3, padding=1), nn.GELU()),
            *(nn.Conv1d(width, width, 3, stride=2, padding=1), nn.GELU()),
        )
        self.places = nn.Parameter(torch.zeros(frames // 2, width))
        self.blocks = nn.Sequential(EncoderBlock(width, heads=2), EncoderBlock(width, heads=2))
        self.norm = nn.LayerNorm(width)

    def forward(self, spectrogram: torch.Tensor) -> torch.Tensor:
        x = self.stem(spectrogram).transpose(1, 2) + self.places
        return self.norm(self.blocks(x))  # type: ignore[no-any-return]


@case(
    guards="Whisper's encoder: convolutions over time hand their rows to attention",
    # Twenty roundings in a row.
    imprecise={"xnnpack-int8": 0.25},
)
def whisper_encoder(data: Data) -> Example:
    return Example(SpeechEncoder(bands=8, frames=24, width=16), (data.tensor("spectrogram", 1, 8, 24),))


class Detector(nn.Module):
    """A YOLO head: at two scales, sides by the mean of a distribution, in pixels, beside scores from 0 to 1."""

    numbers: torch.Tensor
    pixels: torch.Tensor

    def __init__(self, width: int, classes: int, bins: int, size: int) -> None:
        super().__init__()
        self.classes, self.bins = classes, bins
        self.further = nn.Sequential(*conv_bn(width, width, stride=2), nn.SiLU())
        self.heads = nn.ModuleList(nn.Conv2d(width, 4 * bins + classes, 1) for _ in range(2))
        self.register_buffer("numbers", torch.arange(bins, dtype=torch.float32).view(1, 1, bins, 1))
        sizes = [1.0] * size**2 + [2.0] * (size // 2) ** 2
        self.register_buffer("pixels", torch.tensor(sizes).view(1, 1, -1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [head(each).flatten(2) for head, each in zip(self.heads, (x, self.further(x)), strict=True)]
        sides, scores = torch.split(torch.cat(found, 2), [4 * self.bins, self.classes], 1)
        likely = sides.view(1, 4, self.bins, -1).softmax(2)
        return torch.cat(((likely * self.numbers).sum(2) * self.pixels, scores.sigmoid()), 1)


@case(guards="a YOLO head: boxes in pixels and scores from 0 to 1 leave in one tensor")
def yolo_head(data: Data) -> Example:
    return Example(Detector(width=8, classes=3, bins=4, size=6), (data.tensor("x", 1, 8, 6, 6),))


def depthwise() -> nn.Sequential:
    """Return a depthwise separable network over an image of 8 by 8."""
    return nn.Sequential(
        *(*conv_bn(3, 8), nn.ReLU()),
        *(*conv_bn(8, 8, groups=8, stride=2), nn.ReLU(), *conv_bn(8, 16, kernel=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)),
    )


def to_xnnpack(model: nn.Module, inputs: tuple[Any, ...], **settings: Any) -> ExecutorchProgramManager:
    """Lower for XNNPACK with settings of ``to_executorch``."""
    # A run that takes everything from the store needs no ExecuTorch, which takes seconds to import.
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return lowered(model, inputs, XnnpackPartitioner(), **settings)


def lowered(
    model: nn.Module, inputs: tuple[Any, ...], partitioner: Any, **settings: Any
) -> ExecutorchProgramManager:
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower

    program = torch.export.export(model, inputs, strict=True)
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner], compile_config=config)
    return edge.to_executorch(ExecutorchBackendConfig(**settings))


#: Digits after the point of what training leaves. No machine differs from another by so much, and a float32 sum may.
TRAINED_BITS = 5
#: Where one of these ends and the next begins: weights that stay as they were are dyadic, and on no such border.
BORDER = 1 / 3
#: Steps of the training with quantization, and of how many images each.
STEPS, BATCH = 2, 4


def trained(build: Build, quantizer: Any) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Train the depthwise network with a quantizer in it; return it, quantized, and inputs."""
    from torchao.quantization.pt2e import disable_fake_quant, enable_fake_quant, move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

    module = build.data.fill(depthwise())
    images = build.data.tensor("images", STEPS, BATCH, 3, 8, 8)
    norms = [inner for inner in module.modules() if isinstance(inner, nn.BatchNorm2d)]
    # As after training in float: ranges are seen on what a batch norms, and used on what the average norms.
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        module.train()(images.flatten(0, 1))
    for norm in norms:
        norm.momentum = 0.1
    graph = torch.export.export(module, (images[0],), strict=True).module(check_guards=False)
    # Ranges are seen and weights are learned. Rounded on the way, either would follow the last bit of a sum, which
    # another processor gives differently.
    prepared = prepare_qat_pt2e(graph, quantizer).apply(disable_fake_quant)
    optimizer = torch.optim.SGD(prepared.parameters(), lr=2.0**-4)
    for batch in images:
        optimizer.zero_grad()
        (prepared(batch) - 1).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        for name, value in prepared.state_dict().items():
            if value.is_floating_point() and not name.endswith(("scale", "eps")):
                value.copy_((value * 2**TRAINED_BITS + BORDER).floor() / 2**TRAINED_BITS)
        for inner in prepared.modules():
            if hasattr(inner, "fake_quant_enabled"):
                # Of the ranges that are left.
                scale, zero_point = inner.calculate_qparams()
                inner.scale.copy_(scale)
                inner.zero_point.copy_(zero_point)
    move_exported_model_to_eval(prepared.apply(enable_fake_quant))
    inputs = (images[0],)
    # Without its roundings it is the float model of what was learned: Arm's quantizer loses the names of weights.
    build.method(copy.deepcopy(prepared).apply(disable_fake_quant), inputs)
    return build.quantized(convert_pt2e(prepared)), inputs


@case(
    guards="a depthwise network that was trained with XNNPACK's quantization: batch norms fold after it",
)
def depthwise_qat_xnnpack(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer as xnnpack

    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    return to_xnnpack(*trained(build, xnnpack.XNNPACKQuantizer().set_global(config)))


@case(
    guards="a depthwise network that was trained with Arm's quantization: batch norms are lowered as that leaves them",
    # It observes a convolution before its batch norm, which convert_pt2e does not fold then: 11.9 dB are left.
    sqnr={"built": 10},
)
def depthwise_qat_tosa(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

    specification = TosaCompileSpec("TOSA-1.0+INT")
    config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    model, inputs = trained(build, TOSAQuantizer(specification).set_global(config))
    return lowered(model, inputs, TOSAPartitioner(specification))


class Words(nn.Module):
    """A classifier of words, whose table is in no delegate."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 16)
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.layers(self.table(words)).mean(1)  # type: ignore[no-any-return]


@case(guards="a table of words in a file of its own, beside what XNNPACK keeps in the program")
def external_weights(build: Build) -> ExecutorchProgramManager:
    inputs = (torch.tensor([[3, 17, 39, 0]]),)
    return to_xnnpack(build.method(build.data.fill(Words()), inputs), inputs, external_constants=True)


class Sums(nn.Module):
    """Convolutions with running sums between them, which are in no delegate: their values have places in the plan."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(4, 4, 3, padding=1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).cumsum(2) / 4
        return x


def planned(build: Build, algorithm: Any, **settings: Any) -> ExecutorchProgramManager:
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
    from executorch.exir.passes import MemoryPlanningPass

    inputs = (build.data.tensor("x", 1, 4, 8),)
    model = build.method(build.data.fill(Sums()), inputs)
    plan = MemoryPlanningPass(MemoryPlanningAlgorithmSuite([algorithm]), **settings)
    return to_xnnpack(model, inputs, memory_planning_pass=plan)


@case(
    guards="a plan that gives each tensor a place of its own, on 64 bytes, and none to inputs and outputs",
)
def memory_plan_naive(build: Build) -> ExecutorchProgramManager:
    from executorch.exir.memory_planning import naive

    return planned(build, naive, alloc_graph_input=False, alloc_graph_output=False, alignment=64)


@case(
    guards="a plan that lets tensors share places, by the greedy algorithm, inputs not among them",
)
def memory_plan_greedy(build: Build) -> ExecutorchProgramManager:
    from executorch.exir.memory_planning import greedy

    return planned(build, greedy, alloc_graph_input=False)


@case(guards="a model in float16, for XNNPACK")
def float16(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 3, 8, 8).half(),)
    network = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 8, 3, padding=1), nn.Sigmoid(), nn.Flatten(), nn.Linear(128, 5)),
    )
    return to_xnnpack(build.method(build.data.fill(network).half(), inputs), inputs)


class Pixels(nn.Module):
    """A classifier of pictures as cameras give them: bytes, and the number of a camera; bytes and a class out."""

    def __init__(self) -> None:
        super().__init__()
        self.cameras = nn.Embedding(4, 3)
        self.mask = nn.Conv2d(3, 3, 3, padding=1)
        self.classes = nn.Linear(3, 5)

    def forward(self, picture: torch.Tensor, camera: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = picture.float() / 256 + self.cameras(camera)[:, :, None, None]
        y = self.mask(x)
        lit = (y * 64 + 128).clamp(0, 255)
        return lit.to(torch.uint8), self.classes(y.mean((2, 3))).argmax(1)


@case(guards="uint8 and int64 go in and come out, XNNPACK between them")
def integers(build: Build) -> ExecutorchProgramManager:
    picture = torch.from_numpy(build.data.generator("picture").integers(0, 256, (1, 3, 8, 8), "uint8"))
    inputs = (picture, torch.tensor([2]))
    return to_xnnpack(build.method(build.data.fill(Pixels()), inputs), inputs)
