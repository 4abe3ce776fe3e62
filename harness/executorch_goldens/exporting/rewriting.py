"""Rewrites of a model's graph: what wrapping the model cannot change, such as a second user of a value inside.

The graph is the one that ``torch.export`` makes, of ATen's operators, before anything is lowered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.graph import CodeGen

from executorch_goldens.exporting.data import Example

aten = torch.ops.aten
#: Changes a graph in place.
Rewrite = Callable[[Graph], None]
#: Operators inside a model that rewrites of one operator are made for: counted from the last.
PLACES = range(3)


class NotChangedError(ValueError):
    """A change that does not fit a model."""


def rewritten(example: Example, rewrite: Rewrite) -> Example:
    """Return an example whose model is the graph of its model, rewritten; raise `NotChangedError`."""
    if not all(isinstance(each, torch.Tensor) for each in example.inputs):
        raise NotChangedError("it has an input that is no tensor")
    with torch.no_grad():
        module = torch.export.export(example.module.eval(), example.inputs, strict=True).module()
    graph = module.graph
    # Plain inputs and a tuple of outputs, whatever structure they had; a call of a module checks the inputs' sizes.
    graph.set_codegen(CodeGen())
    for node in [node for node in graph.nodes if node.op == "call_module"]:
        graph.erase_node(node)
    before = str(graph)
    rewrite(graph)
    if str(graph) == before:
        raise NotChangedError("nothing in its graph is like that")
    graph.lint()
    return replace(example, module=GraphModule(module, graph))


def _value(graph: Graph, place: int) -> Node:
    """Return the call of an operator whose result is one tensor of floats, counted from the last."""
    calls: list[Node] = [node for node in graph.nodes if node.op == "call_function"]
    found = [node for node in calls if _is_float(node.meta.get("val"))]
    if place >= len(found):
        raise NotChangedError("it has too few operators")
    return found[-1 - place]


def _is_float(made: object) -> bool:
    return isinstance(made, torch.Tensor) and made.is_floating_point()


def _behind(node: Node, *calls: tuple[Any, ...]) -> None:
    """Let the users of a value read the last of some calls after it, each of an operator and further arguments."""
    users, last = list(node.users), node
    for operator, *arguments in calls:
        with node.graph.inserting_after(last):
            last = node.graph.call_function(operator, (last, *arguments))
    for user in users:
        user.replace_input_with(node, last)


def read_twice(graph: Graph, place: int) -> None:
    """A value has a second user, whose result is a further output."""
    node, output = _value(graph, place), next(iter(reversed(graph.nodes)))
    with graph.inserting_before(output):
        further = graph.call_function(aten.relu.default, (node,))
    (outputs,) = output.args
    assert isinstance(outputs, list | tuple)
    output.args = ((*outputs, further),)


def turned(graph: Graph, place: int) -> None:
    """A value is permuted, and permuted back after an operator."""
    node = _value(graph, place)
    rank = node.meta["val"].dim()
    if rank < 2:
        raise NotChangedError("it has too small a rank")
    there, back = [*range(1, rank), 0], [rank - 1, *range(rank - 1)]
    _behind(node, (aten.permute.default, there), (aten.relu.default,), (aten.permute.default, back))


def flattened(graph: Graph, place: int) -> None:
    """A value loses its shape, and gets it back after an operator."""
    node = _value(graph, place)
    shape = list(node.meta["val"].shape)
    _behind(node, (aten.reshape.default, [-1]), (aten.relu.default,), (aten.reshape.default, shape))


def clamped(graph: Graph, place: int) -> None:
    """A value goes through an activation with bounds."""
    _behind(_value(graph, place), (aten.hardtanh.default, -0.5, 0.75))


def again(graph: Graph, place: int) -> None:
    """An operator is applied to its own result, in place of its first operand."""
    node = _value(graph, place)
    if not node.all_input_nodes:
        raise NotChangedError("it has no operand")
    first = node.all_input_nodes[0]
    users = list(node.users)
    with graph.inserting_after(node):
        second = graph.node_copy(node)
    second.replace_input_with(first, node)
    for user in users:
        user.replace_input_with(node, second)


def _arguments(graph: Graph) -> Iterator[tuple[Node, int, str, Any]]:
    """Yield the arguments of operators that are no tensors: a call, the place, the name and the value."""
    for node in graph.nodes:
        if (schema := _schema(node)) is not None:
            for place, value in enumerate(node.args):
                yield node, place, schema.arguments[place].name, value


def _schema(node: Node) -> Any:
    """Return the schema of a call of an operator; None for any other node."""
    return getattr(node.target, "_schema", None) if node.op == "call_function" else None


def _left_out(graph: Graph) -> Iterator[tuple[Node, int, Any]]:
    """Yield the arguments that calls leave out: a call, the place and the default."""
    for node in graph.nodes:
        if (schema := _schema(node)) is not None:
            for place, argument in enumerate(schema.arguments[len(node.args) :], len(node.args)):
                if not argument.kwarg_only and argument.name not in node.kwargs:
                    yield node, place, argument.default_value


def _give(node: Node, place: int, value: Any) -> None:
    """Give a call an argument, and the defaults of those before it that it leaves out."""
    before = [each.default_value for each in _schema(node).arguments[len(node.args) : place]]
    node.args = (*node.args[:place], *before, value, *node.args[place + 1 :])


def _replaced(graph: Graph, change: Callable[[Node, str, Any], Any]) -> None:
    """Replace arguments of operators; `change` takes the call, the argument's name and its value."""
    for node, place, name, value in list(_arguments(graph)):
        node.update_arg(place, change(node, name, value))


def _dims(graph: Graph, change: Callable[[int, int], int]) -> None:
    """Replace the dimensions that operators are given; `change` takes one and the rank."""

    def replaced(node: Node, name: str, value: Any) -> Any:
        given = node.all_input_nodes[0].meta.get("val") if node.all_input_nodes else None
        if name not in ("dim", "dims") or not isinstance(given, torch.Tensor) or not given.dim():
            return value
        rank = given.dim()
        if isinstance(value, list | tuple):
            return [change(each, rank) for each in value]
        return change(value, rank) if isinstance(value, int) else value

    _replaced(graph, replaced)


def from_the_end(graph: Graph) -> None:
    """Dimensions are counted from the end, or from the start where they were from the end."""
    _dims(graph, lambda dim, rank: dim - rank if dim >= 0 else dim + rank)


def next_dimension(graph: Graph) -> None:
    """Operators get the next dimension in place of the one that they have."""
    _dims(graph, lambda dim, rank: (dim + 1) % rank)


def flags(graph: Graph) -> None:
    """Every flag of an operator has the other value."""
    _replaced(graph, lambda node, name, value: not value if isinstance(value, bool) else value)


def uneven(graph: Graph) -> None:
    """Of two equal numbers for two dimensions, as of a stride or a padding, the second is one more."""

    def replaced(node: Node, name: str, value: Any) -> Any:
        pair = isinstance(value, list | tuple) and len(value) == 2 and value[0] == value[1]
        return [value[0], value[1] + 1] if pair and isinstance(value[0], int) and name != "dim" else value

    _replaced(graph, replaced)


def ends(graph: Graph) -> None:
    """Ends, starts and indices in a dimension are counted from the end."""

    def replaced(node: Node, name: str, value: Any) -> Any:
        named = {name: value for each, _, name, value in _arguments(graph) if each is node}
        dim, given = (
            named.get("dim", 0),
            node.all_input_nodes[0].meta.get("val") if node.all_input_nodes else None,
        )
        counts = name in ("start", "end", "index") and type(value) is int and type(dim) is int
        if not counts or not isinstance(given, torch.Tensor) or not given.dim():
            return value
        size = given.shape[dim]
        return value - size if (name == "index" or value) and 0 <= value < size else value

    _replaced(graph, replaced)


def numbers(graph: Graph, place: int, by: float) -> None:
    """Plain numbers of an operator, as bounds, exponents and operands, are so much larger; counted from the last.

    Of an operator that has none, one that it leaves out is so large.
    """
    of_call: dict[Node, list[tuple[int, float]]] = {}
    for node, at, _, value in _arguments(graph):
        if type(value) in (int, float) and _is_number(node, at, "tensor"):
            of_call.setdefault(node, []).append((at, value))
    for node, at, value in _left_out(graph):
        if node not in of_call and type(value) in (int, float, type(None)) and _is_number(node, at):
            of_call[node] = [(at, value or 0.0)]
    found = [node for node in graph.nodes if node in of_call]
    if place >= len(found):
        raise NotChangedError("it has too few operators with a number")
    node = found[-1 - place]
    for at, value in of_call[node]:
        _give(node, at, value + type(value)(by))


def _is_number(node: Node, place: int, *also: str) -> bool:
    """Return whether an operator takes a number, or something else for which one can stand."""
    of_type = str(_schema(node).arguments[place].type).lower()
    return any(each in of_type for each in ("number", "float", *also))


def defaults(graph: Graph) -> None:
    """Flags that operators leave out have the other value."""
    for node, place, value in list(_left_out(graph)):
        if isinstance(value, bool):
            _give(node, place, not value)


def many(graph: Graph) -> None:
    """Lists of tensors are six times as long."""
    for node in graph.nodes:
        for place, value in enumerate(node.args if node.op == "call_function" else ()):
            if isinstance(value, list | tuple) and value and all(isinstance(each, Node) for each in value):
                node.update_arg(place, [*value] * 6)


def longer_steps(graph: Graph) -> None:
    """Steps of slices are two, of operators with strides one more."""

    def replaced(node: Node, name: str, value: Any) -> Any:
        if name == "stride" and isinstance(value, list | tuple):
            return [each + 1 for each in value]
        return value

    _replaced(graph, replaced)
    for node in graph.nodes:
        if node.target is aten.slice.Tensor:
            node.args = (*node.args, *(0, 0, 2**63 - 1, 2)[len(node.args) - 1 :])[:5]


#: Rewrites that a search tries first.
FIRST = (
    *(
        "from-the-end",
        "read-twice-1",
        "again-0",
        "ends",
        "turned-inside-0",
        "next-dimension",
        "flags",
        "defaults",
        "uneven",
        "many",
    ),
    *("clamped-inside-0", "lowered-0", "longer-steps", "flattened-inside-0", "read-twice-0", "raised-1"),
)
#: Rewrites of one operator.
_OF_ONE: Mapping[str, Callable[..., None]] = {
    "read-twice": read_twice,
    "turned-inside": turned,
    "flattened-inside": flattened,
    "clamped-inside": clamped,
    "again": again,
    "lowered": functools.partial(numbers, by=-3),
    "raised": functools.partial(numbers, by=3),
}
#: By name; those of one operator with its place, counted from the last.
REWRITES: Mapping[str, Rewrite] = {
    **{
        f"{name}-{place}": functools.partial(rewrite, place=place)
        for name, rewrite in _OF_ONE.items()
        for place in PLACES
    },
    "from-the-end": from_the_end,
    "next-dimension": next_dimension,
    "flags": flags,
    "defaults": defaults,
    "uneven": uneven,
    "ends": ends,
    "many": many,
    "longer-steps": longer_steps,
}
