"""The defect of a cell, where a script can show it by itself."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from executorch_goldens.artifact import Artifact, Cell, Failure, Killed, Lowered, Outcome
from executorch_goldens.errors import HarnessError
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.goldens.findings import NotFinished
from executorch_goldens.goldens.rendering import decode_delegates
from executorch_goldens.judging import rightness, verdict
from executorch_goldens.judging.exports import Exports
from executorch_goldens.words.findings import deviated, miswired, title
from executorch_goldens.words.verdicts import reason

#: Parts of a message that name something of the model, by which messages of the same cause differ: what is quoted or
#: listed, numbers, and names with a digit or an underscore in them.
OF_THE_MODEL = re.compile(
    r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\[\]]*\]|\(\w*\)|\b\w*[\d_]\w*(?:\.\w+)*\b|…[^\s…]*"
)
#: Characters that two messages must share to be the same failure, and how many are looked for.
SHORTEST_FRAGMENT, LONGEST_FRAGMENT = 12, 48


class NotShownError(HarnessError, ValueError):
    """A cell that is right, or a verdict that no script of its own can show; the message says which and why."""


@dataclass(frozen=True)
class Defect:
    """One thing that a script can show.

    Attributes
    ----------
    kind
        ``raises``: a stage of the export does. ``follows-seed``: two hash seeds give two programs. ``outputs``: they
        are not what eager computes. ``slots``: a TOSA delegate declares an output twice, or one that nothing writes.
        ``alters``: lowering changes the input model. ``crashes``: the process dies of a signal.
    verdict
        The verdict about the cell; ``failed`` where lowering raises, golden or not.
    reason
        One line.
    stage
        Stage of ``raises``: see `executorch_goldens.artifact.Failure`.
    type, fragment
        Class of the exception of ``raises``, and a part of its message that names nothing of the model.
    seeds
        The hash seeds that show it: two for ``follows-seed``, otherwise the first that was tried.
    sample
        Inputs of ``outputs`` that show it, see `executorch_goldens.zoo.registry.SAMPLES`.
    tolerances
        The largest absolute difference of each output of ``outputs`` that is none.
    """

    kind: str
    verdict: str
    reason: str
    stage: str = ""
    type: str = ""
    fragment: str = ""
    seeds: tuple[int, ...] = ()
    sample: str = "example"
    tolerances: tuple[float, ...] = ()

    def is_like(self, other: Defect) -> bool:
        """Return whether two programs show the same defect, names and numbers aside."""
        return (self.kind, self.verdict, self.stage, signature(self.reason)) == (
            *(other.kind, other.verdict, other.stage, signature(other.reason)),
        )


def find(cell: Cell, outcomes: Sequence[Outcome]) -> Defect:
    """Return the defect of a cell that was exported under one hash seed or several.

    Raises
    ------
    NotShownError
        If nothing is wrong, or nothing that a script could show.
    """
    seeds = tuple(int(o.variation.partition("-")[0].removeprefix("seed")) for o in outcomes)
    results = [o.result.result for o in outcomes if isinstance(o.result, Artifact)]
    if failure := _failing(results, len(outcomes), seeds[:1]):
        return failure
    judged = verdict.objection(cell, outcomes)
    if judged is None:
        tried = ", ".join(outcome.variation for outcome in outcomes)
        raise NotShownError(
            f"is right under {tried}: there is nothing to show (--variations 0,1,2,3 tries other seeds)"
        )
    exports = Exports(outcomes)
    if judged.name in verdict.DISAGREEING and not exports.have_one_program:
        disagreeing = tuple(seeds[outcomes.index(group[0])] for group in exports.groups[:2])
        return Defect("follows-seed", judged.name, reason(judged), seeds=disagreeing)
    ended = judged.findings[0]
    if isinstance(ended, NotFinished) and isinstance(ended.ended, Killed):
        killed = [outcome.variation for outcome in outcomes].index(ended.variation)
        return Defect("crashes", "crashed", title(ended, cell.target), stage="run", seeds=(seeds[killed],))
    for defect in _corrupt(results[0], judged, seeds[:1]) if judged.name == "corrupt" else ():
        return defect
    raise NotShownError(f"is {judged.name} ({reason(judged)}), which no script of its own can show")


def _failing(results: Sequence[Lowered | Failure], exports: int, seeds: tuple[int, ...]) -> Defect | None:
    """Return the failure of all exports, if each failed, and all alike."""
    failures = [_raises(result, seeds) for result in results if isinstance(result, Failure)]
    # A failure that names a different node under a different seed is the same failure.
    is_one = len(failures) == exports and all(failure.is_like(failures[0]) for failure in failures)
    return failures[0] if is_one else None


def _raises(failure: Failure, seeds: tuple[int, ...]) -> Defect:
    message = (failure.message.splitlines() or [""])[0]
    kind = failure.type.rpartition(".")[2]
    reason = f"{kind}: {message}"
    if failure.stage in ("model", "export"):
        raise NotShownError(f"has no exported graph to start from: {reason}")
    name = "corrupt" if failure.stage == "run" else "failed"
    return Defect("raises", name, reason, failure.stage, kind, fragment(message), seeds)


def _corrupt(result: Lowered | Failure, judged: verdict.Verdict, seeds: tuple[int, ...]) -> Iterator[Defect]:
    assert isinstance(result, Lowered)
    yield from _of_outputs(result, judged, seeds)
    yield from _of_slots(result, judged, seeds)
    for state in result.altered[:1]:
        # The name is the model's: in its exported graph it is another one.
        reason = f"lowering changed the model that it was given{', in ' * bool(state.writer)}{state.writer}"
        yield Defect("alters", judged.name, reason, seeds=seeds)


def _of_outputs(result: Lowered, judged: verdict.Verdict, seeds: tuple[int, ...]) -> Iterator[Defect]:
    """Yield a defect for each sample whose outputs differ from eager."""
    for sample in result.samples:
        allowed = [result.tolerance(sample, index) for index in range(len(sample.expected))]
        pairs = zip(sample.expected, sample.outputs, allowed, strict=False)
        deviations = [Deviation(*of_output) for of_output in pairs]
        wrong = [n for n, deviation in enumerate(deviations) if deviation.exceeds_tolerance()]
        if wrong or len(sample.expected) != len(sample.outputs):
            first = (f"output {n}" for n in wrong[:1])
            seen = [next(deviated(what, deviations[wrong[0]].measured())) for what in first]
            tolerances = tuple(map(_one_tolerance, deviations))
            yield Defect(
                *("outputs", judged.name, seen[0] if seen else reason(judged)),
                seeds=seeds,
                sample=sample.name,
                tolerances=tolerances,
            )


def _of_slots(result: Lowered, judged: verdict.Verdict, seeds: tuple[int, ...]) -> Iterator[Defect]:
    """Yield a defect for each output that a TOSA delegate declares twice, or that nothing writes."""
    for delegate, decoded in zip(result.delegates, decode_delegates(result), strict=True):
        # As `judging.rightness.wrongs`: branches and bodies of loops may do what is wrong in the first.
        graphs = decoded.graphs[:1] if delegate.backend_id == "TOSABackend" else ()
        for found in (each for graph in graphs for each in rightness.miswired_outputs(graph)):
            yield Defect("slots", judged.name, f"a delegate's {miswired(found)}", seeds=seeds)


def _one_tolerance(deviation: Deviation) -> float:
    """Return a tolerance for all elements of an output, which it exceeds as it does those of each element."""
    difference = deviation.differences()
    tolerance = np.broadcast_to(deviation.tolerance, difference.shape)
    beyond = tolerance[difference > tolerance]
    return float((beyond if beyond.size else tolerance).min(initial=np.inf))


def signature(line: str) -> str:
    """Return a one-line reason without names and counts of the model.

    >>> signature("RuntimeError: Output node 'aten_permute_copy_default' is already in the inputs")
    'RuntimeError: Output node … is already in the inputs'
    >>> signature("output 0 float32[1, 2]: 20 of 40 values differ, max 0.75 (tolerance 0.006)")
    'output … …… … of … values differ, max … (tolerance …'
    """
    while (shorter := OF_THE_MODEL.sub("…", line)) != line:
        line = shorter
    return line


def fragment(message: str) -> str:
    """Return the longest part of a message that names and counts nothing of the model, empty if it is too short.

    >>> fragment("Output node 'aten_permute_copy_default' is already in the inputs set(1)")
    'is already in the inputs set'
    """
    longest = max((part.strip(" .,:;()[]{}") for part in OF_THE_MODEL.split(message)), key=len)
    words = textwrap.wrap(longest, LONGEST_FRAGMENT, break_long_words=False, break_on_hyphens=False)[:1]
    return words[0] if words and len(words[0]) >= SHORTEST_FRAGMENT else ""
