"""Lowers a model of the matrix with the options of its row."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from torch import nn

from executorch_goldens import Build, Example
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.numerics.quantizing import convert, export_program
from executorch_goldens.exporting.observers import GridObserver
from executorch_goldens.exporting.targets import Lowering, with_observer
from executorch_goldens.patches.guard import resolve
from executorch_goldens.zoo.registry import ZooError
from lab.options.factors import OPTIONS, PLAIN, XNNPACK, Row
from lab.options.models import MODELS, dynamic_shapes

#: Folder of dumps, in the working directory of the export: it is a part of the program.
DUMPED = "dumped"
#: A quantization of inputs of one's own: what `QuantizeInputs` takes.
AGAIN: Mapping[str, Any] = {"scale": 2.0**-5, "zp": 128, "dtype": torch.uint8}
#: Ranges of the quantized values of a program's inputs and outputs.
RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int16: (-32767, 32767)}


class WrongUseError(ZooError):
    """An option that a row uses wrongly; nothing is recorded of that."""


@contextlib.contextmanager
def using(row: Row, *options: str) -> Iterator[None]:
    """Tell what is wrong with some options of a row; raise `WrongUseError`."""
    try:
        yield
    except WrongUseError:
        raise
    except Exception as error:
        used = ", ".join(f"{name} {getattr(row, name)!r}" for name in options)
        # From none: the innermost frame of a cause of the release's would make this a failure of the release's.
        cause = _first_cause(error)
        raise WrongUseError(f"the row uses {used} wrongly: {type(cause).__name__}: {cause}") from None


def _first_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _first_cause(error.__cause__)


def lacking(row: Row) -> Iterator[str]:
    """Yield what the installed release lacks for the options of a row."""
    for name, value in row._asdict().items():
        if name not in OPTIONS:
            continue
        if value not in OPTIONS[name]:
            yield f"{name} has no value {value!r}"
            continue
        yield from (need for need in OPTIONS[name][value].needs if not is_there(need))


def is_there(need: str) -> bool:
    """Return whether the installed release has what an option needs; see `lab.options.factors.Option`."""
    path, _, argument = need.removesuffix(")").partition("(")
    try:
        found = resolve(path)
    except (ImportError, AttributeError):
        return False
    if not argument:
        return True
    function = inspect.unwrap(found)
    if argument in inspect.signature(function).parameters:
        return True
    # An argument among keywords, which are taken out by name.
    return argument in getattr(getattr(function, "__code__", None), "co_consts", ())


def program(row: Row, build: Build) -> Any:
    """Return the program of a row; raise `WrongUseError`."""
    if missing := list(lacking(row)):
        raise WrongUseError(f"ExecuTorch {compat.installed_release()} lacks {', '.join(missing)}")
    model = MODELS[row.model]
    module, inputs = build.data.fill(model.make()).eval(), model.inputs(build.data, row.sized == "symbolic")
    shapes = dynamic_shapes(inputs) if row.sized == "symbolic" else None
    example = Example(module, inputs, fill=False, dynamic_shapes=shapes)
    exported = export_program(copy.deepcopy(module), example)
    quantized = None
    if row.quantized != "no":
        quantized = _quantized(row, example, exported)
        exported = export_program(quantized, example)
    edge = _lowered(row, exported)
    at_ends = Ends.from_edge(edge)
    shaped = {"dynamic_shapes": shapes} if shapes is not None else {}
    build.method(at_ends.around(module), at_ends.given(inputs), **shaped)
    if quantized is not None:
        build.quantized(at_ends.around(quantized))
    return edge.to_executorch(_backend_config(row))


# Quantization


def _quantized(row: Row, example: Example, exported: torch.export.ExportedProgram) -> nn.Module:
    with using(row, "quantized", "granularity", "scheme", "scope", "quantizer"):
        quantizer = _quantizer(row)
    if row.model == "condition":
        method = getattr(quantizer, "_quantize_with_submodules", None) or quantizer.quantize_with_submodules
        samples = [example.inputs, (example.inputs[0], torch.tensor(False))]
        # With gradients a condition is traced, which observers do not stand.
        with torch.no_grad():
            found: nn.Module = method(compat.graph_module(exported), samples)
        return found
    train = _leave if row.quantized == "trained" else None
    example = dataclasses.replace(example, quantizer=lambda target: quantizer, train=train)
    lowering = Lowering.named("xnnpack-int8" if row.backend == XNNPACK else "tosa-int")
    return convert(lowering, _NO_CASE, example, exported)


def _leave(prepared: nn.Module) -> None:
    """Train nothing: the ranges are those that were seen, by the configuration for training."""


#: Stands for the case of a target's own quantizer, which a row does not use.
_NO_CASE: Any = None


def _quantizer(row: Row) -> Any:
    config, other = _config(row), _config(row, turned=True)
    quantizer = _plain_quantizer(row)
    if row.scope == "linear only":
        quantizer.set_module_type(nn.Linear, config)
    elif row.scope == "head alone":
        quantizer.set_module_name("head", config)
    elif row.scope == "one operator" and row.backend == XNNPACK:
        quantizer.set_operator_type(torch.ops.aten.linear.default, config)
    elif row.scope == "one operator":
        quantizer.set_node_target(torch.ops.aten.linear.default, config)
    else:
        quantizer.set_global(config)
    if row.scope == "with io":
        quantizer.set_io(_io_config(row, config))
    elif row.scope == "head apart":
        quantizer.set_module_name("head", other)
    elif row.scope == "all but linear":
        quantizer.set_module_type(nn.Linear, None)
    elif row.scope == "without the head" and row.backend == XNNPACK:
        quantizer.set_filter_function(_not_of_head)
    elif row.scope == "without the head":
        quantizer.set_module_name("head", None)
    return quantizer


def _not_of_head(node: torch.fx.Node) -> bool:
    return not any("head" in path for path, _ in node.meta.get("nn_module_stack", {}).values())


def _plain_quantizer(row: Row) -> Any:
    if row.backend == XNNPACK:
        return importlib.import_module(_XNN_QUANTIZER).XNNPACKQuantizer()
    spec = _spec(row)
    # Only a composable one knows single operators, which 1.3.1 has not by default.
    if row.quantizer == PLAIN["quantizer"] and row.scope != "one operator":
        return compat.tosa_quantizer(spec)
    from executorch.backends.arm.quantizer import TOSAQuantizer

    default = inspect.signature(TOSAQuantizer.__init__).parameters["use_composable_quantizer"].default
    return TOSAQuantizer(spec, use_composable_quantizer=row.scope == "one operator" or not default)


_XNN_QUANTIZER = "executorch.backends.xnnpack.quantizer.xnnpack_quantizer"
_ARM_QUANTIZER = "executorch.backends.arm.quantizer"


def _config(row: Row, turned: bool = False) -> Any:
    """Return the configuration of a row; with the other granularity if it is `turned`."""
    module = importlib.import_module(_XNN_QUANTIZER if row.backend == XNNPACK else _ARM_QUANTIZER)
    arguments: dict[str, Any] = {"is_per_channel": (row.granularity == "per channel") != turned}
    arguments |= ARGUMENTS.get(row.quantized, {})
    name = "a16w8" if row.quantized == "16 bits" else ""
    make = getattr(module, f"get_symmetric_{name}_quantization_config".replace("__", "_"))
    # The releases' histograms follow the last bit of a sum.
    return _with_scheme(row, with_observer(make(**arguments), GridObserver))


#: Arguments of the configuration of a quantization.
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "dynamic": {"is_dynamic": True},
    "trained": {"is_qat": True},
    "4 bits": {"weight_qmin": -7, "weight_qmax": 7},
}


def _io_config(row: Row, config: Any) -> Any:
    if row.io != "uint8":
        return config
    from executorch.backends.arm.quantizer import get_uint8_io_quantization_config

    return with_observer(get_uint8_io_quantization_config(is_qat=row.quantized == "trained"), GridObserver)


def _with_scheme(row: Row, config: Any) -> Any:
    if row.scheme == PLAIN["scheme"]:
        return config
    if row.scheme == "no output":
        return dataclasses.replace(config, output_activation=None)
    activations = {
        name: dataclasses.replace(spec, qscheme=torch.per_tensor_symmetric)
        for name in ("input_activation", "output_activation")
        if (spec := getattr(config, name)) is not None
    }
    return dataclasses.replace(config, **activations)


# Lowering


def _lowered(row: Row, exported: torch.export.ExportedProgram) -> Any:
    with using(row, "dim_order", "preserved"):
        config = _edge_config(row)
    with using(
        row, "grouping", "precisions", "configs", "weights", "checks", "softmax", "pipeline", "special"
    ):
        partitioner = _partitioner(row)
    with _inserted(row):
        if row.lowering == "in two":
            edge = to_edge(exported, compile_config=config)
            edge = _transformed(row, edge)
            if row.backend == XNNPACK:
                edge = _with_io(row, edge)
            edge = edge.to_backend(partitioner)
        else:
            passes = _passes(row)
            edge = to_edge_transform_and_lower(
                exported,
                partitioner=[partitioner],
                compile_config=config,
                **({"transform_passes": passes} if passes is not None else {}),
            )
    return edge if row.backend == XNNPACK else _with_io(row, edge)


def _edge_config(row: Row) -> EdgeCompileConfig:
    linear = torch.ops.aten.linear.default
    return EdgeCompileConfig(
        _skip_dim_order=row.dim_order == "skipped",
        preserve_ops=[linear] if row.preserved == "linear" else [],
    )


def _passes(row: Row) -> Any:
    from lab.options.own import OwnPass

    if row.passes == "none":
        return None
    if row.passes == "list":
        return [OwnPass()]
    if row.passes == "by method":
        return {"forward": [OwnPass()]}
    from torch.fx.passes.infra.pass_manager import PassManager

    return PassManager([OwnPass()])


def _transformed(row: Row, edge: Any) -> Any:
    passes = _passes(row)
    return edge if passes is None else edge.transform(passes)


@contextlib.contextmanager
def _inserted(row: Row) -> Iterator[None]:
    """Have Arm's pipeline of passes run one more."""
    if row.special != "inserted":
        yield
        return
    from executorch.backends.arm._passes import InsertTableOpsPass, arm_pass_manager

    from lab.options.own import Idle

    arm_pass_manager.register_pass_insertions_before(InsertTableOpsPass, [Idle()])
    try:
        yield
    finally:
        arm_pass_manager.clear_registered_pass_insertions()


def _with_io(row: Row, edge: Any) -> Any:
    """Quantize the inputs and outputs of a program as its row says."""
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs

    if row.io == "float":
        return edge
    model, passes = MODELS[row.model], []
    if row.io != "int8 out":
        places = list(range(len(model.shapes)))
        given: Any = {place: dict(AGAIN) for place in places} if row.io == "uint8 again" else places
        passes.append(QuantizeInputs(edge, given))
    passes.append(QuantizeOutputs(edge, [0]))
    with using(row, "io"):
        return edge.transform(passes)


def _partitioner(row: Row) -> Any:
    if row.backend == XNNPACK:
        return _xnnpack_partitioner(row)
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

    from lab.options.own import NoLinear

    checks = {"additional_checks": [NoLinear()]} if row.checks == "no linear" else {}
    return TOSAPartitioner(_spec(row), **checks)


def _xnnpack_partitioner(row: Row) -> Any:
    from executorch.backends.xnnpack.partition import config as configs
    from executorch.backends.xnnpack.partition import xnnpack_partitioner as module
    from executorch.backends.xnnpack.partition.config.gemm_configs import GEMMConfig
    from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType as Precision

    own = {"no": "FP32", "dynamic": "DYNAMIC_QUANT"}.get(row.quantized, "STATIC_QUANT")
    if row.precisions == "class":
        named = {
            "FP32": "FloatingPoint",
            "DYNAMIC_QUANT": "DynamicallyQuantized",
            "STATIC_QUANT": "Quantized",
        }
        return getattr(module, f"Xnnpack{named[own]}Partitioner")()
    arguments: dict[str, Any] = {}
    if row.grouping == "per operator":
        arguments["per_op_mode"] = True
    if row.precisions == "float":
        arguments["config_precisions"] = Precision.FP32
    if row.configs == "layers":
        layers = [each for each in configs.ALL_PARTITIONER_CONFIGS if issubclass(each, GEMMConfig)]
        arguments["configs"] = layers
    if row.weights == "given":
        arguments["force_non_static_weights_for_f32_linear"] = True
    return module.XnnpackPartitioner(**arguments)


def _spec(row: Row) -> Any:
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    spec = TosaCompileSpec(row.backend)
    if row.dumped != "nothing":
        spec.dump_intermediate_artifacts_to(DUMPED)
        spec.dump_debug_info(TosaCompileSpec.DebugMode[row.dumped])
    if row.special == "io kept":
        spec._set_preserve_io_quantization(True)
    if row.special == "developer":
        spec._set_tosa_dev_mode(True)
    if fields := dict(_pipeline(row)):
        from executorch.backends.arm.common.pipeline_config import ArmPassPipelineConfig

        spec.set_pass_pipeline_config(ArmPassPipelineConfig(**fields))
    return spec


def _pipeline(row: Row) -> Iterator[tuple[str, Any]]:
    """Yield the fields of the configuration of Arm's passes that a row sets."""
    from executorch.backends.arm.common import pipeline_config as module

    if row.softmax != "the release's":
        yield "softmax", module.SoftmaxDecompositionConfig[row.softmax.upper()]
    if row.pipeline == "table":
        yield "leaky_relu", module.LeakyReLULoweringConfig.TABLE
    if row.pipeline == "infinities":
        yield "quantize_inf", module.QuantizeInfConfig(-100.0, 100.0)
    if row.pipeline == "guards":
        yield "sdpa_safe_softmax_guard", module.SDPASafeSoftmaxGuardPolicy.REMOVE


# Emission


def _backend_config(row: Row) -> ExecutorchBackendConfig:
    fields: dict[str, Any] = {
        "memory_planning_pass": _plan(row),
        "external_constants": row.constants == "outside",
        "external_mutable_weights": row.constants == "changing outside",
        "extract_delegate_segments": row.blobs == "in segments",
        "remove_view_copy": row.views == "removed",
        "emit_mutable_buffer_names": row.names == "emitted",
        "run_reinplace_pass": row.in_place == "yes",
        "do_quant_fusion_and_const_prop": row.fused == "yes",
    }
    if row.alignment == "wider":
        fields |= {"segment_alignment": 4096, "constant_tensor_alignment": 64, "delegate_alignment": 64}
    if row.symbols == "by hint":
        from executorch.exir.passes.sym_shape_eval_pass import HintBasedSymShapeEvalPass

        fields["sym_shape_eval_pass"] = HintBasedSymShapeEvalPass()
    with using(row, "plan", "constants", "alignment", "symbols"):
        return ExecutorchBackendConfig(**fields)


def _plan(row: Row) -> Any:
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, naive
    from executorch.exir.passes import MemoryPlanningPass

    arguments: dict[str, Any] = {
        "the release's": {},
        "naive": {"memory_planning_algo": MemoryPlanningAlgorithmSuite([naive])},
        "neither, aligned": {"alloc_graph_input": False, "alloc_graph_output": False, "alignment": 64},
    }[row.plan]
    return MemoryPlanningPass(**arguments)


# What the program takes and gives


@dataclasses.dataclass(frozen=True)
class Scale:
    """A quantization of an input or of an output."""

    scale: float
    zero_point: int
    dtype: torch.dtype

    def quantize(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized_decomposed.quantize_per_tensor(x, *self._arguments())  # type: ignore[no-any-return]

    def dequantize(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized_decomposed.dequantize_per_tensor(x, *self._arguments())  # type: ignore[no-any-return]

    def _arguments(self) -> tuple[Any, ...]:
        return (self.scale, self.zero_point, *RANGES[self.dtype], self.dtype)


class AtEnds(nn.Module):
    """A model whose inputs and outputs are quantized."""

    def __init__(self, model: nn.Module, taken: Mapping[int, Scale], made: Scale | None) -> None:
        super().__init__()
        self.model, self.taken, self.made = model, taken, made

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        given = [self.taken[at].dequantize(x) if at in self.taken else x for at, x in enumerate(inputs)]
        found: torch.Tensor = self.model(*given)
        return found if self.made is None else self.made.quantize(found)


@dataclasses.dataclass(frozen=True)
class Ends:
    """The quantizations of a program's inputs, by place, and of its output, as the program itself tells them."""

    taken: Mapping[int, Scale]
    made: Scale | None

    @classmethod
    def from_edge(cls, edge: Any) -> Ends:
        told = edge._config_methods or {}
        dtypes = {compat_enum(dtype): dtype for dtype in RANGES}

        def scale(name: str) -> Scale | None:
            if f"{name}_scale" not in told:
                return None
            return Scale(told[f"{name}_scale"], told[f"{name}_zp"], dtypes[told[f"{name}_dtype"]])

        taken = {at: found for at in range(2) if (found := scale(f"input{at}")) is not None}
        return cls(taken, scale("output0"))

    def around(self, module: nn.Module) -> nn.Module:
        return AtEnds(module, self.taken, self.made) if self.taken or self.made else module

    def given(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return tuple(self.taken[at].quantize(x) if at in self.taken else x for at, x in enumerate(inputs))


def compat_enum(dtype: torch.dtype) -> int:
    """Return the number of a dtype in a program."""
    from executorch.exir.tensor import scalar_type_enum

    return int(scalar_type_enum(dtype))
