"""Outputs dropped, duplicated and reordered, at each place that lists them."""

from __future__ import annotations

from lab.mutants.mutant import Edit, Mutant

TOSA_OUTPUT = "executorch.backends.arm.process_node:process_output"
TOSA_OUTPUTS = "cast(tuple[torch.fx.Node, ...], node.args[0])"
XNNPACK_EXTERNAL = "executorch.backends.xnnpack.xnnpack_preprocess:generate_node_to_external_map"
PLAN = "executorch.exir.emit._emitter:_TopLevelEmitter.plan"

MUTANTS = (
    Mutant(
        name="tosa-last-output-dropped",
        kind="output dropped",
        does="a TOSA delegate's last output is not declared",
        cell="tosa-fp/output-order",
        verdict="corrupt",
        place="delegate_0",
        shows="outputs",
        edits=(Edit(TOSA_OUTPUT, TOSA_OUTPUTS, f"{TOSA_OUTPUTS}[:-1]"),),
    ),
    Mutant(
        name="xnnpack-third-output-dropped",
        kind="output dropped",
        does="an XNNPACK delegate's outputs beyond the second are no external values",
        cell="xnnpack-fp32/output-order",
        verdict="corrupt",
        place="delegate_0",
        shows="outputs",
        edits=(
            Edit(
                "executorch.backends.xnnpack.operators.node_visitor:NodeVisitor.gen_ids_and_flags",
                "elif is_output:",
                "elif is_output and len(xnn_graph.output_ids) < 2:",
            ),
        ),
    ),
    Mutant(
        name="program-last-output-dropped",
        kind="output dropped",
        does="emission does not list the program's last output",
        cell="xnnpack-fp32/output-order",
        verdict="corrupt",
        place="pte",
        edits=(Edit(PLAN, "outputs=self.outputs,", "outputs=self.outputs[:-1],"),),
    ),
    Mutant(
        name="tosa-first-output-twice",
        kind="output duplicated",
        does="a TOSA delegate's first output is in its second slot as well",
        cell="tosa-fp/output-order",
        verdict="corrupt",
        place="delegate_0",
        shows="outputs",
        edits=(
            Edit(TOSA_OUTPUT, TOSA_OUTPUTS, f"(node.args[0][0], *{TOSA_OUTPUTS}[:1], *{TOSA_OUTPUTS}[2:])"),
        ),
    ),
    Mutant(
        name="tosa-outputs-reversed",
        kind="outputs reordered",
        does="a TOSA delegate's outputs are declared in reverse",
        cell="tosa-fp/output-order",
        verdict="corrupt",
        place="delegate_0",
        shows="outputs",
        edits=(Edit(TOSA_OUTPUT, TOSA_OUTPUTS, f"{TOSA_OUTPUTS}[::-1]"),),
    ),
    Mutant(
        name="equal-outputs-left-one",
        kind="output duplicated",
        does="equal outputs of a TOSA delegate are not given nodes of their own (issue #18866)",
        cell="tosa-fp/equal-buffers",
        verdict="corrupt",
        place="EnsureUniqueOutputNodesPass",
        edits=(
            Edit(
                "executorch.backends.arm._passes.ensure_unique_output_nodes_pass:EnsureUniqueOutputNodesPass.call",
                "if count > 1}",
                "if count > 2}",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-outputs-reversed",
        kind="outputs reordered",
        does="XNNPACK's external outputs are numbered in reverse",
        cell="xnnpack-fp32/output-order",
        verdict="corrupt",
        place="delegate_0",
        shows="outputs",
        edits=(
            Edit(
                XNNPACK_EXTERNAL,
                "for output_node in output_nodes:",
                "for output_node in reversed(output_nodes):",
            ),
        ),
    ),
    Mutant(
        name="program-outputs-reversed",
        kind="outputs reordered",
        does="emission lists the program's outputs in reverse",
        cell="xnnpack-fp32/output-order",
        verdict="corrupt",
        place="pte",
        edits=(Edit(PLAN, "outputs=self.outputs,", "outputs=self.outputs[::-1],"),),
    ),
    Mutant(
        name="delegate-results-reversed",
        kind="outputs reordered",
        does="the program reads a delegate's results in reverse",
        cell="xnnpack-fp32/output-order",
        verdict="corrupt",
        place="lowered",
        edits=(
            Edit(
                "executorch.exir.backend.backend_api:_insert_lowered_submodule",
                "        call_submodule_node.replace_all_uses_with(call_delegate_node)\n",
                "        last = len(call_delegate_node.meta['val']) - 1\n"
                "        for user in call_submodule_node.users:\n"
                "            user.args = (call_submodule_node, last - user.args[1])\n"
                "        call_submodule_node.replace_all_uses_with(call_delegate_node)\n",
            ),
        ),
    ),
)
