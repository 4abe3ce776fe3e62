"""RESCALEs, tables, clamps and accumulators that are off."""

from __future__ import annotations

from lab.mutants.mutant import Edit, Mutant

ARM = "executorch.backends.arm"
RESCALE = f"{ARM}.operators.op_tosa_rescale:_compute_multiplier_and_shift"
CONV2D = f"{ARM}.operators.op_tosa_conv2d:Conv2dVisitor.define_node"
RESCALE_VISITOR = f"{ARM}.operators.op_tosa_rescale:RescaleVisitor.define_node"
INT32 = f"{ARM}._passes.insert_rescales_pass:InsertRescaleInt32Pass"
TABLE = f"{ARM}._passes.insert_table_ops:InsertTableOpsPass.generate_8bit_table_values"

MUTANTS = (
    Mutant(
        name="rescale-shift-off-by-one",
        kind="RESCALE shift off by one",
        does="every RESCALE shifts by one more",
        cell="tosa-int/linear",
        verdict="corrupt",
        place="delegate_0",
        shows="shifts",
        edits=(Edit(RESCALE, "shift = offset - shift", "shift = offset - shift + 1"),),
    ),
    Mutant(
        name="rescale-multiplier-off-by-one",
        kind="RESCALE multiplier off by one",
        does="every RESCALE multiplies by one more, of 2**31: far below one code",
        cell="tosa-int/linear",
        verdict="changed",
        place="delegate_0",
        shows="multipliers",
        edits=(
            Edit(
                RESCALE,
                "        multiplier = shifted_mantissa\n",
                "        multiplier = shifted_mantissa + 1\n",
            ),
        ),
    ),
    Mutant(
        name="rescale-rounds-inexactly",
        kind="fold rounds differently",
        does="every RESCALE may round as the device likes",
        cell="tosa-int/linear",
        verdict="changed",
        place="delegate_0",
        shows="rounding_mode",
        edits=(Edit(RESCALE_VISITOR, "ts.RoundingMode.SINGLE_ROUND", "ts.RoundingMode.INEXACT_ROUND"),),
    ),
    Mutant(
        name="sum-headroom-off-by-one",
        kind="RESCALE shift off by one",
        does="operands of a quantized sum are scaled up by 19 bits, not 20: a finer point lost, no code",
        cell="tosa-int/output-order",
        verdict="changed",
        place="InsertRescaleInt32Pass",
        edits=(
            Edit(f"{INT32}._get_inputs_rescaled_qparams", "== torch.int16 else 20", "== torch.int16 else 19"),
        ),
    ),
    Mutant(
        name="product-scale-of-one-operand",
        kind="RESCALE of another scale",
        does="a quantized product is rescaled by the scale of its first operand alone",
        cell="tosa-int/output-order",
        verdict="corrupt",
        place="InsertRescaleInt32Pass",
        edits=(
            Edit(
                f"{INT32}._get_output_qparams",
                "output_scale = math.prod(\n"
                "                (qp.get_scale_per_tensor() for qp in inputs_qparams.values())\n"
                "            )",
                "output_scale = inputs_qparams[0].get_scale_per_tensor()",
            ),
        ),
    ),
    Mutant(
        name="one-table-entry-off-by-one",
        kind="table entry off by one",
        does="the entry of code 0 is one more: no bound on outputs forbids it, if any input reaches it",
        cell="tosa-int/gelu-tanh",
        verdict="changed",
        place="InsertTableOpsPass",
        edits=(
            Edit(
                TABLE,
                "return (f(effective_codes).to(dtype=torch.int8), 0)",
                "return (f(effective_codes).to(dtype=torch.int8) + (effective_codes == 0), 0)",
            ),
        ),
    ),
    Mutant(
        name="table-shifted-by-an-entry",
        kind="table entry off by one",
        does="every entry of a table is one place too high, the last one first",
        cell="tosa-int/gelu-tanh",
        verdict="corrupt",
        place="InsertTableOpsPass",
        edits=(
            Edit(
                TABLE,
                "return (f(effective_codes).to(dtype=torch.int8), 0)",
                "return (f(effective_codes).to(dtype=torch.int8).roll(1), 0)",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-relu-without-its-bound",
        kind="clamp bound lost",
        does="a ReLU is fused into the convolution before it without its lower bound",
        cell="xnnpack-fp32/conv-bn-relu",
        verdict="corrupt",
        place="FuseActivationPass",
        edits=(
            Edit(
                "executorch.backends.xnnpack._passes.fuse_activation_pass:"
                "FuseActivationPass.get_output_min_max_from_activation",
                "            output_min = 0\n",
                '            output_min = "-inf"\n',
            ),
        ),
    ),
    Mutant(
        name="relu-becomes-a-clamp-without-bounds",
        kind="clamp bound lost",
        does="a ReLU becomes a clamp without its lower bound",
        cell="tosa-fp/conv-bn-relu",
        verdict="corrupt",
        place="ConvertToClampPass",
        edits=(
            Edit(
                f"{ARM}._passes.convert_to_clamp_pass:get_clamp_params",
                "return 0.0, None",
                "return -3.0e38, None",
            ),
        ),
    ),
    Mutant(
        name="clamp-serialized-without-its-bound",
        kind="clamp bound lost",
        does="CLAMP is serialized with the negative of its upper bound for its lower one",
        cell="tosa-fp/conv-bn-relu",
        verdict="corrupt",
        place="delegate_0",
        shows="min_val",
        edits=(
            Edit(
                f"{ARM}.operators.op_tosa_clamp:ClampVisitor.define_node",
                "min_val = cast(int | float, node.args[1])",
                "min_val = -cast(int | float, node.args[2])",
            ),
        ),
    ),
    Mutant(
        name="half-precision-accumulator",
        kind="accumulator type changed",
        does="a float convolution accumulates in FP16",
        cell="tosa-fp/linear",
        verdict="corrupt",
        place="delegate_0",
        shows="acc_type",
        edits=(Edit(CONV2D, "acc_type = output.dtype\n", "acc_type = ts.DType.FP16\n"),),
    ),
    Mutant(
        name="wide-accumulator",
        kind="accumulator type changed",
        does="an int8 convolution accumulates in 48 bits, which TOSA has for int16 alone",
        cell="tosa-int/linear",
        verdict="corrupt",
        place="delegate_0",
        shows="acc_type",
        edits=(Edit(CONV2D, "acc_type = output.dtype\n", "acc_type = ts.DType.INT48\n"),),
    ),
)
