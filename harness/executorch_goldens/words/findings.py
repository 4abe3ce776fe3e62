"""Each finding in words: its reason on one line, then lines below it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from executorch_goldens.artifact import Lost
from executorch_goldens.files.wording import count, some
from executorch_goldens.goldens import findings
from executorch_goldens.goldens.findings import Deviated, Fails, Finding, Wiring
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.goldens.quantities import QUANTITIES, SQNR
from executorch_goldens.judging.comparison import RENAMES
from executorch_goldens.words import casualties
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED
from executorch_goldens.zoo.targets import better_conditioned

#: Words before the reason why a program was not run.
NOT_RUN = "not run:"
#: How a cell is counted whose program was not run: it may be wrong.
NOT_JUDGED = "not judged"
#: Names that are listed.
SHOWN_NAMES = 12
#: Operators outside of delegates that are named.
SHOWN_OUTSIDE = 3

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
#: The way out for a case that is another model each time.
STEADY = "give it the same each time: draw from `data`, or after torch.manual_seed"
#: The setting with which a repository lets names differ.
ALLOWING = f'if names may differ: allow = ["{RENAMES}"] under [tool.goldens] in pyproject.toml'


def reason(found: Finding, target: str = "", labels: Labels = OF_RUN) -> str:
    """Return the first line about a finding of a cell of a target."""
    # What upstream says may have several.
    return next(lines(found, target, labels), "").partition("\n")[0]


@functools.singledispatch
def lines(found: Finding, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    """Yield the lines about a finding: what it is, then details and the way out.

    Parameters
    ----------
    labels
        Nouns for what it was compared with, and for the artifact.
    """
    raise NotImplementedError(type(found).__name__)


#: What is said of findings of which nothing but their fields is said.
SENTENCES: Mapping[type[Finding], str] = {
    findings.BelowBound: (
        "{metric.name} is {metric.value:.4g}, and at least {metric.bound:.4g} is asked for; the eager model has "
        "{metric.eager:.4g}"
    ),
    findings.BeginsElsewhere: "where it begins (sample {sample}): {at}",
    findings.Hidden: "  no output is beyond its tolerance, which is wide enough to hide it",
    findings.Biased: (
        "output {output} differs by {mean:.4g} on average over all samples, and rounding explains {explained:.4g}: "
        "differences that rounding makes go both ways"
    ),
    findings.LoadedOtherwise: "{what}",
    findings.Invalid: "invalid {level} in {delegate}: {said}",
    findings.Unsteady: f"the case is the cause: {{message}}\n{KEPT}",
    findings.Damaged: "{message}",
    findings.RightNow: "is right now, but {file} knows it as {verdict} ({why}): delete it there",
    findings.NotRun: f"{{known}}\n{NOT_RUN} {{why}}",
}


def _sentence(of: str, found: Finding, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield of.format_map(msgspec.structs.asdict(found))


for _kind, _of in SENTENCES.items():
    lines.register(_kind, functools.partial(_sentence, _of))


def deviated(what: str, values: Deviated, expected_is: str = "was expected") -> Iterator[str]:
    """Yield how a tensor deviates: how many elements differ, by how much, and the first of them.

    Parameters
    ----------
    expected_is
        Says where the expected value comes from, after it.
    """
    if values.given != values.expected:
        yield f"{what}: is {values.given}, expected {values.expected}"
        return
    one = values.least == values.most
    stated = (
        f" (tolerance {values.least:g})" if one else f" (tolerance {values.least:.2g} to {values.most:.2g})"
    )
    yield (
        f"{what} {values.given}: {values.differing} of {values.size} values differ, max {values.largest:g}, "
        f"mean {values.mean:g}{stated if values.most else ''}"
    )
    for each in values.elements:
        within = "" if one else f", within {each.tolerance:.2g}"
        yield f"  {list(each.index)}: {each.given} where {each.expected} {expected_is}{within}"


def exception(type_: str, message: str) -> str:
    """Return an exception with the first line of its message."""
    return f"{type_}: {(message.splitlines() or [''])[0]}"


def failing(found: Fails) -> str:
    """Return where something fails, and the first line of why."""
    place = ", ".join(filter(None, (found.stage, found.blamed)))
    return f"{place}: {exception(found.type.rpartition('.')[2], found.message)}"


def keyed(key: findings.Key) -> str:
    """Return the key of a finding in one line: its kind, and what else it has.

    >>> keyed({"kind": "miswired", "wiring": "unwritten", "is_input": True})
    'miswired: unwritten, is_input'
    """
    values = (name if each is True else each for name, each in key.items() if name != "kind")
    rest = ", ".join(", ".join(map(str, each)) if isinstance(each, list) else str(each) for each in values)
    return f"{key['kind']}: {rest}" if rest else str(key["kind"])


def variations(groups: Sequence[Sequence[str]]) -> str:
    """Return which variations agree."""
    return f"variations: {' | '.join(map(' '.join, groups))}"


def place(where: findings.Key) -> str:
    """Return where values begin to be wrong, of `executorch_goldens.goldens.findings.begins`; empty where unknown."""
    if "in" not in where:
        return str(where.get("begins", ""))
    adding = ", by differences that add up" if where.get("adding") else ""
    return f"{where['begins']} in {where['in']}{adding}"


def begins(where: findings.Key) -> str:
    """Return where values begin to be wrong, after `begin`."""
    return f"at {place(where)}" if "in" in where else place(where)


def _output(found: findings.OfOutput) -> str:
    return f"output {found.output}{_on(found.sample)}"


def _on(sample: str) -> str:
    return "" if sample == "example" else f" ({sample})"


# A program that is wrong


@lines.register
def _(found: findings.OfOutput, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield from deviated(_output(found), found.values)


@lines.register
def _(found: findings.WrongCount, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield f"the program has {found.given} outputs{_on(found.sample)}, eager has {found.expected}"


@lines.register
def _(found: findings.Begins, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    spot = found.at
    source = f"{spot.node} of {spot.module}" if spot.module else spot.node
    at = f"{spot.operator} ({source})" if spot.operator else source
    yield f"{'begins at' if spot.alone else 'accumulates from'} {at} in {spot.delegate}, sample {found.sample}"
    if not spot.alone:
        yield "  no operator departs by itself: differences within the tolerance add up to one beyond it"
    elif spot.before:
        agrees = "agrees with eager" if spot.agrees else "departs already, and does not explain this value"
        yield f"  made from {', '.join(spot.before)}, which {agrees}"
    else:
        yield "  made from constants only"
    if spot.uncut:
        yield "  its inputs exceed their quantization range without being clamped, and that alone explains it"
    if spot.unseen:
        yield f"  or at one of these just before it, whose values are not seen: {', '.join(spot.unseen)}"
    yield from (f"  {line}" for line in deviated("its value", found.values))


@lines.register
def _(found: findings.OfBuild, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    if found.mode:
        yield f"  {found.method} was given {found.mode}, and is compared in eval mode: call eval() before the export"
    elif found.method:
        yield (
            f"  {found.method} is compared with its eager module; if it is quantized, declare that: "
            "build.quantized(module)"
        )
    else:
        yield (
            "  each method alone is right: the state that one writes does not reach the next "
            "(MemoryPlanningPass(share_mutable_buffers=True) plans one memory for buffers of one name)"
        )


@lines.register
def _(found: findings.MissingConstant, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    what = f"output {found.output}"
    if found.values is None:
        yield f"no delegate holds {what}, {found.expected}, as a constant"
        return
    constant = f"constant {found.nearest!r} (delegate {found.delegate}), which should be {what},"
    yield from deviated(constant, found.values)


@lines.register
def _(found: findings.Miswired, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    unused = f"; {', '.join(found.unread)} is written but never read" if found.unread else ""
    yield f"delegate {found.delegate}: {miswired(found)}{unused}"


def miswired(found: findings.Miswired) -> str:
    """Return which of a delegate's outputs is wrong, and how."""
    is_input = ", which is an input" if found.is_input else ""
    what = {
        Wiring.UNDECLARED: f"{found.name} is not declared as a value",
        Wiring.TWICE: f"{found.name} is in {found.slots} output slots",
        Wiring.UNWRITTEN: f"no operator writes {found.name}{is_input}",
    }
    return f"outputs are [{', '.join(found.outputs)}]: {what[found.wiring]}"


@lines.register
def _(found: findings.ChangedModel, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    writer = f", in {found.writer}" if found.writer else ""
    yield f"lowering changed {found.name} of the model that it was given{writer}"
    yield from (f"  {line}" for line in deviated(found.name, found.values, "was before"))


@lines.register
def _(found: findings.Fails, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield f"{FAILS}: {failing(found)}"


@lines.register
def _(found: findings.DoesNotRun, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    bare = f"{UNDELEGATED}: " if found.undelegated else ""
    yield f"{bare}the program does not run: {exception(found.type, found.message)}"
    for each in found.invalid:
        yield from lines(each)
    yield from found.traceback


@lines.register
def _(found: findings.Forgotten, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield (
        f"quantization loses the model's state: {' and '.join(found.samples)} give what their last inputs give alone; "
        f"in the float model that makes a difference of up to {found.most:.3g}"
    )


# A program that says little


@lines.register
def _(found: findings.LostSignal, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    lost = found.lost
    noise = "its difference from the float model" if lost.changed else "the noise of quantization"
    left = (
        f"{lost.sqnr:.1f} dB above {noise}"
        if math.isfinite(lost.sqnr)
        else "NaN or infinite where the float model gives numbers"
    )
    output = f"output {lost.output} is {left}"
    if lost.changed:
        yield f"not quantization: without it the model already differs, first in {lost.changed}; {output}"
    else:
        yield f"useless quantization: {output}, and the floor of {target} is {lost.floor:g} dB"
    yield from lost.lines
    if found.explains:
        return
    if found.fails is not None:
        yield f"and it does not lower: {exception(found.fails.type, found.fails.message)}"
    if ways := "; ".join(_ways_of(lost, target)):
        yield ways


def _ways_of(lost: Lost, target: str) -> Iterator[str]:
    if lost.changed:
        yield CHANGED
        return
    if lost.named:
        yield "keep the named values in float, or give them a different range"
    # Less than the noise is no signal.
    if math.isfinite(lost.sqnr) and (accepted := math.floor(lost.sqnr) - 1) > 0:
        yield f'if so little is enough, accept it in the case: sqnr={{"{target}": {accepted}}}'


@lines.register
def _(found: findings.Imprecise, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield (
        f"right within rounding, but rounding alone may move output {found.output} ({found.sample}) by "
        f"{found.moved:.4g} of its largest value, and {found.limit:g} is accepted"
    )
    for what, why in found.unseen:
        yield f"its operators cannot all be judged one by one: {what} is not seen: {why}"
    yield f"an outcome that rounding decides checks little: {better_conditioned(target)}"


@lines.register
def _(found: findings.Unchecked, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    what = [f"nothing says what method {name} gives" for name in found.methods]
    what += [f"{name} is {why}, which shows no error" for name, why in found.outputs]
    yield "; ".join(what)
    for name in found.methods:
        yield f'build.method(module, inputs, "{name}") declares it'
    names = ", ".join(f'"{name}"' for name in found.names)
    yield (
        'if that is meant: a [[decision]] of the cell in decisions.toml, what = "imprecise", '
        f"unchecked = [{names}], and why"
    )


# An export that came to nothing


def title(found: Finding, target: str, labels: Labels = OF_RUN) -> str:
    """Return the reason as a title of cells has it, whichever variation shows it."""
    if isinstance(found, findings.NotFinished):
        return casualties.reason(found.ended)
    return reason(found, target, labels)


@lines.register
def _(found: findings.NotFinished, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield f"{found.variation}: {casualties.reason(found.ended)}"
    yield from found.ended.tail


@lines.register
def _(found: findings.OutOfResources, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield f"the machine had too little for this export: {exception(found.type, found.message)}"
    yield from found.traceback


@lines.register
def _(found: findings.CaseFails, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield f"the case itself does not run: {exception(found.type, found.message)}"
    yield from found.traceback


@lines.register
def _(found: findings.OwnFileFails, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    at = frame(found.at)
    yield f"the error is raised by a file of your own, {at}: {exception(found.type, found.message)}"
    yield "no golden is made of it: correct that file"
    yield from found.traceback


def frame(at: findings.Frame) -> str:
    """Return where a frame is."""
    return f"{at.file}, line {at.line}" + (f", in {at.function}" if at.function else "")


# Variations that disagree


@lines.register
def _(found: findings.Disagreement, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    what = "in order or numbering only" if found.order_only else "in content"
    if any(found.fails):
        yield "; ".join(_failing_first(found))
    else:
        yield f"{len(found.groups)} different artifacts, which differ {what}"
    yield variations(found.groups)


def _failing_first(found: findings.Disagreement) -> Iterator[str]:
    """Yield how variations fail, each failure once, then which variations do not: of those that lower, which run."""
    pairs = [(" ".join(group), fails) for group, fails in zip(found.groups, found.fails, strict=True)]
    failures: dict[str, list[str]] = {}
    for names, fails in pairs:
        if fails is not None:
            failures.setdefault(reason(fails), []).append(names)
    yield from (f"{what} (under {' '.join(names)})" for what, names in failures.items())
    if others := [names for names, fails in pairs if fails is None]:
        # What fails when it runs has lowered.
        does = "runs" if any(fails.lowered for _, fails in pairs if fails is not None) else "lowers"
        yield f"{does} under {' and otherwise under '.join(others)}"


@lines.register
def _(found: findings.UnequalOutputs, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    given = f"is given under {found.groups[0][0]}"
    named = (
        line
        for each in found.values
        for line in deviated(f"output {each.output} (sample {each.sample})", each.values, given)
    )
    first = next(named, "")
    if first:
        yield f"the same program gives different outputs: {first}"
    elif found.judged_apart:
        yield "eager gives finite numbers under some variations and not under others"
    else:
        yield "the same program is right under some variations and wrong under others"
    yield variations(found.groups)
    yield from named
    for group, wrong in zip(found.groups, found.wrong, strict=True):
        if wrong is not None:
            yield f"wrong under {' '.join(group)}: {reason(wrong)}"


@lines.register
def _(found: findings.UnsteadyCase, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    if found.weights:
        yield f"the case is the cause: its weights differ before anything is lowered ({some(found.weights)})"
    else:
        yield "the case is the cause: its model differs before anything is lowered, and eager gives other outputs"
    yield variations(found.groups)
    yield STEADY


# Against a golden


@lines.register
def _(found: findings.Differs, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    if found.sections:
        yield f"differs from its {labels.old} in {', '.join(found.sections)}"
    else:
        yield f"now lowers; the {labels.old} is a failure"


@lines.register
def _(found: findings.NowFails, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield "lowering now fails"
    yield from found.text


@lines.register
def _(found: findings.NamesDiffer, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    before, after = found.names[0]
    number = len(found.names)
    yield f"differs from its {labels.old} in {count(number, 'name')} alone, as {before} -> {after}"
    yield from (f"{old} -> {new}" for old, new in found.names[:SHOWN_NAMES])
    if number > SHOWN_NAMES:
        yield f"… {number - SHOWN_NAMES} more names"
    yield ALLOWING


def artifact(found: Finding) -> str:
    """Return what a cell without a golden is."""
    if isinstance(found, findings.NewFailure):
        return reason(found.fails)
    return contents(found) if isinstance(found, findings.NewProgram) else reason(found)


@lines.register
def _(found: findings.NewFailure, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    yield f"{artifact(found)}; has no {labels.old}"
    yield from found.text
    yield "recording it accepts that it fails"


@lines.register
def _(found: findings.NewProgram, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    ratio = f", SQNR {found.sqnr:.1f} dB" if found.sqnr is not None else ""
    unchecked = f"; {NOT_JUDGED}, {NOT_RUN} {found.not_run}" if found.not_run else ""
    unchecked += f"; with eager in place of {', '.join(found.in_eager)}" if found.in_eager else ""
    unchecked += f"; not validated: {'; '.join(found.unvalidated)}" if found.unvalidated else ""
    yield f"{contents(found)}{ratio}; has no {labels.old}{unchecked}"
    if found.undelegated:
        yield "recording it accepts that nothing is delegated"


def contents(found: findings.NewProgram) -> str:
    """Return the contents of a program: delegates with their operators, and operators outside."""
    named = [f"{name} ({number})" for name, number in found.outside[:SHOWN_OUTSIDE]]
    more = ", …" if len(found.outside) > SHOWN_OUTSIDE else ""
    total = sum(number for _, number in found.outside)
    left = f"{count(total, 'operator')} outside{': ' if named else ''}{', '.join(named)}{more}"
    if found.delegates:
        left = f"{count(found.delegates, 'delegate')} with {count(found.operators, 'operator')}, {left}"
    return f"{UNDELEGATED}: {left}" if found.undelegated else left


@lines.register
def _(found: findings.Unexpected, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    outside = f"outside: {', '.join(found.outside)}" if found.outside else "no operator is left"
    yield f"{found.what}: {found.why or outside}; as its golden, and nothing expects it"


@lines.register
def _(found: findings.OverBudget, target: str = "", labels: Labels = OF_RUN) -> Iterator[str]:
    for each in found.exceeded:
        of = f"({each.cells}: {each.quantity})"
        if each.quantity == SQNR:
            yield f"{each.found:.1f} dB of SQNR, and {each.limit:g} are the least in the budget {of}"
        else:
            yield f"{each.found:,.0f} {QUANTITIES[each.quantity]}, and {each.limit:,.0f} are in the budget {of}"
    yield f"if the program is worth it: a higher number in {found.file}"
