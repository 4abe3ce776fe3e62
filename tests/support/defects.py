"""Deliberate defects of the default release, each with the verdict and the pass that it must get.

As a zoo it registers them for exporting processes: ``--models models --models tests.support.defects --patches NAME``.
"""

from __future__ import annotations

from dataclasses import dataclass

from executorch_goldens.patches import Patch, register
from executorch_goldens.settings import releases
from lab.mutants.mutant import UNGUARDED, Edit, Edited

ARM = "executorch.backends.arm"
PASSES = f"{ARM}._passes"
XNNPACK = "executorch.backends.xnnpack"
#: A counter of the process: how many graph modules torch has made code for.
COUNTER = "__import__('torch').fx.graph_module._loader.next_id"


@dataclass(frozen=True)
class Defect(Edited):
    """A defect, and what the harness must say of a cell that has it.

    Attributes
    ----------
    place
        The pass, the partitioner, or ``delegate_0`` for the serialization of a delegate.
    """

    name: str
    cell: str
    verdict: str
    place: str
    edits: tuple[Edit, ...]


DEFECTS = {
    defect.name: defect
    for defect in (
        Defect(
            *("fold-of-raw-codes", "tosa-int/cat-h-v", "corrupt", "FuseConstantArgsPass"),
            (
                Edit(
                    f"{PASSES}.fuse_constant_ops_pass:FuseConstantArgsPass._fuse_nodes",
                    "if qparam is not None:",
                    "if False:",
                ),
            ),
        ),
        Defect(
            *("bias-scaled-twice", "xnnpack-int8/linear", "corrupt", "delegate_0"),
            (
                Edit(
                    f"{XNNPACK}.operators.quant_params:QuantParams.from_bias",
                    "scale=weight_quantizer.scale * cast(float, input_quantizer.scale)",
                    "scale=weight_quantizer.scale * cast(float, input_quantizer.scale) ** 2",
                ),
            ),
        ),
        Defect(
            *("batch-norm-without-mean", "tosa-fp/conv-bn-relu", "corrupt", "FuseBatchNorm2dPass"),
            (
                Edit(
                    f"{PASSES}.fuse_batch_norm2d_pass:FuseBatchNorm2dPass.call",
                    "                bn_mean_tensor,\n                bn_var_tensor,",
                    "                torch.zeros_like(bn_mean_tensor),\n                bn_var_tensor,",
                ),
            ),
        ),
        Defect(
            *("table-of-wrapped-codes", "tosa-int/gelu-tanh", "corrupt", "InsertTableOpsPass"),
            (
                Edit(
                    f"{PASSES}.quant_args:QuantArgs.dequantize_value",
                    "args = (qx, self.scale, self.zp, self.qmin",
                    "args = (qx - self.zp, self.scale, 0, self.qmin",
                ),
            ),
        ),
        Defect(
            *("relu-without-its-bound", "xnnpack-fp32/conv-bn-relu", "corrupt", "FuseActivationPass"),
            (
                Edit(
                    f"{XNNPACK}._passes.fuse_activation_pass:"
                    "FuseActivationPass.get_output_min_max_from_activation",
                    "            output_min = 0\n",
                    '            output_min = "-inf"\n',
                ),
            ),
        ),
        # Earlier exports of a process advance it as well.
        Defect(
            *("weights-named-by-a-counter", "tosa-int/conv-bn-relu", "order-only", "RewriteConvPass"),
            (
                Edit(
                    f"{PASSES}.rewrite_conv_pass:RewriteConvPass._rewrite_weight",
                    'name=f"{conv_node.name}_weight_{name_suffix}"',
                    f'name=f"{{conv_node.name}}_weight_{{name_suffix}}_{{{COUNTER}}}"',
                ),
            ),
        ),
        Defect(
            *("last-partition-dropped", "tosa-fp/two-delegates", "changed", "TOSAPartitioner"),
            (
                Edit(
                    f"{ARM}.tosa.partitioner:TOSAPartitioner._tag_module",
                    "partition_list = capability_partitioner.propose_partitions()",
                    "partition_list = capability_partitioner.propose_partitions()[:-1]",
                ),
            ),
        ),
    )
}

for defect in DEFECTS.values():
    register(
        Patch(
            *(defect.name, None, defect.name, {releases.load().default: {}}, defect.install),
            unguarded=UNGUARDED,
        )
    )
