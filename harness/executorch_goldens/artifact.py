"""The dataclasses that travel between the rooms; plain values only, so that any interpreter can read them.

An artifact is what one export made of one cell under one variation. It crosses from the exporting child to the
pytest process, which may run another Python, another numpy and no torch: fields are str, bytes, int, float,
None and tuples of them.
"""

from __future__ import annotations

import hashlib
import math
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from executorch_goldens.numerics import IMPRECISE, tolerances

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, order=True)
class Cell:
    """Case x target, within one release."""

    target: str
    case: str

    @classmethod
    def named(cls, name: str) -> Cell:
        """Return the cell called ``TARGET/CASE``; raise ValueError."""
        target, case = name.split("/")
        return cls(target, case)

    def __str__(self) -> str:
        return f"{self.target}/{self.case}"


@dataclass(frozen=True)
class Tensor:
    """A dense tensor as exact bytes, C order, little endian; or a number, or None, that a model gives as such.

    Attributes
    ----------
    dtype
        numpy name: ``float32``, ``int8``, ``bool``...
    shape
        Lengths of the dimensions.
    data
        ``prod(shape) * itemsize`` bytes.
    kind
        ``int``, ``float``, ``bool`` or ``None`` for what is no tensor. A number has no dimensions, None no elements.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    kind: str = ""

    def __post_init__(self) -> None:
        dtype = np.dtype(self.dtype)
        if dtype.hasobject or any(length < 0 for length in self.shape):
            raise ValueError(f"{self.dtype}{list(self.shape)} is no tensor of numbers")
        expected = math.prod(self.shape) * dtype.itemsize
        if len(self.data) != expected:
            raise ValueError(f"{self.dtype}{list(self.shape)} takes {expected} bytes, not {len(self.data)}")

    @classmethod
    def from_array(cls, array: NDArray[np.generic], kind: str = "") -> Tensor:
        return cls(str(array.dtype), tuple(array.shape), np.ascontiguousarray(array).tobytes(), kind)

    @property
    def type(self) -> str:
        """Dtype and shape of a tensor, ``int``, ``None``."""
        return self.kind or f"{self.dtype}{list(self.shape)}"

    def array(self) -> NDArray[np.generic]:
        """Return a read-only array of `dtype` and `shape`."""
        return np.frombuffer(self.data, dtype=self.dtype).reshape(self.shape)

    def wide(self) -> NDArray[Any]:
        """Return its values as float64, or as complex128 where they are complex."""
        return self.array().astype(np.complex128 if self.dtype.startswith("complex") else np.float64)


@dataclass(frozen=True)
class Delegate:
    """One lowered partition.

    Attributes
    ----------
    name
        Attribute of the lowered graph module, e.g. ``lowered_module_0``.
    backend_id
        E.g. ``TOSABackend``, ``XnnpackBackend``.
    payload
        The result of the backend's ``preprocess``: a TOSA flatbuffer, or an XNNPACK header and flatbuffer.
    named_data
        (key, bytes) that the backend put into the program's named data instead of into the payload.
    """

    name: str
    backend_id: str
    payload: bytes
    named_data: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Lost:
    """An output that quantization leaves below the floor of its target or case.

    Attributes
    ----------
    sqnr
        Power of the float model's output over that of the difference, in dB, on the example; minus infinity where it is
        NaN or infinite and the float model's is a number.
    floor
        Least that is accepted, in dB.
    lines
        The quantizations that lose it, or why these are not known.
    named
        Whether `lines` name them.
    by
        The kind of what loses most, which models have in common; empty where that is not known.
    changed
        The first operator whose numbers differ from the float model's without the quantizations already; empty where
        quantization alone makes the difference, or that is not known.
    """

    output: int
    sqnr: float
    floor: float
    lines: tuple[str, ...]
    named: bool = True
    by: str = ""
    changed: str = ""


#: The machine had too little memory, disk or descriptors; a case declares what it is not; a model is no function of
#: its inputs.
MACHINE, DECLARATION, UNSTEADY_MODEL = "machine", "declaration", "unsteady"


@dataclass(frozen=True)
class Failure:
    """An exception that ended an export, without parts that vary from run to run.

    Attributes
    ----------
    stage
        ``model``, ``export``, ``quantize``, ``lower``, ``emit`` or ``run``.
    type
        Qualified name of the exception's class.
    message
        Message without addresses, absolute paths, line numbers and the source lines of printed tracebacks.
    pass_name
        Class of the innermost pass, partitioner or node visitor on the stack, or None.
    function
        ``module.function`` of the innermost ExecuTorch frame, or None.
    traceback
        The whole traceback, for the terminal; never compared, never recorded.
    made
        Graph and delegates of a program that does not run; None where lowering fails.
    lost
        The loss of quantization before lowering fails; None where that is within the target's floor.
    fault
        Whose fault it is, where that is not the release's or the model's: `MACHINE`, `DECLARATION` or `UNSTEADY_MODEL`.
    """

    stage: str
    type: str
    message: str
    pass_name: str | None
    function: str | None
    traceback: str
    made: Lowered | None = None
    lost: Lost | None = field(default=None, compare=False)
    fault: str = ""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the fields of a golden, as (field, value)."""
        return (
            ("stage", self.stage),
            ("type", self.type),
            ("pass", self.pass_name or "-"),
            ("function", self.function or "-"),
            ("message", self.message),
        )


@dataclass(frozen=True)
class Sample:
    """One set of inputs, with expected and actual outputs.

    Attributes
    ----------
    name
        See `executorch_goldens.zoo.registry.SAMPLES`.
    expected
        Outputs of the eager model (float targets) or of the quantized eager graph (quantized targets).
    outputs
        Outputs of what was lowered, in ExecuTorch's runtime or in the TOSA reference model.
    spreads
        Float32 of the shape of each of `expected`: how far rounding alone moved each element
        (`exporting.numerics.rounding`). Zero where no rounding touches the output. Empty if it was not measured.
    floats
        Outputs of the model before it was quantized; empty where the target does not quantize.
    shifts
        The furthest that rounding alone moved the mean of the elements of each of `expected`.
    alone
        The sample of one step that has the inputs of the last of several steps; empty where there is none.
    method
        The method that the last step runs, where the program has several; otherwise empty.
    order
        The method of each step, where these are several; otherwise empty.
    """

    name: str
    expected: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    spreads: tuple[Tensor, ...] = ()
    floats: tuple[Tensor, ...] = ()
    shifts: tuple[float, ...] = ()
    alone: str = ""
    method: str = ""
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Altered:
    """A parameter or a buffer of the model that was given, which lowering wrote to.

    Attributes
    ----------
    name
        Its path in the model.
    before, after
        Dtypes that numpy lacks are wider here (`executorch_goldens.exporting.arrays`).
    writer
        The pass that changed it, or the stage that was being made then; empty where none was seen to.
    """

    name: str
    before: Tensor
    after: Tensor
    writer: str


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """Where a value inside a delegate begins to differ from eager although its inputs agree.

    Attributes
    ----------
    delegate
        See `Delegate`.
    operator
        Its operator in the words of the payload's format, and the tensor: ``CONV2D tosa_conv2d_default_2``. Empty
        where the payload does not tell.
    node
        The operator of the edge graph that it was lowered from, and its node: ``aten.linear aten_linear_default_2``.
    module
        Path of the module that this was traced from; empty where the graph does not tell.
    before
        Operators, or inputs of the delegate, whose values it is made from and are seen.
    unseen
        Operators between those and the departure whose values are not seen: it may begin at one of these.
    agrees
        Whether what it is made from is within its tolerances.
    alone
        Whether the operator, run eagerly on the delegate's own values, gives something else. Otherwise it is the first
        value that departs, and no operator departs by itself.
    uncut
        Whether it comes of this: the operator is given values that were not cut off where their quantization ends.
    """

    delegate: str
    operator: str
    node: str
    module: str
    before: tuple[str, ...]
    unseen: tuple[str, ...]
    agrees: bool
    alone: bool
    uncut: bool = False


class Departure(Spot, frozen=True, tag=True, kw_only=True):
    """A `Spot` with its values.

    Attributes
    ----------
    expected, actual
        Float32 values, in real numbers where the tensor is quantized.
    tolerance
        The largest absolute difference of each element that is no departure.
    """

    expected: Tensor
    actual: Tensor
    tolerance: Tensor

    def spot(self) -> Spot:
        """Return it without its values."""
        return Spot(**{name: getattr(self, name) for name in Spot.__struct_fields__})


class Beginning(msgspec.Struct, frozen=True, tag=True):
    """Where values begin to be wrong, if not at a value inside a delegate.

    Attributes
    ----------
    name
        Name for a cause; empty where the place is not known.
    why
        What shows it, or what is known instead.
    is_outside
        Whether that is at no operator of a delegate.
    """

    name: str
    why: str
    is_outside: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.why}" if self.name else self.why


@dataclass(frozen=True)
class FirstDeparture:
    """Where a program begins to depart from eager: on the first sample whose outputs do, or else something inside."""

    sample: str
    where: Departure | Beginning


@dataclass(frozen=True)
class Validation:
    """The messages of a release's tool that validates payloads against the specification.

    Attributes
    ----------
    by
        The tool and its version.
    invalid
        Each thing that is not allowed: the specification, the delegate, and what the tool says.
    unread
        Delegate of each payload that the tool could not check, and why.
    """

    by: str
    invalid: tuple[tuple[str, str, str], ...] = ()
    unread: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return a one-line summary."""
        return f"not validated: {'; '.join(self.unread)}" if self.unread else f"by {self.by}"


@dataclass(frozen=True)
class Metric:
    """The value of a case's own metric for the outputs of a program: higher is better.

    Attributes
    ----------
    name
        Name of the function that measures.
    value, eager
        Result for the program's outputs, and for those of the eager model before it is quantized.
    bound
        The least that `value` may be.
    """

    name: str
    value: float
    eager: float
    bound: float

    def falls_short(self) -> bool:
        """Return whether the value is below its bound; a NaN is."""
        return not self.value >= self.bound


@dataclass(frozen=True)
class Lowered:
    """The result of an export that raised nothing.

    Attributes
    ----------
    graph
        ``str(graph)`` of the lowered program, then of each nested graph module.
    delegates
        Delegates in the order in which the graph refers to them.
    pte
        The whole ``.pte`` program.
    samples
        The program run on several sets of inputs; the first is the example, which quantized targets calibrate with.
    bound
        The tolerance of an output in any case, as a fraction of the largest absolute value expected
        in its sample or in the example: the scale of a quantized output comes from the example's.
    schemas
        Directories with the schemas of the release that made it, best first: payloads are decoded with these.
    scales
        Value of one code of each quantized output: where it is rounded it may be off by one; 0 for the others.
    limit
        The furthest that rounding alone may move an output of a precise program, as a fraction of its largest value.
    codes
        Content of the delegates where a case's outputs are constants, in the dtype they hold it in.
    unjudged
        Samples that are left out, with why: eager gives no finite number there and does on the example, raises, does
        not end, or has no value that anything could be held to.
    not_run
        Why the program was not run, so that there are no samples: what runs it lacks something. Empty where it was.
    in_eager
        Operators outside of delegates that ran in eager, as the wheel's runtime has no kernel for them.
    altered
        Changes that lowering made to the input model, which is its user's; there should be none.
    validation
        A validator's messages about the delegates; None without one for their format, or if the program was not run.
    loads
        A line for each way of loading the program in which it gives something else than from a buffer.
    begins
        Where outputs beyond their tolerance begin to depart from eager's. Where none is, the first value inside that
        its operator's own rounding does not explain, given what the operator was given; None where there is none.
    unseen
        Parts of the program whose operators were not checked given their actual inputs, and why; empty if every
        operator was. None where the outputs depart or are held to a tolerance that hides little, and where nothing was
        run.
    lost
        The loss of quantization; None where that is within the target's floor.
    methods
        Methods of a program of several, each with `scales` of its outputs; empty for a program of one.
    bounds
        `bound` of each method of a program of several that has one of its own.
    data
        The data files (``.ptd``) that the program needs beside it, by name.
    recipe
        The recipe of a program that its case made by itself, with the facts that are unknown for that reason; else
        empty.
    model
        A line for each parameter and buffer of the modules that such a case names, with a digest.
    unchecked
        The methods of such a program that the case gives no reference for.
    training
        Its methods whose modules were given in training mode, compared in eval mode and differ in these; and what of
        each was in that mode.
    metric
        None where the case has none, or the program was not run.
    """

    graph: str
    delegates: tuple[Delegate, ...]
    pte: bytes
    samples: tuple[Sample, ...]
    bound: float
    schemas: tuple[str, ...] = field(compare=False)
    scales: tuple[float, ...] = ()
    codes: tuple[Tensor, ...] = ()
    unjudged: tuple[tuple[str, str], ...] = ()
    not_run: str = ""
    in_eager: tuple[str, ...] = ()
    limit: float = IMPRECISE
    altered: tuple[Altered, ...] = ()
    validation: Validation | None = None
    loads: tuple[str, ...] = ()
    begins: FirstDeparture | None = field(default=None, compare=False)
    lost: Lost | None = field(default=None, compare=False)
    unseen: tuple[tuple[str, str], ...] | None = field(default=None, compare=False)
    metric: Metric | None = None
    methods: tuple[tuple[str, tuple[float, ...]], ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    data: tuple[tuple[str, bytes], ...] = ()
    recipe: str = ""
    model: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    training: tuple[tuple[str, str], ...] = ()

    def by_method(self) -> tuple[Lowered, ...]:
        """Return it once for each of its methods, with that method's facts: outputs are numbered by method."""
        if not self.methods:
            return (self,)
        return tuple(self._of(name) for name, _ in self.methods)

    def _of(self, method: str) -> Lowered:
        samples = tuple(sample for sample in self.samples if sample.method == method)
        bound = dict(self.bounds).get(method, self.bound)
        return replace(
            self, samples=samples, scales=dict(self.methods)[method], bound=bound, methods=(), bounds=()
        )

    @property
    def pte_sha256(self) -> str:
        return hashlib.sha256(self.pte).hexdigest()

    def tolerance(self, sample: Sample, index: int) -> NDArray[np.float64]:
        """Return the absolute tolerance for each element of output number `index` of a sample.

        See `numerics.tolerances.allowed`. Where the output is quantized, it is so many whole codes, as no
        difference of codes is a fraction of one.
        """
        if self.methods:
            return self._of(sample.method).tolerance(sample, index)
        reach = self._allowed(sample, index).reach
        code = self._code(index)
        return np.ceil(reach / code) * code if code else reach

    def _allowed(self, sample: Sample, index: int) -> tolerances.Allowed:
        """Return the tolerance of output number `index` of a sample, before it is rounded up to whole codes."""
        if self.methods:
            return self._of(sample.method)._allowed(sample, index)
        samples = self.samples if sample in self.samples else (*self.samples, sample)
        # Of runs that were recorded elsewhere nothing is measured: they are judged apart.
        samples = tuple(each for each in samples if bool(each.spreads) == bool(sample.spreads))
        found = tolerances.allowed(
            [each.expected[index].wide() for each in samples],
            [each.spreads[index].array() for each in samples if each.spreads],
            self._code(index),
            self.bound,
        )
        return found[samples.index(sample)]

    def _code(self, index: int) -> float:
        """Return slightly more than one code of output number `index`; 0 where it is not quantized."""
        return (self.scales[index] if index < len(self.scales) else 0.0) * tolerances.ONE_CODE

    def sizes(self, sample: Sample, index: int) -> NDArray[np.float64]:
        """Return the largest absolute value expected of output number `index` in a sample or in the example.

        Of each element, that of the elements that are as large as it.
        """
        return self._allowed(sample, index).sizes

    def moves_far(self) -> bool:
        """Return whether rounding alone moves some output too far for a useful comparison, whatever is accepted."""
        return any(moved > IMPRECISE for *_, moved in self.imprecisions())

    def imprecisions(self) -> Iterator[tuple[Sample, int, float]]:
        """Yield the `imprecision` of each output of each sample."""
        for sample in self.samples:
            for index in range(len(sample.expected)):
                yield sample, index, self.imprecision(sample, index)

    def imprecision(self, sample: Sample, index: int) -> float:
        """Return how far rounding alone may move output number `index` in a sample, as a part of its largest value.

        Where an output holds numbers of different sizes, of the largest value of each.
        """
        found = self._allowed(sample, index)
        parts = np.divide(
            found.reach,
            found.sizes_anywhere,
            out=np.zeros(found.reach.shape),
            where=found.sizes_anywhere > 0.0,
        )
        return float(parts.max(initial=0.0))


#: The pipeline of a partitioner.
PARTITIONING = "partitioning"
#: The pipeline of what is no pass: the stages of an export.
STAGE = "stage"
#: Stages of an export that make a graph: of the model, by quantization, on the way to the edge dialect, by lowering.
EXPORTED, QUANTIZED, EDGE, LOWERED = "exported", "quantized", "edge", "lowered"
#: Prefix of stages that make a payload.
DELEGATE = "delegate_"


@dataclass(frozen=True)
class PassRun:
    """One run of one pass or of the partitioner, or one stage, of an export.

    Attributes
    ----------
    pipeline
        The backend and the purpose; `PARTITIONING`; `STAGE`; ``exir`` outside of any.
    name
        Class of the pass or partitioner; name of the stage.
    fingerprint
        Digest of the graph that it left, or of the bytes that it made; of a partitioner, its tags in order.
    changed
        Whether it changed the graph.
    beyond
        Digest of what the fingerprint leaves out and no golden's trace holds: the names of the graph's nodes; of a
        partitioner, the tag of each node.
    start
        Number of the run of a pass or partitioner, from 1, in the order in which they begin; 0 where it is not known.
    """

    pipeline: str
    name: str
    fingerprint: str
    changed: bool
    beyond: str = field(default="", compare=False)
    start: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Watched:
    """Functions that an export was seen to run; see `executorch_goldens.exporting.trace.Watch`.

    Attributes
    ----------
    kept
        The text digested for the fingerprint of one pass, requested by its number: a line per node.
    refusals
        Operator and reason of each node that a partitioner refused.
    origins
        Where an observer marks nodes (`executorch_goldens.exporting.observing.Marks`), of each delegate the names of
        the values that are made in it, and of the operator or constant of each what made it, a pass or a stage, then
        the passes that converted it.
    """

    passes: tuple[PassRun, ...]
    visitors: tuple[str, ...]
    kept: str = ""
    refusals: tuple[tuple[str, str], ...] = ()
    origins: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = ()


#: What an edited function gave in an export, beside the base's: the same in all calls; nobody knows; something else.
VERDICTS = GAVE_THE_SAME, UNKNOWN, DIFFERS = "same", "unknown", "differs"


class ProbedFunction(msgspec.Struct, frozen=True):
    """A function that is edited, in one export: see `Instrumentation.probes`.

    Attributes
    ----------
    file
        Its path below site-packages.
    function
        Its name in the file; empty for what is outside of functions.
    calls
        Number of its calls that were compared, or were within one that was.
    verdict
        The worst of these, one of `VERDICTS`; `UNKNOWN` as well where it ran, or may have had an effect, without one.
    operands
        How what its edited statements read was related, in each of the ways that occurred.
    infected
        True where an edited expression gave something else than the base's gives there, whatever came of it.
    """

    file: str
    function: str
    calls: int
    verdict: str
    operands: tuple[str, ...] = ()
    infected: bool = False


@dataclass(frozen=True)
class Artifact:
    """The result of one export that finished.

    Attributes
    ----------
    result
        The result, or the reason why there is none.
    patches
        Names of those that were installed.
    watched
        The passes and node visitors that ran.
    twins
        Results of further processes for the same request that began with the same memory; see `running.factors`.
    reach
        Lines that ran of files of `Instrumentation.reach`: the first of each statement, negative for a false ``if``.
    probes
        The functions of `Instrumentation.probes` that ran, and those of which that is not known.
    """

    result: Lowered | Failure
    patches: tuple[str, ...]
    watched: Watched | None = None
    twins: tuple[Artifact, ...] = ()
    reach: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    probes: tuple[ProbedFunction, ...] = ()

    @property
    def case_failure(self) -> Failure | None:
        """The failure of a case that raised before anything was lowered; None for any other result."""
        failed = self.result if isinstance(self.result, Failure) else None
        return failed if failed is not None and failed.stage == "model" else None


#: An artifact as it is encoded: a program or a failure, then the other fields; twins are encoded each.
Encoded = tuple[
    Lowered | None,
    Failure | None,
    tuple[str, ...],
    Watched | None,
    tuple[bytes, ...],
    dict[str, tuple[int, ...]],
    tuple[ProbedFunction, ...],
]


def encoded(artifact: Artifact) -> bytes:
    """Return an artifact as MessagePack, in which nothing is code."""
    made, rest = artifact.result, (artifact.patches, artifact.watched)
    results = (made, None) if isinstance(made, Lowered) else (None, made)
    twins = tuple(map(encoded, artifact.twins))
    return msgspec.msgpack.encode(
        (*results, *rest, twins, dict(artifact.reach), artifact.probes), enc_hook=_plain
    )


def _plain(value: Any) -> Any:
    """Return a number of numpy's as one of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be in an artifact")


def decoded(content: bytes) -> Artifact:
    """Return the artifact that was `encoded`; raise ValueError for any other content."""
    made, failure, patches, watched, twins, reach, probes = msgspec.msgpack.decode(content, type=Encoded)
    if (result := made or failure) is None:
        raise ValueError("it has neither a program nor a failure")
    return Artifact(result, patches, watched, tuple(map(decoded, twins)), reach, probes)


class Casualty(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """An export that did not finish, as one of the classes below; `words.casualties` has the sentences.

    Attributes
    ----------
    verdict
        ``crashed``, ``timed-out`` or ``out-of-memory``.
    of_harness
        Whether it says nothing about the program: the harness itself failed.
    telling
        Names of what does not vary between runs.
    tail
        The last lines that the child printed.
    """

    verdict: ClassVar[str] = "crashed"
    of_harness: ClassVar[bool] = False
    telling: ClassVar[tuple[str, ...]] = ()

    tail: tuple[str, ...] = ()

    def key(self) -> dict[str, str | int]:
        """Return its kind, and what does not vary between runs; casualties of one cause have the same."""
        told = {name: getattr(self, name) for name in self.telling}
        return {
            "kind": str(self.__struct_config__.tag),
            **{n: value for n, value in told.items() if value != ""},
        }


class DeadProcess(Casualty, frozen=True, kw_only=True):
    """A process that ended before it left an artifact: the child's, or its template's, twice.

    Attributes
    ----------
    template
        How the template of the child went: it `ENDED` by itself, or `HUNG` and was ended; empty where the child died.
    silent
        Seconds that a template that hung said nothing.
    """

    template: str = ""
    silent: float = 0.0


#: How a template went.
ENDED, HUNG = "ended", "hung"


class Killed(DeadProcess, frozen=True, tag="killed"):
    """Ended by a signal: its name, or its number where it has none."""

    telling = ("signal", "template")

    signal: str


class Exited(DeadProcess, frozen=True, tag="exited"):
    """Exited by itself."""

    telling = ("status", "template")

    status: int


class TimedOut(Casualty, frozen=True, tag="timed-out"):
    """Ended at the limit of time.

    Attributes
    ----------
    limit
        Seconds of processor time, and of idleness, that it may have.
    processor, wall, idle
        Seconds that it took; it was idle in the last of them.
    """

    verdict = "timed-out"
    telling = ("hanging",)

    limit: float
    processor: float
    wall: float
    idle: float

    @property
    def hanging(self) -> bool:
        """True if it computed to the limit, and false if it slept or waited for something."""
        return self.idle <= self.limit


class OutOfMemory(Casualty, frozen=True, tag="out-of-memory"):
    """Given no memory: at the limit, in bytes, or by a machine that has no more where there is none."""

    verdict = "out-of-memory"

    limit: int | None


class OfHarness(Casualty, frozen=True, tag="of-harness"):
    """An error of the harness's own; see `executorch_goldens.exporting.blame`.

    Attributes
    ----------
    stage
        See `Failure`.
    error
        Class and message of the exception.
    where
        File, line and function.
    log
        Everything that the child printed.
    """

    of_harness = True
    telling = ("stage", "error")

    stage: str = ""
    error: str = ""
    where: str = ""
    log: str = ""


class Overwritten(Casualty, frozen=True, tag="overwritten"):
    """Left something that is no artifact, and why it is none."""

    error: str


class Shortage(Casualty, frozen=True, tag="shortage"):
    """Failed for lack of memory or disk on a machine of a cluster."""

    node: str


#: A casualty as it is read back.
AnyCasualty = Killed | Exited | TimedOut | OutOfMemory | OfHarness | Overwritten | Shortage


def died(
    status: int, *, template: str = "", silent: float = 0.0, tail: tuple[str, ...] = ()
) -> Killed | Exited:
    """Return how a process ended, from its exit status or, below 0, its signal."""
    if status >= 0:
        return Exited(status, template=template, silent=silent, tail=tail)
    named = {each.value: each.name for each in signal.Signals}
    return Killed(named.get(-status, str(-status)), template=template, silent=silent, tail=tail)


@dataclass(frozen=True)
class Outcome:
    """The result of one export, with its cost.

    Attributes
    ----------
    seconds
        Wall time of the child from fork to exit.
    peak_mb
        Peak resident memory of the child in 2**20 bytes, pages shared with its template included.
    core_seconds
        Processor time of the child, in user and system mode.
    reused
        Whether it comes from the store of artifacts (`sweep.store`), with what the export cost that made it.
    """

    cell: Cell
    variation: str
    result: Artifact | Casualty
    seconds: float
    peak_mb: float
    core_seconds: float = 0.0
    reused: bool = False

    @property
    def program(self) -> Lowered | None:
        """The program that it made; None where it made none that runs, or did not finish."""
        made = self.result.result if isinstance(self.result, Artifact) else None
        return made if isinstance(made, Lowered) else None

    @property
    def case_failure(self) -> Failure | None:
        """See `Artifact.case_failure`."""
        return self.result.case_failure if isinstance(self.result, Artifact) else None
