"""Patterns are exported for the kinds of convolutions that a graph has, and the graph comes out as with all of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from executorch_goldens_plugins.fast import fold_patterns


@pytest.mark.parametrize(
    ("module", "patterns"),
    [(nn.BatchNorm2d(2), 0), (nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)), 3)],
)
def test_patterns_of_convolutions_that_a_graph_has_are_exported(
    module: nn.Module, patterns: int, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchao.quantization.pt2e import qat_utils as room

    asked = []
    export = room._get_aten_graph_module_for_pattern

    def counting(*args: Any, **kwargs: Any) -> Any:
        asked.append(args)
        return export(*args, **kwargs)

    for helper in ("_fuse_conv_bn_qat_helper", "_fold_conv_bn_qat_helper"):
        monkeypatch.setattr(room, helper, getattr(room, helper))
    monkeypatch.setattr(room, "_get_aten_graph_module_for_pattern", counting)
    given = torch.export.export(module, (torch.ones(1, 2, 3, 3),)).module()
    given.unused = nn.Linear(2, 2)
    fused = [room._fuse_conv_bn_qat(copy.deepcopy(given))]
    assert len(asked) == 3 * 4
    asked.clear()
    fold_patterns.SHORTCUT.install(release)
    fused.append(room._fuse_conv_bn_qat(copy.deepcopy(given)))
    assert len(asked) == patterns
    one, other = ((str(each.graph), each.code, sorted(dict(each.named_modules()))) for each in fused)
    assert one == other
    assert "unused" not in one[2]
    assert (one[0] == str(given.graph)) is (not patterns)
