"""Look for no pattern of a convolution in a graph that has none of its kind.

Where a graph has a batch norm, torchao exports some hundred patterns, a convolution of each of four kinds and what
quantizes it, to fold one behind the other: 13 seconds of one core, where the rest of such an export takes 1 to 2. No
pattern matches a graph without an operator that the pattern has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import replaces
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = by_release(
    """
    torchao.quantization.pt2e.qat_utils:_fuse_conv_bn_qat_helper  bbed991592d56c25 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torchao.quantization.pt2e.qat_utils:_fold_conv_bn_qat_helper  a7f715d1f9f169b0 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.fx.subgraph_rewriter:replace_pattern_with_filters
        9a58713bc613f87b 1.1.0 1.2.0  123fb3b25dcb51b5 1.3.1  e200e9378f1e7936 1.4.1 1.5.1
    torch.fx.subgraph_rewriter:_replace_pattern
        2b0ed6f6a1279468 1.1.0  6c74637efbfb6ce2 1.2.0  bb1c8a5a74cef19d 1.3.1 1.4.1 1.5.1
    torch.fx.subgraph_rewriter:_replace_attributes  db69f64cef852b94 1.1.0 1.2.0  e29e0dd24a0d3623 1.3.1 1.4.1 1.5.1
    torch.fx.passes.utils.matcher_utils:SubgraphMatcher.match
        9be21ce91521ecc0 1.1.0 1.2.0 1.3.1  8134e695f588f7c8 1.4.1 1.5.1
    torch.fx.passes.utils.matcher_utils:SubgraphMatcher._nodes_are_equal
        b3cf5de7a34912b7 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    """
)


def _install(release: str) -> None:
    import torch
    from torchao.quantization.pt2e import qat_utils as room

    @contextlib.contextmanager
    def without_patterns() -> Iterator[None]:
        export, replace = room._get_aten_graph_module_for_pattern, room.replace_pattern_with_filters
        room._get_aten_graph_module_for_pattern = lambda *_, **__: None
        room.replace_pattern_with_filters = nothing_replaced
        try:
            yield
        finally:
            room._get_aten_graph_module_for_pattern, room.replace_pattern_with_filters = export, replace

    def nothing_replaced(graph_module: Any, *_: Any, **__: Any) -> list[Any]:
        graph_module.recompile()
        graph_module.delete_all_unused_submodules()
        return []

    def looked_for(upstream: Any, graph_module: Any, conv: Any, *args: Any, **kwargs: Any) -> Any:
        packet = getattr(torch.ops.aten, conv.__name__)
        targets = [node.target for node in graph_module.graph.nodes]
        has_one = any(getattr(target, "overloadpacket", None) is packet for target in targets)
        with contextlib.nullcontext() if has_one else without_patterns():
            return upstream(graph_module, conv, *args, **kwargs)

    for helper in ("_fuse_conv_bn_qat_helper", "_fold_conv_bn_qat_helper"):
        replaces(room, helper)(looked_for)


SHORTCUT = Shortcut("fold-patterns", None, "patterns of absent convolutions are not exported", FITS, _install)
