"""The upstream issues, and the findings that a patch corrects: the cases that show each, and their state."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from packaging.version import Version

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered, Outcome
from executorch_goldens.goldens.findings import MissingConstant
from executorch_goldens.judging import verdict
from executorch_goldens.judging.exports import Exports
from executorch_goldens.settings.exports import Settings
from executorch_goldens.settings.zoo import load_zoo
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.words import findings as words
from executorch_goldens.words.verdicts import reason
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.variations import variations
from lab import corrections

#: The number of a issue, or the name of a finding.
Subject = TypeVar("Subject", int, str)

#: What registers the patches of findings, beside a zoo.
CORRECTIONS = corrections.__name__

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


#: The cells that show a finding, and the first release on which they show nothing else; by the
#: name of the finding, which is that of its patch as well.
CORRECTED = {
    "folded-scales": {Cell("tosa-int", "conv2d-depthwise-scaled"): "1.4.1"},
    "shared-bias": {Cell("xnnpack-int8", "shared-weights"): "1.1.0"},
    "merged-users": {
        Cell("tosa-int", "floor-and-trunc"): "1.1.0",
        Cell("tosa-int", "elus-of-one-input"): "1.3.1",
    },
    "gelu-tanh": {Cell("xnnpack-fp32", "gelu-tanh"): "1.1.0", Cell("xnnpack-int8", "gelu-tanh"): "1.1.0"},
    "log1p-below-zero": {Cell("tosa-fp", "log1p"): "1.1.0"},
    "repeated-indices": {
        Cell("tosa-fp", "index-put-repeated"): "1.2.0",
        Cell("tosa-int", "index-put-repeated"): "1.4.1",
    },
    "fused-relu": {Cell("tosa-int", "unet"): "1.5.1"},
    "same-padding-even-kernel": {Cell("tosa-int", "same-padding-even-kernel"): "1.2.0"},
}


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


def findings(settings: Settings, seeds: Sequence[int]) -> dict[int, Finding]:
    """Export every issue's cases as `settings` say and judge them."""
    return shown(issue_cells(load_zoo(settings.models).values()), settings, seeds)


def shown(
    groups: Mapping[Subject, Sequence[Cell]], settings: Settings, seeds: Sequence[int]
) -> dict[Subject, Finding]:
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


def corrected_cells(release: str) -> dict[str, list[Cell]]:
    """Return the cells that show each finding on a release, by its name; a release may show fewer findings."""
    cells = {
        name: [cell for cell, first in shows.items() if Version(release) >= Version(first)]
        for name, shows in CORRECTED.items()
    }
    return {name: found for name, found in cells.items() if found}


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
