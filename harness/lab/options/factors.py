"""The options of the matrix, their values, the releases that have these, and which of them go together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

RELEASES = ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1")

XNNPACK = "xnnpack"
INT_TOSA = "TOSA-1.0+INT"
#: What an Ethos-U85 takes: 16 and 4 bits, and conditions in the delegate.
WIDE_TOSA = "TOSA-1.0+INT+int16+int4+cf"
LATER_TOSA = "TOSA-1.1+INT+FP"


@dataclass(frozen=True)
class Option:
    """A value of an option.

    Attributes
    ----------
    says
        How it is set, for the page.
    needs
        What a release must have for it: ``module:qualified.name``, or ``module:qualified.name(argument)``.
    releases
        Those that have it.
    """

    says: str = ""
    needs: tuple[str, ...] = ()
    releases: tuple[str, ...] = RELEASES


class Row(NamedTuple):
    """A program: the model, and a value of each option."""

    model: str
    backend: str
    quantized: str
    granularity: str
    scheme: str
    scope: str
    quantizer: str
    io: str
    sized: str
    lowering: str
    passes: str
    dim_order: str
    preserved: str
    grouping: str
    precisions: str
    configs: str
    weights: str
    checks: str
    softmax: str
    pipeline: str
    dumped: str
    special: str
    plan: str
    constants: str
    blobs: str
    alignment: str
    views: str
    symbols: str
    names: str
    in_place: str
    fused: str


_ARM = "executorch.backends.arm"
_QUANTIZER = f"{_ARM}.quantizer:TOSAQuantizer"
_SPEC = f"{_ARM}.tosa.compile_spec:TosaCompileSpec"
_PIPELINE = f"{_ARM}.common.pipeline_config"
_PASSES = f"{_ARM}._passes.arm_pass_manager"
_EDGE, _CONFIG = "executorch.exir:EdgeCompileConfig", "executorch.exir:ExecutorchBackendConfig"
_PLAN, _ALGORITHM = "executorch.exir.passes:MemoryPlanningPass", "executorch.exir.memory_planning"
_XNNPACK = "executorch.backends.xnnpack"
_PARTITIONER = f"{_XNNPACK}.partition.xnnpack_partitioner:XnnpackPartitioner"
_XNN_CONFIG = f"{_XNNPACK}.partition.config.xnnpack_config"
_XNN_QUANTIZER = f"{_XNNPACK}.quantizer.xnnpack_quantizer:XNNPACKQuantizer"
_IO = "executorch.exir.passes.quantize_io_pass"
FROM_1_2, FROM_1_3, FROM_1_4, FROM_1_5 = (RELEASES[at:] for at in (1, 2, 3, 4))

#: The values of each option; the first one is what a release does unasked, or what does without the option.
OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "backend": {
        XNNPACK: Option("XnnpackPartitioner, XNNPACKQuantizer"),
        **{name: Option(f'TosaCompileSpec("{name}")') for name in (INT_TOSA, WIDE_TOSA)},
        LATER_TOSA: Option(
            f'TosaCompileSpec("{LATER_TOSA}")',
            (f"{_ARM}.tosa.specification:TosaSpecification._SUPPORTED_VERSIONS",),
            FROM_1_2,
        ),
    },
    "quantized": {
        "no": Option("the model as it is"),
        "static": Option("get_symmetric_quantization_config()"),
        "dynamic": Option("get_symmetric_quantization_config(is_dynamic=True)"),
        "trained": Option("get_symmetric_quantization_config(is_qat=True), prepare_qat_pt2e"),
        "16 bits": Option(
            "get_symmetric_a16w8_quantization_config()",
            (f"{_ARM}.quantizer:get_symmetric_a16w8_quantization_config",),
        ),
        "4 bits": Option("get_symmetric_quantization_config(weight_qmin=-7, weight_qmax=7)"),
    },
    "granularity": {
        "per channel": Option("is_per_channel=True"),
        "per tensor": Option("is_per_channel=False"),
    },
    "scheme": {
        "affine": Option("activations as the configuration has them"),
        "symmetric": Option("activations with the qscheme per_tensor_symmetric"),
        "no output": Option(
            "output_activation=None: what an operator gives is quantized where the next takes it"
        ),
    },
    "scope": {
        "all": Option("set_global"),
        "with io": Option("set_global, set_io", (f"{_QUANTIZER}.set_io",)),
        "head apart": Option("set_module_name for the last layer: the other granularity"),
        "linear only": Option("set_module_type(torch.nn.Linear)"),
        "without the head": Option(
            "set_module_name with None (Arm), set_filter_function (XNNPACK): the last layer stays float",
            (f"{_XNN_QUANTIZER}.set_filter_function",),
        ),
        "all but linear": Option("set_global, set_module_type(torch.nn.Linear, None)"),
        "head alone": Option("set_module_name for the last layer, and no set_global"),
        "one operator": Option(
            "set_node_target (Arm), set_operator_type (XNNPACK): aten.linear",
            (f"{_QUANTIZER}.set_node_target", f"{_XNN_QUANTIZER}.set_operator_type"),
            FROM_1_3,
        ),
    },
    "quantizer": {
        "the release's": Option("TOSAQuantizer as the release has it"),
        "other": Option(
            "use_composable_quantizer: not as it is by default",
            (f"{_QUANTIZER}(use_composable_quantizer)",),
            FROM_1_3,
        ),
    },
    "io": {
        "float": Option("inputs and outputs as the model has them"),
        "int8": Option(
            "QuantizeInputs, QuantizeOutputs", (f"{_IO}:QuantizeInputs", f"{_IO}:QuantizeOutputs")
        ),
        "int8 out": Option("QuantizeOutputs", (f"{_IO}:QuantizeOutputs",)),
        "uint8": Option(
            "both, set_io(get_uint8_io_quantization_config())",
            (f"{_ARM}.quantizer:get_uint8_io_quantization_config",),
            FROM_1_3,
        ),
        "uint8 again": Option(
            "QuantizeInputs with a scale, a zero point and uint8 of one's own", (f"{_IO}:QuantizeInputs",)
        ),
    },
    "sized": {"plain": Option("sizes are known"), "symbolic": Option("the first size is symbolic")},
    "lowering": {
        "at once": Option("to_edge_transform_and_lower"),
        "in two": Option("to_edge, then to_backend"),
    },
    "passes": {
        "none": Option("no pass of one's own"),
        "list": Option("transform_passes=[OwnPass()]"),
        "by method": Option('transform_passes={"forward": [OwnPass()]}'),
        "manager": Option("transform_passes=PassManager([OwnPass()])"),
    },
    "dim_order": {
        "used": Option("_skip_dim_order=False"),
        "skipped": Option("_skip_dim_order=True", (f"{_EDGE}(_skip_dim_order)",)),
    },
    "preserved": {
        "nothing": Option("preserve_ops=[]"),
        "linear": Option("preserve_ops=[aten.linear.default]", (f"{_EDGE}(preserve_ops)",)),
    },
    "grouping": {
        "merged": Option("XnnpackPartitioner()"),
        "per operator": Option("XnnpackPartitioner(per_op_mode=True)", (f"{_PARTITIONER}(per_op_mode)",)),
    },
    "precisions": {
        "any": Option("XnnpackPartitioner()"),
        "float": Option(
            "config_precisions=ConfigPrecisionType.FP32",
            (f"{_XNN_CONFIG}:ConfigPrecisionType.FP32", f"{_PARTITIONER}(config_precisions)"),
        ),
        "class": Option(
            "XnnpackFloatingPoint-, -Quantized- or -DynamicallyQuantizedPartitioner",
            (f"{_XNNPACK}.partition.xnnpack_partitioner:XnnpackDynamicallyQuantizedPartitioner",),
        ),
    },
    "configs": {
        "all": Option("XnnpackPartitioner()"),
        "layers": Option("configs: those of linear layers and convolutions", (f"{_PARTITIONER}(configs)",)),
    },
    "weights": {
        "held": Option("XnnpackPartitioner()"),
        "given": Option(
            "force_non_static_weights_for_f32_linear=True",
            (f"{_XNN_CONFIG}:XNNPartitionerConfig.__init__(force_non_static_weights_for_f32_linear)",),
        ),
    },
    "checks": {
        "none": Option("TOSAPartitioner(spec)"),
        "no linear": Option(
            "additional_checks: one that takes no linear layer",
            (f"{_ARM}.tosa.partitioner:TOSAPartitioner(additional_checks)",),
        ),
    },
    "softmax": {
        "the release's": Option("ArmPassPipelineConfig()"),
        "stable": Option(
            "softmax=SoftmaxDecompositionConfig.STABLE",
            (f"{_PIPELINE}:SoftmaxDecompositionConfig.STABLE",),
            FROM_1_2,
        ),
    },
    "pipeline": {
        "the release's": Option("ArmPassPipelineConfig()"),
        "table": Option(
            "leaky_relu=LeakyReLULoweringConfig.TABLE",
            (f"{_PIPELINE}:LeakyReLULoweringConfig.TABLE",),
            FROM_1_4,
        ),
        "infinities": Option(
            "quantize_inf=QuantizeInfConfig(-100, 100)", (f"{_PIPELINE}:QuantizeInfConfig",), FROM_1_4
        ),
        "guards": Option(
            "sdpa_safe_softmax_guard=SDPASafeSoftmaxGuardPolicy.REMOVE",
            (f"{_PIPELINE}:SDPASafeSoftmaxGuardPolicy.REMOVE",),
            FROM_1_5,
        ),
    },
    "dumped": {
        "nothing": Option("no debug mode"),
        "TOSA": Option(
            "dump_intermediate_artifacts_to, dump_debug_info(DebugMode.TOSA)",
            (f"{_SPEC}.dump_debug_info", f"{_SPEC}.DebugMode.TOSA"),
        ),
        "JSON": Option(
            "dump_intermediate_artifacts_to, dump_debug_info(DebugMode.JSON)",
            (f"{_SPEC}.dump_debug_info", f"{_SPEC}.DebugMode.JSON"),
        ),
    },
    "special": {
        "nothing": Option("TosaCompileSpec(...)"),
        "io kept": Option(
            "_set_preserve_io_quantization(True)", (f"{_SPEC}._set_preserve_io_quantization",), FROM_1_3
        ),
        "developer": Option("_set_tosa_dev_mode(True)", (f"{_SPEC}._set_tosa_dev_mode",), FROM_1_4),
        "inserted": Option(
            "register_pass_insertions_before(InsertTableOpsPass, [Idle()])",
            (f"{_PASSES}:register_pass_insertions_before",),
            FROM_1_3,
        ),
    },
    "plan": {
        "the release's": Option("MemoryPlanningPass()"),
        "naive": Option("MemoryPlanningAlgorithmSuite([naive])", (f"{_ALGORITHM}:naive",)),
        "neither, aligned": Option(
            "alloc_graph_input=False, alloc_graph_output=False, alignment=64", (f"{_PLAN}(alignment)",)
        ),
    },
    "constants": {
        "inside": Option("external_constants=False"),
        "outside": Option("external_constants=True", (f"{_CONFIG}(external_constants)",)),
        "changing outside": Option(
            "external_mutable_weights=True", (f"{_CONFIG}(external_mutable_weights)",)
        ),
    },
    "blobs": {
        "in segments": Option("extract_delegate_segments=True"),
        "inside": Option("extract_delegate_segments=False", (f"{_CONFIG}(extract_delegate_segments)",)),
    },
    "alignment": {
        "the release's": Option("segment_alignment=128"),
        "wider": Option(
            "segment_alignment=4096, constant_tensor_alignment=64, delegate_alignment=64",
            tuple(
                f"{_CONFIG}({name})"
                for name in ("segment_alignment", "constant_tensor_alignment", "delegate_alignment")
            ),
        ),
    },
    "views": {
        "removed": Option("remove_view_copy=True"),
        "kept": Option("remove_view_copy=False", (f"{_CONFIG}(remove_view_copy)",)),
    },
    "symbols": {
        "by constraint": Option("ConstraintBasedSymShapeEvalPass()"),
        "by hint": Option("HintBasedSymShapeEvalPass()", (f"{_CONFIG}(sym_shape_eval_pass)",)),
    },
    "names": {
        "left out": Option("emit_mutable_buffer_names=False"),
        "emitted": Option("emit_mutable_buffer_names=True", (f"{_CONFIG}(emit_mutable_buffer_names)",)),
    },
    "in_place": {
        "no": Option("run_reinplace_pass=False"),
        "yes": Option("run_reinplace_pass=True", (f"{_CONFIG}(run_reinplace_pass)",)),
    },
    "fused": {
        "no": Option("do_quant_fusion_and_const_prop=False"),
        "yes": Option("do_quant_fusion_and_const_prop=True", (f"{_CONFIG}(do_quant_fusion_and_const_prop)",)),
    },
}

#: The default of each option.
PLAIN = {name: next(iter(values)) for name, values in OPTIONS.items()}
#: Options of one backend alone.
OF_XNNPACK = ("grouping", "precisions", "configs", "weights", "sized", "symbols")
OF_TOSA = ("backend", "quantizer", "checks", "softmax", "pipeline", "dumped", "special")
#: Options that no backend sees: XNNPACK's array alone has them.
OF_NO_BACKEND = (
    *("passes", "dim_order", "preserved", "plan", "constants", "blobs", "alignment"),
    *("views", "names", "in_place", "fused"),
)


def row(**given: str) -> Row:
    """Return a row; options that are not given are as the release has them."""
    return Row(**{**PLAIN, **given})


Rule = tuple[tuple[str, ...], Callable[[Mapping[str, Any]], bool]]


def _factors(
    models: Sequence[str], without: Sequence[str], lacking: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[object]]:
    """Return models and the values of all options but some, without those that the backend is lacking."""
    of_options = {
        name: tuple(value for value in values if value not in lacking.get(name, ()))
        for name, values in OPTIONS.items()
        if name not in without
    }
    return {"model": tuple(models), **of_options}


def _only(option: str, value: str, other: str, *values: str) -> Rule:
    """Return the rule that a value of one factor goes with some values of another."""
    return (option, other), lambda row: row[option] != value or row[other] in values


def _unless(option: str, other: str, *values: str) -> Rule:
    """Return the rule that values of an option that are not its default go with some values of another."""
    return (option, other), lambda row: row[option] == PLAIN[option] or row[other] in values


def _together() -> Iterator[Rule]:
    """Yield the rules that some release has both values of two options: releases are in a row, so it has all."""
    limited = [
        name
        for name, values in OPTIONS.items()
        if any(option.releases != RELEASES for option in values.values())
    ]
    for one, other in itertools.combinations(limited, 2):
        yield (one, other), _is_together(one, other)


def _is_together(one: str, other: str) -> Callable[[Mapping[str, Any]], bool]:
    def holds(row: Mapping[str, Any]) -> bool:
        releases = OPTIONS[one][row[one]].releases
        return any(release in releases for release in OPTIONS[other][row[other]].releases)

    return holds


QUANTIZED = ("static", "dynamic", "trained", "16 bits", "4 bits")
OF_BOTH: Sequence[Rule] = (
    *(_unless(option, "quantized", *QUANTIZED) for option in ("granularity", "scope")),
    # Dynamic symmetric parameters have no out variant: see `REFUSED`.
    _unless("scheme", "quantized", "static", "trained", "16 bits", "4 bits"),
    _only("scheme", "no output", "quantized", "static", "16 bits"),
    _only("scheme", "no output", "scope", "all"),
    _only("scheme", "no output", "io", "float"),
    _only("scheme", "no output", "model", "linear", "convolution"),
)

#: XNNPACK's own, as `lab.options.cases.ARRAYS` has them.
XNNPACK_FACTORS = _factors(
    ("linear", "convolution", "elementwise", "state"),
    OF_TOSA,
    {"quantized": ("16 bits", "4 bits"), "scope": ("with io",), "io": ("uint8", "int8 out")},
)
XNNPACK_RULES: Sequence[Rule] = (
    *OF_BOTH,
    # It takes the operators at the ends of a program into the delegate, so they are removed before it is partitioned:
    # of models whose first operator is quantized.
    _unless("io", "quantized", "static", "trained"),
    _unless("io", "scope", "all"),
    _unless("io", "lowering", "in two"),
    _unless("io", "model", "linear", "convolution", "elementwise"),
    _unless("sized", "model", "linear", "elementwise"),
)

#: The quantizations that each specification takes.
TAKEN = {
    INT_TOSA: ("static", "trained"),
    WIDE_TOSA: ("static", "16 bits", "4 bits"),
    LATER_TOSA: ("no", "static", "trained"),
}
TOSA_FACTORS = _factors(
    ("convolution", "attention", "activations", "condition"),
    (*OF_XNNPACK, *OF_NO_BACKEND),
    {"backend": (XNNPACK,), "quantized": ("dynamic",), "scope": ("head apart",), "io": ("uint8 again",)},
)
TOSA_RULES: Sequence[Rule] = (
    *OF_BOTH,
    *_together(),
    _unless("quantizer", "quantized", *QUANTIZED),
    (("backend", "quantized"), lambda row: row["quantized"] in TAKEN[row["backend"]]),
    # With float it takes the operators at the ends of a program into the delegate, unless an option leaves them.
    _unless("io", "quantized", "static", "trained"),
    _unless("io", "scope", "with io"),
    (
        ("io", "backend", "special"),
        lambda row: (
            row["io"] == "float" or row["backend"] in (INT_TOSA, WIDE_TOSA) or row["special"] == "io kept"
        ),
    ),
    # What an option of the passes decides about.
    _only("softmax", "stable", "model", "attention"),
    _only("pipeline", "table", "model", "activations"),
    _only("pipeline", "infinities", "model", "attention"),
    _only("pipeline", "guards", "model", "attention"),
    _unless("pipeline", "quantized", "static"),
    # Nor who has no quantized output.
    *(_only("scheme", "no output", option, PLAIN[option]) for option in ("softmax", "pipeline", "dumped")),
    *(_only("scheme", "no output", option, PLAIN[option]) for option in ("special", "checks", "quantizer")),
    # Single operators are for a composable one, which is not every release's.
    _only("quantizer", "other", "scope", "all", "with io", "linear only", "without the head"),
    _unless("scope", "quantized", "static", "trained"),
    # What neither the passes nor the serializer see of a quantizer.
    *(_unless(option, "scope", "all") for option in ("softmax", "pipeline")),
    *(_unless("pipeline", option, PLAIN[option]) for option in ("dumped", "special", "checks")),
    *(_only("special", value, "io", "float") for value in ("developer", "inserted")),
    *(_unless(option, "scope", "all", "with io") for option in ("dumped", "special", "checks")),
    *(_unless(option, "quantized", "no", "static", "trained") for option in ("dumped", "special")),
    _unless("dumped", "io", "float"),
    # 8 bits are for the narrower ones, but for what only this one takes.
    (
        ("model", "backend", "quantized"),
        lambda row: (
            row["backend"] != WIDE_TOSA or (row["quantized"] == "static") == (row["model"] == "condition")
        ),
    ),
    # Both branches are in a delegate, and quantized with the whole model.
    _only("model", "condition", "backend", WIDE_TOSA),
    _only("model", "condition", "quantized", "static"),
    _only("model", "condition", "scope", "with io"),
    _only("model", "condition", "io", "float"),
    *(_only("model", "condition", option, PLAIN[option]) for option in ("dumped", "special", "checks")),
)

#: What no row has although some release has it, and why.
REFUSED = (
    "`emit_stacktrace=True`: 1.5.1 refuses nearly every program with it; the emitter keeps no trace of the call of a "
    "delegate, and then refuses the next operator's",
    "`get_symmetric_quantization_config(is_dynamic=True)` of Arm's quantizer: 1.5.1 refuses nearly every program; the "
    "scale of a bias is asked of an observer that has none",
    "dynamic quantization with symmetric activations: 1.5.1 has no out variant of "
    "`quantized_decomposed::choose_qparams_symmetric`, so that what is outside a delegate cannot run",
    "`SoftmaxDecompositionConfig.UNSTABLE` and `FuseDuplicateUsersConfig`: 1.1.0 and 1.2.0 alone have them",
    "`set_output_order_workaround`: deprecated since 1.3.1, gone in 1.5.1",
    "`_check_ir_validity`, `_core_aten_ops_exception_list`, `enable_non_cpu_memory_planning`: they leave out checks, "
    "or what a program for the processor has nothing of",
)
#: What no release has, for the page, and what would have to be there.
LACKED: Mapping[str, str] = {
    "XnnpackPartitioner(force_fp32_dynamic_linear=...)": (
        f"{_XNN_CONFIG}:XNNPartitionerConfig.__init__(force_fp32_dynamic_linear)"
    ),
    "a configuration for inputs and outputs of XNNPACK's quantizer (set_io)": f"{_XNN_QUANTIZER}.set_io",
    "a quantization of one's own for outputs: QuantizeOutputs takes that of the program": (
        f"{_IO}:QuantizeOutputs(qparams)"
    ),
}
