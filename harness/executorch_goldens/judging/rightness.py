"""Checks that a program is right: its outputs, its constants, the wiring of its delegates, the unmodified model."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from executorch_goldens.artifact import Beginning, Lowered, Sample, Tensor
from executorch_goldens.decode import Constant, Graph
from executorch_goldens.goldens import findings
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.goldens.findings import Finding, Miswired, TensorType, Wiring, WrongType, WrongValues
from executorch_goldens.goldens.rendering import decode_delegates
from executorch_goldens.numerics import IMPRECISE
from executorch_goldens.numerics.tolerances import MARGIN

#: A mean difference of less than this part of a code says nothing.
LEAST_SHIFT = 0.5

#: A finding about the outputs of a program.
WrongOutput = WrongValues | WrongType | findings.WrongCount


@dataclass(frozen=True)
class Excess:
    """How far the outputs of a wrong program exceed the tolerance.

    Attributes
    ----------
    bound
        The smallest bound, of two digits, within which they would be right; infinity if there is none.
    wrong, right
        Names of the samples on which they are wrong, and of the others.
    is_outside
        Whether they begin to be wrong outside of the delegates, whose arithmetic a tolerance is about.
    """

    bound: float
    wrong: tuple[str, ...]
    right: tuple[str, ...]
    is_outside: bool = False


def wrongs(lowered: Lowered) -> Iterator[Finding]:
    """Yield the defects of an artifact that all variations agree on; none if it is right."""
    outputs = list(wrong_outputs(lowered))
    yield from outputs
    yield from below_bound(lowered)
    yield from beginning(lowered)
    if outputs:
        yield from of_a_build(lowered)
    else:
        if lowered.begins is not None:
            yield findings.Hidden()
        for method in lowered.by_method():
            yield from unexplained(method)
    yield from map(findings.LoadedOtherwise, lowered.loads)
    yield from wrong_delegates(lowered)
    yield from altered_states(lowered)
    for method in lowered.by_method():
        yield from forgotten(method)


def beginning(lowered: Lowered) -> Iterator[findings.Begins | findings.BeginsElsewhere]:
    """Yield where outputs, or values inside, begin to depart from eager's; nothing where none does."""
    if lowered.begins is None:
        return
    where, sample = lowered.begins.where, lowered.begins.sample
    if isinstance(where, Beginning):
        yield findings.BeginsElsewhere(sample, where)
        return
    backends = {each.name: each.backend_id for each in lowered.delegates}
    tolerance = where.tolerance.array().astype(np.float64)
    values = Deviation(where.expected, where.actual, tolerance).measured()
    yield findings.Begins(sample, where.spot(), backends.get(where.delegate, where.delegate), values)


def of_a_build(lowered: Lowered) -> Iterator[findings.OfBuild]:
    """Yield possible reasons for wrong outputs of a program that its case made by itself."""
    if not lowered.recipe:
        return
    yield from (findings.OfBuild(name, mode) for name, mode in lowered.training)
    if all(sample.order for sample in lowered.samples if any(_wrong_in(lowered, sample))):
        yield findings.OfBuild()
        return
    for method in lowered.by_method():
        name = method.samples[0].method or "forward" if method.samples else ""
        # Of runs that were recorded elsewhere nothing is measured.
        of_modules = [sample for sample in method.samples if sample.spreads and not sample.floats]
        if any(any(_wrong_in(method, sample)) for sample in of_modules):
            yield findings.OfBuild(name)


def wrong_outputs(lowered: Lowered) -> Iterator[WrongOutput]:
    """Yield how the program's outputs deviate from eager's, beyond the tolerance; none if they do not."""
    for sample in lowered.samples:
        yield from _wrong_in(lowered, sample)


def _wrong_in(lowered: Lowered, sample: Sample) -> Iterator[WrongOutput]:
    if len(sample.outputs) != len(sample.expected):
        yield findings.WrongCount(sample.name, len(sample.outputs), len(sample.expected))
    yield from (of_output(index, sample.name, each) for index, each in _beyond(lowered, sample))


def _beyond(lowered: Lowered, sample: Sample) -> Iterator[tuple[int, Deviation]]:
    """Yield the outputs that are beyond their tolerance, by number."""
    for index, (expected, actual) in enumerate(zip(sample.expected, sample.outputs, strict=False)):
        deviation = Deviation(expected, actual, lowered.tolerance(sample, index))
        if deviation.exceeds_tolerance():
            yield index, deviation


def of_output(index: int, sample: str, difference: Deviation) -> WrongValues | WrongType:
    """Return the finding of an output that deviates."""
    kind = WrongValues if difference.expected.type == difference.actual.type else WrongType
    return kind(index, sample, difference.measured())


def below_bound(lowered: Lowered) -> Iterator[findings.BelowBound]:
    """Yield that the metric of the case's task is below its bound; nothing where it is not, or there is none."""
    if lowered.metric is not None and lowered.metric.falls_short():
        yield findings.BelowBound(lowered.metric)


def forgotten(lowered: Lowered) -> Iterator[findings.Forgotten]:
    """Yield how a quantized program has lost the state of the model that was quantized; nothing where it has not.

    The quantized eager graph, which the outputs are compared with, may have lost it as well: on each sample of several
    steps the program gives what the last step alone gives, and the float model does not.
    """
    of = {sample.name: sample for sample in lowered.samples}
    pairs = [(sample, of[sample.alone]) for sample in lowered.samples if sample.floats and sample.alone in of]
    if not pairs or any(sample.outputs != alone.outputs for sample, alone in pairs):
        return
    differences = [
        float(each.differences().max())
        for sample, alone in pairs
        for index, (had, gives) in enumerate(zip(sample.floats, sample.outputs, strict=False))
        if had.shape == gives.shape and not gives.dtype.startswith("complex")
        if (each := _remembered(lowered, sample, alone, index)).exceeds_tolerance()
    ]
    if differences:
        yield findings.Forgotten(tuple(sample.name for sample, _ in pairs), max(differences))


def _remembered(lowered: Lowered, sample: Sample, alone: Sample, index: int) -> Deviation:
    """Return the effect of the previous steps on an output of the float model, where the program's is not clamped.

    What is cut off there may be so with a state and without.
    """
    given = np.concatenate([each.outputs[index].array().ravel() for each in lowered.samples])
    own = sample.outputs[index].array()
    inside = (given.min() < own) & (own < given.max()) if given.size else own == own
    tolerance = np.where(inside, lowered.tolerance(sample, index), np.inf)
    return Deviation(alone.floats[index], sample.floats[index], tolerance)


def wrong_delegates(lowered: Lowered) -> Iterator[Finding]:
    """Yield the defects of the delegates themselves, whatever they compute; none if they are right."""
    yield from invalid(lowered)
    if lowered.codes and only_holds(lowered):
        for index, codes in enumerate(lowered.codes):
            yield from missing_constant(index, codes, lowered)
    for index, decoded in enumerate(decode_delegates(lowered)):
        # The first graph is what the delegate runs; the others are branches and bodies of loops, which may hand on an
        # input, and one value twice. A format from outside may have no graph.
        for main in decoded.graphs[:1]:
            yield from miswired_outputs(main, index)


def invalid(lowered: Lowered) -> Iterator[findings.Invalid]:
    """Yield what a validator does not allow."""
    for level, delegate, said in lowered.validation.invalid if lowered.validation is not None else ():
        yield findings.Invalid(level, delegate, said)


def altered_states(lowered: Lowered) -> Iterator[findings.ChangedModel]:
    """Yield changes that lowering made to the input model; none if there are none."""
    for state in lowered.altered:
        change = Deviation(state.before, state.after)
        yield findings.ChangedModel(state.name, state.writer, change.measured())


#: What is wrong with a program beside values that are beyond their tolerance.
OTHERWISE = (
    *(WrongType, findings.WrongCount, findings.BelowBound),
    *(findings.Invalid, findings.MissingConstant, Miswired),
)


def alteration(wrong: Sequence[Finding]) -> findings.ChangedModel | None:
    """Return the first change that lowering made to the input model, if nothing else is wrong."""
    if any(isinstance(each, (WrongValues, *OTHERWISE)) for each in wrong):
        return None
    return next((each for each in wrong if isinstance(each, findings.ChangedModel)), None)


def excess(lowered: Lowered, wrong: Sequence[Finding]) -> Excess | None:
    """Return how far the outputs of a program are beyond the tolerance; None if it is not that, or not only that."""
    if any(isinstance(each, (findings.ChangedModel, *OTHERWISE)) for each in wrong):
        return None
    bound, beyond = 0.0, []
    for sample in lowered.samples:
        for index, deviation in _beyond(lowered, sample):
            bound = max(bound, _bound_for(deviation, lowered.sizes(sample, index)))
            beyond.append(sample.name)
    if not beyond:
        return None
    right = tuple(sample.name for sample in lowered.samples if sample.name not in beyond)
    where = lowered.begins.where if lowered.begins is not None else None
    is_outside = isinstance(where, Beginning) and where.is_outside
    return Excess(_rounded_up(bound), tuple(dict.fromkeys(beyond)), right, is_outside)


def _bound_for(deviation: Deviation, sizes: NDArray[np.float64]) -> float:
    """Return the bound, a part of each element's size, that would allow a deviation; infinity if none would."""
    differences = deviation.differences()
    beyond = differences > deviation.tolerance
    sizes = np.broadcast_to(sizes, differences.shape)[beyond]
    # An output without rounding has no bound for it.
    allows = np.any(deviation.tolerance) and sizes.all()
    return float((differences[beyond] / sizes).max()) if allows else math.inf


def _rounded_up(value: float) -> float:
    """Return the smallest number of two significant digits that is not less than `value`.

    >>> [_rounded_up(value) for value in (0.01201, 0.012, 3.0e-5, 0.999, math.inf)]
    [0.013, 0.012, 3e-05, 1.0, inf]
    """
    if not math.isfinite(value):
        return value
    shortened = float(f"{value:.2g}")
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return shortened if shortened >= value else float(f"{shortened + step:.2g}")


def miswired_outputs(graph: Graph, delegate: int = 0) -> Iterator[Miswired]:
    """Yield each declared output that is declared twice or that nothing writes.

    Outputs are distinguished by name only: an output slot whose name another slot has is lost (issue #18866), one that
    nothing writes is read as whatever the memory holds (#22436).

    Parameters
    ----------
    delegate
        Its number.
    """
    written = {name for operator in graph.operators for name in operator.outputs}
    outputs = tuple(map(str, graph.outputs))
    for name, slots in Counter(graph.outputs).items():
        if name not in graph.values:
            yield Miswired(delegate, outputs, str(name), Wiring.UNDECLARED)
            continue
        if slots > 1:
            yield Miswired(delegate, outputs, str(name), Wiring.TWICE, slots, tuple(_dead(graph)))
        if name not in written and graph.values[name].constant is None:
            is_input = name in graph.inputs
            yield Miswired(delegate, outputs, str(name), Wiring.UNWRITTEN, is_input=is_input)


def _dead(graph: Graph) -> list[str]:
    """Return the values that are written and neither read nor given."""
    written = {name for operator in graph.operators for name in operator.outputs}
    read = {name for operator in graph.operators for name in operator.inputs}
    return sorted(map(str, written - read - set(graph.outputs)))


#: TOSA operators that hand values on, wherever they put them.
HANDING_ON = frozenset({"CONST", "IDENTITY", "TRANSPOSE", "RESHAPE", "CONCAT", "SLICE"})


def only_holds(lowered: Lowered) -> bool:
    """Return whether the delegates compute nothing: then their outputs must be constants in them."""
    graphs = [graph for decoded in decode_delegates(lowered) for graph in decoded.graphs]
    return all(operator.type in HANDING_ON for graph in graphs for operator in graph.operators)


def missing_constant(output: int, expected: Tensor, lowered: Lowered) -> Iterator[findings.MissingConstant]:
    """Yield nothing if some delegate holds `expected` as a constant, in any order of dimensions, else the nearest.

    The constant is found by what it is: lowering may store it as NCHW or NHWC, and names differ by release.
    """
    candidates = [
        (Deviation(expected, permuted), str(name), index)
        for index, decoded in enumerate(decode_delegates(lowered))
        for name, constant in decoded.constants().items()
        for permuted in _arrangements(constant, expected)
    ]
    wanted = TensorType.of_tensor(expected)
    if not candidates:
        if lowered.delegates:
            yield findings.MissingConstant(output, wanted)
        return
    nearest, name, delegate = min(candidates, key=lambda each: float(np.mean(each[0].differences())))
    if nearest.exceeds_tolerance():
        yield findings.MissingConstant(output, wanted, name, delegate, nearest.measured())


def _arrangements(constant: Constant, expected: Tensor) -> Iterator[Tensor]:
    """Yield `constant` with its dimensions in each order that gives the expected dtype and shape."""
    if constant.dtype.lower() != expected.dtype or sorted(constant.shape) != sorted(expected.shape):
        return
    array = constant.array()
    for axes in itertools.permutations(range(array.ndim)):
        if tuple(array.shape[axis] for axis in axes) == expected.shape:
            yield Tensor.from_array(array.transpose(axes).astype(expected.dtype))


# Outputs that rounding moves far


def judged_otherwise(lowered: Lowered) -> bool:
    """Return whether each operator of a quantized program was found correct, given its actual inputs.

    What its outputs may be off by then says nothing against it: rounding to codes adds up, and decides what comes out.
    """
    return bool(lowered.scales) and lowered.unseen == () and lowered.begins is None


def is_far_moved(lowered: Lowered, index: int) -> bool:
    """Return whether rounding alone moves some output so far that a comparison checks little."""
    return any(lowered.imprecision(sample, index) > IMPRECISE for sample in lowered.samples)


def unexplained(lowered: Lowered) -> Iterator[findings.Biased]:
    """Yield outputs whose differences as a whole are not those of rounding, although it moves single ones far.

    Rounding moves elements up and down: over the elements of all samples the mean of the differences is no more than
    what the runs were moved by that showed how far rounding goes.
    """
    if not lowered.scales:
        return
    for index in range(max((len(sample.shifts) for sample in lowered.samples), default=0)):
        pairs = [
            (sample.outputs[index], sample.expected[index], sample.shifts[index])
            for sample in lowered.samples
            if len(sample.outputs) == len(sample.expected)
            and sample.outputs[index].shape == sample.expected[index].shape
            and not sample.expected[index].dtype.startswith("complex")
        ]
        if not pairs or not is_far_moved(lowered, index):
            continue
        differences = np.concatenate([(one.wide() - other.wide()).ravel() for one, other, _ in pairs])
        differences = differences[np.isfinite(differences)]
        mean = float(differences.mean()) if differences.size else 0.0
        shifted = math.sqrt(sum(shift**2 for *_, shift in pairs) / len(pairs))
        code = lowered.scales[index] if index < len(lowered.scales) else 0.0
        allowed = max(MARGIN * shifted, LEAST_SHIFT * code)
        if abs(mean) > allowed:
            yield findings.Biased(index, mean, allowed)
