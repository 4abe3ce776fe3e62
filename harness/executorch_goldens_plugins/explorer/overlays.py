"""Results of the harness for each operator, as node data of Model Explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from model_explorer.node_data_builder import GraphNodeData, NodeDataResult, ThresholdItem

from executorch_goldens.artifact import EDGE, EXPORTED, LOWERED, QUANTIZED
from executorch_goldens.diff.operators import SAME
from executorch_goldens.results.evidence import OUTPUT, VALUE
from executorch_goldens_plugins.explorer.adapters import Adapted
from executorch_goldens_plugins.explorer.cell import OpenedCell
from executorch_goldens_plugins.explorer.graphs import Drawn
from executorch_goldens_plugins.explorer.origins import Origins, written

#: Name of each overlay in the list of node data.
COMPARED, ERROR, PASS, ORIGIN = "compared", "part of tolerance", "pass", "pass of origin"
#: Backgrounds of operators that are not the same, by state, and of errors: half of the tolerance, all of it, beyond.
STATES = {"changed": "#f2c14e", "replaced": "#f29e4e", "added": "#7cb9a8", "removed": "#e07a7a"}
ERRORS = [
    ThresholdItem(0.5, "#b7ddb0"),
    ThresholdItem(1.0, "#f2c14e"),
    ThresholdItem(float(1 << 30), "#e07a7a"),
]
#: Backgrounds of what passes made, by turns. What no pass made has none, whatever converted it.
ORIGINS = ("#b7cdf2", "#f2d5a0", "#c5e3b5", "#e3c1e8", "#f2b8b0", "#b5e3df", "#e0dc9f", "#d0c4b5")
#: Shown of an error where there is no tolerance: JSON has no infinity.
MOST = float(1 << 20)


def overlays(
    drawn: Drawn,
    found: OpenedCell,
    variation: str | None,
    makers: Mapping[str, Sequence[str]],
) -> dict[str, GraphNodeData]:
    """Return the overlays of an artifact that have something to show, by name.

    Parameters
    ----------
    variation
        Under which the artifact was made; None for a golden beside it, whose error is unknown.
    makers
        The origin of an operator or constant, with the passes that converted it, by node.
    """
    # Model Explorer shows the last first.
    made: Mapping[str, dict[str, NodeDataResult]] = {
        ORIGIN: _origins(makers),
        ERROR: {} if variation is None else _errors(drawn, found, variation),
        PASS: {} if variation is None else _passes(drawn, found),
        COMPARED: {node: _result(state, STATES.get(state)) for node, state in drawn.states.items()},
    }
    return {
        name: GraphNodeData(
            results,
            name,
            thresholds=ERRORS if name == ERROR else [],
            # Results other than numbers have no sum.
            hideInAggregatedStatsTable=name != ERROR,
        )
        for name, results in made.items()
        if results
    }


def made_by(drawn: Drawn, origins: Origins) -> dict[str, Sequence[str]]:
    """Return the origin of an operator or constant in a delegate, and the passes that converted it, by node."""
    return {
        drawn.makers[number, value]: maker
        for number, values in enumerate(origins.delegates)
        for value, maker in values.items()
        if (number, value) in drawn.makers
    }


def of_same(drawn: Drawn, makers: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the origins of golden nodes that match the artifact beside it, whose `makers` are known."""
    return {node: maker for node, maker in makers.items() if drawn.states.get(node) == SAME}


def on_adapted(
    known: Mapping[str, GraphNodeData], drawn: Drawn, adapted: Adapted
) -> dict[str, dict[str, GraphNodeData]]:
    """Return overlays for an adapter's graphs of a delegate, by name and graph: values keep their names."""
    found: dict[str, dict[str, GraphNodeData]] = {}
    for graph, node, value in adapted.makers():
        own = drawn.makers.get((adapted.delegate, value)) if adapted.delegate is not None else None
        for name, data in known.items():
            if own in data.results:
                of_graph = found.setdefault(name, {}).setdefault(graph.id, replace(data, results={}))
                of_graph.results.setdefault(node.id, data.results[own])
    return found


def _errors(drawn: Drawn, found: OpenedCell, variation: str) -> dict[str, NodeDataResult]:
    """Return the largest part of its tolerance that an element of an output takes, and of the value that departs."""
    outputs, values = (
        {
            each.name: deviation.used()
            for each in found.evidence.tensors
            if (each.kind, each.variation) == (kind, variation) and (deviation := each.deviation) is not None
        }
        for kind in (OUTPUT, VALUE)
    )
    results = {node: _result(min(outputs[node], MOST)) for node in drawn.returned if node in outputs}
    if not outputs and len(drawn.returned) == 1 and (accuracy := found.row.accuracy) is not None:
        # A stable cell has one figure, of its worst output.
        results[drawn.returned[0]] = _result(min(accuracy.used, MOST))
    for name, used in values.items():
        nodes = drawn.labelled.get(name, [])
        if len(nodes) == 1:
            results[nodes[0]] = _result(min(used, MOST))
    return results


def _passes(drawn: Drawn, found: OpenedCell) -> dict[str, NodeDataResult]:
    """Return the pass that made the difference, on every operator that is not the same."""
    blamed = found.member.proposal.blamed if found.member is not None else None
    if blamed is None:
        return {}
    return {node: _result(blamed, STATES[state]) for node, state in drawn.states.items() if state != SAME}


def _origins(makers: Mapping[str, Sequence[str]]) -> dict[str, NodeDataResult]:
    passes = sorted({first for first, *_ in makers.values()} - {EXPORTED, QUANTIZED, EDGE, LOWERED})
    colours = {name: ORIGINS[place % len(ORIGINS)] for place, name in enumerate(passes)}
    return {node: _result(written(names), colours.get(names[0])) for node, names in makers.items()}


def _result(value: Any, colour: str | None = None) -> NodeDataResult:
    return NodeDataResult(value, bgColor=colour)
