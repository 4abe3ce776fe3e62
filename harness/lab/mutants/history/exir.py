"""Fixes of exir and of the transforms that backends share."""

from __future__ import annotations

from lab.mutants.history.fix import CRASH, WRONG, Fix
from lab.mutants.mutant import Edit

EXIR = "executorch.exir"
TRANSFORMS = "executorch.backends.transforms"
PROGRAM = f"{EXIR}.program._program"
PLACEHOLDER = f"{EXIR}.emit._emitter:_TopLevelEmitter.placeholder"
GROUPS = (
    f"{EXIR}.backend.canonical_partitioners.group_partitioner:GroupBasedPartitioner._can_merge_partitions"
)

FIXES = (
    Fix(
        name="16636-layout-of-emitted-constants",
        number=16636,
        release="1.3.1",
        kind=WRONG,
        broke="a channels-last constant is emitted contiguous, and said to be channels-last",
        edits=(
            Edit(PLACEHOLDER, "or real_tensor.is_contiguous(memory_format=torch.channels_last)", ""),
            Edit(
                PLACEHOLDER,
                "spec.stride = real_tensor.stride()\n"
                "                spec.dim_order = dim_order_from_stride(spec.stride)",
                "",
            ),
        ),
    ),
    Fix(
        name="16637-scalars-in-edge-form",
        number=16637,
        release="1.3.1",
        kind=CRASH,
        broke="a scalar becomes an operator of the edge dialect in a graph that is not in it yet",
        edits=(
            Edit(
                f"{TRANSFORMS}.replace_scalar_with_tensor:ReplaceScalarWithTensorArgPass.get_replacement",
                "if isinstance(op, OpOverload):",
                "if False:",
            ),
        ),
        unseen="a quantized model is exported again, which makes it torch's operator",
    ),
    Fix(
        name="16681-constants-of-other-layouts",
        number=16681,
        release="1.3.1",
        kind=CRASH,
        broke="constants that are neither contiguous nor channels-last keep their layout",
        edits=(
            Edit(
                f"{EXIR}.passes.convert_constant_dim_order_pass:_should_transform",
                "return not tensor.is_contiguous() and not",
                "return False and not",
            ),
        ),
    ),
    Fix(
        name="17404-preserved-operators-forgotten",
        number=17404,
        release="1.3.1",
        kind=CRASH,
        broke="operators that a partitioner preserves are refused when the program is transformed afterwards",
        edits=(
            Edit(
                f"{PROGRAM}:_gen_edge_manager_for_partitioners",
                "set(config._core_aten_ops_exception_list) | set(all_ops_not_to_decompose)",
                "config._core_aten_ops_exception_list",
            ),
        ),
        unreachable="the harness lowers without the check of the dialect that refused them",
    ),
    Fix(
        name="17611-clones-made-contiguous",
        number=17611,
        release="1.3.1",
        kind=WRONG,
        broke="a clone of a channels-last tensor is said to be contiguous",
        edits=(
            Edit(
                f"{EXIR}.passes.memory_format_ops_pass:MemoryFormatOpsPass.call_operator",
                'nkwargs.pop("memory_format", torch.preserve_format)',
                'nkwargs.pop("memory_format", torch.contiguous_format)',
            ),
        ),
    ),
    Fix(
        name="17678-slices-of-unknown-size",
        number=17678,
        release="1.3.1",
        kind=CRASH,
        broke="whether a slice is a no-op is asked of a result of unknown size",
        edits=(
            Edit(
                f"{EXIR}.passes.remove_noop_pass:RemoveNoopPass.call",
                " and all(\n"
                "                    isinstance(dim, int) for dim in output_tensor.size()\n"
                "                )",
                "",
            ),
        ),
    ),
    Fix(
        name="17680-constants-passed-by-name",
        number=17680,
        release="1.3.1",
        kind=CRASH,
        broke="a shared constant is not copied for a user that has arguments by name",
        edits=(
            Edit(
                f"{EXIR}.backend.canonical_partitioners.duplicate_constant_node_pass:duplicate_constant_node",
                "users[ith].kwargs.items()",
                "users[ith].kwargs",
            ),
        ),
    ),
    Fix(
        name="17750-mutations-behind-outputs",
        number=17750,
        release="1.3.1",
        kind=CRASH,
        broke="a delegate's outputs and mutations of state are in the order of the graph",
        edits=(
            Edit(
                f"{EXIR}.lowered_backend_module:create_exported_program_from_submodule",
                "arrange_graph_outputs(submodule, subgraph_signature.output_specs, call_module_node)",
                "pass",
            ),
        ),
    ),
    Fix(
        name="18031-placeholders-of-one-name",
        number=18031,
        release="1.3.1",
        kind=CRASH,
        broke="a constant that two rewrites ask for by one name gets two placeholders of it",
        edits=(
            Edit(
                f"{TRANSFORMS}.utils:create_constant_placeholder",
                "if name in exp_program.state_dict or name in exp_program.constants:",
                "if False:",
            ),
        ),
    ),
    Fix(
        name="18397-cycles-of-groups",
        number=18397,
        release="1.3.1",
        kind=CRASH,
        broke="two groups are merged although a node between them reads one and feeds the other",
        edits=(
            Edit(GROUPS, "for node in combined_nodes:", "for node in p2_nodes:"),
            Edit(GROUPS, "if not validate_partition(list(combined_nodes)):", "if False:"),
        ),
    ),
    Fix(
        name="18700-views-preserved",
        number=18700,
        release="1.3.1",
        kind=CRASH,
        broke="operators that return a list of views may be preserved",
        edits=(
            Edit(
                f"{PROGRAM}:_remove_invalid_ops_for_not_decompose",
                "if ret.alias_info is not None:",
                "if False:",
            ),
        ),
        unreachable="neither partitioner asks to preserve an operator that returns views",
    ),
    Fix(
        name="21542-placeholders-renamed",
        number=21542,
        release="1.5.1",
        kind=CRASH,
        broke="a placeholder whose name torch changes is looked for by the old name",
        edits=(
            Edit(
                f"{TRANSFORMS}.utils:create_constant_placeholder",
                "node_names.index(node.name)",
                "node_names.index(name)",
            ),
        ),
    ),
    Fix(
        name="21590-results-taken-twice",
        number=21590,
        release="1.5.1",
        kind=CRASH,
        broke="nodes that take the same result of an operator are not merged",
        edits=(
            Edit(
                f"{EXIR}.pass_manager:_can_eliminate_common_getitems",
                "    return True\n",
                "    return False\n",
            ),
        ),
        unseen="equal operators and their users are merged before (FuseDuplicateUsersPass)",
    ),
    Fix(
        name="21620-squeezes-reached-from-below",
        number=21620,
        release="1.5.1",
        kind=CRASH,
        broke="a permute is moved past a squeeze of another number of dimensions",
        edits=(
            Edit(
                f"{TRANSFORMS}.remove_permutes_around_elementwise_ops:"
                "RemovePermutesAroundElementwiseOps._adapt_permute_across_view",
                "if len(permute) != len(in_shape):",
                "if False:",
            ),
            Edit(
                f"{TRANSFORMS}.remove_permutes_around_elementwise_ops:RemovePermutesAroundElementwiseOps.visit",
                "if not self._is_squeeze_unsqueeze_view(node):",
                "if False:",
            ),
        ),
        unseen="checks beside it refuse a view of another rank as well (#19713, #21605), "
        "and operands are brought to one rank before (MatchArgRanksPass)",
    ),
    Fix(
        name="21897-allocations-folded",
        number=21897,
        release="1.5.1",
        kind=CRASH,
        broke="allocations are folded as constants",
        edits=(
            Edit(
                f"{EXIR}.passes.constant_prop_pass:get_propagated_const_tensor_dict",
                "or node.target is memory.alloc",
                "",
            ),
        ),
        unreachable="no lowering here runs the pass of exir that folds constants",
    ),
)
