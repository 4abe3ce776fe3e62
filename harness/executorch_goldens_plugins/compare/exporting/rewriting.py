"""Rewrites of a model's graph: what wrapping the model cannot change, such as a second user of a value inside.

The graph is the one that ``torch.export`` makes, of ATen's operators, before anything is lowered.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.graph import CodeGen

from executorch_goldens.exporting.data import Example

aten = torch.ops.aten
#: Changes a graph in place.
Rewrite = Callable[[Graph], None]
#: A call that no backend here takes, and that the portable kernels have.
OUTSIDE = (aten.fmod.Scalar, 2.0)
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


def _values(graph: Graph) -> list[Node]:
    """Return the calls of operators whose result is one tensor of floats, the last first."""
    calls = (node for node in reversed(graph.nodes) if node.op == "call_function")
    return [node for node in calls if _is_float(node.meta.get("val"))]


def _is_float(made: object) -> bool:
    return isinstance(made, torch.Tensor) and made.is_floating_point()


def at(graph: Graph, rewrite: Callable[[Node], None], place: int) -> None:
    """Rewrite at one value, counted from the last."""
    found = _values(graph)
    if place >= len(found):
        raise NotChangedError("it has too few operators")
    rewrite(found[place])


def everywhere(graph: Graph, rewrite: Callable[[Node], None]) -> None:
    """Rewrite at every value where that can be done."""
    for node in _values(graph):
        with contextlib.suppress(NotChangedError):
            rewrite(node)


def _behind(node: Node, *calls: tuple[Any, ...]) -> None:
    """Let the users of a value read the last of some calls after it, each of an operator and further arguments."""
    users, last = list(node.users), node
    for operator, *arguments in calls:
        with node.graph.inserting_after(last):
            last = node.graph.call_function(operator, (last, *arguments))
    for user in users:
        user.replace_input_with(node, last)


def read_twice(node: Node, call: tuple[Any, ...] = (aten.relu.default,)) -> None:
    """A value has a second user, whose result is a further output; `call` has its operator and further arguments."""
    output = next(iter(reversed(node.graph.nodes)))
    operator, *arguments = call
    with node.graph.inserting_before(output):
        further = node.graph.call_function(operator, (node, *arguments))
    (outputs,) = output.args
    assert isinstance(outputs, list | tuple)
    output.args = ((*outputs, further),)


def turned(node: Node) -> None:
    """A value is permuted, and permuted back after an operator."""
    rank = node.meta["val"].dim()
    if rank < 2:
        raise NotChangedError("it has too small a rank")
    there, back = [*range(1, rank), 0], [rank - 1, *range(rank - 1)]
    _behind(node, (aten.permute.default, there), (aten.relu.default,), (aten.permute.default, back))


def flattened(node: Node) -> None:
    """A value loses its shape, and gets it back after an operator."""
    shape = list(node.meta["val"].shape)
    _behind(node, (aten.reshape.default, [-1]), (aten.relu.default,), (aten.reshape.default, shape))


def reshaped(node: Node) -> None:
    """A value gets another shape of its rank, and its own back after an operator along its last dimension."""
    shape = list(node.meta["val"].shape)
    other = _other_shape(shape)
    _behind(node, (aten.reshape.default, other), (aten.softmax.int, -1), (aten.reshape.default, shape))


def _other_shape(shape: Sequence[int]) -> list[int]:
    """Return another shape of as many elements and dimensions, whose last dimension has several.

    >>> _other_shape([1, 3, 4]), _other_shape([4, 4]), _other_shape([6, 1])
    ([1, 4, 3], [2, 8], [3, 2])
    """
    *first, last = shape or [0]
    for place in reversed(range(len(first))):
        if first[place] > 1 and first[place] != last:
            if last > 1:
                return [*first[:place], last, *first[place + 1 :], first[place]]
            if first[place] % 2 == 0:
                return [*first[:place], first[place] // 2, *first[place + 1 :], 2]
    if first and first[0] % 2 == 0:
        return [first[0] // 2, *first[1:], last * 2]
    raise NotChangedError("it has no other shape of its rank")


def parted(node: Node) -> None:
    """A value goes through an operator that stays outside delegates."""
    _behind(node, OUTSIDE)


def clamped(node: Node) -> None:
    """A value goes through an activation with bounds."""
    _behind(node, (aten.hardtanh.default, -0.5, 0.75))


def again(node: Node) -> None:
    """An operator is applied to its own result, in place of its first operand."""
    if not node.all_input_nodes:
        raise NotChangedError("it has no operand")
    first = node.all_input_nodes[0]
    users = list(node.users)
    with node.graph.inserting_after(node):
        second = node.graph.node_copy(node)
    second.replace_input_with(first, node)
    for user in users:
        user.replace_input_with(node, second)


#: Rewrites that a search tries first.
FIRST = (
    *("read-twice-1", "again-0", "turned-inside-0", "clamped-inside-0", "flattened-inside-all"),
    *("reshaped-inside-all", "read-twice-all", "read-outside-all", "parted-1"),
)
#: Rewrites at one value.
_OF_VALUES: Mapping[str, Callable[[Node], None]] = {
    "read-twice": read_twice,
    "read-outside": functools.partial(read_twice, call=OUTSIDE),
    "parted": parted,
    "turned-inside": turned,
    "flattened-inside": flattened,
    "reshaped-inside": reshaped,
    "clamped-inside": clamped,
    "again": again,
}
#: By name; those of one value with its place, counted from the last.
REWRITES: Mapping[str, Rewrite] = {
    **{
        f"{name}-{place}": functools.partial(at, rewrite=rewrite, place=place)
        for name, rewrite in _OF_VALUES.items()
        for place in PLACES
    },
    **{f"{name}-all": functools.partial(everywhere, rewrite=rewrite) for name, rewrite in _OF_VALUES.items()},
}
