"""Artifacts as graphs of Model Explorer: the lowered graph, with each delegate as a layer that holds its operators.

What is the same in both artifacts has the same id in both graphs, whatever its values are called: by the id, Model
Explorer selects an operator in one when a reader selects it in the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from model_explorer.graph_builder import Graph, GraphNode, IncomingEdge, KeyValue, MetadataItem

from executorch_goldens.diff.graphs import Pairing
from executorch_goldens.diff.operators import ADDED, CHANGED, REMOVED, SAME, rows
from executorch_goldens.diff.payloads import graph_pairs
from executorch_goldens.diff.side import GraphSide
from executorch_goldens.goldens.outline import OutlineGraph, OutlineValue
from executorch_goldens.goldens.record import GRAPH, Record
from executorch_goldens_plugins.explorer import lowered
from executorch_goldens_plugins.explorer.lowered import LoweredNode

#: Kind and name of what Model Explorer shows of an input and of an output.
INPUT_TAG, OUTPUT_NAME = "__tensor_tag", "tensor_name"

#: Text of a delegate, name of a graph in it, and the number of an operator or the name of a constant without one.
Place = tuple[str, str, int | str]
#: A node, and the number of its result.
Source = tuple[str, int]


@dataclass(frozen=True)
class Drawn:
    """An artifact as a graph.

    Attributes
    ----------
    states
        State of nodes in delegates against the other artifact (`executorch_goldens.diff.operators`), by node.
    makers
        Node that makes each value of a delegate, by number of the delegate and name of the value.
    labelled
        Nodes of operators in delegates, by type and first output.
    returned
        Node of each output of the program.
    """

    graph: Graph
    states: dict[str, str] = field(default_factory=dict)
    makers: dict[tuple[int, str], str] = field(default_factory=dict)
    labelled: dict[str, list[str]] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)


def drawn(artifacts: Mapping[str, Record | None]) -> dict[str, Drawn]:
    """Return artifacts as graphs, by name: those that are there and lower.

    Parameters
    ----------
    artifacts
        One, or two to compare: the second with the first.

    Raises
    ------
    executorch_goldens.goldens.outline.OutlineError
        For a text that is no golden's.
    """
    there = {name: each for name, each in artifacts.items() if each is not None and not each.fails}
    if len(there) < 2:
        return {name: _Drawing(each, {}, {}).drawn(name) for name, each in there.items()}
    (one, before), (other, after) = there.items()
    states: tuple[dict[Place, str], dict[Place, str]] = ({}, {})
    ids: dict[Place, str] = {}
    for place, state, counterpart in _compared(before, after):
        if state != REMOVED:
            states[1][counterpart or place] = state
        if state != ADDED:
            states[0][place] = state
            ids[place] = _id(counterpart) if counterpart is not None else f"{_id(place)} of {one}"
    return {
        one: _Drawing(before, states[0], ids).drawn(one),
        other: _Drawing(after, states[1], {}).drawn(other),
    }


def _id(place: Place) -> str:
    return "/".join(map(str, place))


def _compared(before: Record, after: Record) -> Iterator[tuple[Place, str, Place | None]]:
    """Yield nodes in delegates, with their state, and their counterpart in `after` if they are in `before` as well."""
    for name in dict.fromkeys([*before.delegates, *after.delegates]):
        sides = (each.delegates.get(name) for each in (before, after))
        yield from _of_delegate(name, *(side.graphs if side is not None else () for side in sides))


def _of_delegate(
    name: str, before: Sequence[OutlineGraph], after: Sequence[OutlineGraph]
) -> Iterator[tuple[Place, str, Place | None]]:
    pairs = graph_pairs(before, after)
    for one, other in pairs:
        yield from _of_pair(name, Pairing(one, other))
    matched = {id(graph) for pair in pairs for graph in pair}
    for state, graphs in ((REMOVED, before), (ADDED, after)):
        for graph in graphs:
            if id(graph) not in matched:
                keys = [*range(len(graph.operators)), *_leaves(GraphSide(graph))]
                yield from (((name, graph.name, key), state, None) for key in keys)


def _of_pair(name: str, pair: Pairing) -> Iterator[tuple[Place, str, Place | None]]:
    old, new = pair.before.graph.name, pair.after.graph.name
    for row in rows(pair):
        if row.was is None:
            yield (name, new, row.at or 0), row.state, None
        else:
            yield (name, old, row.was), row.state, (name, new, row.at) if row.at is not None else None
    ours, theirs = _leaves(pair.before), _leaves(pair.after)
    for was, value in ours.items():
        now = theirs.get(pair.names.get(was, ""))
        if now is None:
            yield (name, old, was), REMOVED, None
        else:
            same = (value.type, _sha256(value)) == (now.type, _sha256(now))
            yield (name, old, was), SAME if same else CHANGED, (name, new, now.name)
    found = set(pair.names.values())
    yield from (((name, new, now), ADDED, None) for now in theirs if now not in found)


def _leaves(side: GraphSide) -> dict[str, OutlineValue]:
    """Return the constants that no operator makes: XNNPACK's."""
    values = side.graph.values.items()
    return {name: value for name, value in values if value.contents is not None and name not in side.producer}


def _sha256(value: OutlineValue) -> str:
    return value.contents.sha256 if value.contents is not None else ""


class _Drawing:
    """Makes the graph of one artifact.

    Parameters
    ----------
    states, ids
        State and id of what is in delegates, by place; the id of what has none follows from its place.
    """

    def __init__(self, record: Record, states: Mapping[Place, str], ids: Mapping[Place, str]) -> None:
        self.record = record
        self.states = states
        self.ids = ids
        self.nodes: list[GraphNode] = []
        #: Values that the names of the lowered graph refer to, by number of the result.
        self.sources: dict[str, list[Source]] = {}

    def drawn(self, name: str) -> Drawn:
        """Return the graph, called `name`."""
        # Without a list of its own, Model Explorer hides every node that is called "const".
        self.made = Drawn(Graph(id=name, nodes=self.nodes, nodeLabelsToHide=[""]))
        delegates = lowered.delegates(self.record)
        for node in lowered.nodes(self.record.sections[GRAPH]):
            if node.op == lowered.RETURN:
                self._returns(node)
            elif node.op == "get_attr" and node.target in delegates:
                continue
            elif node.target == lowered.GETITEM and node.read[0] in self.sources:
                sources = self.sources[node.read[0]]
                # Nodes other than delegates have their results under one node.
                self.sources[node.name] = [
                    sources[node.item] if node.item < len(sources) else (sources[0][0], node.item)
                ]
            elif node.calls_delegate:
                self._calls(node, delegates[node.read[0]])
            else:
                self._node(
                    node.name,
                    node.short if node.op == "call_function" else node.op,
                    "",
                    self._edges(node.read),
                )
                self.nodes[-1].attrs += _pairs({"target": node.target, "arguments": node.arguments})
                self.sources[node.name] = [(node.name, 0)]
        return self.made

    def _node(self, id_: str, label: str, namespace: str, edges: list[IncomingEdge]) -> GraphNode:
        node = GraphNode(id=id_, label=label, namespace=namespace, incomingEdges=edges)
        self.nodes.append(node)
        return node

    def _edges(self, read: tuple[str, ...]) -> list[IncomingEdge]:
        return [
            _edge(self.sources[name][0], position)
            for position, name in enumerate(read)
            if self.sources.get(name)
        ]

    def _returns(self, node: LoweredNode) -> None:
        for number, name in enumerate(node.read):
            id_ = f"output {number}"
            self._node(id_, id_, "", self._edges((name,)))
            self.made.returned.append(id_)

    def _calls(self, node: LoweredNode, number: int) -> None:
        """Draw a delegate: its graph, bound to the arguments, and graphs of its control flow."""
        file = next(name for name in self.record.delegates if name.startswith(f"delegate_{number}."))
        namespace = f"delegate_{number}"
        for place, graph in enumerate(self.record.delegates[file].graphs):
            arguments = node.read[1:] if place == 0 else ()
            inner = namespace if place == 0 else f"{namespace}/{graph.name.replace('/', ' ')}"
            results = self._graph(graph, file, number, inner, arguments)
            if place == 0:
                self.sources[node.name] = results

    def _graph(
        self, graph: OutlineGraph, file: str, number: int, namespace: str, arguments: tuple[str, ...]
    ) -> list[Source]:
        """Draw a graph of a delegate, and return its outputs."""
        side = GraphSide(graph)
        makers: dict[str, Source] = {}
        for position, name in enumerate(graph.inputs):
            id_ = f"{namespace}/input {position}"
            node = self._node(id_, "input", namespace, self._edges(arguments[position : position + 1]))
            self._result(node, number, name, graph.values.get(name), 0)
            makers[name] = (id_, 0)
        for name, value in _leaves(side).items():
            node = self._placed((file, graph.name, name), "constant", namespace)
            self._result(node, number, name, value, 0)
            makers[name] = (node.id, 0)
        for at, operator in enumerate(graph.operators):
            node = self._placed((file, graph.name, at), operator.type, namespace)
            node.attrs += _pairs(operator.attributes)
            self.made.labelled.setdefault(side.label(at), []).append(node.id)
            outputs = side.outputs(at)
            for position, (role, name) in enumerate(operator.inputs):
                if name in makers and name not in outputs:
                    node.incomingEdges.append(_edge(makers[name], position))
                    node.inputsMetadata.append(MetadataItem(str(position), _pairs({INPUT_TAG: role})))
            for port, name in enumerate(outputs):
                self._result(node, number, name, graph.values.get(name), port)
                makers[name] = (node.id, port)
        return [makers[name] for name in graph.outputs if name in makers]

    def _placed(self, place: Place, label: str, namespace: str) -> GraphNode:
        node = self._node(self.ids.get(place, _id(place)), label, namespace, [])
        if place in self.states:
            self.made.states[node.id] = self.states[place]
        return node

    def _result(self, node: GraphNode, number: int, name: str, value: OutlineValue | None, port: int) -> None:
        facts = {OUTPUT_NAME: name}
        if value is not None:
            contents = value.contents.facts if value.contents is not None else {}
            facts |= {"shape": value.type, **value.attributes, **contents}
        node.outputsMetadata.append(MetadataItem(str(port), _pairs(facts)))
        self.made.makers[number, name] = node.id


def _edge(source: Source, position: int) -> IncomingEdge:
    return IncomingEdge(source[0], str(source[1]), str(position))


def _pairs(facts: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key, value) for key, value in facts.items()]
