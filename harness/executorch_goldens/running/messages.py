"""Messages of a run: one for each cell that needs a look, and the summary at the end."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from executorch_goldens.causes.groups import BARRED, OUTDATED, UNDECIDED, Group
from executorch_goldens.files import untrusted
from executorch_goldens.files.invocation import FEWER, UPDATE
from executorch_goldens.files.wording import count, from_here
from executorch_goldens.goldens import golden
from executorch_goldens.judging.attribution import Follows
from executorch_goldens.judging.verdict import DISAGREEING, UNEXPECTED, Verdict
from executorch_goldens.results import proposals
from executorch_goldens.results.rows import ALLOWED, KNOWN
from executorch_goldens.running.counting import (
    SHOWN_CELLS,
    counts,
    exactness,
    held_to_nothing,
    looked_into,
    named,
    not_judged,
    stale,
)
from executorch_goldens.running.explaining import Diagnosis
from executorch_goldens.running.hints import commands, unpatched, ways_out
from executorch_goldens.running.options import Options
from executorch_goldens.running.run import Run
from executorch_goldens.settings.releases import Release
from executorch_goldens.words import causes as causes_in_words
from executorch_goldens.words import refusals
from executorch_goldens.words.findings import NOT_JUDGED, artifact
from executorch_goldens.words.verdicts import detail, reason

#: Causes that a run lists at its end.
SHOWN_CAUSES = 8


def failure(run: Run, judged: Verdict) -> str:
    """Return the message of a failing cell of a run, with the folder of its files."""
    plan, typed = run.plan, commands(run.plan, judged)
    lines = [*message(judged, run.release, plan.options, plan.settings.patches, typed)]
    if judged.name != "crashed" or judged.is_of_harness:
        lines.append(f"  files:  {run.results.folder(judged.cell)}")
    return untrusted.escape_ci("\n".join(lines))


def message(
    judged: Verdict,
    release: Release,
    options: Options,
    applied: Collection[str],
    typed: Mapping[str, str],
    zoo: bool = True,
) -> Iterator[str]:
    """Yield the message of a failing cell: verdict, reason, detail, way on.

    Parameters
    ----------
    applied
        Names of the patches that exports had.
    typed
        The commands that accept the cell and check it again.
    zoo
        Whether it is of a zoo: see `ways_out`.
    """
    yield f"{judged.name}: {judged.cell} on ExecuTorch {release.version}: {reason(judged)}"
    yield from (f"  {line}" for line in detail(judged))
    yield from (f"  {line}" for line in ways_out(judged, release.version, zoo, options.called))
    yield from (f"  {line}" for line in unpatched(judged, release, options.patches, applied))
    if judged.refusal is not None and judged.name != UNEXPECTED:
        yield f"  not recorded: {refusals.refusal(judged.refusal)}"
    elif judged.recordable:
        yield f"  accept: {typed['accept']}"
    elif options.updating and judged.name == "damaged-golden":
        yield "  not recorded: the existing golden is not overwritten."
    elif options.updating and judged.name != UNEXPECTED:
        yield "  not recorded: that needs agreeing variations, and output that is checked and correct."
    yield f"  again:  {typed['again']}"


def causes(run: Run, groups: Sequence[Group], whole: bool) -> Iterator[str]:
    """Yield the causes of a run's verdicts, worst first, each with its largest error and the commands about it.

    Parameters
    ----------
    whole
        Whether all causes are listed, and what moved with each.
    """
    grouped = {member.proposal.cell for group in groups for member in group.members}
    alone = [each for each in run.verdicts.values() if not each.accepted and each.cell not in grouped]
    for name in dict.fromkeys(each.name for each in alone):
        cells = [str(each.cell) for each in alone if each.name == name]
        more = f", and {len(cells) - SHOWN_CELLS} more" if len(cells) > SHOWN_CELLS and not whole else ""
        yield f"{len(cells)} {name}: {', '.join(cells if whole else cells[:SHOWN_CELLS])}{more}"
    if not groups:
        return
    yield f"{count(len(groups), 'cause')}, {count(len(grouped), 'cell')}:"
    for number, group in enumerate(groups if whole else groups[:SHOWN_CAUSES], 1):
        yield f"{number}. {group.head}{_largest(group)}"
        amounts = group.amounts() if whole else ()
        yield from (f"   {line}" for line in (_refusal(run, group), *amounts) if line)
        yield f"   see: {_seeing(run, group)}"
        yield f"   {_deciding(run, group)}"
    if len(groups) > SHOWN_CAUSES and not whole:
        yield f"and {count(len(groups) - SHOWN_CAUSES, 'more cause')}: goldens review{_places(run)}"


def _largest(group: Group) -> str:
    """Return the largest error of a cause's cells, and its cell."""
    measured = [each.proposal for each in group.members if each.proposal.accuracy is not None]
    worst = max(
        measured,
        key=lambda each: (each.accuracy.used, each.accuracy.error) if each.accuracy else (0.0, 0.0),
        default=None,
    )
    if worst is None or worst.accuracy is None or not worst.accuracy.error:
        return ""
    return f"; largest error {worst.accuracy.error:.2g} of the largest value ({worst.cell})"


def _seeing(run: Run, group: Group) -> str:
    """Return the command that shows the cause in one cell: what differs, or the whole message of a new run."""
    cell = group.specimen.proposal.cell
    made = sorted(run.results.folder(cell).glob(f"*/{proposals.MADE}"))
    reviewed = golden.file_of(run.plan.root, cell)
    sides = (
        made[:: max(len(made) - 1, 1)]
        if group.specimen.proposal.verdict in DISAGREEING
        else [reviewed, *made[:1]]
    )
    if len(sides) == 2 and all(each.is_file() for each in sides):
        return shlex.join(["goldens", "diff", *map(from_here, sides)])
    return commands(run.plan, run.verdicts[cell])["again"]


def _deciding(run: Run, group: Group) -> str:
    """Return the command that accepts a cause, or that rejects one that makes cells wrong."""
    name, places = run.names[group.cause], _places(run)
    if group.blames_case:
        return f"correct the case, then: {commands(run.plan, run.verdicts[group.members[0].proposal.cell])['again']}"
    if group.wrong or group.state == BARRED:
        return f"reject: goldens review --reject {name} --reason WHY{places}"
    if group.state == OUTDATED:
        return f"again: {commands(run.plan, run.verdicts[group.members[0].proposal.cell])['again']}"
    fewer = f" {FEWER}" if any(member.fewer_variations for member in group.recordable) else ""
    expecting = " --expect --reason WHY" if group.state == UNDECIDED else ""
    return f"accept: goldens review --accept {name}{expecting}{fewer}{places}"


def _places(run: Run) -> str:
    """Return the options that name this run's results and goldens, where they are not the repository's."""
    return "".join(f" {shlex.quote(word)}" for word in _unlike_repository(run, "--sweeps="))


def _unlike_repository(run: Run, sweeps: str = "") -> Iterator[str]:
    """Yield the results, after `sweeps`, and the goldens of a run that are not where the repository has them."""
    asked = run.plan.options
    if asked.sweeps != asked.repository.sweeps:
        yield f"{sweeps}{asked.sweeps}"
    if run.plan.goldens != asked.repository.goldens.resolve():
        yield f"--goldens={run.plan.goldens}"


def found(number: int, shown: Diagnosis) -> str:
    """Return what further exports show of a cause; empty for graphs, which the report has."""
    said, factor = shown.proof, shown.factor
    if not said and factor is not None and factor.follows != Follows.UNSOUGHT:
        said = causes_in_words.attribution(factor)
    return f"cause {number}: {said} ({shown.cell})" if said else ""


def brief(run: Run, judged: Verdict) -> list[str]:
    """Return three lines at most of a cell: the verdict, where it begins, and the first way out."""
    below = detail(judged)
    lines = [f"{judged.name}: {judged.cell}: {reason(judged)}", *below[:1]]
    ways = ways_out(judged, run.release.version, True, run.plan.options.called)
    missing = unpatched(judged, run.release, run.plan.options.patches, run.plan.settings.patches)
    lines += [*missing, *ways, *below[1:]][:1]
    return [untrusted.escape_ci(line) for line in (lines[0], *(f"  {line.strip()}" for line in lines[1:]))][
        :3
    ]


def _refusal(run: Run, group: Group) -> str:
    """Return why cells of a cause that might have been were not recorded; empty where that was not asked for."""
    if not run.plan.options.updating:
        return ""
    judged = (run.verdicts[member.proposal.cell] for member in group.members)
    refused = Counter(refusals.refusal(each.refusal) for each in judged if each.refusal is not None)
    return "; ".join(f"not recorded: {count(number, 'cell')}: {why}" for why, number in refused.items())


def summary(run: Run, whole: bool) -> Iterator[str]:
    """Yield the lines at the end of a run: counts, exactness, where the results are; and what a person has to see to.

    Parameters
    ----------
    whole
        Whether all the rest is said as well.
    """
    yield f"ExecuTorch {run.release.version}: {'; '.join(_counts(run))}"
    yield from missed(run)
    yield from exactness(run.accuracies)
    yield f"results: {run.results.file}; {_report(run)}"
    if whole:
        yield from _rest(run)
    else:
        # What is recorded although nothing says that it is right, or that all of it is.
        recorded = {cell for cell, judged in run.verdicts.items() if judged.recorded}
        yield from not_judged({cell: why for cell, why in run.not_judged.items() if cell in recorded})
        yield from held_to_nothing({cell: what for cell, what in run.unchecked.items() if cell in recorded})
        if run.reuse is not None:
            yield from run.reuse.troubles()
    yield from run.explainer.looking.failed
    yield from (f"recorded: {cause}" for cause in run.recorded)
    yield from accepted(run.verdicts.values())
    if run.confirmed:
        yield f"confirmed, with these variations and newer fields added: {count(run.confirmed, 'golden')}"
    if any(each.name == UNEXPECTED for each in run.verdicts.values()):
        command = shlex.join(["goldens", "review", "--expect", f"--goldens={run.plan.goldens}"])
        yield f"{UNEXPECTED}: {command} writes the expectations for existing goldens"
    yield from _leftovers(run)
    yield from map(refusals.misused, run.misused())


def missed(run: Run) -> Iterator[str]:
    """Yield the selected cells that have no verdict."""
    if not (cells := [str(cell) for cell in run.missed()]):
        return
    more = f", and {len(cells) - SHOWN_CELLS} more" if len(cells) > SHOWN_CELLS else ""
    of_all = f"{len(cells)} of {count(len(run.plan.cells) - len(run.deselected), 'selected cell')}"
    yield f"no verdict: {of_all}, skipped or not run: {', '.join(cells[:SHOWN_CELLS])}{more} (--cell chooses cells)"


def _counts(run: Run) -> Iterator[str]:
    """Yield the cells by verdict, those whose program was not run, and those that were not run."""
    yield counts((_counted(judged), judged.kind_of_new) for judged in run.verdicts.values())
    if run.not_judged:
        yield f"of these, {len(run.not_judged)} {NOT_JUDGED} {named(run.not_judged)}"
    if run.unchecked:
        yield f"{len(run.unchecked)} checked in part {named(run.unchecked)}"
    if run.plan.left_out:
        yield f"{len(run.plan.left_out)} not run (--tier full runs all)"
    yield _varied(run)


def _varied(run: Run) -> str:
    """Return how many variations cells were exported under."""
    alone, all_of_them = len(run.alone), count(len(run.plan.variations), "variation")
    if not alone:
        return all_of_them
    beside = "1 variation beside those of the golden"
    return beside if alone == len(run.verdicts) else f"{alone} under {beside}, the rest under {all_of_them}"


def _report(run: Run) -> str:
    file = from_here(run.plan.options.sweeps / "report.html")
    return shlex.join(["goldens", "report", *_unlike_repository(run), "--html", file])


def _rest(run: Run) -> Iterator[str]:
    """Yield what a report has as well: settings, reuse, the reasons of what is counted, measures by target."""
    yield f"tier: {run.plan.tier}; variations: {', '.join(each.name for each in run.plan.variations)}"
    yield f"patches: {', '.join(run.plan.settings.patches) or 'none'}"
    if run.reuse is not None:
        yield from run.reuse.lines()
    for judged in run.verdicts.values():
        if judged.known:
            yield f"{KNOWN}: {judged.cell} is {judged.name}: {judged.known}"
        elif judged.allowed:
            yield f"{ALLOWED}: {judged.cell} {reason(judged)}"
    yield from not_judged(run.not_judged, len(run.not_judged))
    for target in dict.fromkeys(cell.target for cell in run.accuracies):
        of_target = {cell: each for cell, each in run.accuracies.items() if cell.target == target}
        yield from exactness(of_target, f"{target}: {count(len(of_target), 'cell')} run")
    yield from looked_into({cell: accuracy.unseen for cell, accuracy in run.accuracies.items()})
    yield from held_to_nothing(run.unchecked, len(run.unchecked))
    if run.lacking:
        yield (
            f"newer fields are missing in {count(run.lacking, 'golden')}; {UPDATE} adds them and changes "
            "nothing else"
        )


def accepted(judged: Iterable[Verdict]) -> Iterator[str]:
    """Yield the cells that are recorded though they fail, or delegate nothing."""
    found = [each for each in judged if each.recorded and each.kind_of_new]
    for each in found[:SHOWN_CELLS]:
        yield f"recorded: {each.cell}: {artifact(each.findings[0])}"
    if len(found) > SHOWN_CELLS:
        yield f"recorded: {len(found) - SHOWN_CELLS} more that fail or delegate nothing"


def _counted(judged: Verdict) -> str:
    """Return the category of a cell: its verdict, or the reason that makes it acceptable."""
    return KNOWN if judged.known else ALLOWED if judged.allowed else judged.name


def _leftovers(run: Run) -> Iterator[str]:
    left = run.leftovers()
    for cell in left.stale:
        yield stale(golden.file_of(run.plan.root, cell))
    for path, why in left.foreign:
        yield f"not a golden: {path}: {why}; it is left alone"
