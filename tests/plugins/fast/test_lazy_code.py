"""Code of graph modules is generated once someone calls or reads it, as the graph was."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from executorch_goldens_plugins.fast import lazy_code
from tests.plugins.fast.graphs import double, traced


@pytest.fixture
def lazily(release: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Graph modules are compiled when someone calls them; generated code is listed."""
    from torch.export import _trace
    from torch.fx import Graph, GraphModule

    for owner, name in (
        (GraphModule, "recompile"),
        (GraphModule, "__reduce__"),
        (_trace, "_export_to_torch_ir"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    generated: list[str] = []
    upstream = Graph.python_code

    def python_code(self: Graph, *args: Any, **kwargs: Any) -> Any:
        generated.append(str(self))
        return upstream(self, *args, **kwargs)

    monkeypatch.setattr(Graph, "python_code", python_code)
    lazy_code.SHORTCUT.install(release)
    yield generated
    for name in lazy_code.OF_CODE:
        delattr(GraphModule, name)


def test_code_is_generated_once_when_it_is_called_or_read(lazily: list[str]) -> None:
    x = torch.tensor([1.0, -1.0])
    for use in (lambda module: module(x), lambda module: module.code, lambda module: type(module).forward):
        lazily.clear()
        module = traced()
        module.recompile()
        copied = copy.deepcopy(module)
        assert lazily == []
        use(module)
        assert module(x).tolist() == [2.0, 1.0]
        assert len(lazily) == 1
        assert copied(x).tolist() == [2.0, 1.0]


def test_lazy_code_is_what_the_release_generates(release: str, lazily: list[str]) -> None:
    module = traced()
    code, lines, globals_ = module.code, module._lineno_map, module.recompile().globals
    generated = module.graph.python_code("self")
    assert (code, lines, globals_) == (generated.src, generated._lineno_map, generated.globals)
    assert code in str(module)


def test_an_edit_that_was_not_compiled_is_not_run(lazily: list[str]) -> None:
    x = torch.tensor([1.0, -1.0])
    module = traced()
    code = traced().code
    double(module)
    assert module(x).tolist() == [2.0, 1.0]
    assert module.code == code
    module.recompile()
    assert module(x).tolist() == [4.0, 2.0]
    erased = traced()
    *_, last, output = erased.graph.nodes
    output.args = (last.args[0],)
    erased.graph.erase_node(last)
    assert erased(x).tolist() == [2.0, 1.0]


def test_a_module_that_was_not_compiled_is_pickled_and_exported(lazily: list[str]) -> None:
    x = torch.tensor([1.0, -1.0])
    assert pickle.load(io.BytesIO(pickle.dumps(traced())))(x).tolist() == [2.0, 1.0]
    program = torch.export.export(traced(), (x,), strict=True)
    assert program.module()(x).tolist() == [2.0, 1.0]
