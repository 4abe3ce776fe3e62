"""The exports of one cell, one a variation: which of them agree, and on what."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator

from executorch_goldens.artifact import Artifact, Failure, Lowered, Outcome
from executorch_goldens.goldens import findings
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.causes import essence
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.judging.rightness import of_output, wrong_outputs

#: Outcomes whose programs are the same and give the same outputs.
Group = list[Outcome]


class Exports(tuple[Outcome, ...]):
    """The exports of one cell; what they show together is found once."""

    def __new__(cls, outcomes: Iterable[Outcome]) -> Exports:
        return outcomes if isinstance(outcomes, cls) else super().__new__(cls, outcomes)

    @functools.cached_property
    def groups(self) -> list[Group]:
        """Outcomes by content, in the order in which they come; none where an export did not finish."""
        groups: dict[object, list[Group]] = {}
        if not all(isinstance(each.result, Artifact) for each in self):
            return []
        for outcome in self:
            same_program = groups.setdefault(_content(_result(outcome)), [])
            for group in same_program:
                if _agree(_result(group[0]), _result(outcome)):
                    group.append(outcome)
                    break
            else:
                same_program.append([outcome])
        return [group for same_program in groups.values() for group in same_program]

    @property
    def results(self) -> list[Lowered | Failure]:
        """The result of each group."""
        return [_result(group[0]) for group in self.groups]

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The variations of each group."""
        return tuple(tuple(outcome.variation for outcome in group) for group in self.groups)

    @functools.cached_property
    def have_one_program(self) -> bool:
        """True if the groups differ only in the outputs of the program."""
        return len(set(map(_content, self.results))) == 1

    @functools.cached_property
    def agreed(self) -> Artifact:
        """The artifact of a cell whose variations agree.

        Variations that fail alike in different places have a failure of what they share: the same, whichever comes
        first.
        """
        artifact = self[0].result
        assert isinstance(artifact, Artifact)
        failures = [each for outcome in self if isinstance(each := _result(outcome), Failure)]
        if len({each.facts() for each in failures}) < 2 or not isinstance(artifact.result, Failure):
            return artifact
        functions = {each.function for each in failures}
        failure = dataclasses.replace(
            artifact.result,
            message=essence(artifact.result.message),
            function=functions.pop() if len(functions) == 1 else None,
        )
        return dataclasses.replace(artifact, result=failure)

    @functools.cached_property
    def accuracy(self) -> Accuracy | None:
        """How far the program of the first export is from eager; None where it was not run, or there is none."""
        return Accuracy.measure(self[0].program) if self[0].program is not None else None

    @functools.cached_property
    def gives_wrong(self) -> bool:
        """True if an output of some export differs from eager."""
        return any(any(wrong_outputs(each.program)) for each in self if each.program is not None)


def _result(outcome: Outcome) -> Lowered | Failure:
    assert isinstance(outcome.result, Artifact)
    return outcome.result.result


def _content(result: Lowered | Failure) -> object:
    """Return all of an artifact except the results of running it; of a failure, what failures alike share."""
    if isinstance(result, Failure):
        made = result.made
        program = (made.graph, made.delegates, made.pte_sha256, made.data) if made is not None else None
        return (result.stage, result.type, result.pass_name, essence(result.message), program)
    return (result.graph, result.delegates, result.pte_sha256, result.data, result.altered)


def _agree(one: Lowered | Failure, other: Lowered | Failure) -> bool:
    """Return whether two exports of the same program give the same outputs, and are both right or both wrong."""
    if isinstance(one, Failure) or isinstance(other, Failure):
        return True
    if one.unjudged != other.unjudged:
        return False
    # The usual case, and all that it costs: eager outputs and the program's are equal to the last bit.
    if one.samples == other.samples:
        return True
    if any(output_differences(one, other)):
        return False
    return any(wrong_outputs(one)) == any(wrong_outputs(other))


def output_differences(one: Lowered, other: Lowered) -> Iterator[findings.WrongValues | findings.WrongType]:
    """Yield how the outputs of the same program differ between two variations."""
    given = {sample.name: sample for sample in other.samples}
    for left, right in ((sample, given[sample.name]) for sample in one.samples if sample.name in given):
        for index, (first, second) in enumerate(zip(left.outputs, right.outputs, strict=True)):
            if first != second:
                difference = Deviation(first, second)
                if difference.exceeds_tolerance():
                    yield of_output(index, left.name, difference)
