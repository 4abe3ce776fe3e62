"""Makes the payloads beside it, in the environment of an ExecuTorch release: see README.md.

python -m tests.support.decoding.make tests/data/decode/1.5.1
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    get_symmetric_quantization_config as xnnpack_quantization,
)
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import get_lowered_submodules
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch.export import Dim
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch_goldens import Data

Quantizer = Callable[[], Any]


class Small(torch.nn.Module):
    """Convolution, clamp, linear layer and a constant: per-channel and per-tensor parameters, padding."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.nn.functional.relu6(self.conv(x))) + 1.0


class Dense(torch.nn.Module):
    """A linear layer for 4-bit weights."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Stateful(torch.nn.Module):
    """Portable kernels, lists, scalars, a constant and a buffer with an initial state."""

    state: torch.Tensor
    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.tensor([1.5, -0.0, 3.25]))
        self.register_buffer("table", torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int16))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.state.add_(x.sum((0, 1)))
        return torch.cat([x[0], self.table + 0], 0), self.state * 2


class Complex(torch.nn.Module):
    """A constant of each complex type."""

    def __init__(self) -> None:
        super().__init__()
        numbers = torch.tensor([1 + 2j, complex(float("nan"), -0.0)])
        for name, dtype in {
            "half": torch.complex32,
            "single": torch.complex64,
            "double": torch.complex128,
        }.items():
            self.register_buffer(f"of_{name}", numbers.to(dtype))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + 1, self.of_half.clone(), self.of_single.clone(), self.of_double.clone()


def lower(
    module: torch.nn.Module,
    shape: tuple[int, ...],
    partitioner: list[Any],
    folder: Path,
    name: str,
    quantizer: Quantizer | None = None,
    dynamic_shapes: Any = None,
) -> None:
    """Write a model's delegates and its program."""
    data = Data(name)
    inputs = (data.tensor("x", *shape),)
    program = torch.export.export(data.fill(module), inputs, dynamic_shapes=dynamic_shapes, strict=True)
    if quantizer is not None:
        prepared = prepare_pt2e(program.module(check_guards=False), quantizer())
        prepared(*inputs)
        program = torch.export.export(convert_pt2e(prepared), inputs, strict=True)
    edge = to_edge_transform_and_lower(
        program, partitioner=partitioner, compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    delegates = get_lowered_submodules(edge.exported_program().graph_module)
    for at, (_, lowered, _) in enumerate(delegates):
        suffix = "tosa" if name.startswith("tosa") else "xnnpack"
        (folder / f"{name}-{at}.{suffix}").write_bytes(lowered.processed_bytes)
    # The pass keeps the initial state of buffers named like this; without it none is emitted.
    emitted = edge.to_executorch(ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["state"])]))
    (folder / f"{name}.pte").write_bytes(emitted.buffer)


def tosa_int8() -> Any:
    quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT"))
    return quantizer.set_global(get_symmetric_quantization_config())


def xnnpack_int8() -> Any:
    return XNNPACKQuantizer().set_global(xnnpack_quantization(is_per_channel=True))


def xnnpack_int4() -> Any:
    configuration = xnnpack_quantization(is_per_channel=True, is_dynamic=True, weight_qmin=-8, weight_qmax=7)
    return XNNPACKQuantizer().set_global(configuration)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    image = (1, 3, 8, 8)
    lower(Small(), image, [TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))], folder, "tosa-fp")
    lower(Small(), image, [TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT"))], folder, "tosa-int", tosa_int8)
    # Padding that follows the sizes: 1.5.1 has it, and what computes with sizes.
    strided = torch.nn.Conv2d(3, 2, 3, stride=2, padding=1)
    symbolic = ({2: Dim("height", min=4, max=16), 3: Dim("width", min=4, max=12)},)
    shape = [TOSAPartitioner(TosaCompileSpec("TOSA-1.1+FP+shape"))]
    lower(strided, image, shape, folder, "tosa-shape", dynamic_shapes=symbolic)
    lower(Small(), image, [XnnpackPartitioner()], folder, "xnnpack-fp32")
    lower(Small(), image, [XnnpackPartitioner()], folder, "xnnpack-int8", xnnpack_int8)
    lower(Dense(), (2, 32), [XnnpackDynamicallyQuantizedPartitioner()], folder, "xnnpack-int4", xnnpack_int4)
    lower(Stateful(), (2, 2, 3), [], folder, "portable")
    lower(Complex(), (2,), [], folder, "complex")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
