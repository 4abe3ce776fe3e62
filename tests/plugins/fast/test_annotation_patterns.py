"""A pattern is exported once, and each matcher gets its own copy."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from executorch_goldens_plugins.fast import annotation_patterns
from tests.plugins.fast.graphs import double, traced


def test_a_pattern_is_exported_once_and_each_matcher_gets_its_own(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer_utils as room

    asked = []

    def upstream(
        pattern: Any, example_inputs: tuple[Any, ...], is_cuda: bool = False
    ) -> torch.fx.GraphModule:
        asked.append(pattern)
        return traced()

    def pattern_of(function: Any) -> Any:
        def pattern(x: torch.Tensor) -> torch.Tensor:
            return function(x)  # type: ignore[no-any-return]

        return room.WrapperModule(pattern)

    monkeypatch.setattr(room, "_get_aten_graph_module_for_pattern", upstream)
    annotation_patterns.SHORTCUT.install(release)
    get, x = room._get_aten_graph_module_for_pattern, torch.ones(2)
    first = get(pattern_of(torch.relu), (x,), False)
    double(first)
    second = get(pattern_of(torch.relu), (x,), False)
    assert len(asked) == 1
    assert str(second.graph) == str(traced().graph) != str(first.graph)
    get(pattern_of(torch.abs), (x,), False)
    get(pattern_of(torch.relu), (torch.ones(3),), False)
    assert len(asked) == 3
