"""Delegates made by hand, and what a user reads of a program before it is written.

A backend is called by its name, partitioners go by patterns and by groups, and a delegate may be on a device.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from executorch_goldens import Build, case
from executorch_goldens.exporting.building import Built
from models.situations.limits import Function
from models.ways.exir_ways import LATER, NEWEST, to_edge, to_xnnpack

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager

Inputs = tuple[torch.Tensor, ...]


def computed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x * y + 0.5)


def pair(build: Build) -> Inputs:
    return build.data.tensor("x", 2, 3), build.data.tensor("y", 2, 3)


# --- A backend by its name


class Around(nn.Module):
    """A delegate between two operators."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        made = self.inner(x + 1.0, y)
        z: torch.Tensor = made[0] if isinstance(made, tuple | list) else made
        return z * 2.0


def delegate(module: nn.Module, inputs: Inputs) -> Any:
    from executorch import exir
    from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
    from executorch.exir.backend.backend_api import to_backend

    edge = exir.to_edge(torch.export.export(module, inputs)).exported_program()
    return to_backend(XnnpackBackend.__name__, edge, [])


@case(guards="a module that was delegated by itself is part of another")
def delegate_within_module(build: Build) -> ExecutorchProgramManager:
    from executorch import exir

    inputs, module = pair(build), Function(computed)
    build.method(Around(module), inputs)
    whole = Around(delegate(module, inputs))
    return exir.to_edge(torch.export.export(whole, inputs)).to_executorch()


@case(guards="a delegate is a program by itself")
def delegate_alone(build: Build) -> Built:
    inputs = pair(build)
    return Built(delegate(build.method(Function(computed), inputs), inputs).buffer())


@case(guards="a program is partitioned before there is a manager of it")
def partitioned_program(build: Build) -> ExecutorchProgramManager:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import EdgeProgramManager
    from executorch.exir.backend.backend_api import to_backend

    class Chosen(nn.Module):
        """One of two layers."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            z = torch.cond(y.sum() > 0.0, self.first.forward, self.second.forward, [x])
            return torch.sigmoid(z).cumsum(1) + y * 2.0

    edge = to_edge(build, build.data.fill(Chosen()), pair(build))
    program = to_backend(edge.exported_program(), XnnpackPartitioner())
    return EdgeProgramManager(program).to_executorch()


# --- Partitioners of a user's own


def by(choose: Callable[[Any], list[Any]]) -> Any:
    """Return a partitioner whose partitions a function chooses from a graph; XNNPACK takes them."""
    from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
    from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
    from executorch.exir.backend.utils import tag_constant_data

    class Chosen(Partitioner):
        def partition(self, exported_program: Any) -> Any:
            spec = DelegationSpec(XnnpackBackend.__name__, [])
            tags = {}
            for at, partition in enumerate(choose(exported_program.graph_module)):
                for node in partition.nodes:
                    node.meta["delegation_tag"] = f"chosen{at}"
                tags[f"chosen{at}"] = spec
            tag_constant_data(exported_program)
            return PartitionResult(exported_program, tags)

    return Chosen()


def partly(x: torch.Tensor, y: torch.Tensor) -> Inputs:
    a = torch.sigmoid(x * y)
    b = (a - y) / 2.0
    return torch.relu(a.cumsum(1) + b), b * y, torch.sigmoid(b)


def supported(*names: str) -> Any:
    """Return what takes operators of these names."""
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Named(OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
            return node.op == "call_function" and any(f"aten.{name}." in str(node.target) for name in names)

    return Named()


@case(guards="what matches a pattern is delegated, and nothing else")
def partitions_by_pattern(build: Build) -> ExecutorchProgramManager:
    from executorch import exir
    from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
        generate_pattern_op_partitions,
    )

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x * y)

    example = torch.ones(2, 3)
    pattern = exir.to_edge(torch.export.export(Function(product), (example, example)))
    patterns = [pattern.exported_program().graph_module.graph]

    def choose(graph_module: torch.fx.GraphModule) -> list[Any]:
        return generate_pattern_op_partitions(graph_module, patterns, op_support=supported("relu"))  # type: ignore[no-any-return]

    edge = to_edge(build, Function(partly), pair(build))
    return edge.to_backend(by(choose)).to_executorch()


@case(guards="operators of a group are delegated together, and the others beside them")
def partitions_by_group(build: Build) -> ExecutorchProgramManager:
    from executorch.exir.backend.canonical_partitioners.group_partitioner import GroupBasedPartitioner

    def choose(graph_module: torch.fx.GraphModule) -> list[Any]:
        calls = [node for node in graph_module.graph.nodes if node.op == "call_function"]
        named = {
            name: [node for node in calls if f"aten.{name}." in str(node.target)]
            for name in ("mul", "sub", "div")
        }
        groups = [[named["mul"][0], *named["sub"]], [*named["div"], named["mul"][-1]]]
        takes = supported("mul", "sub", "div", "sigmoid", "relu", "add", "max", "max_pool2d_with_indices")
        return GroupBasedPartitioner(  # type: ignore[no-any-return]
            graph_module, takes, allows_single_node_partition=False, node_groups=groups
        ).propose_partitions()

    edge = to_edge(build, Function(partly), pair(build))
    return edge.to_backend(by(choose)).to_executorch()


@case(guards="lists of nodes are delegated, alone and in groups")
def partitions_by_lists(build: Build) -> ExecutorchProgramManager:
    from executorch.exir.backend.canonical_partitioners import pattern_op_partitioner as partitioners

    def choose(graph_module: torch.fx.GraphModule) -> list[Any]:
        calls = [node for node in graph_module.graph.nodes if node.op == "call_function"]
        lists = [[node for node in calls if "mul" in str(node.target)][:1]]
        partitioners.generate_partitions_from_list_of_nodes(graph_module, lists)
        return partitioners.generate_grouped_partitions_from_list_of_nodes(  # type: ignore[no-any-return]
            graph_module, lists, supported("sigmoid", "relu")
        )

    edge = to_edge(build, Function(partly), pair(build))
    return edge.to_backend(by(choose)).to_executorch()


# --- Devices


def on_device(
    build: Build, function: Callable[..., Any], device: bytes, **how: Any
) -> ExecutorchProgramManager:
    """Lower a function whose delegates are on a device; `how` are settings of what is copied to and from it."""
    from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
        generate_partitions_from_list_of_nodes,
    )
    from executorch.exir.backend.compile_spec_schema import CompileSpec
    from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
    from executorch.exir.backend.utils import tag_constant_data
    from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig

    class OnDevice(Partitioner):
        def partition(self, exported_program: Any) -> Any:
            spec = DelegationSpec(XnnpackBackend.__name__, [CompileSpec("target_device", device)])
            takes, tags = supported("mul", "sigmoid", "sub", "add"), {}
            found = generate_partitions_from_list_of_nodes(exported_program.graph_module, op_support=takes)
            for at, partition in enumerate(found):
                for node in partition.nodes:
                    node.meta["delegation_tag"] = f"device{at}"
                tags[f"device{at}"] = spec
            tag_constant_data(exported_program)
            return PartitionResult(exported_program, tags)

    planned = how.pop("planned", True)
    config = ExecutorchBackendConfig(
        propagate_device_config=PropagateDeviceConfig(**how), enable_non_cpu_memory_planning=planned
    )
    edge = to_edge(build, Function(function), pair(build))
    return edge.to_backend(OnDevice()).to_executorch(config)


def twice(x: torch.Tensor, y: torch.Tensor) -> Inputs:
    a = torch.sigmoid(x * y)
    return a.cumsum(1) * y, a - 1.0


@case(guards="inputs and outputs that are on the device already are not copied", releases=NEWEST)
def given_on_device(build: Build) -> ExecutorchProgramManager:
    return on_device(
        build, computed, b"cpu", skip_h2d_for_method_inputs=True, skip_d2h_for_method_outputs=True
    )


@case(guards="a device's tensors are planned with the others where that is asked for", releases=NEWEST)
def device_not_planned(build: Build) -> ExecutorchProgramManager:
    return on_device(build, twice, b"cpu:1", planned=False)


# --- What a user reads


@case(guards="what is read of a program before it is written changes nothing", releases=LATER)
def program_read_before(build: Build) -> ExecutorchProgramManager:
    from executorch.exir.backend import utils
    from executorch.exir.lowered_backend_module import get_lowered_backend_modules, get_lowered_submodules
    from executorch.exir.memory_planning import Verifier

    edge = to_xnnpack(build, Function(partly), pair(build))
    graph_module = edge.exported_program().graph_module
    delegates = utils.get_delegates(graph_module.graph)
    others = utils.get_non_lowered_nodes(graph_module.graph)
    seen = (
        len(get_lowered_submodules(graph_module)),
        len(get_lowered_backend_modules(graph_module)),
        len(utils.get_delegated_payload(graph_module)),
        utils.format_delegated_graph(graph_module).count("backend_id: "),
    )
    if set(seen) != {len(delegates)} or not others:
        raise AssertionError(f"{len(delegates)} delegates are read as {seen}")
    program = edge.to_executorch()
    planned = program.exported_program().graph_module
    Verifier(planned, True, True, True).verify_storage_reuse()
    program.write_to_file(io.BytesIO())
    return program


@case(guards="a pass that prints the graph changes nothing")
def program_printed(build: Build) -> ExecutorchProgramManager:
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import DebugPass

    logging.getLogger("executorch").setLevel(logging.WARNING)
    passes = [
        DebugPass("before", show_src=True, path_filter="models"),
        DebugPass(show_src=True, show_all_frames=True),
    ]
    config = ExecutorchBackendConfig(passes=[*passes, DebugPass(enable_debug_pass=False)])
    return to_xnnpack(build, Function(partly), pair(build)).to_executorch(config)


@case(guards="a record of the stages is made beside the program, which is the same")
def program_recorded(build: Build) -> ExecutorchProgramManager:
    return to_xnnpack(build, Function(partly), pair(build), generate_etrecord=True).to_executorch()


@case(guards="a record of an edge program is made beside it")
def edge_recorded(build: Build) -> ExecutorchProgramManager:
    return to_edge(build, Function(partly), pair(build), generate_etrecord=True).to_executorch()


@case(guards="the old way to capture a module gives a program as well")
def captured(build: Build) -> Built:
    from executorch import exir

    def without_numbers(x: torch.Tensor, y: torch.Tensor) -> Inputs:
        a = torch.sigmoid(x * y)
        return torch.relu(a.cumsum(1) + y), a - y

    inputs = pair(build)
    module = build.method(Function(without_numbers), inputs)
    program = exir.capture(module, inputs, exir.CaptureConfig(enable_aot=True))
    return Built(program.to_edge(exir.EdgeCompileConfig(_check_ir_validity=False)).to_executorch().buffer)
