"""Results for fake tensors that the pass before had as well: which are taken again, and which are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass
from torch._subclasses.fake_tensor import FakeTensorMode

from executorch_goldens_plugins.fast import retraced_shapes

ADD, MUL = ops.edge.aten.add.Tensor, ops.edge.aten.mul.Tensor


class Leaving(ExportPass):  # type: ignore[misc]
    """Writes the graph again as it is."""


class Multiplying(ExportPass):  # type: ignore[misc]
    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any, updated: bool = False) -> Any:
        return super().call_operator(MUL if op is ADD else op, args, kwargs, meta)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + x) * (x + x) - torch.full((2, 3), 0.5)


@pytest.fixture
def computed(release: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the operators that are run on fake tensors, with the shortcut."""
    names: list[str] = []
    dispatch = FakeTensorMode.dispatch

    def noting(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(func.name())
        return dispatch(self, func, *args, **kwargs)

    for name in ("run", "call_function"):
        monkeypatch.setattr(torch.fx.Interpreter, name, getattr(torch.fx.Interpreter, name))
    monkeypatch.setattr(FakeTensorMode, "dispatch", noting)
    retraced_shapes.SHORTCUT.install(release)
    return names


@pytest.fixture
def written(computed: list[str]) -> torch.fx.GraphModule:
    """A graph that a pass has written."""
    program = to_edge(torch.export.export(Model(), (torch.ones(2, 3),), strict=True)).exported_program()
    made: torch.fx.GraphModule = Leaving()(program.graph_module).graph_module
    assert "aten::add.Tensor" in computed
    computed.clear()
    return made


def test_the_next_pass_takes_what_the_last_one_computed(
    written: torch.fx.GraphModule, computed: list[str]
) -> None:
    again = Leaving()(written).graph_module
    assert computed == []
    values = [node.meta["val"] for node in again.graph.nodes if node.target is ADD]
    assert len(values) == 2
    assert values[0] is not values[1]


def test_a_tensor_that_is_made_of_none_belongs_to_the_mode_of_its_graph(computed: list[str]) -> None:
    programs = [to_edge(torch.export.export(Model(), (torch.ones(2, 3),), strict=True)) for _ in range(2)]
    values = [
        {
            node.name: node.meta["val"]
            for node in Leaving()(each).graph_module.graph.nodes
            if "val" in node.meta
        }
        for each in (program.exported_program().graph_module for program in programs)
    ]
    modes = [{value.fake_mode for name, value in each.items() if name != "output"} for each in values]
    assert [len(each) for each in modes] == [1, 1]
    assert modes[0] != modes[1]
    assert "aten::full" in computed


def test_what_was_not_computed_yet_is_computed(written: torch.fx.GraphModule, computed: list[str]) -> None:
    Multiplying()(written)
    # The graph had one product of such tensors.
    assert computed.count("aten::mul.Tensor") == 2


def test_a_result_for_a_tensor_with_the_same_properties_is_taken(
    written: torch.fx.GraphModule, computed: list[str]
) -> None:
    given = next(iter(written.graph.nodes))
    given.meta["val"] = torch.empty_like(given.meta["val"])
    computed.clear()
    again = Leaving()(written).graph_module
    assert computed == []
    values = [node.meta["val"] for node in again.graph.nodes if node.target is ADD]
    assert values[0] is not values[1]


@pytest.mark.parametrize(
    "other",
    [
        lambda value: torch.empty_like(value, dtype=torch.int32),
        lambda value: torch.empty_strided(value.shape, (1, 2)),
        lambda value: torch.empty(3, 3)[1:],
        lambda value: torch.empty_like(value, requires_grad=True),
    ],
    ids=["dtype", "strides", "storage", "gradient"],
)
def test_a_result_for_a_tensor_with_another_property_is_computed(
    other: Callable[[torch.Tensor], torch.Tensor], written: torch.fx.GraphModule, computed: list[str]
) -> None:
    given = next(iter(written.graph.nodes))
    with given.meta["val"].fake_mode:
        given.meta["val"] = other(given.meta["val"])
    computed.clear()
    Leaving()(written)
    assert computed.count("aten::add.Tensor") == 2


def test_where_a_size_is_symbolic_a_tensor_is_the_same_when_it_is_the_same_object(
    computed: list[str],
) -> None:
    class Scaling(torch.nn.Module):
        def forward(self, fixed: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return fixed + fixed, x * 2.0

    sizes = (None, {0: torch.export.Dim("rows", min=2, max=9)})
    inputs = torch.ones(2, 3), torch.ones(4, 3)
    exported = torch.export.export(Scaling(), inputs, dynamic_shapes=sizes, strict=True)
    made = Leaving()(to_edge(exported).exported_program().graph_module).graph_module
    computed.clear()
    Leaving()(made)
    assert "aten::add.Tensor" not in computed
    given = next(node for node in made.graph.nodes if node.name == "fixed")
    with given.meta["val"].fake_mode:
        given.meta["val"] = torch.empty_like(given.meta["val"])
    Leaving()(made)
    assert computed.count("aten::add.Tensor") == 1


def test_a_nested_graph_shares_no_result_with_the_graph_around_it(computed: list[str]) -> None:
    class Conditional(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + x, lambda x: (x + x) * 2, (x,)) * (x + x)

    program = to_edge(torch.export.export(Conditional(), (torch.ones(2, 3),), strict=True))
    made = Leaving()(program.exported_program().graph_module).graph_module
    graphs = [module.graph for module in made.modules() if isinstance(module, torch.fx.GraphModule)]
    sums = [node.meta["val"] for graph in graphs for node in graph.nodes if node.target is ADD]
    assert len(sums) == 3
    assert len({id(value) for value in sums}) == 3
