"""Issue #19152: XNNPACK partitions whose outputs stay distinct inside the delegate.

The delegate cannot return a value twice, nor an input as it came: `generate_node_to_external_map` stops with
"Output node ... is already in the inputs". Two of the delegate's own passes make such values out of sound
partitions:

- `RemoveCloneOpsTransform` erases clones that change nothing (and, around one between dequantize and quantize, the
  pair as well). It keeps a clone that copies an input to an output, but not one of a computed value: with
  ``y = x.permute(0, 2, 1)``, the outputs ``y.clone(), y`` become one node. A ``reshape`` or ``contiguous`` of a
  permuted tensor is such a clone with its consumer, and while the consumer is not delegated the clone is an
  output; from 1.3.1 `view_copy` is, which hides that one form only;
- `RemoveRedundantCopyPass` erases a pair of memory-format conversions that undo each other.

Installed, proposed partitions are copied and cleaned as the delegate will clean them. Where an output turns
out to be another output, or an input, all but the first in graph order are left out, to run as portable
operators, and partitions are proposed again without them, so that the partitioner's own check for cycles sees
the graph as it will be cut. Partitions without such outputs are the upstream ones: nothing else in the
artifact changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from graphlib import CycleError, TopologicalSorter
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import Patch, replaces

FITS = by_release(
    """
    executorch.backends.xnnpack.partition.xnnpack_partitioner:XnnpackPartitioner.generate_partitions
        31b02c7ba3f8e29b 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    executorch.backends.transforms.remove_clone_ops:RemoveCloneOpsTransform._remove
        8c705aba0f37102c 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    executorch.backends.xnnpack._passes.remove_redundant_copy_pass:RemoveRedundantCopyPass._try_remove_regular_redundant_to_copy
        1e7cb34d0bbb0b5f 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    """
)


def _install(release: str) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    @replaces(XnnpackPartitioner, "generate_partitions")
    def generate_partitions(upstream: Any, self: Any, ep: Any) -> list[Any]:
        groups = self.get_matched_nodes_from_configs(ep)
        # Matching marks nodes and must happen once; the copy proposes from what it found.
        proposing = copy(self)
        left_out: set[Any] = set()
        while True:
            kept = without(groups, left_out)
            proposing.get_matched_nodes_from_configs = lambda _, kept=kept: kept
            partitions = upstream(proposing, ep)
            more = to_leave_out(partitions, left_out, ep)
            if not more:
                return list(partitions)
            left_out |= more


def without(groups: list[list[Any]], left_out: set[Any]) -> list[list[Any]]:
    """Return groups of nodes without those of `left_out`, and without the groups that are empty then."""
    kept = ([node for node in group if node not in left_out] for group in groups)
    return [group for group in kept if group]


def to_leave_out(partitions: list[Any], left_out: set[Any], ep: Any) -> set[Any]:
    """Return the nodes that partitions must leave out beside those of `left_out`."""
    more = {node for partition in partitions for node in aliases(partition.nodes, ep)}
    if left_out and not more:
        # The partitioner looks for circles through one partition only. Here it must not happen that a node left out
        # closes one through two: nothing after it stays in them.
        more = circle(partitions, ep.graph) & downstream(left_out, ep.graph)
    return more


def aliases(partition: Iterable[Any], ep: Any) -> list[Any]:
    """Return the nodes of a partition that must not be outputs of one delegate together with the others.

    Parameters
    ----------
    partition
        The nodes (`torch.fx.Node`) of one partition of the graph of `ep`.
    ep
        The `ExportedProgram` that is partitioned; nothing in it is changed.
    """
    from executorch.backends.xnnpack.utils.utils import is_param_node

    members = set(partition)
    nodes = [node for node in ep.graph.nodes if node in members]
    outputs = [node for node in nodes if any(user not in members for user in node.users)]
    if not any(_may_be_erased(node) for node in nodes):
        return []
    module, inputs = _copied(nodes, outputs)
    _clean(module)
    seen = {copied for node, copied in inputs.items() if not is_param_node(ep, node)}
    left_out = []
    for node, cleaned in zip(outputs, module.graph.output_node().args[0], strict=True):
        if cleaned in seen:
            left_out.append(node)
        seen.add(cleaned)
    return left_out


def _may_be_erased(node: Any) -> bool:
    from executorch.backends.transforms.remove_clone_ops import RemoveCloneOpsTransform
    from executorch.exir.dialects._ops import ops as exir_ops

    conversion = exir_ops.edge.dim_order_ops._to_dim_order_copy.default
    return node.target in RemoveCloneOpsTransform.clone_ops or node.target == conversion


def _copied(nodes: list[Any], outputs: list[Any]) -> tuple[Any, dict[Any, Any]]:
    """Copy `nodes` into a graph of their own; return its module and its placeholders by the nodes they replace."""
    import torch

    members = set(nodes)
    graph = torch.fx.Graph()
    inputs: dict[Any, Any] = {}
    copies: dict[Any, Any] = {}
    for source in dict.fromkeys(source for node in nodes for source in node.all_input_nodes):
        if source not in members:
            inputs[source] = graph.placeholder(source.name)
            inputs[source].meta = dict(source.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda source: copies.get(source) or inputs[source])
    graph.output([copies[node] for node in outputs])
    return torch.fx.GraphModule({}, graph), inputs


def _clean(module: Any) -> None:
    """Erase nodes that can merge outputs, in the order of the delegate's passes."""
    from executorch.backends.xnnpack._passes import XNNPACKRemoveCloneOpsTransform
    from executorch.exir.dialects._ops import ops as exir_ops

    XNNPACKRemoveCloneOpsTransform()._remove(module)
    conversion = exir_ops.edge.dim_order_ops._to_dim_order_copy.default
    for node in list(module.graph.nodes):
        if node.target != conversion:
            continue
        source = node.args[0]
        before = source.args[0] if source.target == conversion and len(source.users) == 1 else source
        for same in (before, source):
            if same.meta["val"].dim_order() == node.meta["val"].dim_order():
                node.replace_all_uses_with(same)
                module.graph.erase_node(node)
                break


def circle(partitions: list[Any], graph: Any) -> set[Any]:
    """Return the nodes of partitions that, cut out of `graph`, would depend on each other in a circle.

    Empty where there is no circle; where there are several, of one of them.
    """
    owner = {node: number for number, partition in enumerate(partitions) for node in partition.nodes}
    sources: dict[Any, set[Any]] = {}
    for node in graph.nodes:
        unit = owner.get(node, node)
        sources.setdefault(unit, set()).update(owner.get(source, source) for source in node.all_input_nodes)
    try:
        TopologicalSorter({unit: of - {unit} for unit, of in sources.items()}).prepare()
    except CycleError as error:
        return {node for unit in error.args[1] if isinstance(unit, int) for node in partitions[unit].nodes}
    return set()


def downstream(left_out: set[Any], graph: Any) -> set[Any]:
    """Return the nodes that depend on a node of `left_out`."""
    reached: set[Any] = set()
    for node in graph.nodes:
        if any(source in left_out or source in reached for source in node.all_input_nodes):
            reached.add(node)
    return reached


#: How lowering fails without it.
ALIASED = {"kind": "fails", "error": "RuntimeError: Output node * is already in the inputs*"}

PATCH = Patch(
    name="output-aliases",
    issue=19152,
    summary="XNNPACK partitions leave out nodes that would make an output an alias of an input or of a second output",
    fits=FITS,
    install=_install,
    verdicts={"new": ALIASED, "failed": ALIASED},
)
