"""Composite operators are collected again only where one was registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from executorch_goldens_plugins.fast import composite_operators


@pytest.fixture
def collect(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[Any]]:
    """The release's function that collects composite operators; what replaces it is taken out again."""
    from torch._export import utils
    from torch.export import decomp_utils, exported_program

    upstream = utils._collect_all_valid_cia_ops
    for module in (utils, decomp_utils, exported_program):
        monkeypatch.setattr(module, "_collect_all_valid_cia_ops", upstream)
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", utils._materialize_cpp_cia_ops)
    return upstream


@pytest.mark.usefixtures("collect")
def test_operators_are_looked_up_again_only_where_one_was_registered(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._export import utils

    lookups = []
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", lambda: lookups.append("looked up"))
    composite_operators.SHORTCUT.install(release)
    known = utils._collect_all_valid_cia_ops()
    known.clear()
    assert utils._collect_all_valid_cia_ops()
    assert len(lookups) == 1
    library = torch.library.Library("test_shortcuts", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    utils._collect_all_valid_cia_ops()
    assert len(lookups) == 2


def test_operators_that_became_composite_are_collected(release: str, collect: Callable[[], set[Any]]) -> None:
    from torch._export import utils

    composite_operators.SHORTCUT.install(release)
    library = torch.library.Library("test_shortcuts", "FRAGMENT")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CPU")
    op = torch.ops.test_shortcuts.thrice.default
    assert op not in utils._collect_all_valid_cia_ops()
    op.py_impl(torch._C.DispatchKey.CompositeImplicitAutograd)(lambda x: x * 3)
    assert op in utils._collect_all_valid_cia_ops()
    library.define("thrice.more(Tensor x, int more) -> Tensor")
    library.impl("thrice.more", lambda x, more: x * more, "CompositeImplicitAutograd")
    assert torch.ops.test_shortcuts.thrice.more in utils._collect_all_valid_cia_ops() == collect()
    del op.py_kernels[torch._C.DispatchKey.CompositeImplicitAutograd]
    assert op not in utils._collect_all_valid_cia_ops()
