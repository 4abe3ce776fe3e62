"""Makes quantizer and partitioner of a target from its entry in `executorch_goldens.zoo.targets`."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower
from executorch.exir.backend.partitioner import Partitioner
from torchao.quantization.pt2e import FixedQParamsObserver, HistogramObserver
from torchao.quantization.pt2e.quantizer import QuantizationSpec

from executorch_goldens.exporting import compat
from executorch_goldens.exporting.data import Example, cast
from executorch_goldens.exporting.eager import Float8InFloat32
from executorch_goldens.exporting.observers import GridHistogramObserver, GridObserver
from executorch_goldens.exporting.observing import Simulator
from executorch_goldens.files.wording import type_of
from executorch_goldens.patches.guard import resolve
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.targets import TOSA, Quantization, Target, TargetError


@dataclass(frozen=True)
class Lowering:
    """A target as objects of the installed release.

    Attributes
    ----------
    target
        Its origin.
    lower
        Function from an exported program to the lowered one.
    quantizer
        Function from the case's quantizer settings to a quantizer; None for float targets.
    simulator
        Runs a delegate, in place of the TOSA reference model.
    """

    target: Target
    lower: Callable[[torch.export.ExportedProgram], EdgeProgramManager]
    quantizer: Callable[[str], Any] | None
    simulator: Simulator | None = None

    @classmethod
    def named(cls, name: str) -> Lowering:
        """Return that of the target called `name`; raise `targets.UnknownTargetError` or `TargetError`."""
        return cls.for_target(targets.find(name))

    @classmethod
    def for_target(cls, target: Target) -> Lowering:
        """Return that of `target`; raise `TargetError` for a function that the environment does not have."""
        compat.load_backends(target)
        simulator = _function(target, "simulator", target.simulator) if target.simulator else None
        return cls(target, _lower(target), _quantizer(target), simulator)

    def cast(self, example: Example) -> Example:
        """Return `example` with its floating weights, buffers and inputs in the target's dtype.

        A model that holds or takes some of that dtype already says itself what is.
        """
        if not self.target.dtype:
            return example
        dtype = getattr(torch, self.target.dtype)
        if any(x.dtype is dtype for x in (*example.module.state_dict().values(), *example.tensors)):
            return example
        made = example.with_tensors(cast(example.tensors, dtype))
        return dataclasses.replace(
            made,
            module=example.module.to(dtype),
            recordings={name: cast(tensors, dtype) for name, tensors in example.recordings.items()},
            calibrating=tuple(cast(tensors, dtype) for tensors in example.calibrating),
        )

    def quantizer_for(self, case: Case, example: Example) -> Any:
        """Return a quantizer: the case's own, or that of the target; None for a float target."""
        if self.quantizer is None:
            return None
        own = example.quantizer(self.target) if example.quantizer is not None else None
        if own is not None:
            return own
        return (self.trained() if example.train is not None else self.quantizer)(case.quantization)

    def trained(self) -> Callable[[str], Any]:
        """Return a maker of the quantizer of a model that is trained: the release's config for that."""
        quantization = self.target.quantization
        assert self.quantizer is not None
        if quantization is None:
            return self.quantizer
        trains = dataclasses.replace(quantization, arguments={**quantization.arguments, "is_qat": True})
        return partial(_annotator, self.target, trains)

    def eager(self) -> AbstractContextManager[object]:
        """Return a context in which eager torch computes the target's dtype."""
        if not self.target.dtype.startswith("float8"):
            return nullcontext()
        return Float8InFloat32()  # type: ignore[no-untyped-call]


def _lower(target: Target) -> Callable[[torch.export.ExportedProgram], EdgeProgramManager]:
    if target.lower:
        return _function(target, "lower", target.lower)
    partitioner = _partitioner(target)

    def lower(program: torch.export.ExportedProgram) -> EdgeProgramManager:
        # The verifier rejects some of the zoo's edge graphs on 1.1.0 before any backend sees them; the upstream
        # reports switch it off as well, and their graph digests depend on nothing else.
        config = EdgeCompileConfig(_check_ir_validity=False)
        return to_edge_transform_and_lower(program, partitioner=[partitioner()], compile_config=config)

    return lower


def _partitioner(target: Target) -> Callable[[], Any]:
    """Return what makes the partitioner; raise `TargetError` where a function of the target's makes something else."""
    if target.partitioner:
        make = _function(target, "partitioner", target.partitioner)
        try:
            made = make()
        except Exception:
            # The export calls it too, and reports the error with its place.
            return make
        if not isinstance(made, Partitioner):
            raise TargetError(
                f"target {target.name!r}: partitioner: {target.partitioner} returns {type_of(made)}, and no Partitioner"
            )
        return make
    if target.backend == TOSA:
        from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

        return lambda: TOSAPartitioner(_compile_spec(target))
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return XnnpackPartitioner  # type: ignore[no-any-return]


def _compile_spec(target: Target) -> Any:
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    return TosaCompileSpec(target.specification)


def _quantizers(backend: str) -> Any:
    """Return the module of a backend's quantizer; all five releases have the class of its configs there as well."""
    if backend == TOSA:
        return importlib.import_module("executorch.backends.arm.quantizer")
    return importlib.import_module("executorch.backends.xnnpack.quantizer.xnnpack_quantizer")


def _quantizer(target: Target) -> Callable[[str], Any] | None:
    if target.quantizer:
        return _function(target, "quantizer", target.quantizer)
    if target.quantization is None:
        return None
    module = _quantizers(target.backend)
    config = target.quantization.config
    if not hasattr(module, config):
        raise TargetError(
            f"target {target.name!r}: quantization.config: {module.__name__} has no {config} in ExecuTorch "
            f"{compat.installed_release()}"
        )
    return partial(_annotator, target, target.quantization)


def _function(target: Target, field: str, path: str) -> Callable[..., Any]:
    """Return the function that a target names; raise `TargetError`."""
    try:
        function = resolve(path)
    except (ImportError, AttributeError) as error:
        raise TargetError(f"target {target.name!r}: {field}: {path} cannot be imported: {error}") from error
    if not callable(function):
        raise TargetError(f"target {target.name!r}: {field}: {path} is no function")
    return function  # type: ignore[no-any-return]


def _annotator(target: Target, quantization: Quantization, settings: str) -> Any:
    """Return the quantizer that a quantization describes, with the case's settings."""
    config = config_of(target.backend, quantization, settings)
    if target.backend == TOSA:
        quantizer = compat.tosa_quantizer(_compile_spec(target))
    else:
        quantizer = _quantizers(target.backend).XNNPACKQuantizer()
    for module in quantization.modules:
        quantizer.set_module_type(attrgetter(module.removeprefix("torch."))(torch), config)
    if not quantization.modules:
        quantizer.set_global(config)
        # As upstream's examples have it. Up to 1.3.1 it quantizes inputs that are whole numbers as well.
        if target.backend == TOSA and settings != "as-upstream-tests":
            quantizer.set_io(config)
    if settings == "int8-head" and quantization.config != targets.INT8_CONFIG:
        quantizer.set_module_name("head", config_of(target.backend, Quantization(), settings))
    return quantizer


def config_of(backend: str, quantization: Quantization, settings: str) -> Any:
    """Return the config that `settings`, one of `zoo.targets.QUANTIZATIONS`, make of a quantization."""
    if settings == "snorm-int8":
        return _quantizers(backend).QuantizationConfig(snorm_int8(), snorm_int8(), None, None)
    config = getattr(_quantizers(backend), quantization.config)(**quantization.arguments)
    if settings == "histogram":
        return config
    on_grid = settings in ("histogram-on-grid", "as-upstream-tests")
    return with_observer(config, GridHistogramObserver if on_grid else GridObserver)


def snorm_int8() -> QuantizationSpec:
    """Return the fixed SNORM int8 specification: scale 1/127, zero point 0, codes -127..127 (issue #18971)."""
    return QuantizationSpec(
        dtype=torch.int8,
        observer_or_fake_quant_ctr=FixedQParamsObserver.with_args(
            scale=1.0 / 127.0,
            zero_point=0,
            dtype=torch.qint8,
            qscheme=torch.per_tensor_symmetric,
            quant_min=-127,
            quant_max=127,
        ),
        quant_min=-127,
        quant_max=127,
        qscheme=torch.per_tensor_symmetric,
        is_dynamic=False,
    )


def with_observer(config: Any, observer: type[Any]) -> Any:
    """Replace the histogram observers of a quantization config, a dataclass of specifications, by `observer`."""
    specs = {
        field.name: dataclasses.replace(spec, observer_or_fake_quant_ctr=observer.with_args(**made.keywords))
        for field in dataclasses.fields(config)
        if isinstance(spec := getattr(config, field.name), QuantizationSpec)
        and (made := spec.observer_or_fake_quant_ctr.p).func is HistogramObserver
    }
    return dataclasses.replace(config, **specs)
