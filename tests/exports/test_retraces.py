"""Results for fake tensors that the pass before had as well: which are taken again, and which are computed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass
from torch._subclasses.fake_tensor import FakeTensorMode

from executorch_goldens.patches.shortcuts import SHORTCUTS

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
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the operators that are run on fake tensors, with the shortcut."""
    names: list[str] = []
    dispatch = FakeTensorMode.dispatch

    def noting(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(func.name())
        return dispatch(self, func, *args, **kwargs)

    for name in ("run", "call_function"):
        monkeypatch.setattr(torch.fx.Interpreter, name, getattr(torch.fx.Interpreter, name))
    monkeypatch.setattr(FakeTensorMode, "dispatch", noting)
    SHORTCUTS["retraced-shapes"].install()
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
    assert computed.count("aten::mul.Tensor") == 3


def test_a_result_for_a_tensor_that_is_only_equal_is_computed(
    written: torch.fx.GraphModule, computed: list[str]
) -> None:
    given = next(iter(written.graph.nodes))
    given.meta["val"] = torch.empty_like(given.meta["val"])
    computed.clear()
    Leaving()(written)
    assert computed.count("aten::add.Tensor") == 2
