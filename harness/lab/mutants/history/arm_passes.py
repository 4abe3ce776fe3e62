"""Fixes of the passes of the Arm backend."""

from __future__ import annotations

from lab.mutants.history.fix import CRASH, LOST, WRONG, Fix
from lab.mutants.mutant import Edit

PASSES = "executorch.backends.arm._passes"
RECURRENT = ("lstm:DecomposeLstmPass", "gru:DecomposeGruPass", "rnn:DecomposeRnnPass")
CONV = f"{PASSES}.rewrite_conv_pass:RewriteConvPass"
SLICE_SCATTER = f"{PASSES}.decompose_slice_scatter_pass"
UPSAMPLE = f"{PASSES}.rewrite_upsample:RewriteUpsamplePass.get_resize_parameters_1d"
BATCH_NORM = f"{PASSES}.fuse_batch_norm2d_pass:FuseBatchNorm2dPass.call"

FIXES = (
    Fix(
        name="16826-leaky-relu-in-place",
        number=16826,
        release="1.3.1",
        kind=LOST,
        broke="LeakyReLU(inplace=True) is not decomposed before it is quantized",
        edits=(
            Edit(
                f"{PASSES}.decompose_leaky_relu_pass:DecomposeLeakyReLUPass.call_operator",
                "edge_ops + torch_ops",
                "edge_ops + torch_ops[:1]",
            ),
        ),
    ),
    Fix(
        name="17094-dilated-max-pool",
        number=17094,
        release="1.3.1",
        kind=WRONG,
        broke="a dilated max pool pads with zeros, not with the least value, and is taken with any stride",
        edits=(
            Edit(
                f"{PASSES}.decompose_maxpool2d_with_dilation_pass:DecomposeMaxPool2dPass.call_operator",
                "(x, pads, pad_value)",
                "(x, pads, 0)",
            ),
            Edit(
                "executorch.backends.arm.operator_support.pool_2d_support:dilation_check",
                "return (H_out == W_out == 1) or (h_ok and w_ok)",
                "return True",
            ),
        ),
    ),
    Fix(
        name="17097-constants-of-float32",
        number=17097,
        release="1.3.1",
        kind=CRASH,
        broke="constants that passes make are float32 in a model of another float type",
        edits=(
            Edit(
                f"{PASSES}.decompose_round_pass:DecomposeRoundPass.call_operator",
                '{"dtype": input_dtype}',
                '{"dtype": torch.float32}',
            ),
            Edit(BATCH_NORM, "torch.ones((1, 1, 1), dtype=input_dtype)", "torch.ones((1, 1, 1))"),
            Edit(BATCH_NORM, "torch.ones((1, 1, 1, 1), dtype=input_dtype)", "torch.ones((1, 1, 1, 1))"),
            Edit(
                f"{PASSES}.scalars_to_attribute_pass:ScalarsToAttributePass._convert_scalar_args",
                "dtype=output_fake_tensor.dtype,",
                "dtype=torch.float32,",
            ),
        ),
    ),
    Fix(
        name="17247-index-put-broadcast",
        number=17247,
        release="1.3.1",
        kind=CRASH,
        broke="index_put takes the number of its indices from the first index tensor, before they are broadcast",
        edits=(
            Edit(
                f"{PASSES}.rewrite_index_put_pass:RewriteIndexPutPass.call_operator",
                "torch.broadcast_shapes(*indices_shapes)[0]",
                "indices_shapes[0][0]",
            ),
        ),
    ),
    Fix(
        name="17280-alias-and-detach-stay",
        number=17280,
        release="1.3.1",
        kind=CRASH,
        broke="alias_copy and detach_copy are not removed as no-ops",
        edits=(
            Edit(
                f"{PASSES}.remove_noop_pass:RemoveNoopPass.call_operator",
                "exir_ops.edge.aten.alias_copy.default,",
                "",
            ),
            Edit(
                f"{PASSES}.remove_noop_pass:RemoveNoopPass.call_operator",
                "exir_ops.edge.aten.detach_copy.default,",
                "",
            ),
        ),
    ),
    Fix(
        name="17369-constants-in-branches",
        number=17369,
        release="1.3.1",
        kind=CRASH,
        broke="scalars in the branches of a condition or loop stay attributes of the branch",
        edits=(
            Edit(
                f"{PASSES}.control_flow_const_inline:ControlFlowConstInlinePass.call",
                "modified = self._convert_getattr(graph_module)",
                "modified = False",
            ),
        ),
    ),
    Fix(
        name="17901-infinities-replaced-in-place",
        number=17901,
        release="1.3.1",
        kind=WRONG,
        broke="infinities of a buffer are replaced in the model that was given",
        edits=(
            Edit(
                f"{PASSES}.replace_inf_and_limit_values_pass:ReplaceInfAndLimitValuesPass.call",
                "t = torch.nan_to_num(tensor, posinf=255, neginf=-255)",
                't = tensor\n            t[t == float("inf")] = 255\n            t[t == float("-inf")] = -255',
            ),
        ),
    ),
    Fix(
        name="18092-linear-fixes-its-batch",
        number=18092,
        release="1.3.1",
        kind=CRASH,
        broke="a linear layer turns a symbolic batch into a number",
        edits=(
            Edit(
                f"{PASSES}.decompose_linear_pass:DecomposeLinearPass.call",
                "batches *= dim",
                "batches *= int(dim)",
            ),
        ),
        unseen="1.3.1 lowers no linear layer of a symbolic batch in either case: no visitor takes the view after it",
    ),
    Fix(
        name="18132-where-with-a-scalar",
        number=18132,
        release="1.3.1",
        kind=LOST,
        broke="a where whose other value is a scalar is not decomposed before it is quantized",
        edits=(
            Edit(
                f"{PASSES}.decompose_where_scalar_other_pass:DecomposeWhereScalarOtherPass.call_operator",
                "op not in DecomposeWhereScalarOtherPass._TARGET_OPS",
                "True",
            ),
        ),
        unseen="the pass runs over torch's operators and looks for that of the edge dialect: in 1.3.1 it does nothing",
    ),
    Fix(
        name="18136-high-rank-permute",
        number=18136,
        release="1.3.1",
        kind=WRONG,
        broke="a permute of five dimensions or more, some of size one, is not brought to fewer dimensions",
        edits=(
            Edit(
                f"{PASSES}.rewrite_high_rank_singleton_permute_pass:"
                "RewriteHighRankSingletonPermutePass.call_operator",
                "if rank <= 4 or",
                "if True or",
            ),
        ),
    ),
    Fix(
        name="18198-slice-scatter-at-the-edges",
        number=18198,
        release="1.3.1",
        kind=CRASH,
        broke="slice_scatter slices off empty pieces, and wraps bounds below the start around",
        edits=(
            Edit(f"{SLICE_SCATTER}:_fixup_start", "s += dim_size", "s %= dim_size"),
            Edit(f"{SLICE_SCATTER}:_fixup_end", "e += dim_size", "e %= dim_size"),
            Edit(f"{SLICE_SCATTER}:DecomposeSliceScatterPass.call_operator", "if start_i > 0:", "if True:"),
            Edit(
                f"{SLICE_SCATTER}:DecomposeSliceScatterPass.call_operator", "if end_i < dim_size:", "if True:"
            ),
        ),
    ),
    Fix(
        name="18231-arithmetic-in-place",
        number=18231,
        release="1.3.1",
        kind=LOST,
        broke="add_, sub_, mul_ and div_ are not rewritten before the model is quantized",
        edits=(
            Edit(
                f"{PASSES}.rewrite_inplace_arithmetic_pass:RewriteInplaceArithmeticPass.call_operator",
                "OP_MAP.get(op)",
                "None",
            ),
        ),
    ),
    Fix(
        name="18234-int64-buffers",
        number=18234,
        release="1.3.1",
        kind=CRASH,
        broke="int64 buffers are not cast to int32 before the model is quantized",
        edits=(
            Edit(
                f"{PASSES}.insert_int32_casts_after_int64_placeholders:"
                "InsertInt32CastsAfterInt64PlaceholdersPass._insert_placeholder_i64_to_i32_casts",
                'if node.op not in ("placeholder", "get_attr"):',
                'if node.op != "placeholder":',
            ),
        ),
    ),
    Fix(
        name="18401-remainder-by-a-scalar",
        number=18401,
        release="1.3.1",
        kind=WRONG,
        broke="a quantized remainder by a scalar is a division, a floor and a difference, each with its own rounding",
        edits=(
            Edit(
                f"{PASSES}.decompose_remainder_pass:DecomposeRemainderPass.call_operator",
                "and (self.is_tfa_pass or self._is_quantized_meta(meta))",
                "and False",
            ),
            Edit(
                f"{PASSES}.replace_scalar_with_tensor_pass:ReplaceScalarWithTensorByProfilePass.call_operator",
                "if self.is_tfa_pass and op in _preserve_in_tfa:",
                "if False:",
            ),
        ),
    ),
    Fix(
        name="18540-data-layout-in-another-profile",
        number=18540,
        release="1.3.1",
        kind=CRASH,
        broke="data is concatenated, padded, reshaped and transposed in types that the profile does not have",
        edits=(
            Edit(
                f"{PASSES}.insert_data_layout_casts_pass:InsertDataLayoutCastsPass.call_operator",
                "if op not in self.targeted_ops:",
                "if True:",
            ),
        ),
    ),
    Fix(
        name="18778-clamp-behind-a-conv",
        number=18778,
        release="1.3.1",
        kind=CRASH,
        broke="a convolution does not find its output's scale at a following clamp that is not fused",
        edits=(
            Edit(
                f"{CONV}._get_effective_output_qparams",
                "if activation.target == exir_ops.edge.aten.clamp.default:",
                "if False:",
            ),
            Edit(
                f"{CONV}._add_bias",
                "if self._is_quantized_conv(node):",
                'if node.meta.get("output_qparams"):',
            ),
        ),
        unreachable="a delegate of integers alone leaves such a convolution outside, "
        "and of the one target with floats beside them no clamp is quantized",
    ),
    Fix(
        name="18866-one-output-twice",
        number=18866,
        release="1.3.1",
        kind=WRONG,
        broke="a delegate that returns a value twice declares one output for it",
        edits=(
            Edit(
                f"{PASSES}.ensure_unique_output_nodes_pass:EnsureUniqueOutputNodesPass.call",
                "if not repeated_nodes:",
                "if True:",
            ),
        ),
    ),
    Fix(
        name="18941-symbolic-conv-remainder",
        number=18941,
        release="1.3.1",
        kind=CRASH,
        broke="whether a convolution's padding fits is asked of a symbolic size as if it were a number",
        edits=(
            Edit(f"{CONV}._adjust_pad_if_needed", "if isinstance(mod_remainder, torch.SymInt):", "if False:"),
        ),
    ),
    Fix(
        name="18971-lists-not-dequantized",
        number=18971,
        release="1.3.1",
        kind=WRONG,
        broke="constants in a list, as of a concatenation, are folded without being dequantized",
        edits=(
            Edit(
                f"{PASSES}.fuse_constant_ops_pass:FuseConstantArgsPass._fuse_nodes",
                "return tuple(resolve_arg(x, arg_index) for x in arg)",
                "return tuple(resolve_arg(x) for x in arg)",
            ),
            Edit(
                f"{PASSES}.fuse_constant_ops_pass:FuseConstantArgsPass._fuse_nodes",
                "return [resolve_arg(x, arg_index) for x in arg]",
                "return [resolve_arg(x) for x in arg]",
            ),
        ),
    ),
    Fix(
        name="18973-table-over-the-quantized-range",
        number=18973,
        release="1.3.1",
        kind=WRONG,
        broke="an int8 table spreads the quantizer's range over its 256 entries, not the codes",
        edits=(
            Edit(
                f"{PASSES}.insert_table_ops:InsertTableOpsPass.generate_8bit_table_values",
                "self._get_8bit_table_domain().clamp(\n            in_quantargs.qmin, in_quantargs.qmax\n        )",
                "torch.linspace(in_quantargs.qmin, in_quantargs.qmax, 256, dtype=torch.int8)",
            ),
        ),
    ),
    Fix(
        name="18974-mm-traced-again",
        number=18974,
        release="1.3.1",
        kind=CRASH,
        broke="a quantized product of matrices is run again on int8 once it is a batched one",
        edits=(
            Edit(
                f"{PASSES}.mm_to_bmm_pass:ConvertMmToBmmPass.call",
                "graph_module.recompile()",
                "graph_module.recompile()\n            graph_module = super().call(graph_module).graph_module",
            ),
        ),
        unseen="torch 2.12 describes a product of matrices of integers as it does one of floats",
    ),
    Fix(
        name="19154-results-of-recurrent-layers",
        number=19154,
        release="1.3.1",
        kind=CRASH,
        broke="results of LSTM, GRU and RNN are described as the tuple of all of them, and those of any() not at all",
        edits=(
            *(
                Edit(
                    f"{PASSES}.decompose_{layer.split(':')[0]}_pass:{layer.split(':')[1]}.call",
                    f"get_getitem_users(node, {results})",
                    f"dict.fromkeys(range({results}), node)",
                )
                for layer, results in zip(RECURRENT, (3, 2, 2), strict=True)
            ),
            *(
                Edit(
                    f"{PASSES}.decompose_any_pass:DecomposeAnyPass.call",
                    f"{arguments},\n                        from_node=node,",
                    f"{arguments},",
                )
                for arguments in ("kwargs=node.kwargs", "args=(input_node, output_shape)")
            ),
        ),
    ),
    Fix(
        name="19391-transposed-conv-cut",
        number=19391,
        release="1.3.1",
        kind=WRONG,
        broke="the input of a transposed convolution is cut as that of a plain one",
        edits=(
            Edit(
                f"{PASSES}.size_adjust_input_pass:get_slices_convolution",
                "    if transposed:\n",
                "    if False:\n",
            ),
        ),
    ),
    Fix(
        name="19637-power-of-zero",
        number=19637,
        release="1.3.1",
        kind=CRASH,
        broke="x**0 becomes a constant, and the delegate loses its input",
        edits=(
            Edit(
                f"{PASSES}.decompose_int_pow_pass:DecomposeIntPowPass.call_operator",
                "exir_ops.edge.aten.add.Tensor, (zeros, ones), {}, meta, True",
                "exir_ops.edge.aten.full_like.default, (x, 1), {}, meta, True",
            ),
        ),
    ),
    Fix(
        name="19663-attributes-read-twice",
        number=19663,
        release="1.3.1",
        kind=CRASH,
        broke="an attribute that two nodes read is deleted when one of them is folded",
        edits=(
            Edit(
                f"{PASSES}.deduplicate_get_attr_pass:DeduplicateGetAttrPass.call",
                "node.target = self._copy_attr(graph_module, node)",
                "continue",
            ),
        ),
    ),
    Fix(
        name="21415-rescales-fused",
        number=21415,
        release="1.5.1",
        kind=WRONG,
        broke="equal RESCALEs of one value are fused",
        edits=(
            Edit(
                "executorch.backends.transforms.fuse_duplicate_users_pass:"
                "FuseDuplicateUsersPass._get_candidate_groups",
                "if user.target in self._excluded_targets:",
                "if False:",
            ),
        ),
    ),
    Fix(
        name="21589-one-quantized-operand",
        number=21589,
        release="1.5.1",
        kind=CRASH,
        broke="quantization is folded into an operator with a single quantized operand",
        edits=(
            Edit(
                f"{PASSES}.fold_qdq_with_annotated_qparams_pass:"
                "FoldAndAnnotateQParamsPass._has_partial_binary_tensor_qdq_inputs",
                "return (lhs_idx in input_qparams) != (rhs_idx in input_qparams)",
                "return False",
            ),
        ),
    ),
    Fix(
        name="21629-last-entry-of-an-int16-table",
        number=21629,
        release="1.5.1",
        kind=WRONG,
        broke="the last entry of an int16 table, which only interpolation reads, is that of the code before",
        edits=(
            Edit(
                f"{PASSES}.insert_table_ops:InsertTableOpsPass.generate_16_bit_table_values",
                "            if has_full_int16_upper_range:\n",
                "            if False:\n",
            ),
        ),
    ),
    Fix(
        name="21725-one-dequantization-twice",
        number=21725,
        release="1.5.1",
        kind=CRASH,
        broke="a dequantization that is two operands of one operator is removed twice",
        edits=(
            Edit(
                f"{PASSES}.fold_qdq_with_annotated_qparams_pass:FoldAndAnnotateQParamsPass.call",
                "nodes_to_remove - input_nodes_seen",
                "nodes_to_remove",
            ),
        ),
        unseen="it erases a node twice, which torch 2.14 passes over with a warning",
    ),
    Fix(
        name="21738-pads-before-permutes",
        number=21738,
        release="1.5.1",
        kind=WRONG,
        broke="pads become TOSA's before permutes are moved past them",
        edits=(
            Edit(
                f"{PASSES}.arm_pass_manager:ArmPassManager._tosa_pipeline",
                "RewriteMatmulPass(),\n                FuseViewCopyTransformPass(),",
                "RewriteMatmulPass(),\n                RewritePadPass(),\n                FuseViewCopyTransformPass(),",
            ),
            Edit(
                f"{PASSES}.arm_pass_manager:ArmPassManager._tosa_pipeline",
                "                RewritePadPass(),\n                # Propagation",
                "                # Propagation",
            ),
        ),
    ),
    Fix(
        name="21910-int16-conv-without-its-scale",
        number=21910,
        release="1.5.1",
        kind=WRONG,
        broke="an int16 convolution that is read as int32 is not brought to its output's scale",
        edits=(
            Edit(
                f"{CONV}._insert_output_conversion",
                "            tosa_op.meta[TosaSpecialDtype.meta_key()] = TosaSpecialDtype.INT48\n",
                "            tosa_op.meta[TosaSpecialDtype.meta_key()] = TosaSpecialDtype.INT48\n"
                "            if self._get_direct_int32_rescale_users(node) or "
                "self._get_permute_int32_rescale_users(node):\n"
                "                unscaled = (torch.int32, [1.0], 0, 0)\n"
                "                node_replacement.args = (tosa_op, *unscaled)\n"
                "                node_replacement_fake_tensor = exir_ops.backend.tosa.RESCALE.default(\n"
                "                    tosa_node_fake_tensor, *unscaled\n"
                "                )\n",
            ),
            Edit(
                f"{CONV}._insert_a16w8_output_branches",
                "if not direct_int32_users and not permute_int32_users:",
                "if True:",
            ),
        ),
    ),
    Fix(
        name="22437-nearest-as-bilinear",
        number=22437,
        release="1.5.1",
        kind=WRONG,
        broke="a nearest resize samples at half pixels, at the ratio of the rounded sizes",
        edits=(
            Edit(UPSAMPLE, 'if resize_mode == "nearest" and scale_factor is not None:', "if False:"),
            Edit(UPSAMPLE, 'if resize_mode == "nearest":', "if False:"),
        ),
    ),
    Fix(
        name="22517-batch-norm-behind-transposed-conv",
        number=22517,
        release="1.5.1",
        kind=WRONG,
        broke="batch norm is fused into a transposed convolution along its input channels",
        edits=(
            Edit(BATCH_NORM, "if transposed and groups > 1:", "if False:"),
            Edit(BATCH_NORM, "transpose=transposed,", ""),
        ),
    ),
)
