"""The values inside an XNNPACK delegate: its graph lowered again with them as outputs, and run in the runtime.

ExecuTorch's event tracer does not see them: it takes a delegate for one operator (ExecuTorch 1.3, "Using the ExecuTorch
Developer Tools for Numerical Debugging"), and XNNPACK's delegate logs how long its operators take, but no tensors.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Node
from torch.utils import _pytree as pytree

from executorch_goldens.exporting.dialect import operator_of
from executorch_goldens.exporting.inside.held import Departs, Held, Opened, Values
from executorch_goldens.exporting.numerics import programs as numerics

#: Of the one partition.
TAG = "tag0"
#: Key of the metadata of a quantize or dequantize that belongs to an operator.
IMPLICIT = "IS_IMPLICIT_Q_DQ_TAG"
STATIC_QUANTIZE = torch.ops.quantized_decomposed.quantize_per_tensor.default
STATIC_DEQUANTIZE = torch.ops.quantized_decomposed.dequantize_per_tensor.default


def run(lowered: LoweredBackendModule, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a delegate alone, lowered again from its graph.

    Raises
    ------
    RuntimeError
        If that gives another payload.
    """
    return run_again(lowered, lowered.original_module, inputs, lowered.processed_bytes)


def values(
    lowered: LoweredBackendModule,
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    departs: Departs,
) -> Values:
    """Return the values inside `lowered`.

    All are made outputs at once. Where that is not lowered, or computes something else, for instance because operators
    are no longer fused, shorter and shorter programs show around which operator the departure begins, and only the
    values there are returned.
    """
    program = lowered.original_module
    seen = visible(program)
    if not seen:
        return {}
    try:
        everything = run_again(lowered, with_outputs(program, seen.values(), keep=True), inputs)
    except Exception:
        # Passes that look at the users of a node meet the outputs there, which no partitioner would have made.
        everything = []
    given = everything[: len(outputs)]
    if given and all(torch.equal(one, other) for one, other in zip(given, outputs, strict=True)):
        found = _of_nodes(program, dict(zip(seen, everything[len(outputs) :], strict=True)))
    else:
        found = _around_the_first(lowered, seen, inputs, departs)
    return {name: [Held("", value)] for name, value in found.items()}


#: Operators that XNNPACK computes together with the one before them, unless that one's value is an output.
FUSED = frozenset(
    {
        *("relu", "hardtanh", "clamp", "_native_batch_norm_legit_no_training", "permute_copy", "t_copy"),
        *("view_copy", "unsqueeze_copy", "squeeze_copy", "getitem"),
    }
)


def opened(lowered: LoweredBackendModule) -> Opened:
    """Lower a delegate with values inside as outputs, where they leave its operators as they are, and make it ready."""
    program = lowered.original_module
    nodes = {node.name: node for node in program.graph.nodes}
    seen = {name: node for name, node in visible(program).items() if not _is_fused(nodes[name])}
    changed = with_outputs(program, seen.values(), keep=True) if seen else program
    pte = _lowered_again(lowered, changed, None if seen else lowered.processed_bytes)
    own = len(program.graph.output_node().args[0])

    def run(inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Values]:
        everything = _run(pte, program, inputs)
        found = _of_nodes(program, dict(zip(seen, everything[own:], strict=True)))
        return everything[:own], {name: [Held("", value)] for name, value in found.items()}

    return run


def _is_fused(node: Node) -> bool:
    """Return whether XNNPACK may fuse the user of `node` with it."""
    return len(node.users) == 1 and _named(next(iter(node.users))) in FUSED


def _named(node: Node) -> str:
    target = operator_of(node.target)
    return str(getattr(getattr(target, "overloadpacket", target), "__name__", target))


def _around_the_first(
    lowered: LoweredBackendModule,
    seen: Mapping[str, Node],
    inputs: Sequence[torch.Tensor],
    departs: Departs,
) -> dict[str, torch.Tensor]:
    """Return the first visible value that departs in a program that ends there, with those that it is made from.

    Programs end after the values that are alive at one place. Where nothing departs at some place, and something does
    at the next, the operator between them begins a departure: the first, unless an earlier one vanished on the way.
    """
    programs = _Shorter(lowered, seen, inputs)

    def departs_at(place: int) -> bool:
        return any(departs(name, value) for name, value in programs.values(programs.alive(place)).items())

    right, wrong = -1, len(programs.names)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if departs_at(middle):
            wrong = middle
        else:
            right = middle
    if wrong == len(programs.names):
        return programs.values(programs.end)
    name = programs.names[wrong]
    return programs.values([*programs.before[name], name])


class _Shorter:
    """Programs that end within the graph of a delegate.

    Attributes
    ----------
    names
        Of the visible values, in the order in which they are computed: their places.
    before
        Per visible value, those that it is made from.
    end
        Those that the outputs are made from.
    """

    def __init__(
        self, lowered: LoweredBackendModule, seen: Mapping[str, Node], inputs: Sequence[torch.Tensor]
    ) -> None:
        self.lowered = lowered
        self.seen = seen
        self.inputs = inputs
        graph = lowered.original_module.graph
        nodes = {node.name: node for node in graph.nodes}
        self.names = list(seen)
        self.before = {name: _nearest(nodes[name].all_input_nodes, seen) for name in seen}
        self.end = _nearest(graph.output_node().all_input_nodes, seen)

    def alive(self, place: int) -> list[str]:
        """Return the value at a place, and those up to it that something after it is made from."""
        used = set(self.end).union(*(self.before[name] for name in self.names[place + 1 :]))
        return [name for name in self.names[: place + 1] if name in used or name == self.names[place]]

    def values(self, chosen: Iterable[str]) -> dict[str, torch.Tensor]:
        """Return visible values, from a program that ends with them."""
        wanted = {name: self.seen[name] for name in chosen}
        cut = with_outputs(self.lowered.original_module, wanted.values(), keep=False)
        return _of_nodes(cut, dict(zip(wanted, run_again(self.lowered, cut, self.inputs), strict=True)))


def _of_nodes(program: ExportedProgram, shown: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the values of nodes; a quantize is represented by its dequantized codes."""
    nodes = {node.name: node for node in program.graph.nodes}
    return {
        name: operator(value, *nodes[name].args[1:])
        if (operator := operator_of(nodes[name].target)) is STATIC_QUANTIZE
        else value
        for name, value in shown.items()
    }


def _nearest(nodes: Iterable[Node], visible: Mapping[str, Any]) -> list[str]:
    """Return the names of the visible nodes that `nodes` are, or are made from without another one between."""
    found: dict[str, None] = {}
    waiting, seen = list(nodes), set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name in visible:
            found[node.name] = None
        else:
            waiting += node.all_input_nodes
    return list(found)


def visible(program: ExportedProgram) -> dict[str, Node]:
    """Return the nodes that can be made outputs, by the name of the node whose value they show.

    A value that is quantized with fixed parameters is none: XNNPACK has only its codes. A dequantize shows them. Nor is
    one that is made of codes and whose activation is quantized in its place, nor are parameters that it computes.
    """
    outputs = set(program.graph.output_node().all_input_nodes)
    found: dict[str, Node] = {}
    follows = _following_inputs(program)
    for node in program.graph.nodes:
        if node.op == "call_function" and node in follows and (shown := _shown(node, outputs, follows)):
            found[node.name] = shown
    return found


def _shown(node: Node, outputs: Collection[Node], follows: Collection[Node]) -> Node | None:
    """Return the node that can be made an output to show the value of `node`; None if there is none."""
    if operator_of(node.target) is STATIC_QUANTIZE:
        shown = [user for user in node.users if operator_of(user.target) is STATIC_DEQUANTIZE]
        return shown[0] if shown and not any(each in outputs for each in shown) else None
    is_visible = node not in outputs and _holds_value(node) and not _works_on_codes(node, follows)
    return node if is_visible else None


def _following_inputs(program: ExportedProgram) -> set[Node]:
    """Return the inputs of a program, and the nodes that are computed from them."""
    given = set(program.graph_signature.user_inputs)
    follows: set[Node] = set()
    for node in program.graph.nodes:
        is_given = node.op == "placeholder" and node.name in given
        if is_given or (node.op == "call_function" and not follows.isdisjoint(node.all_input_nodes)):
            follows.add(node)
    return follows


def _holds_value(node: Node) -> bool:
    """Return whether XNNPACK has the value of `node` in a tensor that may be an output."""
    value = node.meta.get("val")
    return (
        isinstance(value, torch.Tensor)
        # The runtime of 1.1.0 ends the process over an output without dimensions.
        and value.dim() > 0
        and operator_of(node.target) not in numerics.QUANTIZE | numerics.DEQUANTIZE
        and not _is_parameter(node)
    )


def _works_on_codes(node: Node, follows: Collection[Node]) -> bool:
    """Return whether XNNPACK has only codes of the value of `node`, or takes codes for it."""
    return any(operator_of(user.target) is STATIC_QUANTIZE for user in node.users) or any(
        each in follows and _belongs_to_operator(each) for each in node.all_input_nodes
    )


def _belongs_to_operator(node: Node) -> bool:
    """Return whether `node` is a dequantize of an operator that works on codes."""
    return operator_of(node.target) is STATIC_DEQUANTIZE and bool(node.meta.get(IMPLICIT))


def _is_parameter(node: Node) -> bool:
    """Return whether `node` is only a scale or a zero point, which XNNPACK does not expose."""
    quantizing = numerics.QUANTIZE | numerics.DEQUANTIZE
    return bool(node.users) and all(
        operator_of(user.target) in quantizing and node is not user.args[0] for user in node.users
    )


def with_outputs(program: ExportedProgram, wanted: Iterable[Node], keep: bool) -> ExportedProgram:
    """Return a program that gives the values of the nodes `wanted`.

    Parameters
    ----------
    keep
        Whether it gives its own outputs before them, or ends with what `wanted` needs.
    """
    changed = copy.deepcopy(program)
    graph, signature = changed.graph_module.graph, changed.graph_signature
    nodes = {node.name: node for node in graph.nodes}
    output = graph.output_node()
    given = list(output.args[0]) if keep else []
    specs = list(signature.output_specs) if keep else []
    with graph.inserting_before(output):
        for node in wanted:
            shown = nodes[node.name]
            if operator_of(shown.target) in numerics.DEQUANTIZE:
                # One of its own: those that belong to an operator have no value.
                shown = graph.call_function(shown.target, shown.args, shown.kwargs)
                shown.meta = {key: value for key, value in node.meta.items() if key != IMPLICIT}
            given.append(shown)
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(shown.name), None))
    output.args = (tuple(given),)
    graph.eliminate_dead_code()
    inputs = tuple(spec.arg for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT)
    call = ModuleCallSignature(
        inputs=[],
        outputs=[],
        in_spec=pytree.tree_flatten((inputs, {}))[1],
        out_spec=pytree.tree_flatten(tuple(given))[1],
    )
    return ExportedProgram(
        root=changed.graph_module,
        graph=graph,
        graph_signature=ExportGraphSignature(list(signature.input_specs), specs),
        state_dict=changed.state_dict,
        range_constraints=changed.range_constraints,
        module_call_graph=[ModuleCallEntry(fqn="", signature=call)],
        constants=changed.constants,
        verifiers=[changed.verifier],
    )


def run_again(
    lowered: LoweredBackendModule,
    program: ExportedProgram,
    inputs: Sequence[torch.Tensor],
    payload: bytes | None = None,
) -> list[torch.Tensor]:
    """Lower `program` as one delegate with the settings of `lowered`, and run it in ExecuTorch's runtime.

    Parameters
    ----------
    payload
        The graph that it must be lowered to.
    """
    return _run(_lowered_again(lowered, program, payload), program, inputs)


def _lowered_again(
    lowered: LoweredBackendModule, program: ExportedProgram, payload: bytes | None = None
) -> bytes:
    """Return a ``.pte`` of `program` as one delegate with the settings of `lowered`; see `run_again`."""
    manager = EdgeProgramManager(program, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    again = manager.to_backend(_Whole(lowered))
    module = again.exported_program().graph_module
    made = [child for _, child in module.named_children() if isinstance(child, LoweredBackendModule)]
    if payload is not None and [bytes(each.processed_bytes) for each in made] != [bytes(payload)]:
        raise RuntimeError("lowering the delegate again gives a different payload")
    return bytes(again.to_executorch().buffer)


def _run(pte: bytes, program: ExportedProgram, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a ``.pte`` that `program` was lowered to, on inputs that lie in memory as it takes them."""
    taken = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = program.graph_signature.user_inputs
    return numerics.run_forward(
        pte,
        [[_laid_out(tensor.detach(), taken[str(name)]) for name, tensor in zip(names, inputs, strict=True)]],
    )


def _laid_out(tensor: torch.Tensor, node: Node) -> torch.Tensor:
    """Return `tensor` with its dimensions in memory in the order of a node's: the runtime does not look."""
    order = node.meta["val"].dim_order()
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(back)


class _Whole(Partitioner):
    """Makes one partition of a whole program, with the settings of a delegate."""

    def __init__(self, lowered: LoweredBackendModule) -> None:
        super().__init__()
        self.settings = DelegationSpec(lowered.backend_id, lowered.compile_specs)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        for node in exported_program.graph.nodes:
            node.meta.pop("delegation_tag", None)
            if node.op == "call_function":
                node.meta["delegation_tag"] = TAG
        tag_constant_data(exported_program)
        return PartitionResult(tagged_exported_program=exported_program, partition_tags={TAG: self.settings})
