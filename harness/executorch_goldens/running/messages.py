"""Messages of a run: one for each cell that needs a look, and the summary at the end."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens import patches, plugins, targets
from executorch_goldens.artifact import Cell
from executorch_goldens.files import invocation, untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.judging.updating import FEWER, UPDATE
from executorch_goldens.judging.verdict import DISAGREEING, NOT_JUDGED, NOT_RUN, UNEXPECTED, kind_of_new
from executorch_goldens.registry import FAILS, UNDELEGATED
from executorch_goldens.results import proposals
from executorch_goldens.review import benign
from executorch_goldens.review.decisions import ALLOWED, KNOWN
from executorch_goldens.review.groups import BARRED, OUTDATED, UNDECIDED, Group
from executorch_goldens.review.listing import fewer_variations
from executorch_goldens.review.summary import linked
from executorch_goldens.settings import config
from executorch_goldens.variations import HASH_SEEDS

if TYPE_CHECKING:
    from executorch_goldens.judging.verdict import Verdict
    from executorch_goldens.patches import Patch
    from executorch_goldens.releases import KnownDefect, Release
    from executorch_goldens.running.explaining import Shown
    from executorch_goldens.running.plan import Plan
    from executorch_goldens.running.run import Run

#: Variable that names the file for the summary of a job (GitHub Actions, "Workflow commands").
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
#: Cells that it lists: it may not exceed a mebibyte.
SHOWN_WRONG = 100
#: Causes that a run lists at its end.
SHOWN_CAUSES = 8
#: Cells that a run names at its end which were recorded though they fail or delegate nothing.
SHOWN_ACCEPTED = 20


#: Beyond this part of the largest value no rounding is a likely reason, and no line that widens a bound is shown.
WIDEST_ROUNDING = 0.1
#: Keys that TOML takes without quotes (TOML 1.0, "Keys").
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def ways_out(judged: Verdict, release: str, zoo: bool, called: Sequence[str] = ()) -> Iterator[str]:
    """Yield the ways out of a corrupt cell, and what plugins propose.

    Parameters
    ----------
    zoo
        Whether it is of a zoo, whose cases are declared with ``@case``, or of a test that exports.
    called
        The words of the run.
    """
    if judged.name == "corrupt" and (found := judged.excess):
        target, bound = judged.cell.target, f"{found.bound:g}"
        if found.bound <= WIDEST_ROUNDING:
            key = target if BARE_KEY.fullmatch(target) else f'"{target}"'
            yield (
                "more than rounding explains; if the target's own arithmetic does: "
                f"{key} = {bound} under [tool.goldens.tolerances] in pyproject.toml, for all its cells"
            )
        else:
            size = f"{bound} of the largest value" if math.isfinite(found.bound) else "no finite difference"
            yield f"not rounding: {size}; do not widen a tolerance for it"
        if zoo and "example" in found.right:
            kept = "".join(f'"{name}", ' for name in found.right).rstrip(
                " " if len(found.right) == 1 else ", "
            )
            yield f"if the model is not meant for {', '.join(found.wrong)}: run_on=({kept}) in its @case"
    if zoo:
        yield from (hint.line for hint in plugins.hints(judged, release, called))


def unpatched(judged: Verdict, release: Release, asked: str, applied: Collection[str]) -> Iterator[str]:
    """Yield which declared patches a cell may be wrong for want of, and the line that applies them.

    Parameters
    ----------
    asked
        ``--patches``: with ``auto`` there is nothing more to apply.
    applied
        Names of the patches that exports had.
    """
    target, known = targets.available().get(judged.cell.target), patches.available()
    message = "\n".join((judged.reason, *judged.detail))
    wanting = [
        patch
        for patch in map(known.__getitem__, release.patches)
        if patch.name not in applied
        and judged.name in patch.verdicts
        and patch.verdicts[judged.name] in message
        and (target is None or target.runs_any(patch.fits.get(release.version, ())))
        and (judged.delegates is None or patch.matters(release.version, judged.delegates))
    ]
    if wanting and asked != "auto" and not judged.blames_case:
        named = ", ".join(f"{each.name} ({_corrects(each)})" for each in wanting)
        yield (
            f"patches: exported without {named}, which may be why: "
            f'patches = "auto" under [tool.goldens] in pyproject.toml applies the patches of {release.version}, '
            "or pass --patches auto"
        )


def _corrects(patch: Patch) -> str:
    return f"#{patch.issue}" if patch.issue is not None else patch.summary


def commands(plan: Plan, judged: Verdict) -> dict[str, str]:
    """Return commands about a cell that needs a look, by purpose."""
    this = ("--cell", str(judged.cell))
    typed = {"again": invocation.again(plan.options.called, *this)}
    if judged.recordable:
        typed = {"accept": _accept(plan, judged, this), **typed}
    proposed = [] if plan.compact else plugins.hints(judged, plan.release.version, plan.options.called)
    return typed | {hint.purpose: hint.command for hint in proposed}


def _accept(plan: Plan, judged: Verdict, this: Sequence[str]) -> str:
    """Return the command that records a cell: under all variations if its golden names more than the run had."""
    reviewed: golden.Texts | None = None
    with contextlib.suppress(golden.GoldenError):
        reviewed = golden.read(golden.directory(plan.root, judged.cell))
    called = plan.options.called
    named = len(golden.fields(reviewed).get("variations", "").split()) if reviewed is not None else 0
    if min(named, len(HASH_SEEDS)) <= len(plan.variations):
        return invocation.again(called, *this, UPDATE)
    return invocation.again(called, *this, "--variations", "full", UPDATE, replaced="--variations")


def failure(run: Run, judged: Verdict) -> str:
    """Return the message of a failing test: verdict, cell, reason, detail, way on."""
    typed = commands(run.plan, judged)
    lines = [f"{judged.name}: {judged.cell} on ExecuTorch {run.release.version}: {judged.reason}"]
    lines += [f"  {line}" for line in judged.detail]
    # The cases of a compact root are declared nowhere here.
    own = not run.plan.compact
    lines += [f"  {line}" for line in ways_out(judged, run.release.version, own, run.plan.options.called)]
    missing = unpatched(judged, run.release, run.plan.options.patches, run.plan.settings.patches)
    lines += [f"  {line}" for line in missing]
    if judged.refusal:
        lines.append(f"  not recorded: {judged.refusal}")
    elif judged.recordable:
        lines.append(f"  accept: {typed['accept']}")
    elif run.plan.options.updating and judged.name == "damaged-golden":
        lines.append("  not recorded: the existing golden is not overwritten.")
    elif run.plan.options.updating and judged.name != UNEXPECTED:
        lines.append(
            "  not recorded: that needs agreeing variations, and output that is checked and correct."
        )
    lines.append(f"  again:  {typed['again']}")
    if judged.name != "crashed" or judged.is_of_harness:
        lines.append(f"  files:  {run.results.folder(judged.cell)}")
    return untrusted.escape_ci("\n".join(lines))


def causes(run: Run, groups: Sequence[Group], whole: bool) -> Iterator[str]:
    """Yield the causes of a run's verdicts, worst first, each with its largest error and the commands about it.

    Parameters
    ----------
    whole
        Whether all causes are listed, and what moved with each.
    """
    if not groups:
        return
    cells = sum(len(group.members) for group in groups)
    yield f"{count(len(groups), 'cause')}, {count(cells, 'cell')}:"
    for number, group in enumerate(groups if whole else groups[:SHOWN_CAUSES], 1):
        yield f"{number}. {group.head}{_largest(group)}"
        amounts = group.amounts() if whole else ()
        yield from (f"   {line}" for line in (_refusal(run, group), *amounts) if line)
        yield f"   see: {_seeing(run, group)}"
        yield f"   {_deciding(run, group)}"
    if len(groups) > SHOWN_CAUSES and not whole:
        yield f"and {count(len(groups) - SHOWN_CAUSES, 'more cause')}: goldens review --list{_places(run)}"


def _largest(group: Group) -> str:
    """Return the largest error of a cause's cells, and its cell."""
    measured = [each.proposal for each in group.members if each.proposal.accuracy is not None]
    worst = max(
        measured,
        key=lambda each: (benign.used(each) or 0.0, each.accuracy.error if each.accuracy else 0.0),
        default=None,
    )
    if worst is None or worst.accuracy is None:
        return ""
    return f"; largest error {worst.accuracy.error:.2g} of the largest value ({worst.cell})"


def _seeing(run: Run, group: Group) -> str:
    """Return the command that shows the cause in one cell: what differs, or the whole message of a new run."""
    cell = group.specimen.proposal.cell
    made = sorted(
        each.parent
        for each in run.results.folder(cell).glob(f"*/{golden.MANIFEST}")
        if each.parent.name != proposals.FOLDER
    )
    reviewed = golden.directory(run.plan.root, cell)
    sides = (
        made[:: max(len(made) - 1, 1)]
        if group.specimen.proposal.verdict in DISAGREEING
        else [reviewed, *made[:1]]
    )
    if len(sides) == 2 and all(each.is_dir() for each in sides):
        return shlex.join(["goldens", "diff", *map(_near, sides)])
    return commands(run.plan, run.verdicts[cell])["again"]


def _near(path: Path) -> str:
    """Return a path as a person in this folder types it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _deciding(run: Run, group: Group) -> str:
    """Return the command that accepts a cause, or that rejects one that makes cells wrong."""
    name, places = run.names[group.cause], _places(run)
    if group.wrong or group.state == BARRED:
        return f"reject: goldens review --reject {name} --reason WHY{places}"
    if group.state == OUTDATED:
        return f"again: {commands(run.plan, run.verdicts[group.members[0].proposal.cell])['again']}"
    fewer = f" {FEWER}" if any(map(fewer_variations, group.recordable)) else ""
    expecting = " --expect --reason WHY" if group.state == UNDECIDED else ""
    return f"accept: goldens review --accept {name}{expecting}{fewer}{places}"


def _places(run: Run) -> str:
    """Return the options that name this run's results and goldens, where they are not the repository's."""
    repository, asked = config.load(), run.plan.options
    words = [] if asked.sweeps == repository.sweeps else [f"--sweeps={asked.sweeps}"]
    if run.plan.goldens != repository.goldens.resolve():
        words.append(f"--goldens={run.plan.goldens}")
    return "".join(f" {shlex.quote(word)}" for word in words)


def found(number: int, shown: Shown) -> str:
    """Return what further exports show of a cause; empty for graphs, which the report has."""
    said = shown.proof or (shown.factor.line if shown.factor is not None else "")
    return f"cause {number}: {said} ({shown.cell})" if said and not shown.is_left else ""


def brief(run: Run, judged: Verdict) -> list[str]:
    """Return three lines at most of a cell: the verdict, where it begins, and the first way out."""
    lines = [f"{judged.name}: {judged.cell}: {(judged.reason.splitlines() or [''])[0]}", *judged.detail[:1]]
    ways = ways_out(judged, run.release.version, not run.plan.compact, run.plan.options.called)
    missing = unpatched(judged, run.release, run.plan.options.patches, run.plan.settings.patches)
    lines += [*missing, *ways, *judged.detail[1:]][:1]
    return [untrusted.escape_ci(line) for line in (lines[0], *(f"  {line.strip()}" for line in lines[1:]))][
        :3
    ]


def _refusal(run: Run, group: Group) -> str:
    """Return why cells of a cause that might have been were not recorded; empty where that was not asked for."""
    if not run.plan.options.updating:
        return ""
    judged = (run.verdicts[member.proposal.cell] for member in group.members)
    refused = Counter(each.refusal for each in judged if each.refusal)
    return "; ".join(f"not recorded: {count(number, 'cell')}: {why}" for why, number in refused.items())


def pruning(run: Run, stale: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines printed before goldens are deleted."""
    for cell in stale:
        yield f"prune: {golden.directory(run.plan.root, cell)}: a golden with no matching cell"


def summary(run: Run, pruned: Sequence[Cell], whole: bool) -> Iterator[str]:
    """Yield the lines at the end of a run: counts, exactness, where the results are; and what a person has to see to.

    Parameters
    ----------
    whole
        Whether all the rest is said as well.
    """
    yield f"ExecuTorch {run.release.version}: {'; '.join(_counts(run))}"
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
        yield (
            f"confirmed, with these variations and newer fields added: {count(len(run.confirmed), 'golden')}"
        )
    yield from stale_expectations(run)
    yield from (f"pruned: {golden.directory(run.plan.root, cell)}" for cell in pruned)
    yield from _leftovers(run)


def _counts(run: Run) -> Iterator[str]:
    """Yield the cells by verdict, those whose program was not run, and those that were not run."""
    yield counts((_counted(judged), judged.reason) for judged in run.verdicts.values())
    if run.not_judged:
        yield f"of these, {len(run.not_judged)} {NOT_JUDGED}"
    if run.unchecked:
        yield f"{len(run.unchecked)} checked in part"
    if run.plan.left_out:
        yield f"{len(run.plan.left_out)} not run (--tier full runs all)"
    yield count(len(run.plan.variations), "variation")


def _report(run: Run) -> str:
    sweeps = run.plan.options.sweeps
    results = [] if sweeps == config.load().sweeps else [str(sweeps)]
    goldens = [] if run.plan.goldens == config.load().goldens.resolve() else [f"--goldens={run.plan.goldens}"]
    return shlex.join(["goldens", "report", *results, *goldens, "--html", _near(sweeps / "report.html")])


def _rest(run: Run) -> Iterator[str]:
    """Yield what a report has as well: settings, reuse, the reasons of what is counted, measures by target."""
    yield f"tier: {run.plan.tier}; variations: {', '.join(each.name for each in run.plan.variations)}"
    yield f"patches: {', '.join(run.plan.settings.patches) or 'none'}"
    if run.reuse is not None:
        yield from run.reuse.lines()
    for judged in run.verdicts.values():
        if judged.known:
            yield f"{KNOWN}: {judged.cell} is {judged.name}: {run.release.known[str(judged.cell)].words}"
        elif judged.allowed:
            yield f"{ALLOWED}: {judged.cell} {judged.reason}"
    yield from not_judged(run.not_judged)
    for target in dict.fromkeys(cell.target for cell in run.accuracies):
        of_target = {cell: each for cell, each in run.accuracies.items() if cell.target == target}
        yield from exactness(of_target, f"{target}: {count(len(of_target), 'cell')} run")
    yield from looked_into({cell: accuracy.unseen for cell, accuracy in run.accuracies.items()})
    yield from held_to_nothing(run.unchecked)
    if run.lacking:
        yield (
            f"newer fields are missing in {count(len(run.lacking), 'golden')}; {UPDATE} adds them and changes "
            "nothing else"
        )


def exactness(found: Mapping[Cell, Accuracy], of: str = "exactness") -> Iterator[str]:
    """Yield one line: how near to eager the worst of the right programs is, and the least SQNR.

    >>> one, other = Cell("tosa-int", "a"), Cell("tosa-fp", "b")
    >>> list(exactness({one: Accuracy(0.007, 0.01, 0.7, 41.25), other: Accuracy(2e-8, 1e-6, 0.02)}))
    ['exactness: at worst 0.7 of the tolerance (tosa-int/a: 0.007 of the largest value), SQNR 41.2 dB (tosa-int/a)']
    """
    if not found:
        return
    worst = max(found, key=lambda cell: found[cell].used)
    most = f"{worst}: {found[worst].error:.2g} of the largest value"
    ratios = {cell: each.sqnr for cell, each in found.items() if each.sqnr is not None}
    least = min(ratios, key=lambda cell: ratios[cell], default=None)
    sqnr = f", SQNR {ratios[least]:.1f} dB ({least})" if least is not None else ""
    yield f"{of}: at worst {found[worst].used:.2g} of the tolerance ({most}){sqnr}"


def counts(found: Iterable[tuple[str, str]]) -> str:
    """Return how many cells have each verdict, of (verdict, reason); kinds of new cells come last.

    >>> counts([("stable", ""), ("new", "1 delegate"), ("stable", "")])
    '2 stable, 1 new'
    >>> counts([("new", "1 delegate"), ("new", "FAILURE: lower"), ("stable", ""), ("new", "NO DELEGATE: none")])
    '1 stable, 3 new (1 FAILURE, 1 NO DELEGATE)'
    """
    pairs = list(found)
    number = Counter(verdict for verdict, _ in pairs)
    kinds = Counter(kind_of_new(*pair) for pair in pairs)
    named = ", ".join(f"{kinds[kind]} {kind}" for kind in (FAILS, UNDELEGATED) if kinds[kind])
    if named:
        number["new"] = number.pop("new")
    # A verdict is an adjective, these are nouns.
    words = [
        count(each, name) if name in (KNOWN, ALLOWED) else f"{each} {name}" for name, each in number.items()
    ]
    counted = ", ".join(words) or "no cell was checked"
    return f"{counted} ({named})" if named else counted


def accepted(judged: Iterable[Verdict]) -> Iterator[str]:
    """Yield the cells that are recorded though they fail, or delegate nothing."""
    found = [each for each in judged if each.recorded and kind_of_new(each.name, each.reason)]
    for each in found[:SHOWN_ACCEPTED]:
        yield f"recorded: {each.cell}: {each.reason.removesuffix('; has no golden yet')}"
    if len(found) > SHOWN_ACCEPTED:
        yield f"recorded: {len(found) - SHOWN_ACCEPTED} more that fail or delegate nothing"


def stale_expectations(run: Run) -> Iterator[str]:
    """Yield the expectations that artifacts do not meet any more, and those of no cell."""
    found = [f"{cell}: {why}" for cell, why in run.stale.items()]
    found += [f"{name}: {why}" for name, why in run.plan.expectations.of_no_cell(run.plan.zoo)]
    yield from (f"stale expectation: {line}" for line in found[:SHOWN_ACCEPTED])
    if len(found) > SHOWN_ACCEPTED:
        yield f"stale expectation: {len(found) - SHOWN_ACCEPTED} more"
    if any(each.name == UNEXPECTED for each in run.verdicts.values()):
        command = shlex.join(["goldens", "review", "--expect", f"--goldens={run.plan.goldens}"])
        yield f"{UNEXPECTED}: {command} writes the expectations for existing goldens"


def not_judged(why: Mapping[Cell, str]) -> Iterator[str]:
    """Yield a line per reason for which programs were not run: nothing says that these are right.

    >>> cells = [Cell("tosa-fp", name) for name in ("one", "two")]
    >>> list(not_judged(dict.fromkeys(cells, "no rule gives the sizes")))
    ['not judged: 2 cells, not run: no rule gives the sizes (tosa-fp/one, tosa-fp/two)']
    """
    for reason in dict.fromkeys(why.values()):
        cells = [str(cell) for cell, its in why.items() if its == reason]
        more = f", and {len(cells) - SHOWN_ACCEPTED} more" if len(cells) > SHOWN_ACCEPTED else ""
        shown = ", ".join(cells[:SHOWN_ACCEPTED])
        yield f"{NOT_JUDGED}: {count(len(cells), 'cell')}, {NOT_RUN} {reason} ({shown}{more})"


def looked_into(unseen: Mapping[Cell, str | None]) -> Iterator[str]:
    """Yield the cells whose operators are to be judged one by one, and were not all seen.

    >>> cells = [Cell("tosa-fp", name) for name in ("one", "two", "three")]
    >>> list(looked_into(dict(zip(cells, ("", "lowered_module_0: it ends", None)))))
    ['operators: not all seen in 1 of 2 cells that need it: tosa-fp/two (lowered_module_0: it ends)']
    """
    asked = {cell: why for cell, why in unseen.items() if why is not None}
    if named := [f"{cell} ({why})" for cell, why in asked.items() if why]:
        yield f"operators: not all seen in {len(named)} of {len(asked)} cells that need it: {', '.join(named)}"


def held_to_nothing(found: Mapping[Cell, str]) -> Iterator[str]:
    """Yield what of each program nothing checks.

    >>> list(held_to_nothing({Cell("built", "app"): "method decode"}))
    ['unchecked: built/app: method decode']
    """
    yield from (f"unchecked: {cell}: {what}" for cell, what in [*found.items()][:SHOWN_ACCEPTED])
    if len(found) > SHOWN_ACCEPTED:
        yield f"unchecked: {count(len(found) - SHOWN_ACCEPTED, 'more cell')}; their manifests say what"


def labels(judged: Iterable[Verdict], defects: Mapping[str, KnownDefect]) -> tuple[list[str], list[str]]:
    """Return the label of each verdict, and a line for each that needs a look and for each known defect.

    Parameters
    ----------
    defects
        The declarations, by the name of the cell.
    """
    judged = list(judged)
    names = [_label(each) for each in judged]
    lines = [f"{each.name}: {each.cell}: {each.reason}" for each in judged if not each.accepted]
    # A known defect that is as declared has its reason there.
    declared = (each for each in judged if each.known)
    lines += [f"{KNOWN}: {each.cell} is {each.name}: {defects[str(each.cell)].words}" for each in declared]
    return names, lines


def _label(judged: Verdict) -> str:
    kind = kind_of_new(judged.name, judged.reason)
    return f"{judged.name}: {kind}" if kind else _counted(judged)


def _counted(judged: Verdict) -> str:
    """Return the category of a cell: its verdict, or the reason that makes it acceptable."""
    return KNOWN if judged.known else ALLOWED if judged.allowed else judged.name


def stale(path: Path) -> str:
    return f"stale: {path}: a golden with no matching cell"


def step_summary(title: str, verdicts: Iterable[str], wrong: Sequence[str]) -> None:
    """Add the counts and the cells that need a look to the summary of a job of GitHub Actions, if this is one."""
    if not (file := os.environ.get(STEP_SUMMARY)):
        return
    lines = [f"### {title}", "", "| verdict | cells |", "|---|---|"]
    lines += [f"| {verdict} | {count} |" for verdict, count in Counter(verdicts).items()]
    lines += ["", *(f"- {linked(untrusted.markdown(line))}" for line in wrong[:SHOWN_WRONG])]
    if len(wrong) > SHOWN_WRONG:
        lines.append(f"- and {len(wrong) - SHOWN_WRONG} more")
    with Path(file).open("a", encoding="utf-8") as summary:
        summary.write("\n".join(lines) + "\n\n")


def _leftovers(run: Run) -> Iterator[str]:
    left = run.leftovers()
    for cell in left.stale:
        yield stale(golden.directory(run.plan.root, cell))
    for path, reason in left.foreign:
        yield f"not a golden: {path}: {reason}; it is left alone"
    if left.stale:
        if run.plan.options.pruning:
            yield "nothing was pruned: pruning needs a full, passing run"
        again = invocation.again(run.plan.options.called, UPDATE, "--prune")
        yield f"a green run of every cell prunes them: {again}"
