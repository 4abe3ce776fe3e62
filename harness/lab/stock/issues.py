"""The upstream issues, and the findings that a patch corrects: the cases that show each, and their state."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered, Outcome
from executorch_goldens.goldens.findings import MissingConstant
from executorch_goldens.judging import verdict
from executorch_goldens.judging.exports import Exports
from executorch_goldens.settings.exports import Settings
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.words import findings as words
from executorch_goldens.words.verdicts import reason
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.variations import variations

#: One seed for each order of issue #19045. ``--variations 0,1,2,3,4,5,6,7,8,9`` repeats what was measured for it.
HASH_SEEDS = "0,4"

#: The digests that issue #19045 printed, and that every release gives for its model.
PRINTED_DIGESTS = {
    "c5504f6a7079731396c58bd7e56bb4420b18bb1b5d612df9781247c271aa8230": "c5504f6a",
    "787da2bc084cec910bee01c1480afb0e2655f0be066821757bbbdfcef26eef76": "787da2bc",
}


@dataclass(frozen=True)
class Issue:
    """An upstream issue and the target on which its cases show it."""

    number: int
    title: str
    target: str


ISSUES = (
    Issue(19045, "partition order follows the hash seed", "tosa-fp"),
    Issue(18866, "duplicate output slots collapse", "tosa-fp"),
    Issue(18971, "quantized cat constants folded wrongly", "tosa-int"),
    Issue(19152, "XNNPACK permute with two consumers", "xnnpack-fp32"),
)


#: The cells that show a finding which releases have a patch for, by the name of both.
CORRECTED = {"folded-scales": [Cell("tosa-int", "conv2d-depthwise-scaled")]}


@dataclass(frozen=True)
class Finding:
    """The state of an issue, or of a finding, in a release.

    Attributes
    ----------
    state
        ``bug``, ``fails`` or ``fixed``; see releases.toml.
    facts
        The measurements, a line each.
    """

    state: str
    facts: tuple[str, ...]


def shown(
    groups: Mapping[str, Sequence[Cell]], settings: Settings, seeds: Sequence[int]
) -> dict[str, Finding]:
    """Export the cells of every group as `settings` say and judge each group, by the issue or finding it is of."""
    cells = [cell for group in groups.values() for cell in group]
    with Sweep(cells, variations(seeds), settings) as sweep:
        return {
            subject: judge({cell: sweep.outcomes(cell) for cell in group})
            for subject, group in groups.items()
        }


def issue_cells(cases: Collection[Case]) -> dict[int, list[Cell]]:
    """Return the cells that show each issue, by its number."""
    return {
        issue.number: [Cell(issue.target, case.name) for case in cases if case.issue == issue.number]
        for issue in ISSUES
    }


def rows(cases: Collection[Case], release: Release) -> dict[str, list[Cell]]:
    """Return the cells of each row of the table on a release: the issues by number, the findings by name."""
    issues = {f"#{number}": cells for number, cells in issue_cells(cases).items()}
    return issues | {name: cells for name, cells in CORRECTED.items() if name in release.patches}


def judge(outcomes: Mapping[Cell, Sequence[Outcome]]) -> Finding:
    """Return the worst state of a issue's cells: a wrong or unstable artifact before a failure to lower."""
    states = []
    facts: list[str] = []
    for cell, of_cell in outcomes.items():
        judged = verdict.objection(cell, of_cell)
        result = None if judged is not None else Exports(of_cell).agreed.result
        if judged is not None:
            states.append("bug")
            held = (
                each for each in judged.findings[1:] if isinstance(each, MissingConstant) and each.nearest
            )
            facts += [f"{cell}: {judged.name}: {fact}" for fact in (reason(judged), *map(words.reason, held))]
        elif isinstance(result, Failure):
            states.append("fails")
            facts.append(f"{cell}: {result.type}: {result.message.splitlines()[0]}")
        else:
            states.append("fixed")
        facts += [f"{cell}: {fact}" for fact in graph_digests(of_cell)]
    state = next((state for state in ("bug", "fails") if state in states), "fixed")
    return Finding(state, tuple(facts))


def graph_digests(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the graph digests of a cell that issue #19045 printed, with the seeds that give them."""
    seeds: dict[str, list[str]] = {}
    for outcome in outcomes:
        if isinstance(outcome.result, Artifact) and isinstance(outcome.result.result, Lowered):
            digest = hashlib.sha256(outcome.result.result.graph.removesuffix("\n").encode()).hexdigest()
            seeds.setdefault(digest, []).append(outcome.variation.partition("-")[0].removeprefix("seed"))
    if set(seeds) <= set(PRINTED_DIGESTS):
        for digest, of_digest in sorted(seeds.items()):
            yield f"graph sha256 {digest} under seeds {' '.join(of_digest)}"
