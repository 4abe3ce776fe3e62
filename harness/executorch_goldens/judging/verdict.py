"""The verdict about a cell: agreement of its variations, rightness, difference from the golden."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from executorch_goldens.artifact import (
    DECLARATION,
    MACHINE,
    UNSTEADY_MODEL,
    Artifact,
    Casualty,
    Cell,
    Failure,
    Lowered,
    Outcome,
)
from executorch_goldens.diff import texts
from executorch_goldens.diff.changes import Change
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.likeness import RENAMED
from executorch_goldens.diff.renaming import Renames
from executorch_goldens.goldens import findings, unchecked
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.decisions import FILE, KNOWN, Decision, Decisions, Missing
from executorch_goldens.goldens.findings import Fault, Finding, Frame, Key
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.record import FAILURE, GRAPH, PROGRAM, Record
from executorch_goldens.goldens.rendering import data_file, decode_data, decode_delegates
from executorch_goldens.judging import rightness
from executorch_goldens.judging.attribution import Attribution
from executorch_goldens.judging.diagnosis import Diagnoses
from executorch_goldens.judging.divergence import Divergence
from executorch_goldens.judging.exports import Exports, output_differences
from executorch_goldens.judging.updating import Fewer
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED

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


class KnownOtherwise(NamedTuple):
    """The known defects of a cell that shows something else, and their file."""

    file: Path
    declared: tuple[Decision, ...]


class Doubt(NamedTuple):
    """Cells that the same cause makes wrong, each with its verdict; none where a run did not judge every cell."""

    wrong: tuple[tuple[Cell, str], ...] = ()


#: Why something is not recorded: a decision is missing, fewer variations agree, a cause makes others wrong.
Refusal = Missing | Fewer | Doubt


@dataclass(frozen=True)
class Verdict:
    """The result for a cell.

    Attributes
    ----------
    name
        ``stable``, ``order-only``, ``unstable``, ``corrupt``, ``imprecise``, ``changed``, ``renamed``, ``new``,
        ``unexpected``, ``failed``, ``over-budget``, ``crashed``, ``timed-out``, ``out-of-memory``, ``undecodable`` or
        ``damaged-golden`` (README, "Verdicts").
    findings
        What was found, the first of it is the reason; none for a stable cell.
    refusal
        Why an artifact that can be accepted is not, by ``--snapshot-update`` or at all; None where it is, or nobody
        asked.
    known
        Why it is the known defect of the cell; empty where it is none.
    otherwise
        The known defects of the cell, where it is none of them.
    excess
        Excess of a program that is wrong in nothing but its outputs.
    attribution
        The factor that it follows, where that is known or was sought.
    delegates
        Backend ids of the delegates of its program; None where none was made.
    difference
        The difference from its golden, or of two variations; None where nothing is compared.
    labels
        Nouns for what it was compared with, and for the artifact.
    is_traced
        Whether its passes could be compared with those of a golden; None where nobody looked for the pass.
    raised
        Where a case raised before anything was lowered, and under how many variations.
    whole
        The file with the whole text of a program, where the difference is in what goldens have as a digest only.
    after
        The graph after the pass at which two variations diverge, by variation.
    undiagnosed
        Why something about it could not be found out, in words.
    """

    cell: Cell
    name: str
    findings: tuple[Finding, ...] = ()
    acceptance: Acceptance = Acceptance.IMPOSSIBLE
    refusal: Refusal | None = None
    known: str = ""
    otherwise: KnownOtherwise | None = None
    divergence: Divergence | None = None
    excess: rightness.Excess | None = None
    attribution: Attribution | None = None
    delegates: tuple[str, ...] | None = None
    difference: Difference | None = None
    labels: Labels = OF_RUN
    is_traced: bool | None = None
    raised: tuple[Frame, int] | None = None
    whole: Path | None = None
    after: Mapping[str, str] = field(default_factory=dict)
    undiagnosed: tuple[str, ...] = ()

    @property
    def fault(self) -> Fault:
        """Whose mistake it is."""
        return self.findings[0].fault if self.findings else Fault.NONE

    @property
    def at(self) -> Frame | None:
        """The line of the repository's own that raised; None where none did."""
        if self.findings and isinstance(self.findings[0], findings.OwnFileFails):
            return self.findings[0].at
        return self.raised[0] if self.raised is not None else None

    @property
    def is_of_harness(self) -> bool:
        """True if the harness itself failed: the program was not judged."""
        return self.fault == Fault.HARNESS

    @property
    def blames_case(self) -> bool:
        """True if variations disagree because the case gives them different models."""
        return self.name in DISAGREEING and self.fault == Fault.CASE

    @property
    def kind_of_new(self) -> str:
        """`FAILS` or `UNDELEGATED` of a cell without a golden that is one of these; empty for any other."""
        match self.findings:
            case (findings.NewFailure(), *_):
                return FAILS
            case (findings.NewProgram(undelegated=True), *_):
                return UNDELEGATED
        return ""

    @property
    def cause(self) -> Key:
        """What is wrong with it, as a decision names it, without parts that differ between runs or machines."""
        return findings.cause(self.findings)

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
            found = findings.NotFinished(outcome.variation, outcome.result)
            return Verdict(cell, outcome.result.verdict, (found,))
    exports = Exports(outcomes)
    if len(exports.groups) > 1:
        return disagreement(cell, exports)
    result = exports.agreed.result
    if isinstance(result, Failure):
        return _objection_to_failure(cell, result)
    useless = _useless(result)
    if wrong := tuple(rightness.wrongs(result)):
        # An infinite scale, for instance, explains what no program makes right; less is not enough for a wrong one.
        explained = (msgspec.structs.replace(useless, explains=True),) if useless is not None else ()
        return Verdict(cell, "corrupt", (*wrong, *explained), excess=rightness.excess(result, wrong))
    imprecise = useless or _imprecise(result) or unchecked.objection(result, accepted)
    return Verdict(cell, "imprecise", (imprecise,)) if imprecise is not None else None


def _is_bare(cell: Cell, lowered: Lowered) -> bool:
    """Return whether a program has no delegate, on a target that has some."""
    return not lowered.delegates and targets.delegates(cell.target)


def _useless(result: Lowered | Failure) -> findings.LostSignal | None:
    """Object to a quantization that loses too much of the model, whether it lowers or not."""
    fails = failure_of(result) if isinstance(result, Failure) else None
    return findings.LostSignal(result.lost, fails) if result.lost is not None else None


def _imprecise(result: Lowered) -> findings.Imprecise | None:
    """Object to a correct program that is too ill-conditioned to check."""
    found = max(result.imprecisions(), key=lambda each: each[-1], default=None)
    if found is None or found[-1] <= result.limit or rightness.judged_otherwise(result):
        return None
    sample, index, most = found
    # Why the operators of a quantized program do not say whether it is right.
    unseen = (result.unseen or ()) if result.scales else ()
    return findings.Imprecise(index, sample.name, most, result.limit, unseen)


def _objection_to_failure(cell: Cell, failure: Failure) -> Verdict | None:
    """A failure of lowering is an artifact; one of the model is the zoo's, one of the runtime is a wrong program."""
    said = (failure.type, failure.message, _tail(failure.traceback))
    if failure.fault == MACHINE:
        return Verdict(cell, "failed", (findings.OutOfResources(*said),))
    if failure.stage == "model" and failure.fault == UNSTEADY_MODEL:
        return Verdict(cell, "failed", (findings.Unsteady(*said[:2]),))
    if failure.stage == "model":
        # What a declaration got wrong is in no file of the harness.
        is_declaration = failure.fault == DECLARATION
        return Verdict(cell, "failed", (findings.CaseFails(*(said[:2] if is_declaration else said)),))
    if failure.stage == "run":
        made = failure.made
        bare = made is not None and _is_bare(cell, made)
        refused = tuple(rightness.invalid(made)) if made is not None else ()
        return Verdict(cell, "corrupt", (findings.DoesNotRun(*said, bare, refused),))
    useless = _useless(failure)
    return Verdict(cell, "imprecise", (useless,)) if useless is not None else None


def failure_of(failure: Failure) -> findings.Fails:
    """Return where something fails, and why."""
    place = (failure.stage, failure.pass_name or "", failure.made is not None)
    return findings.Fails(failure.type, failure.message, (), *place)


def _tail(text: str) -> tuple[str, ...]:
    return tuple(text.rstrip().splitlines()[-texts.SHOWN_LINES :])


# Agreement of the variations


def disagreement(cell: Cell, exports: Exports) -> Verdict:
    """Say which variations disagree, whether in order only or in content, and how the first two groups differ."""
    if exports.have_one_program:
        return _unequal_outputs(cell, exports)
    results = exports.results
    one, other = (Record({}, dict(comparable_texts(result))) for result in results[:2])
    difference = Difference(one, other, Labels(*(names[0] for names in exports.names[:2])))
    order_only = differ_in_order_only(results, difference)
    fails = tuple(failure_of(each) if isinstance(each, Failure) else None for each in results)
    found = findings.Disagreement(exports.names, order_only, fails)
    return Verdict(cell, "order-only" if order_only else "unstable", (found,), difference=difference)


def _unequal_outputs(cell: Cell, exports: Exports) -> Verdict:
    """Say how the outputs of the same program differ, and under which variations they are wrong."""
    results = [result for result in exports.results if isinstance(result, Lowered)]
    found = findings.UnequalOutputs(
        exports.names,
        tuple(output_differences(results[0], results[1])),
        tuple(next(rightness.wrong_outputs(result), None) for result in results),
        judged_apart=len({result.unjudged for result in results}) > 1,
    )
    # Outputs that nothing writes are whatever the memory held: the program is wrong, and the same every time.
    miswired = tuple(rightness.wrong_delegates(results[0]))
    return Verdict(cell, "corrupt" if miswired else "unstable", (*miswired, found))


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
    changes = (line for each in rightness.altered_states(result) for line in _change_text(each))
    yield "changes of the model that was given", "".join(changes)


def _change_text(found: findings.ChangedModel) -> Iterator[str]:
    values, writer = found.values, f", in {found.writer}" if found.writer else ""
    yield f"{found.name} {values.given}: {values.differing} of {values.size}{writer}\n"
    yield from (f"  {list(each.index)}: {each.expected} -> {each.given}\n" for each in values.elements)


def _made_texts(lowered: Lowered) -> Iterator[tuple[str, str]]:
    yield GRAPH, lowered.graph
    for index, decoded in enumerate(decode_delegates(lowered)):
        yield f"delegate_{index}", decoded.text()


def differ_in_order_only(results: Sequence[Lowered | Failure], difference: Difference) -> bool:
    """Return whether results compute the same in the same delegates and differ only in names, numbers and order.

    Parameters
    ----------
    difference
        Of the texts of the first two.
    """
    lowered = [result for result in results if isinstance(result, Lowered)]
    # A program that differs where graph and delegates do not has changed in something that neither shows.
    programs = {(result.graph, result.delegates) for result in lowered}
    if len(programs) < len(results) or any(each.samples != lowered[0].samples for each in lowered[1:]):
        return False
    others = (Difference(difference.before, Record({}, dict(comparable_texts(each)))) for each in results[2:])
    return all(each.is_reordered for each in itertools.chain([difference], others))


# Difference from the golden


def changed(
    cell: Cell,
    difference: Difference,
    failure: Failure | None = None,
    refusals: Sequence[tuple[str, str]] = (),
) -> Verdict:
    """Say how an artifact differs from its golden.

    It is ``failed`` where lowering did not fail before, and ``renamed`` where names alone differ.
    """
    possible = functools.partial(Verdict, cell, acceptance=Acceptance.POSSIBLE, labels=difference.labels)
    reviewed, made = difference.before, difference.after
    if failure is not None and not reviewed.fails:
        text = tuple(made.sections[FAILURE].splitlines())
        return possible("failed", (findings.NowFails(failure_of(failure), text),))
    diagnoses = Diagnoses()
    unnamed: Renames = ()
    renames = diagnoses.attempt("whether names alone differ", lambda: difference.names_alone, unnamed)
    if renames:
        return possible(RENAMED, (findings.NamesDiffer(tuple(renames)),))
    sections = () if reviewed.fails and not made.fails else tuple(difference.differing)
    nothing: tuple[tuple[str, str], ...] = ()
    outside = diagnoses.attempt(
        "why operators stay outside", lambda: tuple(_newly_outside(difference, refusals)), nothing
    )
    differs = findings.Differs(sections, outside)
    return possible("changed", (differs,), difference=difference, undiagnosed=tuple(diagnoses.failed))


def _newly_outside(difference: Difference, refusals: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield operators that newly stay outside, each with a reason why."""
    more = difference.after.inventory.outside - difference.before.inventory.outside
    yield from dict.fromkeys((operator, why) for operator, why in refusals if more[operator])


def payload_difference(name: str, difference: Difference) -> Change | None:
    """Return the first difference of the payload ``delegate_<n>`` from its golden; None if it is no payload.

    Where no pass has made a different graph, it says which operator, attribute or constant a node visitor serialized
    otherwise.
    """
    found = (each for section, each in difference.changes.items() if section.startswith(f"{name}."))
    return next((change for each in found for change in each.changes), None)


def delegates_of(lowered: Lowered) -> Record:
    """Return the payloads of a program, under the names of their sections in a golden."""
    return Record(
        {},
        {f"delegate_{at}.{each.kind}": each.text() for at, each in enumerate(decode_delegates(lowered))},
    )


def new(cell: Cell, artifact: Artifact, made: Record, labels: Labels = OF_RUN) -> Verdict:
    """Describe an artifact without a golden and without `objection`, and the checks that it lacks."""
    result = artifact.result
    found: Finding
    if isinstance(result, Failure):
        found = findings.NewFailure(failure_of(result), tuple(made.sections[FAILURE].splitlines()))
    else:
        inventory, accuracy, validation = made.inventory, Accuracy.measure(result), result.validation
        found = findings.NewProgram(
            _is_bare(cell, result),
            inventory.delegates.total(),
            inventory.operators.total(),
            tuple(inventory.outside.most_common()),
            accuracy.sqnr if accuracy is not None else None,
            result.not_run,
            result.in_eager,
            validation.unread if validation is not None else (),
        )
    return Verdict(cell, "new", (found,), acceptance=Acceptance.POSSIBLE, labels=labels)


def own_failure(cell: Cell, failure: Failure, place: Frame) -> Verdict:
    """Say that a failure is the repository's own: no golden is made of it, whatever is expected."""
    found = findings.OwnFileFails(failure.type, failure.message, _tail(failure.traceback), place)
    return Verdict(cell, "failed", (found,))


# Known defects


def as_known(decided: Decisions, judged: Verdict) -> Verdict:
    """Return a verdict as known where a known defect of its cell has it, for its cause."""
    declared = tuple(decided.about(KNOWN, judged.cell))
    if not declared or judged.is_of_harness:
        return judged
    for defect in declared:
        if defect.verdict == judged.name and defect.is_about(judged.cause):
            return dataclasses.replace(judged, known=defect.reason)
    return dataclasses.replace(judged, otherwise=KnownOtherwise(decided.root / FILE, declared))
