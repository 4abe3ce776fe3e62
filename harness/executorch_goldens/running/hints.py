"""Ways out of what is wrong with a cell, and the commands to type about it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Sequence

from executorch_goldens import patches, plugins
from executorch_goldens.files import invocation
from executorch_goldens.files.invocation import UPDATE
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.findings import matches
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.patches import Patch
from executorch_goldens.running.plan import Plan
from executorch_goldens.settings.releases import Release
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.variations import HASH_SEEDS

#: Beyond this part of the largest value no rounding is a likely reason, and no line that widens a bound is shown.
WIDEST_ROUNDING = 0.1


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
        # Where a pass made the difference, nobody asks first whether arithmetic did.
        if found.bound <= WIDEST_ROUNDING and judged.divergence is None and not found.is_outside:
            # The one character in names of targets that TOML takes only in quotes (TOML 1.0, "Keys").
            key = f'"{target}"' if "+" in target else target
            yield (
                "more than rounding explains; if the target's own arithmetic does: "
                f"{key} = {bound} under [tool.goldens.tolerances] in pyproject.toml, for all its cells"
            )
        elif found.bound > WIDEST_ROUNDING:
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
    wanting = [
        patch
        for patch in map(known.__getitem__, release.patches)
        if patch.name not in applied
        and judged.name in patch.verdicts
        and any(matches(patch.verdicts[judged.name], each.key()) for each in judged.findings)
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
    proposed = plugins.hints(judged, plan.release.version, plan.options.called)
    return typed | {hint.purpose: hint.command for hint in proposed}


def _accept(plan: Plan, judged: Verdict, this: Sequence[str]) -> str:
    """Return the command that records a cell: under all variations if its golden names more than the run had."""
    reviewed: Record | None = None
    with contextlib.suppress(golden.GoldenError):
        reviewed = golden.read(golden.file_of(plan.root, judged.cell))
    called = plan.options.called
    named = len(reviewed.variations) if reviewed is not None else 0
    if min(named, len(HASH_SEEDS)) <= len(plan.variations):
        return invocation.again(called, *this, UPDATE)
    return invocation.again(called, *this, "--variations", "full", UPDATE, replaced="--variations")
