"""The table of the results of every mutant, its totals, and the bounds they must reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.goldens import golden
from executorch_goldens.judging.comparison import compare
from executorch_goldens.judging.verdict import DISAGREEING, Verdict
from executorch_goldens.running.plan import Plan
from executorch_goldens.words.verdicts import detail, reason
from lab.mutants.mutant import Mutant

#: Shares of all mutants that must be reached.
VERDICTS_RIGHT = 0.95
PASSES_RIGHT = 0.90

#: Marks that no pass is expected or named.
NONE = "-"

#: Columns of the table of what was found: `Judged.verdict` and `Judged.named` of each mutant.
COLUMNS = ("mutant", "verdict", "named")

HEAD = (
    "| kind | mutant | what is wrong | cell | verdict expected | got | pass expected | named |",
    "|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Judged:
    """The harness's result for a mutant.

    Attributes
    ----------
    named
        The pass, in the words of `Mutant.expected`.
    reason
        Why, for ``--verbose``.
    """

    mutant: Mutant
    verdict: str
    named: str
    reason: str = ""

    @classmethod
    def from_verdict(cls, mutant: Mutant, verdict: Verdict) -> Judged:
        lines = (reason(verdict), *detail(verdict)[:3])
        return cls(mutant, verdict.name, named(verdict, mutant.shows), "\n  ".join(lines))

    @property
    def detected(self) -> bool:
        return self.verdict != "stable"

    @property
    def verdict_right(self) -> bool:
        return self.detected and self.verdict == self.mutant.verdict

    @property
    def pass_right(self) -> bool:
        return self.detected and self.named == self.mutant.expected

    @property
    def as_declared(self) -> bool:
        """True if it is detected, or survives as declared."""
        return self.detected != bool(self.mutant.caught_by)

    def row(self) -> str:
        mutant = self.mutant
        defect = (mutant.kind, mutant.name, mutant.does, mutant.cell)
        return f"| {' | '.join((*defect, mutant.verdict, self.verdict, mutant.expected, self.named))} |"


def judge(planned: Plan, cell: Cell, outcomes: Sequence[Outcome]) -> Verdict:
    """Return the verdict on exports of `cell`, and record nothing."""
    reviewed = golden.read(golden.file_of(planned.root, cell))
    return compare(cell, outcomes, reviewed, planned.release, planned.decided).verdict


def named(verdict: Verdict, shows: str = "") -> str:
    """Return the pass or stage that a verdict names, with `shows` where the change that it made shows that."""
    found = verdict.divergence
    if found is None:
        return "no pass" if verdict.name in DISAGREEING else NONE
    made = next(found.change.lines()) if found.change is not None else ""
    return f"{found.name}: {shows}" if shows and shows in made else found.name


def section(release: str, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines of harness/lab/docs/mutants.md about each mutant on its cell."""
    yield "# Mutation testing"
    yield ""
    yield f"Deliberate defects in ExecuTorch {release}, and their verdicts. Written by"
    yield "`nox -s lab -- mutants --update`; the defects are in `harness/lab/mutants`. Where no pass is at fault, a"
    yield "stage is named: `delegate_0` is the serialization of a delegate, `lowered` the program around the delegates,"
    yield "`pte` its emission. After a colon is the detail that the message shows."
    yield ""
    yield from HEAD
    yield from (found.row() for found in judged)
    yield ""
    yield from summary(judged)


def summary(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield unexpected results, the survivors with ideas to catch them, and the totals in the last line."""
    wrong = [found for found in judged if found.detected and not (found.verdict_right and found.pass_right)]
    if wrong:
        names = ", ".join(found.mutant.name for found in wrong)
        yield f"Detected with a different verdict or a different pass: {names}."
        yield ""
    for found in judged:
        if not found.detected:
            yield f"Survives: {found.mutant.name}. Caught by: {found.mutant.caught_by or 'nothing that is declared'}."
            yield ""
        elif not found.as_declared:
            yield f"No longer survives: {found.mutant.name}. Take its `caught_by` away."
            yield ""
    kinds = len({found.mutant.kind for found in judged})
    shares = (
        (what, sum(right), share(right))
        for what, right in (
            ("detected", [found.detected for found in judged]),
            ("right verdict", [found.verdict_right for found in judged]),
            ("right pass", [found.pass_right for found in judged]),
        )
    )
    totals = "; ".join(f"{what} {number} ({part:.1%})" for what, number, part in shares)
    yield f"{len(judged)} mutants of {kinds} kinds: {totals}."


def is_enough(judged: Sequence[Judged]) -> bool:
    """Return whether all but declared survivors are detected, and enough verdicts and passes are right."""
    return (
        all(found.as_declared for found in judged)
        and share([found.verdict_right for found in judged]) >= VERDICTS_RIGHT
        and share([found.pass_right for found in judged]) >= PASSES_RIGHT
    )


def share(right: Sequence[bool]) -> float:
    return sum(right) / len(right)
