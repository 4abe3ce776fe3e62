"""The values inside an XNNPACK delegate: its graph lowered again with them as outputs, and run in the runtime.

ExecuTorch's event tracer does not see them: it takes a delegate for one operator (ExecuTorch 1.3, "Using the ExecuTorch
Developer Tools for Numerical Debugging"), and XNNPACK's delegate logs how long its operators take, but no tensors.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Iterable, Mapping, Sequence

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, OutputKind, OutputSpec, TensorArgument
from torch.fx import Node

from executorch_goldens.exporting.dialect import operator_of
from executorch_goldens.exporting.inside.evaluation import DelegateTensor, Opened, Values, following_inputs
from executorch_goldens.exporting.numerics import programs as numerics

#: Tag of the one partition.
TAG = "tag0"
#: Key of the metadata of a quantize or dequantize that belongs to an operator.
IMPLICIT = "IS_IMPLICIT_Q_DQ_TAG"
STATIC_QUANTIZE = torch.ops.quantized_decomposed.quantize_per_tensor.default
STATIC_DEQUANTIZE = torch.ops.quantized_decomposed.dequantize_per_tensor.default


def run_delegate(lowered: LoweredBackendModule, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a delegate alone, lowered again from its graph.

    Raises
    ------
    RuntimeError
        If that gives another payload.
    """
    program = lowered.original_module
    return _run(_lowered_again(lowered, program, lowered.processed_bytes), program, inputs)


def values(
    lowered: LoweredBackendModule, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> Values:
    """Return the values inside `lowered`.

    All are made outputs at once. Where that is not lowered, or computes something else, for instance because operators
    are no longer fused, those are that leave operators as they are.
    """
    seen = visible(lowered.original_module)
    if not seen:
        return {}
    given: Sequence[torch.Tensor] = ()
    held: Values = {}
    # Passes that look at the users of a node meet the outputs there, which no partitioner would have made.
    with contextlib.suppress(Exception):
        given, held = _opened(lowered, seen)(inputs)
    if not _alike(given, outputs):
        given, held = opened(lowered)(inputs)
    return held if _alike(given, outputs) else {}


def _alike(given: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    return bool(given) and all(torch.equal(one, other) for one, other in zip(given, outputs, strict=True))


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
    return _opened(
        lowered, {name: node for name, node in visible(program).items() if not _is_fused(nodes[name])}
    )


def _opened(lowered: LoweredBackendModule, seen: Mapping[str, Node]) -> Opened:
    program = lowered.original_module
    changed = with_outputs(program, seen.values()) if seen else program
    pte = _lowered_again(lowered, changed, None if seen else lowered.processed_bytes)
    own = len(program.graph.output_node().args[0])

    def run(inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Values]:
        everything = _run(pte, program, inputs)
        found = _of_nodes(program, dict(zip(seen, everything[own:], strict=True)))
        return everything[:own], {name: [DelegateTensor("", value)] for name, value in found.items()}

    return run


def _is_fused(node: Node) -> bool:
    """Return whether XNNPACK may fuse the user of `node` with it."""
    return len(node.users) == 1 and _named(next(iter(node.users))) in FUSED


def _named(node: Node) -> str:
    target = operator_of(node.target)
    return str(getattr(getattr(target, "overloadpacket", target), "__name__", target))


def _of_nodes(program: ExportedProgram, shown: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the values of nodes; a quantize is represented by its dequantized codes."""
    nodes = {node.name: node for node in program.graph.nodes}
    return {
        name: operator(value, *nodes[name].args[1:])
        if (operator := operator_of(nodes[name].target)) is STATIC_QUANTIZE
        else value
        for name, value in shown.items()
    }


def visible(program: ExportedProgram) -> dict[str, Node]:
    """Return the nodes that can be made outputs, by the name of the node whose value they show.

    A value that is quantized with fixed parameters is none: XNNPACK has only its codes. A dequantize shows them. Nor is
    one that is made of codes and whose activation is quantized in its place, nor are parameters that it computes.
    """
    outputs = set(program.graph.output_node().all_input_nodes)
    found: dict[str, Node] = {}
    follows = following_inputs(program)
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


def with_outputs(program: ExportedProgram, wanted: Iterable[Node]) -> ExportedProgram:
    """Return a program that gives the values of the nodes `wanted` after its own outputs."""
    changed = copy.deepcopy(program)
    graph, signature = changed.graph_module.graph, changed.graph_signature
    nodes = {node.name: node for node in graph.nodes}
    output = graph.output_node()
    given = list(output.args[0])
    specs = list(signature.output_specs)
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
    return changed._update(changed.graph_module, ExportGraphSignature(list(signature.input_specs), specs))


def _lowered_again(
    lowered: LoweredBackendModule, program: ExportedProgram, payload: bytes | None = None
) -> bytes:
    """Return a ``.pte`` of `program` as one delegate with the settings of `lowered`.

    Parameters
    ----------
    payload
        The graph that it must be lowered to.
    """
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
    given = [
        numerics.laid_out(tensor.detach(), taken[str(name)].meta["val"].dim_order())
        for name, tensor in zip(names, inputs, strict=True)
    ]
    return numerics.run_methods(pte, [("forward", given)])


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
