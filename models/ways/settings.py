"""Settings of quantizers and of programs that a user makes by hand: parts that are quantized in their own way, codes
that go in and come out, weights of few bits, weights in files, and a training step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Build, case
from executorch_goldens.exporting.building import Built
from models.ways.exir_ways import NEWEST, to_edge
from models.ways.tosa_ways import INT8, lowered, quantized

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager

Inputs = tuple[torch.Tensor, ...]


# --- Parts that are quantized in their own way


class Parts(nn.Module):
    """Layers that are quantized each in its own way."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.conv = nn.Conv1d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x)).reshape(1, 3, 4) * 0.5
        return functional.hardtanh(self.second(self.conv(y) + y)) - 1.0


def in_parts(build: Build, composable: bool) -> ExecutorchProgramManager:
    """Quantize layers by their names and types, and inputs and outputs; read what was set, and set that."""
    from executorch.backends.arm import quantizer as quantizers
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    compile_spec, inputs = TosaCompileSpec("TOSA-1.0+FP+INT"), (build.data.tensor("x", 3, 4),)
    per_channel, per_tensor = map(quantizers.get_symmetric_quantization_config, (True, False))
    quantizer = quantizers.TOSAQuantizer(compile_spec, composable)
    quantizer.global_config = per_tensor
    quantizer.io_config = per_tensor
    quantizer.module_type_config = {nn.Conv1d: per_channel}
    quantizer.module_name_config = {"second": None}
    if composable:
        quantizer.set_node_target(torch.ops.aten.relu.default, per_tensor)
        quantizer.set_node_name("linear", per_channel)
    else:
        quantizer.set_global(quantizer.global_config).set_io(quantizer.io_config)
        for layer, config in quantizer.module_type_config.items():
            quantizer.set_module_type(layer, config)
        for name, config in quantizer.module_name_config.items():
            quantizer.set_module_name(name, config)
    model = build.method(build.data.fill(Parts()), inputs)
    return lowered(quantized(build, model, inputs, quantizer), inputs, compile_spec)


@case(guards="layers are quantized by their names and types as they were set", releases=NEWEST)
def quantized_in_parts(build: Build) -> ExecutorchProgramManager:
    return in_parts(build, composable=False)


@case(guards="layers are quantized by quantizers of their own as they were set", releases=NEWEST)
def quantized_by_several(build: Build) -> ExecutorchProgramManager:
    return in_parts(build, composable=True)


@case(guards="the linear layers inside of a GRU are quantized, and what it gives")
def gru_of_xnnpack(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer as xnnpack
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = build.data.tensor("x", 3, 1, 4), build.data.tensor("state", 1, 1, 4)
    model = build.method(build.data.fill(nn.GRU(4, 4)), inputs)
    quantizer = xnnpack.XNNPACKQuantizer().set_global(xnnpack.get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    made = build.quantized(convert_pt2e(prepared))
    return to_edge_transform_and_lower(
        torch.export.export(made, inputs),
        partitioner=[XnnpackPartitioner()],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    ).to_executorch()


@case(
    guards="a convolution's sums become unsigned codes where outputs are (#21393)",
    releases=("1.4.1", "1.5.1"),
)
def unsigned_outputs(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.arm import quantizer as quantizers
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    compile_spec, inputs = TosaCompileSpec(INT8), (build.data.tensor("x", 1, 2, 4, 3),)
    model = build.method(build.data.fill(nn.Conv2d(2, 3, 2)), inputs)
    quantizer = quantizers.TOSAQuantizer(compile_spec)
    quantizer.set_global(quantizers.get_symmetric_quantization_config())
    quantizer.set_io(quantizers.get_uint8_io_quantization_config())
    return lowered(quantized(build, model, inputs, quantizer), inputs, compile_spec)


# --- Codes that go in and come out


class OfCodes(nn.Module):
    """A module whose input and output are codes."""

    def __init__(self, inner: nn.Module, given: dict[str, Any], made: dict[str, Any]) -> None:
        super().__init__()
        self.inner, self.given, self.made = inner, given, made

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        x = (codes.to(torch.float32) - self.given["zero_point"]) * self.given["scale"]
        y = torch.round(self.inner(x) / self.made["scale"]) + self.made["zero_point"]
        return y.clamp(-128, 127).to(torch.int8)  # type: ignore[no-any-return]


@case(guards="codes go in and come out of a program, by scales that are read of it", releases=NEWEST)
def codes_in_and_out(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from executorch.exir.passes import quantize_io_pass
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    compile_spec, inputs = TosaCompileSpec(INT8), (build.data.tensor("x", 2, 4),)
    model = build.data.fill(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    quantizer = TOSAQuantizer(compile_spec).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    converted = convert_pt2e(prepared)
    edge = to_edge_transform_and_lower(
        torch.export.export(converted, inputs),
        partitioner=[TOSAPartitioner(compile_spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    read = quantize_io_pass.extract_io_quant_params(edge)
    (given,), (made,) = read["inputs"].values(), read["outputs"].values()
    codes = (torch.arange(8, dtype=torch.int8).reshape(2, 4) * 20 - 70,)
    build.method(OfCodes(model, given, made), codes)
    build.quantized(OfCodes(converted, given, made))
    return edge.to_executorch()


# --- Files of weights, and training


def weights(build: Build) -> nn.Module:
    return build.data.fill(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)))


@case(guards="weights go to the files that their names say, and others stay in the program")
def weights_in_files(build: Build) -> Built:
    from executorch.exir import ExecutorchBackendConfig

    inputs = (build.data.tensor("x", 2, 4),)

    def file_of(node: torch.fx.Node) -> str | None:
        return "first" if "p_0" in node.name else None

    edge = to_edge(build, weights(build), inputs)
    program = edge.to_executorch(ExecutorchBackendConfig(external_constants=file_of))
    (data,) = (
        program.tensor_data.values() if hasattr(program, "tensor_data") else program._tensor_data.values()
    )
    return Built(program.buffer, {"first.ptd": bytes(data)})


class Loss(nn.Module):
    """The loss of a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return ((self.layer(x) - y) ** 2).mean()  # type: ignore[no-any-return]


class Step(nn.Module):
    """A loss, its gradients by hand, and the weights."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Inputs:
        layer: nn.Linear = self.loss.layer  # type: ignore[assignment]
        apart = layer(x) - y
        slope = apart * (2 / apart.numel())
        return (apart**2).mean(), slope.t() @ x, slope.sum(0), layer.weight * 1.0, layer.bias * 1.0


def training(build: Build, **settings: bool) -> ExecutorchProgramManager:
    """Lower a step of training: a loss with its gradients, from an export with both."""
    from executorch import exir
    from torch.export.experimental import _export_forward_backward

    inputs = build.data.tensor("x", 2, 4), build.data.tensor("y", 2, 3)
    model = build.data.fill(Loss())
    build.method(Step(model), inputs)
    exported = _export_forward_backward(torch.export.export(model, inputs))
    return exir.to_edge(exported).to_executorch(exir.ExecutorchBackendConfig(**settings))


@case(guards="a step of training gives the loss, the gradients, and the weights to change")
def training_step(build: Build) -> ExecutorchProgramManager:
    return training(build)


@case(guards="the weights of a step of training go to a file of their own")
def trained_weights_in_file(build: Build) -> Built:
    program = training(build, external_mutable_weights=True)
    (data,) = program._tensor_data.values()
    return Built(program.buffer, {"weights.ptd": bytes(data)})
