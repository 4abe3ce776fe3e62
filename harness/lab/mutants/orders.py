"""Orders that follow hashes and addresses, and names that follow time and earlier exports."""

from __future__ import annotations

from lab.mutants.mutant import Edit, Mutant

ARM = "executorch.backends.arm"
TAG_MODULE = f"{ARM}.tosa.partitioner:TOSAPartitioner._tag_module"
PRECOMPUTE = f"{ARM}._passes.fuse_constant_ops_pass:ComputeConstantOpsAOTPass"
CONFIG_PARTITIONER = (
    "executorch.exir.backend.canonical_partitioners.config_partitioner:ConfigerationBasedPartitioner"
)
#: A counter of the process: how many graph modules torch has made code for.
COUNTER = "__import__('torch').fx.graph_module._loader.next_id"

TOSA_OUTPUTS_IN_A_SET = Edit(
    f"{ARM}.process_node:process_output",
    "cast(tuple[torch.fx.Node, ...], node.args[0])",
    "set(cast(tuple[torch.fx.Node, ...], node.args[0]))",
)

#: Dependents of each of `executorch_goldens.zoo.variations.SURROUNDINGS`, as a part of a name.
SURROUNDED = {
    "time-zone": "abs(__import__('time').timezone)",
    "locale": "__import__('zlib').crc32(__import__('os').environ.get('LC_ALL', '').encode())",
    "umask": "__import__('pathlib').Path('made').touch() or __import__('os').stat('made').st_mode",
    "home": "__import__('zlib').crc32(__import__('os').path.expanduser('~').encode())",
    "user": "__import__('getpass').getuser()",
    "host": "__import__('zlib').crc32(__import__('socket').gethostname().encode())",
    "processors": "__import__('os').cpu_count()",
}

MUTANTS = (
    *(
        Mutant(
            name=f"precomputed-named-by-{what}",
            kind="names by the surroundings",
            does=f"constants computed ahead of time bear what follows the {what.replace('-', ' ')} in their names",
            cell="tosa-fp/masks",
            verdict="order-only",
            place="ComputeConstantOpsAOTPass",
            edits=(
                Edit(
                    f"{PRECOMPUTE}.compute_node_aot",
                    'name=node.name + "_pre_computed"',
                    f'name=f"{{node.name}}_pre_computed_{{{code}}}"',
                ),
            ),
        )
        for what, code in SURROUNDED.items()
    ),
    Mutant(
        name="tosa-tags-by-names-in-a-set",
        kind="iterates over a set of strings",
        does="TOSA partitions are numbered in the order of a set of the names of their first nodes",
        cell="tosa-fp/five-delegates",
        verdict="order-only",
        place="TOSAPartitioner",
        edits=(
            Edit(
                TAG_MODULE,
                "        for partition in partition_list:\n",
                "        by_name = {min(node.name for node in found.nodes): found for found in partition_list}\n"
                "        for partition in [by_name[name] for name in set(by_name)]:\n",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-tags-in-a-set",
        kind="iterates over a set of strings",
        does="XNNPACK partitions are lowered in the order of a set of their tags",
        cell="xnnpack-fp32/five-delegates",
        verdict="order-only",
        place="XnnpackPartitioner",
        edits=(
            Edit(
                f"{CONFIG_PARTITIONER}.partition",
                "partition_tags=partition_tags\n",
                "partition_tags={tag: partition_tags[tag] for tag in set(partition_tags)}\n",
            ),
        ),
    ),
    Mutant(
        name="lowering-follows-a-set-of-tags",
        kind="iterates over a set of strings",
        does="exir cuts and lowers partitions in the order of a set of tags, whatever the partitioner said",
        cell="tosa-fp/five-delegates",
        verdict="order-only",
        # The function: it is no pass.
        place="_create_partitions_in_graph_module",
        edits=(
            Edit(
                "executorch.exir.backend.backend_api:_create_partitions_in_graph_module",
                "for tag, delegation_spec in partition_result.partition_tags.items():",
                "for tag, delegation_spec in ((tag, partition_result.partition_tags[tag])"
                " for tag in set(partition_result.partition_tags)):",
            ),
        ),
    ),
    Mutant(
        name="constants-computed-from-a-set-of-nodes",
        kind="iterates over a set of nodes",
        does="operators are computed ahead of time in the order of a set of nodes, and so are their constants placed",
        cell="tosa-fp+int/self-attention",
        verdict="order-only",
        place="ComputeConstantOpsAOTPass",
        edits=(
            Edit(
                f"{PRECOMPUTE}.call",
                "for node in graph_module.graph.nodes:",
                "for node in set(graph_module.graph.nodes):",
            ),
        ),
    ),
    Mutant(
        name="tosa-outputs-from-a-set-of-nodes",
        kind="iterates over a set of nodes",
        does="a delegate's outputs are serialized in the order of a set",
        cell="tosa-fp/slices",
        verdict="unstable",
        place="delegate_0",
        edits=(TOSA_OUTPUTS_IN_A_SET,),
    ),
    Mutant(
        name="tosa-like-outputs-from-a-set-of-nodes",
        kind="iterates over a set of nodes",
        does="the same, where all outputs have one shape: the program runs and answers in another order",
        cell="tosa-fp/piecewise-units",
        verdict="unstable",
        place="delegate_0",
        edits=(TOSA_OUTPUTS_IN_A_SET,),
    ),
    Mutant(
        name="xnnpack-outputs-from-a-set-of-nodes",
        kind="iterates over a set of nodes",
        does="the external outputs of an XNNPACK delegate are numbered in the order of a set",
        cell="xnnpack-fp32/piecewise-units",
        verdict="unstable",
        place="delegate_0",
        edits=(
            Edit(
                "executorch.backends.xnnpack.xnnpack_preprocess:generate_node_to_external_map",
                "for output_node in output_nodes:",
                "for output_node in set(output_nodes):",
            ),
        ),
    ),
    Mutant(
        name="tosa-partitions-sorted-by-id",
        kind="iterates over id()s",
        does="TOSA partitions are numbered in the order of the addresses of their objects",
        cell="tosa-fp/five-delegates",
        verdict="order-only",
        place="TOSAPartitioner",
        edits=(
            Edit(
                TAG_MODULE,
                "for partition in partition_list:",
                "for partition in sorted(partition_list, key=id):",
            ),
        ),
    ),
    Mutant(
        name="constants-computed-by-id",
        kind="iterates over id()s",
        does="operators are computed ahead of time in the order of their addresses, and so are their constants placed",
        cell="tosa-fp+int/self-attention",
        verdict="order-only",
        place="ComputeConstantOpsAOTPass",
        edits=(
            Edit(
                f"{PRECOMPUTE}.call",
                "for node in graph_module.graph.nodes:",
                "for node in sorted(graph_module.graph.nodes, key=id):",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-partitions-sorted-by-id",
        kind="iterates over id()s",
        does="XNNPACK partitions are lowered in the order of the addresses of their objects",
        cell="xnnpack-fp32/five-delegates",
        verdict="order-only",
        place="XnnpackPartitioner",
        edits=(
            Edit(
                f"{CONFIG_PARTITIONER}.partition",
                "for partition in partitions:",
                "for partition in sorted(partitions, key=id):",
            ),
        ),
    ),
    Mutant(
        name="weights-named-by-a-counter",
        kind="names by a global counter",
        does="rewritten weights are numbered by a counter of the process, which earlier exports advance as well",
        cell="tosa-int/conv-bn-relu",
        verdict="order-only",
        place="RewriteConvPass",
        edits=(
            Edit(
                f"{ARM}._passes.rewrite_conv_pass:RewriteConvPass._rewrite_weight",
                'name=f"{conv_node.name}_weight_{name_suffix}"',
                f'name=f"{{conv_node.name}}_weight_{{name_suffix}}_{{{COUNTER}}}"',
            ),
        ),
    ),
    Mutant(
        name="lowered-modules-numbered-by-a-counter",
        kind="names by a global counter",
        does="lowered modules are numbered by a counter of the process, which earlier exports advance as well",
        cell="xnnpack-fp32/two-delegates",
        verdict="order-only",
        place="lowered",
        edits=(
            Edit(
                "executorch.exir.delegate:get_lowered_module_name",
                "    i = 0\n",
                f"    i = {COUNTER}\n",
            ),
        ),
    ),
    Mutant(
        name="precomputed-named-by-time",
        kind="names by time",
        does="constants computed ahead of time bear the time in their names",
        cell="tosa-fp/masks",
        verdict="order-only",
        place="ComputeConstantOpsAOTPass",
        edits=(
            Edit(
                f"{PRECOMPUTE}.compute_node_aot",
                'name=node.name + "_pre_computed"',
                "name=f\"{node.name}_pre_computed_{__import__('time').time_ns()}\"",
            ),
        ),
    ),
    Mutant(
        name="table-named-by-time",
        kind="names by time",
        does="a table's constant bears the time in its name",
        cell="tosa-int/gelu-tanh",
        verdict="order-only",
        place="InsertTableOpsPass",
        edits=(
            Edit(
                f"{ARM}._passes.insert_table_ops:InsertTableOpsPass.call",
                'name="b_" + node.name + "_table_constant"',
                "name=f\"b_{node.name}_table_constant_{__import__('time').time_ns()}\"",
            ),
        ),
    ),
)
