"""The table of targets: how a case is quantized, partitioned and run, as data.

Exporting (`exporting.targets`) and the matrix (`releases`) read it.
It imports neither torch nor executorch. Installed distributions add targets of their own: an entry point of group
``executorch_goldens.zoo.targets`` that gives a `Target`, from a module that imports neither of them.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from executorch_goldens import extensions
from executorch_goldens.errors import HarnessError
from executorch_goldens.numerics import IMPRECISE

#: Names of targets are names of folders and parts of test ids: ``tosa-fp+int``.
NAME_PATTERN = re.compile(r"(?=.{1,64}$)[a-z0-9]+([-+][a-z0-9]+)*")
MODULE_TYPE = re.compile(r"torch\.nn(\.\w+)+")
FUNCTION = re.compile(r"[\w.]+:[\w.]+")
#: Fields of a target that name a function of a distribution.
FUNCTIONS = ("partitioner", "quantizer", "lower", "simulator")

#: Backends whose partitioner and quantizer are made from a target's data.
TOSA, XNNPACK = "tosa", "xnnpack"

#: The target, and the backend, of cases that make a whole program by themselves. Not "build": that folder is ignored by
#: the usual .gitignore, and goldens are in a folder of this name.
BUILD = "built"

#: The packages of a release that exports of one backend run, and those of the other do not.
PACKAGES = {TOSA: "executorch.backends.arm.", XNNPACK: "executorch.backends.xnnpack."}
#: By the ids of the delegates that they make; Arm's other backends lower to TOSA first.
BACKEND_IDS = {
    **dict.fromkeys(("TOSABackend", "VgfBackend", "EthosUBackend"), TOSA),
    "XnnpackBackend": XNNPACK,
}

#: Runners of lowered programs: ExecuTorch's runtime in this process takes the ``.pte``; the TOSA reference model takes
#: the delegates, one by one, and what is between them runs eagerly; or all of it runs eagerly, operator by operator,
#: and the delegates in the target's `simulator`.
RUNTIME, REFERENCE_MODEL, EAGER = RUNS = ("runtime", "reference-model", "eager")
#: Runner of a build: whichever of the first two can run all that it has delegated.
EITHER = "either"

#: Functions of both backends' quantizers that give the release's own config. The second: TOSA only.
INT8_CONFIG = "get_symmetric_quantization_config"
INT16_CONFIG = "get_symmetric_a16w8_quantization_config"

#: Quantizer settings that a case may name. ``symmetric``: the target's config, its histogram observers replaced by
#: `exporting.observers.GridObserver`; ``histogram-on-grid``: these stay, and their ends go to the same grid;
#: ``as-upstream-tests``: the same, and inputs and outputs are quantized only where an operator asks for it;
#: ``histogram``: the config as the release ships it; ``int8-head``: the
#: submodule ``head`` stays int8 where the rest is int16; ``snorm-int8``: fixed, scale 1/127 (issue #18971).
QUANTIZATIONS = (
    "symmetric",
    "histogram",
    "histogram-on-grid",
    "as-upstream-tests",
    "int8-head",
    "snorm-int8",
)


#: See `Target.floor`.
INT8_FLOOR = 20.0
INT16_FLOOR = 30.0

#: Dtypes that a model can be cast to.
DTYPES = ("float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2")

#: The largest bound of a target, and tolerance of a repository: more would check nothing.
MOST_BOUND = IMPRECISE


class TargetError(HarnessError, ValueError):
    """A target that does not hold together; the message names it and the field."""


class UnknownTargetError(HarnessError, ValueError):
    """A name that is no target's; the message names those that there are."""


@dataclass(frozen=True)
class Quantization:
    """Configuration of a quantized target's quantizer.

    Attributes
    ----------
    config
        Name of the function that gives the release's own config, in the module of the backend's quantizer.
    arguments
        Its arguments, by name.
    modules
        Names of the module types that are quantized, ``torch.nn.Linear``; empty for the whole model, its inputs and
        outputs included.
    """

    config: str = INT8_CONFIG
    arguments: Mapping[str, bool | int] = field(default_factory=lambda: {"is_per_channel": True}, hash=False)
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Target:
    """How a case is quantized, partitioned and run.

    Attributes
    ----------
    name
        Unique; see `NAME_PATTERN`.
    description
        One line.
    backend
        `TOSA`, `XNNPACK`, or a new name, which then needs `partitioner` or `lower`. Cases name the backends that they
        are for.
    runs
        The engine of the lowered program: `RUNTIME`, `REFERENCE_MODEL` or `EAGER`.
    specification
        TOSA specification of the compile spec.
    quantization
        None for float targets.
    dtype
        Name of what the model's floating weights and inputs are cast to before anything else, one of `DTYPES`; empty
        leaves them.
    bound
        The furthest that outputs may be from the (quantized) eager ones beside what rounding explains
        (`executorch_goldens.exporting.numerics.rounding`), as a fraction of the largest absolute value.
    floor
        The least that the signal of a quantized target's output may be above the noise of quantization, in dB, on the
        example (`executorch_goldens.goldens.accuracy`); None asks for nothing.
    opt_in
        Whether only those cases are exported for it that ask for it (`also` of a case).
    partitioner
        ``module:function`` that takes nothing and returns a partitioner, instead of the backend's own. Imported in the
        exporting process only.
    quantizer
        ``module:function`` that takes the case's quantizer settings and returns a quantizer, instead of what
        `quantization` describes. Imported in the exporting process only.
    lower
        ``module:function`` that takes the exported program and returns the lowered one, an ``EdgeProgramManager``,
        instead of ``to_edge_transform_and_lower`` with a partitioner. Imported in the exporting process only.
    simulator
        ``module:function`` that runs a delegate where `runs` is `EAGER`: it takes the ``LoweredBackendModule`` and its
        inputs, tensors, and returns a list of its outputs. A program whose delegates nothing runs is not run, and its
        golden says so. Imported in the exporting process only.
    delegates
        Whether its programs are to have delegates: a backend may put operators of its own into the program instead.
    unsupported
        Release to why it cannot lower for the target; of the harness's own targets, releases.toml says so.

    Raises
    ------
    TargetError
        For fields that do not hold together.
    """

    name: str
    description: str
    backend: str
    runs: str
    specification: str = ""
    quantization: Quantization | None = None
    dtype: str = ""
    bound: float = 0.0
    floor: float | None = None
    opt_in: bool = False
    partitioner: str = ""
    quantizer: str = ""
    lower: str = ""
    simulator: str = ""
    delegates: bool = True
    unsupported: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for what in self._wrongs():
            raise TargetError(f"target {self.name!r}: {what}")

    def _wrongs(self) -> Iterator[str]:
        own = self.backend in (TOSA, XNNPACK, BUILD)
        if not NAME_PATTERN.fullmatch(self.name):
            yield "name: words of lower-case letters and digits with - or + between them, 64 characters at most"
        if not NAME_PATTERN.fullmatch(self.backend):
            yield f"backend: {self.backend!r} is not of the form 'lower-case-words'"
        if self.runs not in RUNS and self.backend != BUILD:
            yield f"runs: {self.runs!r} is not one of {', '.join(RUNS)}"
        if self.runs != {TOSA: REFERENCE_MODEL, XNNPACK: RUNTIME}.get(self.backend, self.runs):
            yield f"runs: {TOSA} runs in the {REFERENCE_MODEL}, {XNNPACK} in the {RUNTIME}"
        if isinstance(self.bound, bool) or not 0.0 <= self.bound <= MOST_BOUND:
            yield f"bound: {self.bound!r} is no number from 0 to {MOST_BOUND:g}"
        if self.floor is not None and not math.isfinite(self.floor):
            yield f"floor: {self.floor} is no finite number"
        if self.floor is not None and not self.is_quantized:
            yield "floor: only a quantized target has one"
        if self.dtype not in ("", *DTYPES):
            yield f"dtype: {self.dtype!r} is not one of {', '.join(DTYPES)}"
        if not own and not self.partitioner and not self.lower:
            yield f"partitioner: missing; only {TOSA!r} and {XNNPACK!r} have one here"
        if self.partitioner and self.lower:
            yield "partitioner and lower: at most one of them"
        if self.simulator and self.runs != EAGER:
            yield f"simulator: only where runs is {EAGER!r}"
        if not own and self.quantization is not None:
            yield f"quantizer: missing; only {TOSA!r} and {XNNPACK!r} make one from a quantization"
        if self.quantizer and self.quantization is not None:
            yield "quantization and quantizer: at most one of them"
        uses_specification = not (self.partitioner or self.lower) or self.quantization is not None
        if self.backend == TOSA and not self.specification and uses_specification:
            yield "specification: missing, e.g. 'TOSA-1.0+FP'"
        if self.backend != TOSA and self.specification:
            yield f"specification: only {TOSA!r} has one"
        if not all(map(FUNCTION.fullmatch, self.functions)):
            yield f"{', '.join(FUNCTIONS)}: each is 'module:function'"
        if self.quantization is not None and not all(map(MODULE_TYPE.fullmatch, self.quantization.modules)):
            yield "quantization.modules: each is a type of torch.nn, e.g. 'torch.nn.Linear'"

    def is_for(self, backends: tuple[str, ...]) -> bool:
        """Return whether cases that name `backends` (backends, or prefixes of targets) are exported for it."""
        return not backends or self.backend in backends or self.name.startswith(backends)

    @property
    def is_quantized(self) -> bool:
        """True if the model is quantized before it is lowered."""
        return self.quantization is not None or bool(self.quantizer)

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends whose `PACKAGES` its exports load: a function of a distribution may need any."""
        return (self.backend,) if self.is_data and self.backend in PACKAGES else tuple(PACKAGES)

    def runs_any(self, functions: Iterable[str]) -> bool:
        """Return whether its exports may run any of some functions, ``module:name``; another backend's never run."""
        named = backends_of(functions)
        return not named or not named.isdisjoint(self.backends)

    @property
    def is_data(self) -> bool:
        """True if it is described by data alone, without functions of a distribution."""
        return not self.functions

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions of a distribution that it names, ``module:function``."""
        return tuple(filter(None, (getattr(self, name) for name in FUNCTIONS)))


def backends_of(functions: Iterable[str]) -> set[str]:
    """Return the backends of `PACKAGES` that functions, ``module:name``, are of."""
    return {backend for name in functions for backend in PACKAGES if name.startswith(PACKAGES[backend])}


def _tosa(name: str, specification: str, what: str = "", **others: Any) -> Target:
    """Return a target of TOSA, whose payloads the reference model runs."""
    description = f"{specification}, {what}" if what else specification
    others |= {"backend": TOSA, "runs": REFERENCE_MODEL, "specification": specification}
    return Target(name=name, description=description, **others)


def _xnnpack(name: str, what: str, **others: Any) -> Target:
    """Return a target of XNNPACK."""
    return Target(name=name, description=f"XNNPACK, {what}", backend=XNNPACK, runs=RUNTIME, **others)


_INT8: Mapping[str, Any] = {"quantization": Quantization(), "floor": INT8_FLOOR}
_INT16: Mapping[str, Any] = {"quantization": Quantization(INT16_CONFIG), "floor": INT16_FLOOR}
_MIXED = Quantization(modules=("torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d"))


def _int8(**arguments: bool | int) -> Mapping[str, Any]:
    """Return the fields of a target that is quantized to int8 by other arguments of the release's config."""
    return {"quantization": Quantization(arguments=arguments), "floor": INT8_FLOOR}


#: The same for targets that a case must ask for.
_tosa_asked, _xnnpack_asked = (functools.partial(make, opt_in=True) for make in (_tosa, _xnnpack))

#: The harness's own targets.
TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        _tosa("tosa-fp", "TOSA-1.0+FP"),
        _tosa("tosa-int", "TOSA-1.0+INT", "post-training quantized, int8", **_INT8),
        _tosa_asked(
            "tosa-int16",
            "TOSA-1.0+INT+int16",
            "post-training quantized, activations int16, weights int8",
            **_INT16,
        ),
        # The configuration of get_symmetric_a8w4_quantization_config; `quantizer` does not export that.
        _tosa_asked(
            "tosa-int4",
            "TOSA-1.0+INT+int4",
            "as tosa-int, weights int4",
            **_int8(is_per_channel=True, weight_qmin=-7, weight_qmax=7),
        ),
        _tosa_asked(
            "tosa-int-per-tensor",
            "TOSA-1.0+INT",
            "as tosa-int, weights per tensor",
            **_int8(is_per_channel=False),
        ),
        _tosa_asked(
            "tosa-int-qat",
            "TOSA-1.0+INT",
            "as tosa-int, by the config for quantization-aware training, untrained",
            **_int8(is_per_channel=True, is_qat=True),
        ),
        _tosa_asked("tosa-fp+cf", "TOSA-1.0+FP+cf", "conditions and loops in the delegate"),
        _tosa_asked("tosa-fp+shape", "TOSA-1.1+FP+shape", "symbolic sizes in the delegate"),
        _tosa_asked(
            "tosa-int+shape", "TOSA-1.1+INT+shape", "as tosa-int, symbolic sizes in the delegate", **_INT8
        ),
        # The profile that EthosUCompileSpec lowers to for an Ethos-U55; Vela's result is not looked at.
        _tosa_asked(
            "tosa-u55",
            "TOSA-1.0+INT+int16+int4+u55",
            "as tosa-int, within the limits of an Ethos-U55",
            **_INT8,
        ),
        # The profile that EthosUCompileSpec lowers to for an Ethos-U85: docs/plugins/downstream.md.
        _tosa_asked("tosa-u85", "TOSA-1.0+INT+int16+int4+cf", "as tosa-int, for an Ethos-U85", **_INT8),
        _tosa_asked(
            "tosa-u55-int16",
            "TOSA-1.0+INT+int16+int4+u55",
            "as tosa-int16, within the limits of an Ethos-U55",
            **_INT16,
        ),
        _tosa_asked(
            "tosa-u85-int16", "TOSA-1.0+INT+int16+int4+cf", "as tosa-int16, for an Ethos-U85", **_INT16
        ),
        # The default specification of VgfCompileSpec.
        _tosa_asked("tosa-vgf", "TOSA-1.0+FP+INT", "as tosa-int, for VGF", **_INT8),
        _tosa_asked(
            "tosa-fp+int",
            "TOSA-1.0+INT+FP",
            "linear and convolution quantized to int8, the rest float32",
            quantization=_MIXED,
            floor=INT8_FLOOR,
        ),
        _tosa_asked("tosa-bf16", "TOSA-1.0+FP+bf16", "the model in bfloat16", dtype="bfloat16"),
        _tosa_asked(
            "tosa-fp8e4m3",
            "TOSA-1.0+FP+fp8e4m3",
            "the model in float8 with 4 bits of exponent",
            dtype="float8_e4m3fn",
        ),
        _tosa_asked(
            "tosa-fp8e5m2",
            "TOSA-1.0+FP+fp8e5m2",
            "the model in float8 with 5 bits of exponent",
            dtype="float8_e5m2",
        ),
        _xnnpack("xnnpack-fp32", "float32"),
        _xnnpack("xnnpack-int8", "post-training quantized, int8, per channel", **_INT8),
        _xnnpack_asked(
            "xnnpack-dynamic",
            "weights int8 per channel, activations quantized as they come",
            **_int8(is_per_channel=True, is_dynamic=True),
        ),
        _xnnpack_asked(
            "xnnpack-int8-per-tensor",
            "post-training quantized, int8, per tensor",
            **_int8(is_per_channel=False),
        ),
        _xnnpack_asked(
            "xnnpack-int8-qat",
            "int8 by the config for quantization-aware training, untrained, per channel",
            **_int8(is_per_channel=True, is_qat=True),
        ),
    )
}

#: Target of cases that make a whole program: quantizer, partitioners and memory plan are the case's own.
BUILT = Target(
    name=BUILD,
    description="a program made by the case's function: its own quantizers, partitioners and memory plan",
    backend=BUILD,
    runs=EITHER,
    opt_in=True,
)

#: The `sqnr` of a case whose outputs may be anything once it is quantized.
ANY_SQNR: Mapping[str, float] = {name: -math.inf for name, target in TARGETS.items() if target.is_quantized}


@functools.cache
def available() -> Mapping[str, Target]:
    """Return every target by name: the harness's own, that of builds, then those of installed distributions.

    Raises
    ------
    executorch_goldens.extensions.ExtensionError
        For an entry point that gives no target.
    """
    own = {**TARGETS, BUILD: BUILT}
    return {**own, **extensions.load(extensions.TARGETS, Target, lambda target: target.name, own)}


def find(name: str) -> Target:
    """Return the target called `name`; raise `UnknownTargetError`. Entry points are read if it is not the harness's."""
    if name in TARGETS:
        return TARGETS[name]
    if name == BUILD:
        return BUILT
    if name not in available():
        raise unknown(name)
    return available()[name]


def better_conditioned(name: str) -> str:
    """Return advice for a case whose outputs rounding decides on a target."""
    target = available().get(name)
    floor = target.floor if target is not None else None
    by_sqnr = f', or let its SQNR judge it: sqnr={{"{name}": {floor:g}}}' if floor is not None else ""
    return f"give the case recorded inputs or other weights, such as trained ones{by_sqnr}"


def delegates(name: str) -> bool:
    """Return whether programs for the target `name` must have delegates; True for an unknown name."""
    return name not in available() or available()[name].delegates


def unknown(name: str) -> UnknownTargetError:
    """Return the error to raise for a name that is no target's."""
    return UnknownTargetError(
        f"there is no target {name!r}; known: {', '.join(available())}. Distributions in the exporting "
        f"environment add others (entry points of group {extensions.TARGETS})"
    )
