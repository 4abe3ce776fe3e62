"""Look for the patterns of quantization-aware training only in graphs that have an operator of theirs.

``convert_pt2e`` looks in every graph with a batch norm for what ``prepare_qat_pt2e`` makes of a convolution and a
batch norm. Each time it exports 96 patterns with ``torch.export``: three quarters of the export of an autoencoder.
Each pattern has a square root, of the running variance, and one kind of convolution. In a graph that lacks either
nothing matches, and what then happens to the graph is done here.
"""

from __future__ import annotations

import functools
from typing import Any

from executorch_goldens.patches.shortcuts.shortcut import Shortcut, by_release

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = {
    "torchao.quantization.pt2e.qat_utils:_fold_conv_bn_qat_helper": {
        "a7f715d1f9f169b0b8d83287cccff4711ce29d5a0ae0adbb0467a23805638d31": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torchao.quantization.pt2e.qat_utils:_get_quantized_qat_conv_bn_pattern": {
        "90c8c2242a44417aa8de955d1de9d50e929182934cfa1631200950a2803e3bf0": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.fx.subgraph_rewriter:_replace_pattern": {
        "2b0ed6f6a12794684f032cd81aadb43b7d6eac415447f82dd12488a0fd8e473f": "1.1.0",
        "6c74637efbfb6ce2340d15faed1dcdc7d9428985e8b9100677da4fe1388bc45b": "1.2.0",
        "bb1c8a5a74cef19ddbb99c94d611c5ba526ddbb56af67a398d3b7c67681b7dd1": "1.3.1 1.4.1 1.5.1",
    },
    "torch.fx.subgraph_rewriter:_replace_attributes": {
        "db69f64cef852b94780f2a6cf272fc9410a2b8dee6c560f2ee5cd797a0da7ed2": "1.1.0 1.2.0",
        "e29e0dd24a0d36230d9052c5a2d1896471e7ecaa1a37603a076904fe2935b469": "1.3.1 1.4.1 1.5.1",
    },
    "torch.fx.passes.utils.matcher_utils:SubgraphMatcher": {
        "8a5ad694e861f79187c2bd1a571e340e1dcc7a02e372919b589d11a0e8dbc8c1": "1.1.0",
        "fb7b5252c4d200bf75010264be8463dd6663cbfec72f4cecbad037432576748b": "1.2.0",
        "464e55df00f6e73183b68a1cad81bbedf84a125b8b58e34316841e7d5e7a09d4": "1.3.1",
        "970c8c6e0e5417ad07a1a8f5a20286cbec3a80d97a1d06d544fb3a4d3d6a3978": "1.4.1",
        "4cfd52c852e91436428981dc2c593eea93f6ac00d92947a6fe69e4bfe71b6d4e": "1.5.1",
    },
}


def _install() -> None:
    import torch
    from torch.fx.subgraph_rewriter import _replace_attributes
    from torchao.quantization.pt2e import qat_utils

    room: Any = qat_utils
    aten = torch.ops.aten
    convolutions: dict[Any, Any] = {
        torch.nn.functional.conv1d: aten.conv1d.default,
        torch.nn.functional.conv2d: aten.conv2d.default,
        torch.nn.functional.conv_transpose1d: aten.conv_transpose1d.default,
        torch.nn.functional.conv_transpose2d: aten.conv_transpose2d.input,
    }
    upstream = room._fold_conv_bn_qat_helper

    @functools.wraps(upstream)
    def fold_conv_bn_qat_helper(m: Any, conv_fn: Any, example_inputs: Any, is_cuda: bool) -> Any:
        if {aten.sqrt.default, convolutions[conv_fn]} <= {node.target for node in m.graph.nodes}:
            return upstream(m, conv_fn, example_inputs, is_cuda)
        m.graph.eliminate_dead_code()
        m.recompile()
        room._duplicate_dequantize_node(m)
        # A replacement that replaced nothing still has submodules deleted that nothing uses.
        m.recompile()
        _replace_attributes(m, torch.fx.GraphModule({}, torch.fx.Graph()))
        room._remove_extra_dequantize(m)
        m.graph.eliminate_dead_code()
        m.recompile()
        return m

    room._fold_conv_bn_qat_helper = fold_conv_bn_qat_helper


SHORTCUT = Shortcut(
    "qat-patterns",
    "patterns of quantization-aware training are looked for only where one may be",
    by_release(FITS),
    _install,
)
