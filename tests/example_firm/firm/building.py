"""Build functions of the firm's programs; its release scripts call them as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge_transform_and_lower,
)
from executorch.exir.passes import MemoryPlanningPass
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

CONFIG = EdgeCompileConfig(_check_ir_validity=False)


def lowered(
    model: nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any = None, **settings: Any
) -> ExecutorchProgramManager:
    """Lower a model for XNNPACK."""
    program = torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes, strict=True)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()], compile_config=CONFIG)
    return edge.to_executorch(ExecutorchBackendConfig(**settings))


def quantized(
    model: nn.Module, inputs: tuple[torch.Tensor, ...], data: Iterable[tuple[torch.Tensor, ...]]
) -> nn.Module:
    """Quantize a model to int8, calibrated on the firm's own data."""
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    exported = torch.export.export(model, inputs, strict=True).module(check_guards=False)
    prepared = prepare_pt2e(exported, quantizer)
    for each in data:
        prepared(*each)
    return convert_pt2e(prepared)


def language_model(
    methods: Mapping[str, tuple[nn.Module, tuple[torch.Tensor, ...]]],
) -> ExecutorchProgramManager:
    """Lower the methods of a language model, in 8da4w, with a state that they share."""
    programs = {
        name: torch.export.export(model, inputs, strict=True) for name, (model, inputs) in methods.items()
    }
    partitioners = {
        name: [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()] for name in programs
    }
    edge = to_edge_transform_and_lower(programs, partitioner=partitioners, compile_config=CONFIG)
    plan = MemoryPlanningPass(alloc_graph_input=False, share_mutable_buffers=len(programs) > 1)
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=plan))
