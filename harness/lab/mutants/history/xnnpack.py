"""Fixes of the lowering to XNNPACK."""

from __future__ import annotations

from lab.mutants.history.fix import CRASH, LOST, WRONG, Fix
from lab.mutants.mutant import Edit

XNNPACK = "executorch.backends.xnnpack"
CONFIGS = f"{XNNPACK}.partition.config"
CHANNELS_LAST = f"{XNNPACK}._passes.channels_last_tagged_reshape_pass:ChannelsLastTaggedReshapePass"
POOLING = f"{XNNPACK}.utils.utils:normalize_pool2d_args"

FIXES = (
    Fix(
        name="16680-half-gelu",
        number=16680,
        release="1.3.1",
        kind=CRASH,
        broke="a GELU of float16 is taken, and the runtime refuses it",
        edits=(
            Edit(
                f"{CONFIGS}.generic_node_configs:GeluConfig.check_constraints",
                "if node_val.dtype == torch.float16:",
                "if False:",
            ),
        ),
    ),
    Fix(
        name="17166-product-without-its-relu",
        number=17166,
        release="1.3.1",
        kind=WRONG,
        broke="the ReLU that is fused into a product is not serialized",
        edits=(
            Edit(
                f"{XNNPACK}.operators.op_multiply:MultiplyVisitor.define_node",
                "FuseActivationPass.get_fused_activation(node)",
                "None",
            ),
        ),
    ),
    Fix(
        name="18185-output-padding",
        number=18185,
        release="1.3.1",
        kind=LOST,
        broke="transposed convolutions with output padding are refused",
        edits=(
            Edit(
                f"{CONFIGS}.gemm_configs:ConvolutionConfig.check_constraints",
                "        is_transpose = node.args[6]\n",
                "        is_transpose = node.args[6]\n"
                "        if is_transpose and any(node.args[7]):\n"
                "            return False\n",
            ),
        ),
    ),
    Fix(
        name="18569-long-cats-of-half",
        number=18569,
        release="1.3.1",
        kind=CRASH,
        broke="the pieces of a long quantized concatenation are quantized with an argument of the dequantization",
        edits=(
            Edit(
                f"{XNNPACK}._passes.decompose_cat:DecomposeConcatenate.call",
                '{k: v for k, v in dq_kwargs.items() if k != "out_dtype"}',
                "dq_kwargs",
            ),
        ),
    ),
    Fix(
        name="18958-lists-of-inputs",
        number=18958,
        release="1.3.1",
        kind=CRASH,
        broke="layouts are traced to operators that take a list as if they took a tensor",
        edits=(
            Edit(
                f"{CHANNELS_LAST}.input_to_nhwc",
                " and isinstance(\n                    input_node.args[0], torch.fx.Node\n                ):",
                ":",
            ),
            Edit(f"{CHANNELS_LAST}.call", "if isinstance(node.args[0], (list, tuple)):", "if False:"),
        ),
    ),
    Fix(
        name="19206-mean-over-positive-dims",
        number=19206,
        release="1.3.1",
        kind=LOST,
        broke="a mean over height and width is taken only if they are counted from the end",
        edits=(
            Edit(
                f"{CONFIGS}.generic_node_configs:MeanDimConfig.check_constraints",
                "if sorted(dims) != [2, 3]:",
                "if sorted(node.args[1]) != [-2, -1]:",
            ),
        ),
    ),
    Fix(
        name="20376-factors-of-two-layouts",
        number=20376,
        release="1.5.1",
        kind=CRASH,
        broke="operands of a sum or product are left in two layouts beside a dynamically quantized convolution",
        edits=(Edit(f"{CHANNELS_LAST}.call", "if layouts[0] == layouts[1]:", "if True:"),),
    ),
    Fix(
        name="21489-pools-with-defaults",
        number=21489,
        release="1.5.1",
        kind=CRASH,
        broke="a pool without a stride, or with a kernel of one number, fails",
        edits=(
            Edit(POOLING, "value = args[index] if len(args) > index else None", "value = args[index]"),
            Edit(
                POOLING,
                "return [values[0], values[0]] if len(values) == 1 else [values[0], values[1]]",
                "return [values[0], values[1]]",
            ),
            Edit(POOLING, "stride = pair(2, kernel)", "stride = list(args[2])\n    stride[1]"),
            Edit(
                POOLING, "padding = pair(3, [0, 0])", "padding = pair(3, [0, 0]) if len(args) > 3 else [0, 0]"
            ),
            Edit(
                POOLING,
                "dilation = pair(4, [1, 1]) if has_dilation else [1, 1]",
                "dilation = pair(4, [1, 1]) if has_dilation and len(args) > 4 else [1, 1]",
            ),
        ),
    ),
    Fix(
        name="21568-slices-observed-apart",
        number=21568,
        release="1.5.1",
        kind=CRASH,
        broke="a slice has another scale than its input",
        edits=(
            Edit(
                f"{XNNPACK}.quantizer.xnnpack_quantizer_utils:_is_share_obs_or_fq_op",
                "        torch.ops.aten.slice.Tensor,\n",
                "",
            ),
        ),
    ),
    Fix(
        name="21588-one-stride-for-two-dimensions",
        number=21588,
        release="1.5.1",
        kind=CRASH,
        broke="a convolution whose stride is one number is taken for one of one dimension",
        edits=(
            Edit(
                f"{XNNPACK}._passes.conv1d_unsqueeze_pass:Conv1dUnsqueezePass.call",
                "if len(get_shape(kernel_node)) != 3:",
                "if len(node.args[3]) != 1:",
            ),
        ),
    ),
    Fix(
        name="21862-average-pools-with-defaults",
        number=21862,
        release="1.5.1",
        kind=LOST,
        broke="an average pool that counts its padding is refused though it has none",
        edits=(
            Edit(
                f"{CONFIGS}.generic_node_configs:AvgPoolingConfig.check_constraints",
                "if count_include_pad and any(p != 0 for p in padding):",
                "if count_include_pad:",
            ),
        ),
    ),
    Fix(
        name="21949-slices-of-another-scale",
        number=21949,
        release="1.5.1",
        kind=CRASH,
        broke="a quantized slice with another scale than its input is taken, and the runtime refuses it",
        edits=(
            Edit(
                f"{CONFIGS}.generic_node_configs:SliceCopyConfig.check_constraints",
                "if is_quant(quant_node) and not",
                "if False and not",
            ),
        ),
    ),
)
