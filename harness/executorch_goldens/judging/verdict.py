"""The verdict about a cell: agreement of its variations, rightness, difference from the golden."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import OF_HARNESS, Artifact, Casualty, Cell, Failure, Lowered, Outcome
from executorch_goldens.diff import texts
from executorch_goldens.diff.likeness import RENAMED, names_alone, reordered
from executorch_goldens.diff.payloads import compare
from executorch_goldens.diff.quantities import directions
from executorch_goldens.diff.renaming import Renames
from executorch_goldens.files import shortage
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import unchecked
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.causes import essence, general
from executorch_goldens.goldens.decisions import FILE, KNOWN, Decisions
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.goldens.inventory import Inventory
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.outline import Outline, outline
from executorch_goldens.goldens.record import FAILURE, GRAPH, MODEL, PROGRAM, Record
from executorch_goldens.goldens.rendering import data_file, decode_data, decode_delegates
from executorch_goldens.judging.attribution import Attribution
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.divergence import Divergence
from executorch_goldens.judging.own_files import Frame
from executorch_goldens.judging.rightness import (
    Excess,
    altered_states,
    excess,
    judged_otherwise,
    wrong_at,
    wrong_delegates,
    wrong_outputs,
    wrongs,
)
from executorch_goldens.settings.config import RENAMES
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED, UnsteadyError, ZooError
from executorch_goldens.zoo.targets import better_conditioned

#: Words before the reason why a program was not run.
NOT_RUN = "not run:"
#: How a cell is counted whose program was not run: it may be wrong.
NOT_JUDGED = "not judged"

#: The way out for a model that its quantization changes in something else.
CHANGED = (
    "correct what changes the model itself: the quantizer, or torchao's training and its switch to eval mode, which "
    "give batch norms an eps of 1e-05; no setting of a case accepts another model"
)
#: The way out for a model that is no function of its inputs.
KEPT = (
    "what a model keeps from call to call is a buffer (register_buffer); what it draws, counts or reads beside that is "
    "no part of a program"
)

#: The setting with which a repository lets names differ.
ALLOWING = f'if names may differ: allow = ["{RENAMES}"] under [tool.goldens] in pyproject.toml'

#: Operators outside of delegates that the reason of a new cell names.
SHOWN_OUTSIDE = 3

#: Beginnings of reasons that are mistakes of the repository's own.
OF_CASE = "the case itself does not run"
UNSTEADY = "the case is the cause"
OF_OWN_FILE = "the error is raised by a file of your own"

#: The verdict of a golden that is one only where it is expected, and that nothing expects (`goldens.decisions`).
UNEXPECTED = "unexpected"

#: Verdicts of cells whose variations disagree.
DISAGREEING = ("order-only", "unstable")
#: Verdicts of cells whose variations mostly agree on what is wrong.
AGREEING = ("corrupt", "failed")


class Acceptance(enum.Enum):
    """How far ``--snapshot-update`` is with an artifact that is not the golden."""

    IMPOSSIBLE = "impossible"
    POSSIBLE = "possible"
    #: The golden is written once the run knows what else its cause has changed.
    HELD = "held"
    RECORDED = "recorded"
    #: The repository allows the differences, and the golden stays.
    ALLOWED = "allowed"


@dataclass(frozen=True)
class Verdict:
    """The result for a cell.

    Attributes
    ----------
    name
        ``stable``, ``order-only``, ``unstable``, ``corrupt``, ``imprecise``, ``changed``, ``renamed``, ``new``,
        ``unexpected``, ``failed``, ``over-budget``, ``crashed``, ``timed-out``, ``out-of-memory``, ``undecodable`` or
        ``damaged-golden`` (README, "Verdicts").
    refusal
        Why an artifact that can be accepted is not, by ``--snapshot-update`` or at all.
    known
        Why it is the known defect of the cell; empty where it is none.
    excess
        Excess of a program that is wrong in nothing but its outputs.
    where
        The outputs of a wrong program that are wrong, and the operator at which values begin to be, where
        known; empty for any other.
    attribution
        The factor that it follows, where that is known or was sought.
    delegates
        Backend ids of the delegates of its program; None where none was made.
    loses
        `Lost.by` where quantization loses too much; None where it does not.
    """

    cell: Cell
    name: str
    reason: str
    detail: tuple[str, ...] = ()
    acceptance: Acceptance = Acceptance.IMPOSSIBLE
    refusal: str = ""
    known: str = ""
    divergence: Divergence | None = None
    excess: Excess | None = None
    where: str = ""
    attribution: Attribution | None = None
    delegates: tuple[str, ...] | None = None
    loses: str | None = None

    @property
    def is_of_harness(self) -> bool:
        """True if the harness itself failed: the program was not judged."""
        return self.name == "crashed" and f": {OF_HARNESS}" in self.reason

    @property
    def blames_case(self) -> bool:
        """True if variations disagree because the case gives them different models."""
        return self.name in DISAGREEING and self.divergence is not None and self.divergence.name == MODEL

    @property
    def recordable(self) -> bool:
        """True if ``--snapshot-update`` can accept the artifact as the cell's golden, or has accepted it."""
        return self.acceptance not in (Acceptance.IMPOSSIBLE, Acceptance.ALLOWED)

    @property
    def recorded(self) -> bool:
        """True if ``--snapshot-update`` accepted the artifact as the cell's golden."""
        return self.acceptance in (Acceptance.HELD, Acceptance.RECORDED)

    @property
    def allowed(self) -> bool:
        """True if the repository allows what differs from the golden, which stays."""
        return self.acceptance is Acceptance.ALLOWED

    @property
    def accepted(self) -> bool:
        """True if a person has nothing left to do."""
        return self.name == "stable" or self.recorded or bool(self.known) or self.allowed


def objection(cell: Cell, outcomes: Sequence[Outcome], accepted: Collection[str] = ()) -> Verdict | None:
    """Return why a cell has no artifact that could be its golden; None if all variations agree on one that is right.

    Parameters
    ----------
    accepted
        Accepted outputs of the cell that nothing checks.
    """
    for outcome in outcomes:
        if isinstance(outcome.result, Casualty):
            first, *rest = outcome.result.reason.splitlines()
            return Verdict(cell, outcome.result.verdict, f"{outcome.variation}: {first}", tuple(rest))
    groups = group_by_content(outcomes)
    if len(groups) > 1:
        return disagreement(cell, groups)
    result = agreed(outcomes).result
    if isinstance(result, Failure):
        return _objection_to_failure(cell, result)
    useless = _useless(cell, result)
    if wrong := list(wrongs(result)):
        # An infinite scale, for instance, explains what no program makes right; less is not enough for a wrong one.
        lost = result.lost
        explained = (useless.reason, *lost.lines) if useless is not None and lost is not None else ()
        detail = (*wrong[1:], *explained)
        return Verdict(
            cell, "corrupt", wrong[0], detail, excess=excess(result), where=wrong_at(result, wrong)
        )
    return useless or _imprecise(cell, result) or _unchecked(cell, result, accepted)


def _is_bare(cell: Cell, lowered: Lowered) -> bool:
    """Return whether a program has no delegate, on a target that has some."""
    return not lowered.delegates and targets.delegates(cell.target)


def _useless(cell: Cell, result: Lowered | Failure) -> Verdict | None:
    """Object to a quantization that loses too much of the model, whether it lowers or not."""
    lost = result.lost
    if lost is None:
        return None
    noise = "its difference from the float model" if lost.changed else "the noise of quantization"
    left = (
        f"{lost.sqnr:.1f} dB above {noise}"
        if math.isfinite(lost.sqnr)
        else "NaN or infinite where the float model gives numbers"
    )
    output = f"output {lost.output} is {left}"
    reason = f"useless quantization: {output}, and the floor of {cell.target} is {lost.floor:g} dB"
    if lost.changed:
        reason = f"not quantization: without it the model already differs, first in {lost.changed}; {output}"
    ways = ["keep the named values in float, or give them a different range"] if lost.named else []
    # Less than the noise is no signal.
    if lost.changed:
        ways = [CHANGED]
    elif math.isfinite(lost.sqnr) and (accepted := math.floor(lost.sqnr) - 1) > 0:
        ways.append(f'if so little is enough, accept it in the case: sqnr={{"{cell.target}": {accepted}}}')
    failure = (f"and it does not lower: {_message(result)}",) if isinstance(result, Failure) else ()
    detail = (*lost.lines, *failure, *(["; ".join(ways)] if ways else ()))
    return Verdict(cell, "imprecise", reason, detail, loses=lost.by)


def _imprecise(cell: Cell, result: Lowered) -> Verdict | None:
    """Object to a correct program that is too ill-conditioned to check."""
    found = {
        (index, sample.name): result.imprecision(sample, index)
        for sample in result.samples
        for index in range(len(sample.expected))
    }
    (index, name), most = max(found.items(), key=lambda item: item[1], default=((0, ""), 0.0))
    if most <= result.limit or judged_otherwise(result):
        return None
    reason = (
        f"right within rounding, but rounding alone may move output {index} ({name}) by {most:.4g} of its largest "
        f"value, and {result.limit:g} is accepted"
    )
    way_out = f"an outcome that rounding decides checks little: {better_conditioned(cell.target)}"
    return Verdict(cell, "imprecise", reason, (*_not_looked_into(result), way_out))


def _unchecked(cell: Cell, result: Lowered, accepted: Collection[str]) -> Verdict | None:
    """Object to a program with methods or outputs that nothing checks, unless a person has accepted that."""
    found = unchecked.objection(result, accepted)
    return Verdict(cell, "imprecise", found[0], found[1:]) if found else None


def _not_looked_into(result: Lowered) -> Iterator[str]:
    """Yield why the operators of a quantized program do not say whether it is right."""
    if result.inside is None or not result.scales:
        return
    for what, why in result.inside.unseen:
        yield f"its operators cannot all be judged one by one: {what} is not seen: {why}"


def agreed(outcomes: Sequence[Outcome]) -> Artifact:
    """Return the artifact of a cell to which there is no `objection`.

    Variations that fail alike in different places have a failure of what they share: the same, whichever comes first.
    """
    artifact = outcomes[0].result
    assert isinstance(artifact, Artifact)
    failures = [_result([outcome]) for outcome in outcomes if isinstance(artifact.result, Failure)]
    facts = {each.facts() for each in failures if isinstance(each, Failure)}
    if len(facts) < 2 or not isinstance(artifact.result, Failure):
        return artifact
    functions = {each.function for each in failures if isinstance(each, Failure)}
    return dataclasses.replace(
        artifact,
        result=dataclasses.replace(
            artifact.result,
            message=essence(artifact.result.message),
            function=functions.pop() if len(functions) == 1 else None,
        ),
    )


def _objection_to_failure(cell: Cell, failure: Failure) -> Verdict | None:
    """A failure of lowering is an artifact; one of the model is the zoo's, one of the runtime is a wrong program."""
    message = _message(failure)
    if shortage.explains(failure):
        reason = f"the machine had too little for this export: {message}"
        return Verdict(cell, "failed", reason, _tail(failure.traceback))
    if failure.stage == "model" and failure.type.endswith(UnsteadyError.__name__):
        return Verdict(cell, "failed", f"{UNSTEADY}: {failure.message}", (KEPT,))
    if failure.stage == "model":
        # What a declaration got wrong is in no file of the harness.
        tail = () if failure.type.endswith(ZooError.__name__) else _tail(failure.traceback)
        return Verdict(cell, "failed", f"{OF_CASE}: {message}", tail)
    if failure.stage == "run":
        validation = failure.made.validation if failure.made is not None else None
        invalid = validation.invalid if validation is not None else ()
        detail = (*invalid, *_tail(failure.traceback))
        bare = f"{UNDELEGATED}: " if failure.made is not None and _is_bare(cell, failure.made) else ""
        return Verdict(cell, "corrupt", f"{bare}the program does not run: {message}", detail)
    return _useless(cell, failure)


def _message(failure: Failure) -> str:
    return f"{failure.type}: {(failure.message.splitlines() or [''])[0]}"


def place_and_message(failure: Failure) -> str:
    """Return where something fails, and the first line of why."""
    place = ", ".join(filter(None, (failure.stage, failure.pass_name)))
    message = f"{failure.type.rpartition('.')[2]}: {(failure.message.splitlines() or [''])[0]}"
    return f"{place}: {message}"


def _tail(text: str) -> tuple[str, ...]:
    return tuple(text.rstrip().splitlines()[-texts.SHOWN_LINES :])


# Agreement of the variations


Group = list[Outcome]


def group_by_content(outcomes: Sequence[Outcome]) -> list[Group]:
    """Group outcomes whose programs are the same and give the same outputs, in the order in which they come."""
    groups: dict[object, list[Group]] = {}
    for outcome in outcomes:
        assert isinstance(outcome.result, Artifact)
        same_program = groups.setdefault(_content(outcome.result.result), [])
        for group in same_program:
            if _agree(_result(group), outcome.result.result):
                group.append(outcome)
                break
        else:
            same_program.append([outcome])
    return [group for same_program in groups.values() for group in same_program]


def have_one_program(groups: Sequence[Group]) -> bool:
    """Return whether groups differ only in the outputs of the program."""
    return len({_content(_result(group)) for group in groups}) == 1


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
    if any(_output_differences(one, other)):
        return False
    return any(wrong_outputs(one)) == any(wrong_outputs(other))


def _output_differences(one: Lowered, other: Lowered) -> Iterator[Deviation]:
    """Yield how the outputs of the same program differ between two variations."""
    given = {sample.name: sample for sample in other.samples}
    for left, right in ((sample, given[sample.name]) for sample in one.samples if sample.name in given):
        for index, (first, second) in enumerate(zip(left.outputs, right.outputs, strict=True)):
            if first != second:
                difference = Deviation(f"output {index} (sample {left.name})", first, second)
                if difference.exceeds_tolerance():
                    yield difference


def disagreement(cell: Cell, groups: Sequence[Group]) -> Verdict:
    """Say which variations disagree, whether in order only or in content, and how the first two groups differ."""
    shape = " | ".join(map(_names, groups))
    results = [_result(group) for group in groups]
    if have_one_program(groups):
        return _unequal_outputs(cell, groups)
    order_only = differ_in_order_only(results)
    name = "order-only" if order_only else "unstable"
    what = "in order or numbering only" if order_only else "in content"
    reason = f"{len(groups)} different artifacts, which differ {what}"
    if any(isinstance(result, Failure) for result in results):
        reason = "; ".join(_failing_first(groups))
    labels = [group[0].variation for group in groups[:2]]
    one, other = (Record({}, dict(comparable_texts(result))) for result in results[:2])
    detail = [f"variations: {shape}", *texts.difference(one, other, *labels)]
    return Verdict(cell, name, reason, tuple(detail))


def _failing_first(groups: Sequence[Group]) -> Iterator[str]:
    """Yield how variations fail, each failure once, then which variations do not: of those that lower, which run."""
    failing: dict[str, list[str]] = {}
    does = "lowers"
    for group in groups:
        if isinstance(result := _result(group), Failure):
            failing.setdefault(f"{FAILS}: {place_and_message(result)}", []).append(_names(group))
            # What fails when it runs has lowered.
            does = "runs" if result.made is not None else does
    yield from (f"{what} (under {' '.join(names)})" for what, names in failing.items())
    if others := [group for group in groups if isinstance(_result(group), Lowered)]:
        yield f"{does} under {' and otherwise under '.join(map(_names, others))}"


def _names(group: Group) -> str:
    return " ".join(outcome.variation for outcome in group)


def _unequal_outputs(cell: Cell, groups: Sequence[Group]) -> Verdict:
    """Say how the outputs of the same program differ, and under which variations they are wrong."""
    names = list(map(_names, groups))
    results = [result for group in groups if isinstance(result := _result(group), Lowered)]
    first_variation = groups[0][0].variation
    lines = [
        line
        for difference in _output_differences(results[0], results[1])
        for line in difference.lines(f"is given under {first_variation}")
    ]
    wrong = [
        f"wrong under {name}: {line}"
        for name, result in zip(names, results, strict=True)
        for line in itertools.islice(wrong_outputs(result), 1)
    ]
    reason = f"the same program gives different outputs: {lines[0]}" if lines else RIGHT_AND_WRONG
    if not lines and len({result.unjudged for result in results}) > 1:
        reason = UNJUDGED_AND_JUDGED
    detail = (f"variations: {' | '.join(names)}", *lines[1:], *wrong)
    if miswired := list(wrong_delegates(results[0])):
        # Outputs that nothing writes are whatever the memory held: the program is wrong, and the same every time.
        return Verdict(cell, "corrupt", miswired[0], (*miswired[1:], reason, *detail))
    return Verdict(cell, "unstable", reason, detail)


#: Why a cell is unstable whose outputs are the same: what eager gives is not.
RIGHT_AND_WRONG = "the same program is right under some variations and wrong under others"
#: The same, where it is not even always a finite number.
UNJUDGED_AND_JUDGED = "eager gives finite numbers under some variations and not under others"


def _result(group: Group) -> Lowered | Failure:
    artifact = group[0].result
    assert isinstance(artifact, Artifact)
    return artifact.result


def comparable_texts(result: Lowered | Failure) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of all that is compared between variations, in the order of a reader's interest."""
    if isinstance(result, Failure):
        yield FAILURE, "".join(f"{name}: {value}\n" for name, value in result.facts())
        if result.made is not None:
            yield from _made_texts(result.made)
        return
    yield from _made_texts(result)
    yield f"{PROGRAM} bytes", f"sha256 {result.pte_sha256}\n"
    for name, content in result.data:
        yield data_file(name), decode_data(content, result).text()
    yield "changes of the model that was given", "".join(f"{line}\n" for line in altered_states(result))


def _made_texts(lowered: Lowered) -> Iterator[tuple[str, str]]:
    yield GRAPH, lowered.graph
    for index, decoded in enumerate(decode_delegates(lowered)):
        yield f"delegate_{index}", decoded.text()


def differ_in_order_only(results: Sequence[Lowered | Failure]) -> bool:
    """Return whether results compute the same in the same delegates and differ only in names, numbers and order."""
    if not all(isinstance(result, Lowered) for result in results):
        return False
    lowered = [result for result in results if isinstance(result, Lowered)]
    # A program that differs where graph and delegates do not has changed in something that neither shows.
    programs = {(result.graph, result.delegates): result.pte_sha256 for result in lowered}
    return len(programs) == len(lowered) and all(_order_only(lowered[0], other) for other in lowered[1:])


def _order_only(one: Lowered, other: Lowered) -> bool:
    return one.samples == other.samples and reordered(
        one.graph, _payloads(one), other.graph, _payloads(other)
    )


def _payloads(lowered: Lowered) -> list[Outline]:
    return [outline(payload) for payload in decode_delegates(lowered)]


# Difference from the golden


def changed(
    cell: Cell,
    reviewed: Record,
    made: Record,
    refusals: Sequence[tuple[str, str]] = (),
    labels: Labels = OF_RUN,
) -> Verdict:
    """Say how an artifact differs from its golden.

    It is ``failed`` where lowering did not fail before, and ``renamed`` where names alone differ.
    """
    if made.fails and not reviewed.fails:
        lines = tuple(made.sections[FAILURE].splitlines())
        return Verdict(cell, "failed", "lowering now fails", lines, acceptance=Acceptance.POSSIBLE)
    if reviewed.fails and not made.fails:
        reason = f"now lowers; the {labels.old} is a failure"
    else:
        reason = f"differs from its {labels.old} in {', '.join(texts.differing(reviewed, made))}"
    diagnoses = Diagnoses()
    nothing: tuple[str, ...] = ()
    unnamed: Renames = ()
    if renames := diagnoses.attempt(
        "whether names alone differ", lambda: names_alone(reviewed, made), unnamed
    ):
        return _renamed(cell, renames, labels)
    quantities = diagnoses.attempt(
        "the change in quantities", lambda: _quantities(reviewed, made, refusals), nothing
    )
    differences = diagnoses.attempt(
        "the differences", lambda: tuple(texts.from_golden(reviewed, made, *labels)), nothing
    )
    detail = (*quantities, *diagnoses.failed, *differences)
    return Verdict(cell, "changed", reason, detail, acceptance=Acceptance.POSSIBLE)


def _renamed(cell: Cell, names: Renames, labels: Labels) -> Verdict:
    """Say which names alone differ from a golden."""
    before, after = names[0]
    reason = f"differs from its {labels.old} in {count(len(names), 'name')} alone, as {before} -> {after}"
    shown = [f"{old} -> {new}" for old, new in names[: texts.SHOWN_LINES]]
    more = [f"… {len(names) - texts.SHOWN_LINES} more names"] if len(names) > texts.SHOWN_LINES else []
    return Verdict(cell, RENAMED, reason, (*shown, *more, ALLOWING), acceptance=Acceptance.POSSIBLE)


def _quantities(reviewed: Record, made: Record, refusals: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return changes in quantities against a golden, and why operators newly stay outside."""
    before, after = reviewed.inventory, made.inventory
    more = after.outside - before.outside
    outside = (f"  {operator} is outside: {why}" for operator, why in refusals if more[operator])
    return (*directions(before, after), *dict.fromkeys(outside))


def payload_difference(name: str, reviewed: Record, lowered: Lowered) -> str:
    """Return the first difference of the payload ``delegate_<n>`` from its golden; empty if it is no payload.

    Where no pass has made a different graph, it says which operator, attribute or constant a node visitor serialized
    otherwise.
    """
    before = [payload for section, payload in reviewed.delegates.items() if section.startswith(f"{name}.")]
    after = {f"delegate_{index}": decoded for index, decoded in enumerate(decode_delegates(lowered))}
    if not before or name not in after:
        return ""
    changes = compare(before[0], outline(after[name])).changes
    return next(changes[0].lines()) if changes else ""


def new(cell: Cell, artifact: Artifact, made: Record, labels: Labels = OF_RUN) -> Verdict:
    """Describe an artifact without a golden and without `objection`, and the checks that it lacks."""
    result = artifact.result
    if isinstance(result, Failure):
        reason = f"{FAILS}: {place_and_message(result)}; has no {labels.old}"
        accepting = "recording it accepts that it fails"
        return Verdict(
            cell,
            "new",
            reason,
            (*made.sections[FAILURE].splitlines(), accepting),
            acceptance=Acceptance.POSSIBLE,
        )
    found = made.inventory
    unchecked = f"; {NOT_JUDGED}, {NOT_RUN} {result.not_run}" if result.not_run else ""
    unchecked += f"; with eager in place of {', '.join(result.in_eager)}" if result.in_eager else ""
    if result.validation is not None and result.validation.unread:
        unchecked += f"; {result.validation.summary()}"
    is_bare = _is_bare(cell, result)
    accepting_none = ("recording it accepts that nothing is delegated",) if is_bare else ()
    bare = f"{UNDELEGATED}: " if is_bare else ""
    reason = f"{bare}{_contents(found)}{_sqnr(result)}; has no {labels.old}{unchecked}"
    return Verdict(cell, "new", reason, accepting_none, acceptance=Acceptance.POSSIBLE)


def _contents(found: Inventory) -> str:
    """Return the contents of a program: delegates with their operators, and operators outside."""
    delegates, inside, outside = (each.total() for each in (found.delegates, found.operators, found.outside))
    named = [f"{name} ({number})" for name, number in found.outside.most_common(SHOWN_OUTSIDE)]
    more = ", …" if len(found.outside) > SHOWN_OUTSIDE else ""
    left = f"{count(outside, 'operator')} outside{': ' if named else ''}{', '.join(named)}{more}"
    if not delegates:
        return left
    return f"{count(delegates, 'delegate')} with {count(inside, 'operator')}, {left}"


def _sqnr(lowered: Lowered) -> str:
    """Return how far the outputs of a quantized program are above the noise of quantization; empty for a float one."""
    found = Accuracy.measure(lowered)
    return f", SQNR {found.sqnr:.1f} dB" if found is not None and found.sqnr is not None else ""


def own_failure(cell: Cell, failure: Failure, place: Frame) -> Verdict:
    """Say that a failure is the repository's own: no golden is made of it, whatever is expected."""
    reason = f"{OF_OWN_FILE}, {place}: {_message(failure)}"
    return Verdict(
        cell, "failed", reason, ("no golden is made of it: correct that file", *_tail(failure.traceback))
    )


def unexpected(cell: Cell, what: str, words: str, missing: str) -> Verdict:
    """Say that a golden is a decision, `FAILS` or `UNDELEGATED`, that nobody has taken."""
    reason = f"{what}: {words}; as its golden, and nothing expects it"
    return Verdict(cell, UNEXPECTED, reason, (missing,))


def kind_of_new(name: str, reason: str) -> str:
    """Return how the reason of a new cell begins, `FAILS` or `UNDELEGATED`; empty for any other cell.

    >>> kind_of_new("new", "NO DELEGATE: 2 operators outside"), kind_of_new("corrupt", "FAILURE: it")
    ('NO DELEGATE', '')
    """
    kind = reason.partition(":")[0]
    return kind if name == "new" and kind in (FAILS, UNDELEGATED) else ""


# Known defects


def cause(judged: Verdict) -> str:
    """Return what is wrong with a cell, as a decision names it, without parts that differ between runs or machines.

    >>> cause(Verdict(None, "corrupt", "output 1 (drawn) int8[4]: 2 differ", where="output 1"))
    'output … int8[…]: … differ; output 1'
    """
    return "; ".join(filter(None, (general(judged.reason) or judged.name, judged.where)))


def as_known(decided: Decisions, judged: Verdict) -> Verdict:
    """Return a verdict as known where a known defect of its cell has it, for its cause."""
    declared = decided.about(KNOWN, judged.cell)
    if not declared or judged.is_of_harness:
        return judged
    why = cause(judged)
    for defect in declared:
        if defect.verdict == judged.name and defect.names(why):
            return dataclasses.replace(judged, known=defect.reason)
    file = decided.root / FILE
    known = "; ".join(f"{defect.verdict}: {defect.cause or defect.why}" for defect in declared)
    return dataclasses.replace(
        judged, detail=(f"{file} knows something else of it, {known}", f"this is {why}", *judged.detail)
    )
