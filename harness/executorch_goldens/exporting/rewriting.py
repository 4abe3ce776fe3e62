"""Rewrites of a model's graph: what wrapping the model cannot change, such as a second user of a value inside.

The graph is the one that ``torch.export`` makes, of ATen's operators, before anything is lowered.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
#: Dimensions of an image, with those of its batch and channels.
RANK = 4
#: Operators inside a model that rewrites of one operator are made for: counted from the last.
PLACES = range(3)
#: Whole numbers of operators that are neither sizes nor dimensions.
OFFSETS = ("storage_offset", "offset", "diagonal")
#: Arguments that have one of several words.
MODES: Mapping[str, tuple[str, ...]] = {
    "rounding_mode": ("trunc", "floor"),
    "approximate": ("none", "tanh"),
    "padding": ("valid", "same"),
}


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


@dataclass(frozen=True)
class CallArgument:
    """An argument of a call of an operator, given or left out.

    Attributes
    ----------
    place
        Its place in the operator's schema.
    """

    node: Node
    place: int

    @property
    def schema(self) -> torch.Argument:
        return _arguments_of(self.node)[self.place]

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def is_given(self) -> bool:
        return self.place < len(self.node.args) or self.name in self.node.kwargs

    @property
    def value(self) -> Any:
        """What the operator gets: where it is left out, the default."""
        if self.place < len(self.node.args):
            return self.node.args[self.place]
        return self.node.kwargs.get(self.name, self.schema.default_value)

    def is_of(self, *types: str) -> bool:
        """Return whether the name of its type has one of some words."""
        return any(each in str(self.schema.type).lower() for each in types)

    def give(self, value: Any) -> None:
        """Let the call have another value, and the defaults of those before it that it leaves out."""
        if self.schema.kwarg_only or self.name in self.node.kwargs:
            self.node.update_kwarg(self.name, value)
            return
        args = list(self.node.args)
        args += [each.default_value for each in _arguments_of(self.node)[len(args) : self.place + 1]]
        args[self.place] = value
        self.node.args = tuple(args)


def _arguments_of(node: Node) -> Sequence[torch.Argument]:
    """Return the arguments of an operator's schema; none for a node that calls no operator."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    return schema.arguments if schema is not None else ()


def _arguments(graph: Graph) -> Iterator[CallArgument]:
    """Yield the arguments that calls of operators have, or leave out."""
    for node in list(graph.nodes):
        yield from _arguments_in(node)


def _arguments_in(node: Node) -> Iterator[CallArgument]:
    yield from (CallArgument(node, place) for place in range(len(_arguments_of(node))))


def _dims(graph: Graph, change: Callable[[int, int], int]) -> None:
    """Replace the dimensions that operators are given; `change` takes one and the rank."""
    for each, given in _along(graph):
        _move(each, given.dim(), change)


def _along(graph: Graph) -> Iterator[tuple[CallArgument, torch.Tensor]]:
    """Yield the dimensions that operators are given, with the value of the first operand, which has some."""
    for each in _arguments(graph):
        given = _first_tensor(each.node)
        if each.name in ("dim", "dims") and each.is_given and given is not None and given.dim():
            yield each, given


def _move(each: CallArgument, rank: int, change: Callable[[int, int], int]) -> None:
    """Replace a dimension, or each of several; see `_dims`."""
    if isinstance(each.value, list | tuple):
        each.give([change(dim, rank) for dim in each.value])
    elif isinstance(each.value, int):
        each.give(change(each.value, rank))


def _first_tensor(node: Node) -> torch.Tensor | None:
    """Return the value of a call's first operand; None where that is no tensor."""
    made = node.all_input_nodes[0].meta.get("val") if node.all_input_nodes else None
    return made if isinstance(made, torch.Tensor) else None


def from_the_end(graph: Graph) -> None:
    """Dimensions are counted from the end, or from the start where they were from the end."""
    _dims(graph, lambda dim, rank: dim - rank if dim >= 0 else dim + rank)


def next_dimension(graph: Graph) -> None:
    """Operators get the next dimension in place of the one that they have, and indices are of the next ones."""
    _dims(graph, lambda dim, rank: (dim + 1) % rank)
    for each in _arguments(graph):
        given = _first_tensor(each.node)
        if each.is_of("list[optional[tensor]]") and given is not None and len(each.value) < given.dim():
            each.give([None, *each.value])


def former_dimension(graph: Graph) -> None:
    """Operators get the dimension before the one that they have."""
    _dims(graph, lambda dim, rank: (dim - 1) % rank)


def as_images(graph: Graph) -> None:
    """Operators along dimensions work on four of them: what has fewer gets some of size one before its own."""
    # The last first: what is inserted says no shape.
    for each, given in reversed([*_along(graph)]):
        node, made, missing = each.node, each.node.meta["val"], RANK - given.dim()
        is_of_one = isinstance(node.args[0], Node) and isinstance(made, torch.Tensor)
        if missing <= 0 or not is_of_one or not isinstance(each.value, int | list | tuple):
            continue
        _move(each, given.dim(), lambda dim, rank: dim + RANK - rank if dim >= 0 else dim)
        with graph.inserting_before(node):
            shape = [*[1] * missing, *given.shape]
            operand = graph.call_function(aten.reshape.default, (node.args[0], shape))
        node.args = (operand, *node.args[1:])
        _behind(node, (aten.reshape.default, list(made.shape)))


def flags(graph: Graph, given: bool) -> None:
    """Flags and modes of operators, those that are given or those that are left out, have another value."""
    for each in _arguments(graph):
        if each.is_given is given:
            modes = MODES.get(each.name, ())
            if isinstance(each.value, bool):
                each.give(not each.value)
            elif each.value in modes:
                each.give(modes[modes.index(each.value) - 1])


def bare(graph: Graph) -> None:
    """Operators lack the last tensor that they may do without, as a bias."""
    for node in graph.nodes:
        given = (each for each in _arguments_in(node) if isinstance(each.value, Node))
        optional = [each for each in given if each.is_of("optional[tensor]")]
        if optional and optional[-1].place == len(node.args) - 1:
            node.args = node.args[:-1]
        elif optional:
            optional[-1].give(None)


def uneven(graph: Graph) -> None:
    """Of two equal numbers for two dimensions, as of a stride or a padding, the second is one more."""
    for each in _arguments(graph):
        value = each.value
        pair = isinstance(value, list | tuple) and len(value) == 2 and value[0] == value[1]
        if each.is_given and pair and isinstance(value[0], int) and each.name != "dim":
            each.give([value[0], value[1] + 1])


def ends(graph: Graph) -> None:
    """Ends, starts and indices in a dimension are counted from the end."""
    for each in _arguments(graph):
        value, given = each.value, _first_tensor(each.node)
        if each.name not in ("start", "end", "index") or not each.is_given or type(value) is not int:
            continue
        dim = next((other.value for other in _arguments_in(each.node) if other.name == "dim"), 0)
        if given is not None and given.dim() and type(dim) is int:
            size = given.shape[dim]
            if (each.name == "index" or value) and 0 <= value < size:
                each.give(value - size)


def numbers(graph: Graph, place: int, by: float) -> None:
    """Plain numbers of an operator, as bounds, exponents and operands, are so much larger; counted from the last.

    Of an operator that has none, those that it leaves out are changed, the second by twice as much.
    """
    of_calls = []
    for node in graph.nodes:
        every = [each for each in _arguments_in(node) if _is_number(each)]
        if every:
            of_calls.append([each for each in every if each.is_given] or every)
    if place >= len(of_calls):
        raise NotChangedError("it has too few operators with a number")
    for times, each in enumerate(of_calls[-1 - place], 1):
        none = 0 if each.name in OFFSETS else 0.0
        value = each.value if each.value is not None else none
        each.give(value + type(value)(by if each.is_given else by * times))


def _is_number(argument: CallArgument) -> bool:
    """Return whether an argument is a number, or where it is left out, can be one."""
    if argument.name in OFFSETS:
        return True
    if argument.is_given:
        return type(argument.value) in (int, float) and argument.is_of("number", "float", "tensor")
    return type(argument.value) in (int, float, type(None)) and argument.is_of("number", "float")


def many(graph: Graph) -> None:
    """Lists of tensors are six times as long."""
    for node in graph.nodes:
        for place, value in enumerate(node.args if node.op == "call_function" else ()):
            if isinstance(value, list | tuple) and value and all(isinstance(each, Node) for each in value):
                node.update_arg(place, [*value] * 6)


def longer_steps(graph: Graph) -> None:
    """Steps of slices are two, of operators with strides one more."""
    for each in _arguments(graph):
        if each.name == "stride" and each.is_given and isinstance(each.value, list | tuple):
            each.give([step + 1 for step in each.value])
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
        "as-images",
        "flags",
        "defaults",
    ),
    *("bare", "uneven", "many", "clamped-inside-0", "lowered-0", "longer-steps", "flattened-inside-all"),
    *("reshaped-inside-all", "read-twice-all", "raised-1", "read-outside-all", "parted-1"),
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
#: Rewrites of the numbers of one operator: one becomes minus one.
_OF_NUMBERS: Mapping[str, Callable[..., None]] = {
    "lowered": functools.partial(numbers, by=-2),
    "raised": functools.partial(numbers, by=3),
}
#: By name; those of one value or operator with its place, counted from the last.
REWRITES: Mapping[str, Rewrite] = {
    **{
        f"{name}-{place}": functools.partial(at, rewrite=rewrite, place=place)
        for name, rewrite in _OF_VALUES.items()
        for place in PLACES
    },
    **{f"{name}-all": functools.partial(everywhere, rewrite=rewrite) for name, rewrite in _OF_VALUES.items()},
    **{
        f"{name}-{place}": functools.partial(rewrite, place=place)
        for name, rewrite in _OF_NUMBERS.items()
        for place in PLACES
    },
    "from-the-end": from_the_end,
    "next-dimension": next_dimension,
    "former-dimension": former_dimension,
    "as-images": as_images,
    "flags": functools.partial(flags, given=True),
    "defaults": functools.partial(flags, given=False),
    "bare": bare,
    "uneven": uneven,
    "ends": ends,
    "many": many,
    "longer-steps": longer_steps,
}
