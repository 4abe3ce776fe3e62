"""The parts of patches that reason about graphs, on graphs made by hand."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.fx.passes.infra.partitioner import Partition  # noqa: E402

from executorch_goldens.patches.list_qparams import by_input  # noqa: E402
from executorch_goldens.patches.output_aliases import circle, downstream  # noqa: E402


def node(*args: Any, graph: Any = None, **kwargs: Any) -> Any:
    return (graph or args[0].graph).call_function(torch.cat, args, kwargs)


@pytest.fixture
def graph() -> Any:
    return torch.fx.Graph()


def test_every_tensor_of_a_list_has_the_parameters_of_its_argument(graph: Any) -> None:
    a, b, c = (graph.placeholder(name) for name in "abc")
    assert by_input(node([a, b, c], 1, graph=graph), {0: "q"}) == {0: "q", 1: "q", 2: "q"}


def test_parameters_go_through_nested_lists_and_tuples(graph: Any) -> None:
    a, b, c = (graph.placeholder(name) for name in "abc")
    assert by_input(node([(a, [b])], c, graph=graph), {0: "q", 1: "r"}) == {0: "q", 1: "q", 2: "r"}


def test_a_tensor_that_stands_twice_in_one_argument_is_one_input(graph: Any) -> None:
    a, b = (graph.placeholder(name) for name in "ab")
    assert by_input(node([b, a, b], graph=graph), {0: "q"}) == {0: "q", 1: "q"}


def test_arguments_without_parameters_and_keywords_have_none(graph: Any) -> None:
    a, b, c = (graph.placeholder(name) for name in "abc")
    assert by_input(node(a, b, graph=graph, out=c), {1: "r"}) == {1: "r"}


def test_one_tensor_with_two_parameters_cannot_be_said(graph: Any) -> None:
    a = graph.placeholder("a")
    assert by_input(node(a, a, graph=graph), {0: "q", 1: "r"}) is None
    assert by_input(node(a, graph=graph, out=a), {0: "q"}) is None


def test_two_partitions_that_wait_for_each_other_are_a_circle(graph: Any) -> None:
    x = graph.placeholder("x")
    a1, b1 = node(x), node(x)
    outside_a, outside_b = node(a1), node(b1)
    a2, b2 = node(outside_b), node(outside_a)
    other = node(a2)
    partitions = [Partition(0, [a1, a2]), Partition(1, [b1, b2]), Partition(2, [other])]
    assert circle(partitions, graph) == {a1, a2, b1, b2}
    assert downstream({outside_a, outside_b}, graph) == {a2, b2, other}
    assert circle([Partition(0, [a1]), Partition(1, [b1])], graph) == set()


def test_a_partition_around_a_node_left_out_is_a_circle(graph: Any) -> None:
    x = graph.placeholder("x")
    first = node(x)
    left_out = node(first)
    last = node(left_out)
    assert circle([Partition(0, [first, last])], graph) == {first, last}
    assert circle([Partition(0, [first]), Partition(1, [last])], graph) == set()
