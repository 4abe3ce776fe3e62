"""Fixes of the Arm backend's quantizer."""

from __future__ import annotations

from lab.mutants.history.fix import WRONG, Fix
from lab.mutants.mutant import Edit

QUANTIZER = "executorch.backends.arm.quantizer"
ANNOTATOR = f"{QUANTIZER}.quantization_annotator"

FIXES = (
    Fix(
        name="16931-arguments-by-name-dropped",
        number=16931,
        release="1.3.1",
        kind=WRONG,
        broke="full, zeros and ones lose their dtype and device when they are quantized",
        edits=(
            Edit(
                f"{ANNOTATOR}:annotate_graph",
                "        mark_node_as_annotated(node)  # type: ignore[attr-defined]\n",
                "        mark_node_as_annotated(node)\n"
                '        if node.target.__name__.split(".")[0] in ("full_like", "full", "zeros", "ones"):\n'
                "            node.kwargs = {}\n",
            ),
        ),
    ),
    Fix(
        name="17842-scales-of-transposed-convs",
        number=17842,
        release="1.3.1",
        kind=WRONG,
        broke="scales of a transposed convolution lie along axis 1 whatever its groups, and are observed along axis 0",
        edits=(
            Edit(
                f"{ANNOTATOR}:_adjust_weight_qspec_for_conv_transpose",
                "expected_axis = 0 if groups != 1 else 1",
                "expected_axis = 1",
            ),
            Edit(
                f"{ANNOTATOR}:_adjust_weight_qspec_for_conv_transpose",
                "if isinstance(observer_or_fake_quant_ctr, PartialWrapper):",
                "if False:",
            ),
            Edit(
                f"{ANNOTATOR}:_adjust_weight_qspec_for_conv_transpose",
                'elif hasattr(observer_or_fake_quant_ctr, "with_args"):',
                "elif False:",
            ),
        ),
        unseen="observers take the axis from the specification, but those of quantization-aware training; "
        "and transposed convolutions in groups stop in DecomposeGroupedConvPass either way",
    ),
    Fix(
        name="18009-minimum-shares-a-scale",
        number=18009,
        release="1.3.1",
        kind=WRONG,
        broke="both operands and the result of minimum and maximum share one scale",
        edits=(
            Edit(
                f"{ANNOTATOR}:get_quant_properties",
                "            _QuantProperty(1, input_act_qspec),\n"
                "        ]\n"
                "        quant_properties.quant_output = _QuantProperty(0, output_act_qspec)\n"
                "    elif node.target in (torch.ops.aten.where.self,):\n",
                "            _QuantProperty(\n"
                "                1,\n"
                "                input_act_qspec\n"
                "                if node.args[0] is node.args[1]\n"
                "                else SharedQuantizationSpec((node.args[0], node)),\n"
                "            ),\n"
                "        ]\n"
                "        quant_properties.quant_output = _QuantProperty(\n"
                "            0, SharedQuantizationSpec((node.args[0], node))\n"
                "        )\n"
                "    elif node.target in (torch.ops.aten.where.self,):\n",
            ),
        ),
    ),
    Fix(
        name="21437-silu-shares-its-inputs-scale",
        number=21437,
        release="1.5.1",
        kind=WRONG,
        broke="the result of SiLU, which is narrower than its input, has its input's scale",
        edits=(
            Edit(
                f"{QUANTIZER}.quantization_config:TOSAQuantizationConfig.get_output_act_qspec",
                "if node.target not in self.SHARED_OUTPUT_ACT_QSPEC_PATTERNS:",
                "if node.target not in (\n"
                "            *self.SHARED_OUTPUT_ACT_QSPEC_PATTERNS,\n"
                "            torch.ops.aten.silu.default,\n"
                "            torch.ops.aten.silu_.default,\n"
                "        ):",
            ),
        ),
    ),
)
