"""Draws the lowered graph of an artifact, with its delegates as boxes around their operators.

grandalf lays it out in layers (K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical
system structures", 1981): each delegate by itself, then the graph around them with boxes of that size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grandalf.graphs import Edge, Vertex, graph_core
from grandalf.layouts import SugiyamaLayout

from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.report import lowered
from executorch_goldens.structure import outline
from executorch_goldens.structure.outline import OutlineGraph
from executorch_goldens.structure.side import Side

#: Beyond this a drawing shows a reader nothing.
MOST_BOXES = 400
#: Beyond this so much has changed that the whole graph shows more than the places.
MOST_NEAR = 60
#: Units of a drawing, which are pixels at its natural size.
HEIGHT, CHARACTER, MARGIN, GAP, TITLE = 34.0, 6.4, 14.0, 26.0, 22.0
NARROWEST, WIDEST = 60.0, 230.0
#: Connected parts of a graph are placed side by side, up to this width.
ROW = 1600.0
#: Operators that hold a constant: drawn where they differ, a row of them would hide the others.
HOLDING = ("CONST", "CONST_SHAPE")


@dataclass(frozen=True)
class Box:
    """A node: where its upper left corner is, and how large it is.

    Attributes
    ----------
    kind
        ``operator``, ``boundary`` for inputs and outputs, ``constant`` or ``delegate``.
    detail
        Text of the tooltip.
    state
        ``changed`` where it is not as in the other graph; empty otherwise.
    """

    key: str
    kind: str
    label: str
    detail: str = ""
    state: str = ""
    x: float = 0.0
    y: float = 0.0
    width: float = NARROWEST
    height: float = HEIGHT
    inner: Drawing | None = None


@dataclass(frozen=True)
class Drawing:
    """Boxes, and the points of the lines between them."""

    boxes: tuple[Box, ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float

    def count(self) -> int:
        """Return how many operators there are, in delegates and outside."""
        return sum(box.inner.count() if box.inner else box.kind == "operator" for box in self.boxes)

    def delegates(self) -> int:
        return sum(box.kind == "delegate" for box in self.boxes)


def drawing(texts: Texts, changed: Mapping[str, Collection[str]]) -> Drawing | None:
    """Draw an artifact; None for one that is too large, and for a failure.

    Parameters
    ----------
    changed
        Labels of operators that are not as in the other artifact, by name of the delegate's text.
    """
    if golden.GRAPH not in texts:
        return None
    boxes, edges = _program(texts, changed)
    if sum(len(box.inner.boxes) if box.inner else 1 for box in boxes.values()) > MOST_BOXES:
        return None
    return _laid_out(list(boxes.values()), edges)


def neighbourhood(graph: OutlineGraph, changed: Collection[int]) -> Drawing | None:
    """Draw some operators of a graph with their neighbours; None for none, and for too many.

    Parameters
    ----------
    changed
        Their numbers in the graph.
    """
    side = Side(graph)
    boxes, edges = _operators(graph, "", {side.label(at) for at in changed})
    centre = {box.key for box in boxes if box.state}
    near = centre | {key for edge in edges for key in edge if centre & set(edge)}
    if not centre or len(near) > MOST_NEAR:
        return None
    return _laid_out(
        [box for box in boxes if box.key in near], {edge for edge in edges if near.issuperset(edge)}
    )


def _program(
    texts: Texts, changed: Mapping[str, Collection[str]]
) -> tuple[dict[str, Box], set[tuple[str, str]]]:
    """Return the boxes of a lowered graph and the edges between them, by key."""
    delegates = lowered.delegates(texts)
    boxes: dict[str, Box] = {}
    edges: set[tuple[str, str]] = set()
    # A node that only passes a value on gets no box: a reference to it is one to its input.
    sources: dict[str, str] = {}
    for node in lowered.nodes(texts[golden.GRAPH]):
        read = [sources.get(each, each) for each in node.read]
        if source := _handed_on(node, read, delegates):
            sources[node.name] = source
        elif node.calls_delegate and read and read[0] in delegates:
            boxes[node.name] = _of_delegate(node.name, read[0], delegates[read[0]], texts, changed)
            edges |= {(each, node.name) for each in read[1:]}
        else:
            boxes[node.name] = _of_node(node)
            edges |= {(each, node.name) for each in read}
    return boxes, {edge for edge in edges if edge[0] in boxes}


def _handed_on(node: lowered.LoweredNode, read: Sequence[str], delegates: Mapping[str, int]) -> str:
    """Return the name that a node only passes on, a delegate or one of several values; empty for other nodes."""
    if node.op == "get_attr" and node.target in delegates:
        return node.target
    return read[0] if node.target == lowered.GETITEM and read else ""


def _of_node(node: lowered.LoweredNode) -> Box:
    if node.op == lowered.RETURN:
        return _box(node.name, "boundary", "outputs")
    kind = "boundary" if node.op in ("placeholder", "get_attr") else "operator"
    label = node.name if kind == "boundary" else node.short
    return _box(node.name, kind, label, f"{node.name} {node.target}")


def _of_delegate(
    key: str, name: str, number: int, texts: Texts, changed: Mapping[str, Collection[str]]
) -> Box:
    """Return the box of a call of the delegate `name`, with its contents."""
    inner = _delegate(texts, f"delegate_{number}", changed)
    box = replace(_box(key, "delegate", f"delegate {number}", name), state=_state(inner), inner=inner)
    return replace(box, width=inner.width, height=inner.height + TITLE) if inner else box


def _state(inner: Drawing | None) -> str:
    return "changed" if inner and any(box.state for box in inner.boxes) else ""


def _delegate(texts: Texts, name: str, changed: Mapping[str, Collection[str]]) -> Drawing | None:
    text = next((text for file, text in texts.items() if file.startswith(f"{name}.")), None)
    if text is None:
        return None
    graphs = outline(text).graphs
    if sum(len(graph.operators) for graph in graphs) > MOST_BOXES * 4:
        return None
    boxes: list[Box] = []
    edges: set[tuple[str, str]] = set()
    for number, graph in enumerate(graphs):
        of_graph, its_edges = _operators(graph, f"{number}:", changed.get(name, ()))
        boxes += of_graph
        edges |= its_edges
    return None if len(boxes) > MOST_BOXES else _laid_out(boxes, edges)


def _operators(
    graph: OutlineGraph, prefix: str, changed: Collection[str]
) -> tuple[list[Box], set[tuple[str, str]]]:
    side = Side(graph)
    boxes = [_box(f"{prefix}in {name}", "boundary", name, graph.values[name].type) for name in graph.inputs]
    makers = {name: f"{prefix}in {name}" for name in graph.inputs}
    edges: set[tuple[str, str]] = set()
    for at, operator in enumerate(graph.operators):
        made = side.outputs(at)
        label = side.label(at)
        if operator.type in HOLDING and label not in changed:
            continue
        key = f"{prefix}{at}"
        types = ", ".join(graph.values[name].type for name in made if name in graph.values)
        kind = "constant" if operator.type in HOLDING else "operator"
        box = _box(key, kind, operator.type, f"{label} {types}")
        boxes.append(replace(box, state="changed" if label in changed else ""))
        edges |= {(makers[name], key) for _, name in operator.inputs if name in makers}
        makers.update(dict.fromkeys(made, key))
    for name in graph.outputs:
        boxes.append(_box(f"{prefix}out {name}", "boundary", name))
        edges |= {(makers[name], f"{prefix}out {name}")} if name in makers else set()
    return boxes, edges


def _box(key: str, kind: str, label: str, detail: str = "") -> Box:
    width = min(max(NARROWEST, CHARACTER * len(label) + 2 * MARGIN), WIDEST)
    most = int((width - MARGIN) / CHARACTER)
    shown = label if len(label) <= most else f"{label[: most - 1]}…"
    return Box(key, kind, shown, detail or label, width=width)


class _Size:
    """The size and position of a box, in grandalf's interface."""

    def __init__(self, width: float, height: float) -> None:
        self.w, self.h = width, height
        self.xy = (0.0, 0.0)


class _Node(Vertex):
    """A box as grandalf knows it. grandalf puts nodes into sets, so that a hash by address would order them."""

    def __init__(self, number: int, box: Box) -> None:
        super().__init__(box)
        self.number = number
        self.view = _Size(box.width, box.height)

    def __hash__(self) -> int:
        return self.number


class _Link(Edge):
    """An edge as grandalf knows it; see `_Node`."""

    def __init__(self, number: int, one: _Node, other: _Node) -> None:
        super().__init__(one, other)
        self.number = number
        self.view = _Way()

    def __hash__(self) -> int:
        return self.number


class _Way:
    """The route of an edge, in grandalf's interface."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []

    def setpath(self, points: list[tuple[float, float]]) -> None:
        self.points = points


def _laid_out(boxes: Sequence[Box], edges: Collection[tuple[str, str]]) -> Drawing:
    nodes = {box.key: _Node(number, box) for number, box in enumerate(boxes)}
    between = [pair for pair in sorted(edges) if pair[0] != pair[1]]
    links = [_Link(number, nodes[one], nodes[other]) for number, (one, other) in enumerate(between)]
    placed: list[Box] = []
    lines: list[tuple[tuple[float, float], ...]] = []
    left, top, lowest, rightmost = MARGIN, MARGIN, MARGIN, MARGIN
    for part in _connected(list(nodes.values()), links):
        layout = SugiyamaLayout(part)
        layout.xspace = layout.yspace = GAP
        layout.init_all()
        layout.draw()
        views = [(vertex.data, vertex.view) for vertex in part.sV]
        west, north, width, height = _extent([view for _, view in views])
        if left > MARGIN and left + width > ROW:
            left, top = MARGIN, lowest + GAP
        by = (left - west, top - north)
        for box, view in views:
            x, y = view.xy[0] - view.w / 2 + by[0], view.xy[1] - view.h / 2 + by[1]
            placed.append(replace(box, x=round(x, 1), y=round(y, 1)))
        lines += [tuple(_line(edge, by)) for edge in sorted(part.sE, key=hash)]
        left += width + GAP
        lowest, rightmost = max(lowest, top + height), max(rightmost, left - GAP)
    order = {box.key: number for number, box in enumerate(boxes)}
    placed.sort(key=lambda box: order[box.key])
    return Drawing(tuple(placed), tuple(lines), round(rightmost + MARGIN, 1), round(lowest + MARGIN, 1))


def _connected(nodes: Sequence[_Node], links: Sequence[_Link]) -> Iterator[graph_core]:
    """Yield the connected parts of a graph, as ``grandalf.graphs.Graph`` has them in 0.8.

    That compares each set of nodes with all others at every edge.
    """
    for node in nodes:
        node.c = [node]
    for link in links:
        link.attach()
        one, other = (node.c for node in link.v)
        if one is not other:
            one += other
            for node in other:
                node.c = one
    # A part is in the place of the node that it began with.
    for part in [node.c for node in nodes if node.c[0] is node]:
        edges: set[_Link] = set()
        for node in part:
            edges.update(node.e)
        yield graph_core(part, edges)


def _extent(views: Sequence[Any]) -> tuple[float, float, float, float]:
    """Return the least x and y of grandalf's layout, its width and its height."""
    west = min(view.xy[0] - view.w / 2 for view in views)
    north = min(view.xy[1] - view.h / 2 for view in views)
    east = max(view.xy[0] + view.w / 2 for view in views)
    south = max(view.xy[1] + view.h / 2 for view in views)
    return west, north, east - west, south - north


def _line(edge: Edge, by: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """Yield the points of an edge, from the lower side of a box to the upper side of another."""
    one, other = sorted(edge.v, key=lambda vertex: vertex.view.xy[1])
    points = list(edge.view.points)
    if points[0] != one.view.xy:
        points.reverse()
    points[0] = (one.view.xy[0], one.view.xy[1] + one.view.h / 2)
    points[-1] = (other.view.xy[0], other.view.xy[1] - other.view.h / 2)
    for x, y in points:
        yield round(x + by[0], 1), round(y + by[1], 1)
