"""The digest of values follows all that they lead to, and no address."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from executorch_goldens_plugins.compare.exporting.states import UnreadableError, digest


@dataclass
class Spec:
    dtype: torch.dtype
    more: Any = None


class Slotted:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Bag(list[int]):
    kind: str


def bag(kind: str) -> Bag:
    found = Bag((1, 2))
    found.kind = kind
    return found


def shared(*, one: bool) -> list[list[int]]:
    first: list[int] = []
    return [first, first if one else []]


def graph(scale: float = 2.0, **changed: Any) -> torch.fx.GraphModule:
    """Return a graph whose multiplication has further metadata, and a constant."""
    root = torch.nn.Module()
    root.register_buffer("weight", torch.full((2,), scale))
    made = torch.fx.Graph()
    x = made.placeholder("x")
    product = made.call_function(torch.ops.aten.mul.Tensor, (x, made.get_attr("weight")))
    with FakeTensorMode() as mode:
        product.meta = {"val": mode.from_tensor(torch.zeros(changed.pop("size", 2))), **changed}
    made.output(product)
    return torch.fx.GraphModule(root, made)


def node(**changed: Any) -> torch.fx.Node:
    return next(each for each in graph(**changed).graph.nodes if each.op == "call_function")


def adding(number: int) -> Callable[[int], int]:
    return lambda value: value + number


def marked(number: int) -> Callable[[int], int]:
    found = adding(1)
    vars(found)["number"] = number
    return found


def added(number: int) -> Any:
    class Adding(Spec):
        def add(self, value: int) -> int:
            return value + number

    return Adding(torch.int8)


def refusing(dtype: torch.dtype) -> Any:
    """Return a support check as partitioners chain them: what it holds is in a method of a class made for it."""
    from torch.fx.passes.operator_support import OpSupports, chain

    return chain(OpSupports.decline_if_input_dtype(dtype))


@pytest.mark.parametrize(
    "made",
    [
        lambda other: 0.0 if other else -0.0,
        lambda other: 1 if other else True,
        lambda other: {"b": 1, "a": 2} if other else {"a": 2, "b": 1},
        lambda other: OrderedDict(a=1 + other),
        lambda other: {f"word {number}" for number in range(9 + other)},
        lambda other: Spec(torch.int8, Slotted("one" if other else "two")),
        lambda other: bag("one" if other else "two"),
        lambda other: shared(one=other),
        lambda other: marked(1 + other),
        lambda other: added(1 + other),
        lambda other: type(added(1 + other)),
        lambda other: refusing(torch.int8 if other else torch.bool),
        lambda other: functools.partial(int, base=2 + other),
        lambda other: adding(other),
        lambda other: np.arange(3 + other),
        lambda other: torch.tensor([1.0, 2.0 + other]),
        lambda other: torch.zeros(2, dtype=torch.int8 if other else torch.uint8),
        lambda other: torch.ones(2, 2).t() if other else torch.ones(2, 2),
        # All of a graph follows from a node, but for where it comes from.
        lambda other: node(scale=2.0 + other),
        lambda other: node(size=2 + other),
        lambda other: node(tag="one" if other else "two"),
        lambda other: graph(tag=Spec(torch.int8 if other else torch.uint8)),
    ],
)
def test_digests_differ_where_values_do_and_nowhere_else(made: Callable[[bool], Any]) -> None:
    kept = made(False)
    assert digest(kept) == digest(made(False)) == digest(kept)
    assert digest(kept) != digest(made(True))


def test_where_a_node_comes_from_is_left_out() -> None:
    assert digest(node(stack_trace="line 1")) == digest(node(stack_trace="line 2"))


def test_a_renamed_node_and_the_names_of_the_next_ones_count() -> None:
    plain, renamed, named = graph(), graph(), graph()
    next(iter(renamed.graph.nodes)).name = "y"
    made = named.graph.call_function(torch.ops.aten.relu.default, (next(iter(named.graph.nodes)),))
    named.graph.erase_node(made)
    assert len({digest(each) for each in (plain, renamed, named)}) == 3


def counting() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    "value",
    [
        counting(),
        iter([1]),
        threading.Lock(),
        ValueError("no"),
        {Spec(torch.int8)} if Spec.__hash__ else {Slotted("in a set")},
        torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8),
        np.array([object()]),
        functools.reduce(lambda inner, _: [inner], range(200), []),
        [[] for _ in range(500_000)],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_read_has_no_digest(value: Any) -> None:
    with pytest.raises(UnreadableError):
        digest(value)
