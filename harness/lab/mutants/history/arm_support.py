"""Fixes of the Arm backend's support checks and serializer."""

from __future__ import annotations

from lab.mutants.history.fix import CRASH, LOST, WRONG, Fix
from lab.mutants.mutant import Edit

ARM = "executorch.backends.arm"
SUPPORT = f"{ARM}.operator_support"
OPERATORS = f"{SUPPORT}.tosa_supported_operators"
PARTITIONER = f"{ARM}.tosa.partitioner"
TAG = f"{PARTITIONER}:TOSAPartitioner._tag_module"
U55 = f"{SUPPORT}.ethos_u55_support"

FIXES = (
    Fix(
        name="16005-views-alone",
        number=16005,
        release="1.3.1",
        kind=CRASH,
        broke="a partition of views alone is taken",
        edits=(Edit(TAG, "or _is_view_copy(node)", ""),),
    ),
    Fix(
        name="16703-bfloat16-without-its-extension",
        number=16703,
        release="1.3.1",
        kind=CRASH,
        broke="bfloat16 is taken without the extension, and outputs of other types that TOSA lacks",
        edits=(
            Edit(
                f"{OPERATORS}:tosa_support_factory",
                "disallowed_dtypes.append(torch.bfloat16)",
                "disallowed_dtypes.append(torch.float64)",
            ),
            Edit(
                f"{OPERATORS}:CheckDtypeInputsAndOutputs.is_node_supported",
                "and output.dtype in self.disallowed_dtypes",
                "and False",
            ),
        ),
    ),
    Fix(
        name="17304-two-float-types",
        number=17304,
        release="1.3.1",
        kind=CRASH,
        broke="an operator whose operands are of two float types is taken",
        edits=(
            Edit(
                f"{OPERATORS}:CheckMixedFloatingInputs.is_node_supported",
                "if len(floating_dtypes) > 1:",
                "if False:",
            ),
        ),
    ),
    Fix(
        name="17734-boolean-masks",
        number=17734,
        release="1.3.1",
        kind=LOST,
        broke="of bitwise operators on booleans only the complement is taken",
        edits=(
            Edit(
                f"{SUPPORT}.bool_bitwise_support:BoolBitwiseSupported.is_node_tosa_supported",
                'if node.meta["val"].dtype == torch.bool:',
                'if node.meta["val"].dtype == torch.bool and "bitwise_not" in str(node.target):',
            ),
        ),
    ),
    Fix(
        name="17904-int32-minimum-on-u55",
        number=17904,
        release="1.3.1",
        kind=CRASH,
        broke="amin of int32 is taken for Ethos-U55, which has it for int8 and int16",
        edits=(
            Edit(
                f"{U55}:EthosU55DtypeSupport.is_node_supported",
                "if node.target in self.target_ops_i8_i16:",
                "if node.target in self.target_ops_i8_i16 and node.target != exir_ops.edge.aten.amin.default:",
            ),
        ),
    ),
    Fix(
        name="18010-nested-conditions",
        number=18010,
        release="1.3.1",
        kind=LOST,
        broke="a condition or loop within another keeps the outer one out of the delegate",
        edits=(
            Edit(
                f"{SUPPORT}.control_flow_support:_fully_partitioned",
                "if _submodules_fully_partitioned(submodule_node, submodule):",
                "if False:",
            ),
        ),
    ),
    Fix(
        name="18095-booleans-on-u55",
        number=18095,
        release="1.3.1",
        kind=CRASH,
        broke="booleans are taken for Ethos-U55",
        edits=(
            Edit(
                f"{OPERATORS}:tosa_support_factory",
                "disallowed_dtypes.append(torch.bool)",
                "disallowed_dtypes.append(torch.float64)",
            ),
        ),
    ),
    Fix(
        name="18232-detach-alone",
        number=18232,
        release="1.3.1",
        kind=CRASH,
        broke="a partition of a detach alone is taken",
        edits=(Edit(TAG, "or _is_noop_detach_copy(node)", ""),),
    ),
    Fix(
        name="18365-int16-products-on-u55",
        number=18365,
        release="1.3.1",
        kind=CRASH,
        broke="int16 products of matrices are taken for Ethos-U55, which has int8 ones",
        edits=(
            Edit(
                f"{U55}:EthosU55DtypeSupport.is_node_supported",
                "if dtype is not None and dtype not in (torch.int8,):",
                "if dtype is not None and dtype not in (torch.int8, torch.int16):",
            ),
        ),
    ),
    Fix(
        name="18414-oblong-transposed-convs-on-u55",
        number=18414,
        release="1.3.1",
        kind=LOST,
        broke="transposed convolutions with a kernel that is not square are refused for Ethos-U55",
        edits=(
            Edit(
                f"{SUPPORT}.convolution_support:ConvolutionSupported._is_node_supported_u55",
                "return self._check_transposed_conv_u55(node)",
                'height, width = node.args[1].meta["val"].shape[2:4]\n'
                "            return height == width and self._check_transposed_conv_u55(node)",
            ),
        ),
    ),
    Fix(
        name="18498-indexed-values-of-any-type",
        number=18498,
        release="1.3.1",
        kind=CRASH,
        broke="values of types that the profile does not have are indexed",
        edits=(
            Edit(
                f"{SUPPORT}.index_tensor_support:IndexTensorSupported.is_node_tosa_supported",
                "        values_dtype = input_val.dtype\n",
                "        return True\n\n        values_dtype = input_val.dtype\n",
            ),
        ),
    ),
    Fix(
        name="19151-resize-beyond-a-sixteenth",
        number=19151,
        release="1.3.1",
        kind=CRASH,
        broke="resizes that RESIZE does not allow are taken",
        edits=(
            Edit(
                f"{ARM}.tosa.resize_utils:get_tosa_resize_validation_error",
                "    scale_ints = _as_concrete_ints(scale)\n",
                "    return None\n\n    scale_ints = _as_concrete_ints(scale)\n",
            ),
        ),
    ),
    Fix(
        name="19662-squeeze-alone",
        number=19662,
        release="1.3.1",
        kind=CRASH,
        broke="a partition of a squeeze that changes nothing is taken",
        edits=(Edit(TAG, "or _is_noop_squeeze(node)", ""),),
    ),
    Fix(
        name="19689-symbolic-shapes",
        number=19689,
        release="1.3.1",
        kind=CRASH,
        broke="operators with symbolic shapes are taken without the extension for them",
        edits=(
            Edit(
                f"{OPERATORS}:SymbolicShapeSupportCheck.is_node_supported",
                "if self._has_symbolic_shape(node) or any(",
                "if False and any(",
            ),
        ),
    ),
    Fix(
        name="21284-long-strides-on-u55",
        number=21284,
        release="1.5.1",
        kind=LOST,
        broke="a max pool with a long stride is refused for Ethos-U55, though windows do not overlap",
        edits=(
            Edit(
                f"{PARTITIONER}:DecomposableLargeStrideMaxPool2dForU55Supported.is_node_supported",
                "if not self.tosa_spec.is_U55_subset or",
                "if True or",
            ),
        ),
    ),
    Fix(
        name="21393-unsigned-rescale-of-wide-inputs",
        number=21393,
        release="1.5.1",
        kind=CRASH,
        broke="a RESCALE goes from int32 to uint8, which TOSA does not have",
        edits=(
            Edit(
                f"{ARM}.operators.op_tosa_rescale:RescaleVisitor._build_rescale",
                "if output_unsigned and input_node.dtype not in (ts.DType.INT8, ts.DType.INT16):",
                "if False:",
            ),
        ),
        unreachable="inputs and outputs are int8: no target quantizes them to uint8",
    ),
    Fix(
        name="21735-argmax-cast-to-int32",
        number=21735,
        release="1.5.1",
        kind=LOST,
        broke="the cast of an argmax to int32 stays outside the delegate",
        edits=(
            Edit(
                f"{OPERATORS}:CheckInt64InputsAndOutputs._check_int64_input_nodes",
                "if self._is_argmax_int32_cast(node, input_node):",
                "if False:",
            ),
        ),
    ),
    Fix(
        name="22436-identity-permutes-alone",
        number=22436,
        release="1.5.1",
        kind=WRONG,
        broke="a partition of an identity permute alone declares an output that no operator writes",
        edits=(
            Edit(
                f"{PARTITIONER}:_is_noop_permute",
                "return normalized_dims == tuple(range(rank))",
                "return False",
            ),
        ),
    ),
    Fix(
        name="22555-complex-numbers",
        number=22555,
        release="1.5.1",
        kind=CRASH,
        broke="complex numbers are taken",
        edits=(
            Edit(
                f"{OPERATORS}:_disallowed_dtypes",
                "[torch.float64, torch.complex32, torch.complex64, torch.complex128]",
                "[torch.float64]",
            ),
        ),
    ),
    Fix(
        name="22558-comparisons-of-integers",
        number=22558,
        release="1.5.1",
        kind=CRASH,
        broke="of comparisons that the float profile lacks, only those of int32 are refused",
        edits=(
            Edit(
                f"{OPERATORS}:CheckFPComparisonInputs.is_node_supported",
                "if all(dtype in self.supported_dtypes for dtype in input_dtypes):",
                'if torch.int32 not in input_dtypes or "aten.ne" in str(node.target):',
            ),
        ),
    ),
)
