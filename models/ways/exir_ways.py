"""Ways through exir that no target has: loops over tensors, settings of ``to_executorch``, delegates made by hand,
partitioners of a user's own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.export import Dim

from executorch_goldens import Build, case
from models.situations.limits import Function

if TYPE_CHECKING:
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager

Inputs = tuple[torch.Tensor, ...]
NEWEST = ("1.5.1",)
#: The releases whose plans may have several pools.
LATER = ("1.3.1", "1.4.1", "1.5.1")


def to_edge(
    build: Build, module: nn.Module, inputs: Inputs, dynamic_shapes: Any = None, **how: Any
) -> EdgeProgramManager:
    from executorch import exir

    model = build.method(module, inputs, dynamic_shapes=dynamic_shapes)
    exported = torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes)
    return exir.to_edge(exported, **how)


def to_xnnpack(build: Build, module: nn.Module, inputs: Inputs, **how: Any) -> EdgeProgramManager:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    exported = torch.export.export(build.method(module, inputs), inputs)
    return to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()], **how)


# --- Loops over tensors


@case(guards="a function is mapped over the rows of a tensor, one after another")
def mapped_rows(build: Build) -> ExecutorchProgramManager:
    from torch._higher_order_ops.map import map as of_rows

    mapped: Any = of_rows

    def rows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return mapped(lambda row, y: row * y + 1.0, x, y)  # type: ignore[no-any-return]

    inputs = build.data.tensor("x", 3, 4), build.data.tensor("y", 4)
    return to_edge(build, Function(rows), inputs).to_executorch()


@case(guards="a function is mapped over rows within a delegate's neighbourhood")
def mapped_rows_beside_delegate(build: Build) -> ExecutorchProgramManager:
    from torch._higher_order_ops.map import map as of_rows

    mapped: Any = of_rows

    def rows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return mapped(lambda row, y: torch.sigmoid(row * y) + row, x + x, y) * 2.0  # type: ignore[no-any-return]

    inputs = build.data.tensor("x", 3, 4), build.data.tensor("y", 4)
    return to_xnnpack(build, Function(rows), inputs).to_executorch()


@case(guards="running sums of a scan, and what it carries")
def scanned_sums(build: Build) -> ExecutorchProgramManager:
    from torch._higher_order_ops.scan import scan

    def sums(first: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def step(total: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            after = total + row
            return after, after * 2.0

        return scan(step, first, x)

    inputs = build.data.tensor("first", 4), build.data.tensor("x", 3, 4)
    return to_edge(build, Function(sums), inputs).to_executorch()


@case(guards="a scan over two tensors that carries two")
def scanned_pairs(build: Build) -> ExecutorchProgramManager:
    from torch._higher_order_ops.scan import scan

    def pairs(x: torch.Tensor, y: torch.Tensor) -> Inputs:
        def step(state: Inputs, rows: Inputs) -> tuple[Inputs, torch.Tensor]:
            total, largest = state
            return (total + rows[0], torch.maximum(largest, rows[1])), total * rows[1]

        (total, largest), z = scan(step, (x[0] * 0.0, y[0] * 1.0), (x, y))
        return total, largest, z

    inputs = build.data.tensor("x", 3, 4), build.data.tensor("y", 3, 4)
    return to_edge(build, Function(pairs), inputs).to_executorch()


# --- Operators in place


class Cached(nn.Module):
    """Rows that are put into a cache at given places, and read from it."""

    cache: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, places: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        self.cache.copy_(torch.ops.aten.index_put.default(self.cache, [places], x))
        return self.cache * 2.0


def in_place(build: Build, module: nn.Module, inputs: Inputs, *further: str) -> ExecutorchProgramManager:
    """Lower a module with operators in place: that of the default, and further ones, ``name.overload``."""
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.dialects._ops import ops

    names = (each.split(".") for each in further)
    extra = frozenset(getattr(getattr(ops.edge.aten, name), overload) for name, overload in names)
    config = ExecutorchBackendConfig(run_reinplace_pass=True, reinplace_extra_ops=extra or None)
    return to_edge(build, module, inputs).to_executorch(config)


@case(guards="a cache is written where it is", releases=NEWEST)
def cache_in_place(build: Build) -> ExecutorchProgramManager:
    return in_place(build, Cached(), (torch.tensor([2, 0]), build.data.tensor("x", 2, 3)))


@case(
    guards="what is read later, is an input, or has another shape or type is not overwritten", releases=NEWEST
)
def operators_in_place(build: Build) -> ExecutorchProgramManager:
    put, first, both = torch.ops.aten.index_put.default, torch.tensor([0]), torch.tensor([1, 0])

    def computed(x: torch.Tensor, y: torch.Tensor) -> Inputs:
        a = x * 2.0
        b = put(a, [first], y[:1])
        c = put(b, [both], y)
        kept = put(c * 0.5, [first], c[1:])
        given = put(x, [first], y[:1])
        totals = (c * 3.0).sum(1, keepdim=True)
        joined = torch.cat([given * 2.0, totals], 1)
        return kept * 1.0, joined, torch.lt(kept * 4.0, 0.5), (joined * 2.0).permute(1, 0)

    inputs = build.data.tensor("x", 2, 3), build.data.tensor("y", 2, 3)
    further = ("sum.dim_IntList", "cat.default", "lt.Scalar", "permute_copy.default")
    return in_place(build, Function(computed), inputs, *further)


@case(guards="an operator in place of a symbolic batch overwrites only what is as long", releases=NEWEST)
def batch_in_place(build: Build) -> ExecutorchProgramManager:
    from executorch.exir import ExecutorchBackendConfig

    put = torch.ops.aten.index_put.default

    def computed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return put(x * 2.0, [torch.tensor([1])], y[:1]) + 1.0  # type: ignore[no-any-return]

    inputs = build.data.tensor("x", 4, 3), build.data.tensor("y", 4, 3)
    batch = {0: Dim("batch", min=2, max=8)}
    edge = to_edge(build, Function(computed), inputs, ((batch, batch),))
    return edge.to_executorch(ExecutorchBackendConfig(run_reinplace_pass=True))


# --- Sizes that follow from values


def at_most(build: Build, function: Callable[..., Any], inputs: Inputs) -> ExecutorchProgramManager:
    """Lower a function whose sizes follow from values, planned for the most that these can be."""
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes.sym_shape_eval_pass import HintBasedSymShapeEvalPass

    config = ExecutorchBackendConfig(sym_shape_eval_pass=HintBasedSymShapeEvalPass())
    return to_edge(build, Function(function), inputs).to_executorch(config)


@case(guards="places of what is not zero are planned for as many as there may be")
def places_at_most(build: Build) -> ExecutorchProgramManager:
    return at_most(build, lambda x: torch.nonzero(x > 0.25), (build.data.tensor("x", 3, 4),))


@case(guards="elements that a mask chooses are planned for as many as there may be")
def chosen_at_most(build: Build) -> ExecutorchProgramManager:
    return at_most(build, lambda x: x[x > 0.25], (build.data.tensor("x", 3, 4),))


@case(guards="elements that indices choose have the shape that these broadcast to, where they are")
def indexed_at_most(build: Build) -> ExecutorchProgramManager:
    rows, columns = torch.tensor([[2], [0]]), torch.tensor([1, 2, 0])

    def indexed(x: torch.Tensor) -> Inputs:
        kept = x[0, :, 0] > 0.0
        return (
            x[rows, columns],
            x[:, columns],
            x[rows, :, columns],
            x[:, :, columns],
            x[kept],
        )

    return at_most(build, indexed, (build.data.tensor("x", 3, 3, 5),))


# --- Quantized operators outside of delegates


@case(
    guards="quantized operators outside of delegates are fused, a concatenation of codes too",
    # Before, the wheel has no kernels of quantized operators.
    releases=("1.4.1", "1.5.1"),
)
def fused_outside(build: Build) -> ExecutorchProgramManager:
    from executorch.exir import ExecutorchBackendConfig

    importlib.import_module("executorch.kernels.quantized")
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
    dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default
    codes = (2.0**-7, 3, -128, 127, torch.int8)

    def around(x: torch.Tensor) -> torch.Tensor:
        return dequantize(quantize(x, *codes), *codes)  # type: ignore[no-any-return]

    def computed(x: torch.Tensor, y: torch.Tensor) -> Inputs:
        a, b = around(x), around(y)
        mixed = torch.cat([a, y])
        return around(torch.cat([a, b])), around(mixed), around(torch.cat([around(a * 0.5), around(b) + 1.0]))

    inputs = build.data.tensor("x", 2, 3), build.data.tensor("y", 2, 3)
    config = ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True)
    return to_edge(build, Function(computed), inputs).to_executorch(config)


# --- Plans


@case(guards="tensors that a pass gives a pool of their own are planned in it", releases=LATER)
def plan_of_pools(build: Build) -> ExecutorchProgramManager:
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy, naive
    from executorch.exir.passes import MemoryPlanningPass

    class Pools(MemoryPlanningPass):
        """Sums go to a pool of their own."""

        def run(self, graph_module: Any, graph_signature: Any = None) -> Any:
            for node in graph_module.graph.nodes:
                if node.op == "call_function" and "add" in str(node.target):
                    for user in (node,):
                        spec = user.meta.get("spec")
                        if spec is not None and not isinstance(spec, (list, tuple)):
                            spec.mem_id = 3
            return super().run(graph_module, graph_signature)

    def computed(x: torch.Tensor) -> torch.Tensor:
        y = (x + 1.0).cumsum(1)
        return (y + 2.0).cumsum(1) * 2.0

    plan = Pools(MemoryPlanningAlgorithmSuite([greedy, naive]))
    config = ExecutorchBackendConfig(memory_planning_pass=plan)
    return to_edge(build, Function(computed), (build.data.tensor("x", 2, 3),)).to_executorch(config)
