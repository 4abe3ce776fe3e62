"""Mutants of partitioning: delegation, sharing, and state that one partition's lowering leaves for the next."""

from __future__ import annotations

from lab.mutants.mutant import Edit, Mutant

ARM = "executorch.backends.arm"
XNNPACK = "executorch.backends.xnnpack"

MUTANTS = (
    Mutant(
        name="tosa-last-partition-dropped",
        kind="delegate silently not lowered",
        does="the last TOSA partition is not proposed",
        cell="tosa-fp/two-delegates",
        verdict="changed",
        place="TOSAPartitioner",
        edits=(
            Edit(
                f"{ARM}.tosa.partitioner:TOSAPartitioner._tag_module",
                "partition_list = capability_partitioner.propose_partitions()",
                "partition_list = capability_partitioner.propose_partitions()[:-1]",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-first-partition-dropped",
        kind="delegate silently not lowered",
        does="XNNPACK's first partition is not proposed",
        cell="xnnpack-fp32/two-delegates",
        verdict="changed",
        place="XnnpackPartitioner",
        edits=(
            Edit(
                "executorch.exir.backend.canonical_partitioners.config_partitioner:"
                "ConfigerationBasedPartitioner.generate_partitions",
                "return partitions",
                "return partitions[1:]",
            ),
        ),
    ),
    Mutant(
        name="lowering-skips-a-partition",
        kind="delegate silently not lowered",
        does="exir lowers all partitions but the last",
        cell="xnnpack-fp32/two-delegates",
        verdict="changed",
        # The function: it is no pass.
        place="_create_partitions_in_graph_module",
        edits=(
            Edit(
                "executorch.exir.backend.backend_api:_create_partitions_in_graph_module",
                "in partition_result.partition_tags.items():",
                "in list(partition_result.partition_tags.items())[:-1]:",
            ),
        ),
    ),
    Mutant(
        name="equal-values-merged-across-dtypes",
        kind="constant deduplicated across dtypes",
        does="constants of equal values are merged whatever their dtype",
        cell="tosa-fp/equal-values-two-dtypes",
        verdict="corrupt",
        place="FuseEqualPlaceholdersPass",
        edits=(
            Edit(
                f"{ARM}._passes.fuse_equal_placeholders_pass:FuseEqualPlaceholdersPass._get_param_key",
                "            str(tensor.dtype),\n",
                "",
            ),
            Edit(
                f"{ARM}._passes.fuse_equal_placeholders_pass:FuseEqualPlaceholdersPass._get_param_key",
                "tensor.cpu().contiguous()",
                "tensor.cpu().double().contiguous()",
            ),
        ),
    ),
    Mutant(
        name="shared-weight-written-by-its-fold",
        kind="buffer mutated in place across exports",
        does="folding a constant writes to it: the next operator that folds it sees another",
        cell="tosa-fp/shared-weights",
        verdict="corrupt",
        place="FuseConstantArgsPass",
        edits=(
            Edit(
                f"{ARM}._passes.fuse_constant_ops_pass:FuseConstantArgsPass._fuse_nodes",
                "data = node.target(*new_args, **new_kwargs)",
                "data = node.target(*new_args, **new_kwargs).clone()\n"
                "        for argument in new_args:\n"
                "            if isinstance(argument, torch.Tensor):\n"
                "                argument.data.neg_()",
            ),
        ),
    ),
    Mutant(
        name="model-written-by-its-lowering",
        kind="buffer mutated in place across exports",
        does="lowering writes to the weights of the model that it was given: a second export would start from others",
        cell="xnnpack-fp32/linear",
        verdict="corrupt",
        place="lowered",
        edits=(
            Edit(
                "executorch.exir.backend.backend_api:lower_all_submodules_to_backend",
                '            submodule_program = call_submodule_node.meta["submodule_program"]\n',
                '            submodule_program = call_submodule_node.meta["submodule_program"]\n'
                "            for parameter in submodule_program.state_dict.values():\n"
                "                parameter.data.neg_()\n",
            ),
        ),
    ),
)
