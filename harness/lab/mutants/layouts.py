"""Permutations, pads, strides and dimensions in the wrong place."""

from __future__ import annotations

from lab.mutants.mutant import Edit, Mutant

ARM = "executorch.backends.arm"
XNNPACK = "executorch.backends.xnnpack"
REWRITE = f"{ARM}._passes.rewrite_conv_pass:RewriteConvPass"
XNNPACK_CONV = f"{XNNPACK}.operators.op_conv2d:Conv2d.define_node"

MUTANTS = (
    Mutant(
        name="height-and-width-swapped-behind-conv",
        kind="permutation swapped",
        does="a convolution's output comes back from NHWC with height and width swapped",
        cell="tosa-fp/conv-bn-relu",
        verdict="corrupt",
        place="RewriteConvPass",
        edits=(
            Edit(
                f"{REWRITE}.call",
                "args=(node_replacement, list(post_permute_dims)),",
                "args=(node_replacement, [*post_permute_dims[:2], *post_permute_dims[:1:-1]]),",
            ),
        ),
    ),
    Mutant(
        name="kernel-transposed",
        kind="permutation swapped",
        does="a convolution's kernel is rewritten with height and width swapped",
        cell="tosa-int/conv-bn-relu",
        verdict="corrupt",
        place="RewriteConvPass",
        edits=(
            Edit(
                f"{REWRITE}._rewrite_weight",
                "weight_tensor.permute(permute_dims)",
                "weight_tensor.transpose(-2, -1).permute(permute_dims)",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-permutation-rotated",
        kind="permutation swapped",
        does="XNNPACK's transpose gets its permutation rotated by one",
        cell="xnnpack-fp32/permute-itself-sum",
        verdict="corrupt",
        place="delegate_0",
        shows="perm",
        edits=(
            Edit(
                f"{XNNPACK}.operators.op_permute:PermuteVisitor.define_node",
                "perm=permute_order,",
                "perm=permute_order[1:] + permute_order[:1],",
            ),
        ),
    ),
    Mutant(
        name="pads-before-and-after-swapped",
        kind="pads swapped",
        does="a convolution's pads before and after each axis change places",
        cell="tosa-fp/conv-bn-relu",
        verdict="corrupt",
        place="RewriteConvPass",
        edits=(
            Edit(
                f"{REWRITE}.call",
                "                pad = pad_attr\n",
                "                pad = [pad_attr[place ^ 1] for place in range(len(pad_attr))]\n",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-pads-of-axes-swapped",
        kind="pads swapped",
        does="XNNPACK's convolution pads the width by the height's padding",
        cell="xnnpack-fp32/conv2d-grouped-dilated",
        verdict="corrupt",
        place="delegate_0",
        shows="padding",
        edits=(
            Edit(XNNPACK_CONV, 'kwargs["padding_top"] = padding[0]', 'kwargs["padding_top"] = padding[1]'),
            Edit(XNNPACK_CONV, 'kwargs["padding_left"] = padding[1]', 'kwargs["padding_left"] = padding[0]'),
        ),
    ),
    Mutant(
        name="tosa-strides-swapped",
        kind="strides swapped",
        does="a convolution is rewritten with its strides swapped: its output has another shape",
        cell="tosa-fp/conv2d-grouped-dilated",
        verdict="corrupt",
        place="RewriteConvPass",
        edits=(
            Edit(
                f"{REWRITE}.call",
                "stride = tuple(stride_list)",
                "stride = tuple(stride_list[::-1])",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-strides-swapped",
        kind="strides swapped",
        does="XNNPACK's convolution has its strides swapped",
        cell="xnnpack-fp32/conv2d-grouped-dilated",
        verdict="corrupt",
        place="delegate_0",
        shows="subsampling",
        edits=(
            Edit(
                XNNPACK_CONV,
                'kwargs["subsampling_height"] = stride[0]',
                'kwargs["subsampling_height"] = stride[1]',
            ),
            Edit(
                XNNPACK_CONV,
                'kwargs["subsampling_width"] = stride[1]',
                'kwargs["subsampling_width"] = stride[0]',
            ),
        ),
    ),
    Mutant(
        name="sum-over-the-next-dimension",
        kind="dims swapped",
        does="a sum is decomposed over the dimension after the one that was asked for: shapes no longer fit",
        cell="tosa-fp/permute-sum",
        verdict="failed",
        place="DecomposeSumPass",
        edits=(
            Edit(
                f"{ARM}._passes.decompose_sum_pass:DecomposeSumPass.call_operator",
                "(input_node, [dim], True)",
                "(input_node, [dim % 2 + 1], True)",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-cat-along-the-nchw-axis",
        kind="dims swapped",
        does="a concatenation that XNNPACK runs channels-last keeps the axis that it had channels-first",
        cell="xnnpack-fp32/two-layouts-meet",
        verdict="corrupt",
        place="delegate_0",
        shows="axis",
        edits=(
            Edit(
                f"{XNNPACK}.operators.op_cat:CatVisitor.define_node",
                'if "XNN_NHWC_NODE" in node.meta:',
                "if False:",
            ),
        ),
    ),
    Mutant(
        name="weights-not-brought-to-nhwc",
        kind="transpose lost between NHWC and NCHW",
        does="XNNPACK's convolution weights are declared NHWC and written NCHW",
        cell="xnnpack-fp32/conv-bn-relu",
        verdict="corrupt",
        place="delegate_0",
        shows="constant",
        edits=(
            Edit(
                f"{XNNPACK}.operators.node_visitor:NodeVisitor.get_serialized_buffer_index",
                "if convert_to_nhwc:",
                "if False:",
            ),
        ),
    ),
    Mutant(
        name="channels-last-input-taken-as-it-lies",
        kind="transpose lost between NHWC and NCHW",
        does="the transpose of a channels-last input at a TOSA delegate's boundary becomes a reshape",
        cell="tosa-fp/conv2d-grouped-dilated",
        verdict="corrupt",
        place="NormalizeDelegateIOLayoutPass",
        edits=(
            Edit(
                f"{ARM}._passes.normalize_delegate_io_layout_pass:NormalizeDelegateIOLayoutPass._normalize_input_layout",
                "                    exir_ops.edge.aten.permute_copy.default,\n"
                "                    args=(node, list(transpose_perm)),",
                "                    exir_ops.edge.aten.view_copy.default,\n"
                "                    args=(node, list(input_fake.shape)),",
            ),
        ),
    ),
    Mutant(
        name="xnnpack-input-not-transposed",
        kind="transpose lost between NHWC and NCHW",
        does="the copy of an XNNPACK convolution's input to channels-last leaves it as it is",
        cell="xnnpack-fp32/conv-bn-relu",
        verdict="corrupt",
        place="ChannelsLastTaggedReshapePass",
        edits=(
            Edit(
                f"{XNNPACK}._passes.channels_last_tagged_reshape_pass:ChannelsLastTaggedReshapePass.input_to_nhwc",
                "memory_format=torch.channels_last",
                "memory_format=torch.contiguous_format",
            ),
        ),
    ),
)
