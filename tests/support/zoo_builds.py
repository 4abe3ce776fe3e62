"""Cases that make their whole programs by themselves, as firms do: right ones, and one of each kind that is wrong."""

from __future__ import annotations

from pathlib import Path

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer
from executorch.backends.arm.quantizer import get_symmetric_quantization_config as arm_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.passes import MemoryPlanningPass
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch_goldens import Build, case
from executorch_goldens.exporting.data import example_of
from executorch_goldens.zoo.registry import load

#: The zoo's ``linear``, lowered for XNNPACK by 1.1.0.
PROGRAM = Path(__file__).parents[1] / "data" / "payloads" / "xnnpack-fp32-linear-1.1.0.pte"
#: As the harness: the verifier rejects what backends take.
CONFIG = EdgeCompileConfig(_check_ir_validity=False)


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(8, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))


def to_xnnpack(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExecutorchProgramManager:
    program = torch.export.export(model, inputs, strict=True)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()], compile_config=CONFIG)
    return edge.to_executorch()


@case(guards="a plain program as it ships")
def plain(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 8, 8, 8),)
    return to_xnnpack(build.method(build.data.fill(network()), inputs), inputs)


@case(guards="a program whose weights are not those of the model that it is said to be of")
def other_weights(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 8, 8, 8),)
    model = build.method(build.data.fill(network()), inputs)
    with torch.no_grad():
        model[0].bias += 1.0  # type: ignore[index, operator]
    return to_xnnpack(model, inputs)


def converted(build: Build, inputs: tuple[torch.Tensor, ...]) -> nn.Module:
    """Return the network, quantized to int8 on three samples."""
    model = build.method(build.data.fill(network()), inputs)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(
        torch.export.export(model, inputs, strict=True).module(check_guards=False), quantizer
    )
    for given in (inputs, build.data.all_like(inputs, "drawn"), build.data.all_like(inputs, "extremes")):
        prepared(*given)
    return convert_pt2e(prepared)


@case(guards="int8, calibrated on data of the case's own")
def int8(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 8, 8, 8),)
    return to_xnnpack(build.quantized(converted(build, inputs)), inputs)


@case(guards="int8 of which nobody says what the quantized model computes")
def int8_unnamed(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 8, 8, 8),)
    return to_xnnpack(converted(build, inputs), inputs)


@case(guards="a model that is quantized in place, as torchao does it")
def in_place(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 8, 8, 8),)
    model = build.method(build.data.fill(network()), inputs)
    with torch.no_grad():
        model[3].weight.copy_((model[3].weight * 16).round() / 16)  # type: ignore[index, operator]
    return to_xnnpack(build.quantized(model), inputs)


@case(guards="int8 for TOSA, run by the reference model")
def int8_for_tosa(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 8, 8, 8),)
    model = build.method(build.data.fill(network()), inputs)
    specification = TosaCompileSpec("TOSA-1.0+INT")
    quantizer = TOSAQuantizer(specification).set_global(arm_config(is_per_channel=True))
    prepared = prepare_pt2e(
        torch.export.export(model, inputs, strict=True).module(check_guards=False), quantizer
    )
    prepared(*inputs)
    quantized = build.quantized(convert_pt2e(prepared))
    program = torch.export.export(quantized, inputs, strict=True)
    partitioner = TOSAPartitioner(specification)
    return to_edge_transform_and_lower(
        program, partitioner=[partitioner], compile_config=CONFIG
    ).to_executorch()


class Cache(nn.Module):
    """State that two methods share: weights, and eight places."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(1, 8, 4))


class Prefill(nn.Module):
    def __init__(self, shared: Cache) -> None:
        super().__init__()
        self.shared = shared

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.shared.cache[:, :4] = self.shared.linear(x)  # type: ignore[index, operator]
        return self.shared.cache.sum(1)  # type: ignore[operator]


class Decode(Prefill):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        self.shared.cache[:, 4:5] = self.shared.linear(x)  # type: ignore[index, operator]
        return self.shared.cache.sum(1), self.shared.cache.mean(1)  # type: ignore[operator]


class Wide(Prefill):
    """A prefill with so much memory of its own that its state is elsewhere, where the plan does not share it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.cumsum(x.repeat(1, 16, 1), 1)[:, :4])


def prefill_and_decode(build: Build, share: bool, kind: type[Prefill] = Prefill) -> ExecutorchProgramManager:
    shared = Cache()
    build.data.fill(shared)
    prompt, token = (build.data.tensor("prompt", 1, 4, 4),), (build.data.tensor("token", 1, 1, 4),)
    prefill = build.method(kind(shared), prompt, "prefill")
    decode = build.method(Decode(shared), token, "decode")
    build.in_order("prefill", "decode", "decode")
    programs = {
        "prefill": torch.export.export(prefill, prompt, strict=True),
        "decode": torch.export.export(decode, token, strict=True),
    }
    partitioners = {name: [XnnpackPartitioner()] for name in programs}
    edge = to_edge_transform_and_lower(programs, partitioner=partitioners, compile_config=CONFIG)
    plan = MemoryPlanningPass(share_mutable_buffers=share)
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=plan))


@case(guards="a prefill and its decodes share weights and state")
def language_model(build: Build) -> ExecutorchProgramManager:
    return prefill_and_decode(build, share=True)


@case(guards="a memory plan that gives each method a state of its own")
def forgetful(build: Build) -> ExecutorchProgramManager:
    return prefill_and_decode(build, share=False, kind=Wide)


@case(guards="weights in a file of their own")
def external(build: Build) -> ExecutorchProgramManager:
    inputs = (build.data.tensor("x", 1, 4, 4),)
    model = build.method(
        build.data.fill(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Conv1d(4, 2, 1))), inputs
    )
    edge = to_edge(torch.export.export(model, inputs, strict=True), compile_config=CONFIG)
    return edge.to_executorch(ExecutorchBackendConfig(external_constants=True))


@case(guards="a program that comes as a file, with what it gave elsewhere")
def file(build: Build) -> bytes:
    example = example_of(load(("models",))["linear"])
    with torch.no_grad():
        build.recorded(example.inputs, (example.module(*example.inputs),), bound=2.0**-12)
    return PROGRAM.read_bytes()


@case(guards="a function that returns no program")
def mistake(build: Build) -> list[int]:
    return [1, 2]
