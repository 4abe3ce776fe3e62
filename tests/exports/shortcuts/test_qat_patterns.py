"""A graph without patterns of training is left as the release leaves it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from executorch_goldens.patches.shortcuts import SHORTCUTS


def with_batch_norm(*operators: Any) -> torch.fx.GraphModule:
    """Return a graph of a batch norm and then `operators`, each of one argument, with a submodule that nothing uses."""
    graph = torch.fx.Graph()
    x, *states = (graph.placeholder(name) for name in ("x", "mean", "variance"))
    made = graph.call_function(
        torch.ops.aten.batch_norm.default, (x, None, None, *states, False, 0.1, 1e-5, True)
    )
    for operator in operators:
        made = graph.call_function(operator, (made,))
    graph.output(made)
    module = torch.fx.GraphModule({}, graph)
    module.add_submodule("unused", torch.nn.ReLU())
    return module


@pytest.mark.slow
def test_a_graph_without_training_patterns_is_left_as_the_release_leaves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torchao.quantization.pt2e import qat_utils

    upstream = qat_utils._fold_conv_bn_qat_helper
    asked: list[Any] = []

    def counted(m: Any, conv_fn: Any, example_inputs: Any, is_cuda: bool) -> Any:
        asked.append(conv_fn)
        return upstream(m, conv_fn, example_inputs, is_cuda)

    def noted(m: Any, conv_fn: Any, example_inputs: Any, is_cuda: bool) -> Any:
        asked.append(conv_fn)
        return m

    monkeypatch.setattr(qat_utils, "_fold_conv_bn_qat_helper", counted)
    expected = qat_utils._fold_conv_bn_qat(with_batch_norm(torch.ops.aten.relu.default))
    assert len(asked) == 4
    asked.clear()
    SHORTCUTS["qat-patterns"].install()
    made = qat_utils._fold_conv_bn_qat(with_batch_norm(torch.ops.aten.relu.default))
    assert asked == []
    assert str(made.graph) == str(expected.graph)
    assert made.code == expected.code
    assert (
        [name for name, _ in made.named_modules()] == [name for name, _ in expected.named_modules()] == [""]
    )
    # Where there may be one, the release looks for it.
    both = (torch.ops.aten.sqrt.default, torch.ops.aten.conv2d.default)
    monkeypatch.setattr(qat_utils, "_fold_conv_bn_qat_helper", noted)
    SHORTCUTS["qat-patterns"].install()
    qat_utils._fold_conv_bn_qat(with_batch_norm(*both))
    assert asked == [torch.nn.functional.conv2d]
