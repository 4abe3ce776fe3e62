"""Constants computed ahead of time, and quantization parameters lost on the way."""

from __future__ import annotations

from lab.mutants.mutant import Edit, Mutant

PASSES = "executorch.backends.arm._passes"
XNNPACK = "executorch.backends.xnnpack"
FUSE = f"{PASSES}.fuse_constant_ops_pass:FuseConstantArgsPass._fuse_nodes"
PRECOMPUTE = f"{PASSES}.fuse_constant_ops_pass:ComputeConstantOpsAOTPass.compute_node_aot"
FOLD_QDQ = f"{PASSES}.fold_qdq_with_annotated_qparams_pass:FoldAndAnnotateQParamsPass"
QUANTIZE = f"{PASSES}.quant_args:QuantArgs.quantize_value"
DEQUANTIZE = f"{PASSES}.quant_args:QuantArgs.dequantize_value"

MUTANTS = (
    Mutant(
        name="fold-of-raw-codes",
        kind="fold skips quantization parameters",
        does="constants in a folded operator are not dequantized",
        cell="tosa-int/cat-h-v",
        verdict="corrupt",
        place="FuseConstantArgsPass",
        edits=(Edit(FUSE, "if qparam is not None:", "if False:"),),
    ),
    Mutant(
        name="fold-dequantizes-the-first-only",
        kind="fold skips quantization parameters",
        does="of a list of constants only the first is dequantized (issue #18971, in another release)",
        cell="tosa-int/cat-h-v",
        verdict="corrupt",
        place="FuseConstantArgsPass",
        edits=(
            Edit(
                FUSE,
                "return [resolve_arg(x, arg_index) for x in arg]",
                "return [resolve_arg(x, arg_index if x is arg[0] else None) for x in arg]",
            ),
        ),
    ),
    Mutant(
        name="precomputed-not-quantized",
        kind="fold skips quantization parameters",
        does="a constant computed ahead of time is cast to int8, not quantized",
        cell="tosa-int/cat-h-v",
        verdict="corrupt",
        place="ComputeConstantOpsAOTPass",
        edits=(
            Edit(
                PRECOMPUTE,
                "data = output_qparams.quantize_value(data)",
                "data = data.to(output_qparams.dtype)",
            ),
        ),
    ),
    Mutant(
        name="fold-dequantizes-twice",
        kind="fold applies quantization parameters twice",
        does="a constant in a folded operator is scaled a second time",
        cell="tosa-int/cat-three",
        verdict="corrupt",
        place="FuseConstantArgsPass",
        edits=(
            Edit(
                FUSE,
                "t = qparam.dequantize_value(t)",
                "t = qparam.dequantize_value(t) * qparam.get_scale_per_tensor()",
            ),
        ),
    ),
    Mutant(
        name="bias-scaled-twice",
        kind="fold applies quantization parameters twice",
        does="XNNPACK's bias gets the input's scale twice",
        cell="xnnpack-int8/linear",
        verdict="corrupt",
        place="delegate_0",
        shows="scale",
        edits=(
            Edit(
                f"{XNNPACK}.operators.quant_params:QuantParams.from_bias",
                "scale=weight_quantizer.scale * cast(float, input_quantizer.scale)",
                "scale=weight_quantizer.scale * cast(float, input_quantizer.scale) ** 2",
            ),
        ),
    ),
    Mutant(
        name="fold-along-the-wrong-axis",
        kind="fold takes the wrong axis",
        does="a folded weight is filled along its first axis",
        cell="tosa-fp/linear",
        verdict="corrupt",
        place="FuseConstantArgsPass",
        edits=(
            Edit(
                FUSE,
                "data = node.target(*new_args, **new_kwargs)",
                "data = node.target(*new_args, **new_kwargs)\n"
                "        data = data.transpose(0, 1).reshape(data.shape)",
            ),
        ),
    ),
    Mutant(
        name="scales-of-the-wrong-axis",
        kind="fold takes the wrong axis",
        does="XNNPACK's weights are said to have their scales along the axis of the inputs",
        cell="xnnpack-int8/linear",
        verdict="corrupt",
        place="delegate_0",
        shows="channel_dim",
        edits=(
            Edit(
                f"{XNNPACK}.operators.node_visitor:NodeVisitor.get_quant_params",
                "                return PerChannelQuant(\n"
                "                    scale=[],\n"
                "                    channel_dim=quant_params.axis,",
                "                return PerChannelQuant(\n"
                "                    scale=[],\n"
                "                    channel_dim=quant_params.axis + 1,",
            ),
        ),
    ),
    Mutant(
        name="zero-point-of-inputs-dropped",
        kind="fold drops a zero point",
        does="quantization parameters are folded into their user without the zero point",
        cell="tosa-int/shared-weights",
        verdict="corrupt",
        place="FoldAndAnnotateQParamsPass",
        edits=(
            Edit(
                f"{FOLD_QDQ}._annotate_input_params",
                'node.meta["input_qparams"][index] = input_qparams',
                'node.meta["input_qparams"][index] = '
                "input_qparams if input_qparams.per_channel else input_qparams._replace(zp=0)",
            ),
        ),
    ),
    Mutant(
        name="zero-point-of-output-dropped",
        kind="fold drops a zero point",
        does="the RESCALE after a convolution has no output zero point",
        cell="tosa-int/conv-bn-relu",
        verdict="corrupt",
        place="RewriteConvPass",
        edits=(
            Edit(
                f"{PASSES}.rewrite_conv_pass:RewriteConvPass.insert_output_rescale",
                "                    0,\n                    output_qparams.get_zp_per_tensor(),\n                ),",
                "                    0,\n                    0,\n                ),",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-zero-point-dropped",
        kind="fold drops a zero point",
        does="XNNPACK's tensors are serialized with zero point 0",
        cell="xnnpack-int8/linear",
        verdict="corrupt",
        place="delegate_0",
        shows="zero_point",
        edits=(
            Edit(
                f"{XNNPACK}.operators.node_visitor:NodeVisitor.get_quant_params",
                "zero_point=cast(int, quant_params.zp)",
                "zero_point=0",
            ),
        ),
    ),
    Mutant(
        name="constants-rounded-down",
        kind="fold rounds differently",
        does="constants are quantized by rounding towards minus infinity",
        cell="tosa-int/cat-h-v",
        verdict="corrupt",
        place="ComputeConstantOpsAOTPass",
        edits=(
            Edit(
                QUANTIZE,
                "x = x.to(torch.float32)",
                "x = x.to(torch.float32)\n"
                "        if not self.per_channel:\n"
                "            x = torch.floor(x / self.scale) * self.scale",
            ),
        ),
    ),
    Mutant(
        name="table-rounded-down",
        kind="fold rounds differently",
        does="a table's values are rounded down: one code at most, which no bound on outputs forbids",
        cell="tosa-int/gelu-tanh",
        verdict="changed",
        place="InsertTableOpsPass",
        edits=(
            Edit(
                f"{PASSES}.insert_table_ops:InsertTableOpsPass.generate_8bit_table_values",
                "x = torch_op(x)",
                "x = torch_op(x) - 0.25 * out_quantargs.get_scale_per_tensor()",
            ),
        ),
    ),
    Mutant(
        name="batch-norm-without-epsilon",
        kind="fold rounds differently",
        does="batch norm is folded into XNNPACK's weights without its epsilon: little, and more than rounding",
        cell="xnnpack-fp32/conv-bn-relu",
        verdict="corrupt",
        place="FuseBatchNormPass",
        edits=(
            Edit(
                f"{XNNPACK}._passes.fuse_batch_norm:FuseBatchNormPass._fuse_ops",
                "eps = bn.args[-1]",
                "eps = 0.0",
            ),
        ),
    ),
    Mutant(
        name="batch-norm-without-mean",
        kind="fold drops a statistic",
        does="batch norm is folded into TOSA's weights without its running mean",
        cell="tosa-fp/conv-bn-relu",
        verdict="corrupt",
        place="FuseBatchNorm2dPass",
        edits=(
            Edit(
                f"{PASSES}.fuse_batch_norm2d_pass:FuseBatchNorm2dPass.call",
                "                bn_mean_tensor,\n                bn_var_tensor,",
                "                torch.zeros_like(bn_mean_tensor),\n                bn_var_tensor,",
            ),
        ),
    ),
    Mutant(
        name="table-of-wrapped-codes",
        kind="fold overflows int8",
        does="a table's codes have their zero point subtracted in int8, and wrap",
        cell="tosa-int/gelu-tanh",
        verdict="corrupt",
        place="InsertTableOpsPass",
        edits=(
            Edit(
                DEQUANTIZE,
                "args = (qx, self.scale, self.zp, self.qmin",
                "args = (qx - self.zp, self.scale, 0, self.qmin",
            ),
        ),
    ),
    Mutant(
        name="constants-wrap-at-their-ends",
        kind="fold overflows int8",
        does="constants are quantized with the scale halved and cast to int8 without a clamp",
        cell="tosa-int/cat-h-v",
        verdict="corrupt",
        place="ComputeConstantOpsAOTPass",
        edits=(
            Edit(
                PRECOMPUTE,
                "data = output_qparams.quantize_value(data)",
                "data = torch.round(data * 2 / output_qparams.scale).to(torch.int32).to(torch.int8)",
            ),
        ),
    ),
)
