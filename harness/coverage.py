"""Says what the zoo reaches of a release: passes that change a graph, node visitors, operators and their attributes.

``python -m harness.commands.coverage`` exports every cell of the installed release once and compares what it saw
with the committed table ``docs/coverage/<release>.md``; ``--update`` writes it. ``nox -s coverage`` runs it.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.artifact import STAGE, Artifact, Cell, Lowered, Outcome
from harness.judging.golden import decode_delegates

TABLES = Path(__file__).resolve().parent.parent / "docs" / "coverage"
#: Why a pass or a visitor is reached on no release, by its name.
UNREACHED = Path(__file__).resolve().parent / "unreached.toml"
#: Most values of an attribute that are listed.
SHOWN_VALUES = 6


@dataclass
class Coverage:
    """What some exports reached.

    Attributes
    ----------
    entered, changed
        (pipeline, pass) to the cells in which it ran, and in which it changed the graph.
    visitors
        ``backend target`` to the cells in which it serialized a node.
    attributes
        (``tosa`` or ``xnnpack``, operator) to attribute to the values it had.
    """

    entered: dict[tuple[str, str], set[Cell]] = field(default_factory=lambda: defaultdict(set))
    changed: dict[tuple[str, str], set[Cell]] = field(default_factory=lambda: defaultdict(set))
    visitors: dict[str, set[Cell]] = field(default_factory=lambda: defaultdict(set))
    attributes: dict[tuple[str, str], dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )

    def add(self, outcome: Outcome) -> None:
        """Count what one export reached; a crash reached nothing that could be told."""
        artifact = outcome.result
        if not isinstance(artifact, Artifact) or artifact.watched is None:
            return
        for run in (run for run in artifact.watched.passes if run.pipeline != STAGE):
            self.entered[run.pipeline, run.name].add(outcome.cell)
            if run.changed:
                self.changed[run.pipeline, run.name].add(outcome.cell)
        for visitor in artifact.watched.visitors:
            self.visitors[visitor].add(outcome.cell)
        if isinstance(artifact.result, Lowered):
            for decoded in decode_delegates(artifact.result):
                for operator in (operator for graph in decoded.graphs for operator in graph.operators):
                    seen = self.attributes[decoded.kind, operator.type]
                    for name, value in operator.attributes.items():
                        seen[name].add(str(value))


def reasons() -> dict[str, str]:
    """Return why a pass or a visitor is not reached, by its name."""
    return {
        name: reason
        for group in tomllib.loads(UNREACHED.read_text(encoding="utf-8")).values()
        for name, reason in group.items()
    }


def table(
    version: str, coverage: Coverage, visitors: Mapping[str, Iterable[str]], why_not: Mapping[str, str]
) -> Iterator[str]:
    """Yield the Markdown lines of a release's table.

    Parameters
    ----------
    visitors
        The targets that each backend has a visitor for.
    why_not
        Name of a pass or a visitor to the reason that stands where it was not reached.
    """
    yield f"# What the zoo reaches of ExecuTorch {version}"
    yield ""
    yield (
        'Written by `nox -s "coverage('
        + version
        + ')" -- --update`, from one export of every cell with all patches.'
    )
    yield from ("", "| of the release | reached |", "|---|---:|")
    run, effective = (
        {name for pipeline, name in seen if pipeline.startswith("arm ")}
        for seen in (coverage.entered, coverage.changed)
    )
    yield f"| Arm passes that change a graph, at annotation or in the backend | {share(effective, run)} |"
    for backend, targets in visitors.items():
        known = sorted(targets)
        used = [target for target in known if f"{backend} {target}" in coverage.visitors]
        yield f"| node visitors of {backend} that serialize a node | {share(used, known)} |"
    pipelines = sorted({pipeline for pipeline, _ in coverage.entered})
    # The order in which a pipeline runs its passes is that in which they were first entered.
    for pipeline in pipelines:
        passes = [name for owner, name in coverage.entered if owner == pipeline]
        changing = [name for name in passes if coverage.changed.get((pipeline, name))]
        yield from (
            "",
            f"## Passes: {pipeline}",
            "",
            f"{share(changing, passes)} change a graph in some cell.",
            "",
        )
        yield "| pass | cells it runs in | cells it changes | e.g., or why none |"
        yield "|---|---:|---:|---|"
        for name in passes:
            changed = coverage.changed.get((pipeline, name), set())
            others = [cells for (_, other), cells in coverage.changed.items() if other == name and cells]
            if changed:
                example = str(min(changed))
            elif others:
                example = f"none here; in another pipeline {min(others[0])}"
            else:
                example = why_not.get(name, "-")
            yield f"| {name} | {len(coverage.entered[pipeline, name])} | {len(changed)} | {example} |"
    for backend, targets in visitors.items():
        known = sorted(targets)
        used = [target for target in known if f"{backend} {target}" in coverage.visitors]
        yield from (
            "",
            f"## Node visitors: {backend}",
            "",
            f"{share(used, known)} serialize a node in some cell.",
            "",
        )
        yield "| visitor | cells | e.g., or why none |"
        yield "|---|---:|---|"
        for target in known:
            cells = coverage.visitors.get(f"{backend} {target}", set())
            yield f"| {target} | {len(cells)} | {min(cells) if cells else why_not.get(target, '-')} |"
    for kind in sorted({kind for kind, _ in coverage.attributes}):
        yield from (
            "",
            f"## Serialized: {kind}",
            "",
            "| operator | attributes and their values |",
            "|---|---|",
        )
        for owner, operator in sorted(coverage.attributes):
            if owner == kind:
                attributes = coverage.attributes[owner, operator].items()
                yield f"| {operator} | {'; '.join(f'{name}: {values(seen)}' for name, seen in attributes)} |"


def share(some: Collection[str], of: Collection[str]) -> str:
    """Return how many of a list are in another, as a part.

    >>> share(["a"], ["a", "b", "c"])
    '1 of 3 (33.3%)'
    """
    return f"{len(some)} of {len(of)} ({100 * len(some) / len(of):.1f}%)" if of else "none"


def values(seen: set[str]) -> str:
    """Return the values of an attribute, or how many they are."""
    if len(seen) > SHOWN_VALUES:
        return f"{len(seen)} values"
    return ", ".join(sorted(seen)).replace("|", "\\|")
