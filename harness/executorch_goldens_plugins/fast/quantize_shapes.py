"""Let the cache of fake tensors take quantize and dequantize operators as well.

Every pass runs every node on fake tensors. torch remembers what its own operators give, by what they are given;
others it runs each time, for they might do anything. These return an empty tensor of the input's shape
(``torch/ao/quantization/fx/_decomposed.py``) and are up to half of the nodes of a quantized graph: with them, 16
quantized exports drawn took 0.88 of the time on 1.4.1, 0.95 on 1.1.0.
"""

from __future__ import annotations

import functools
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = by_release(
    """
    torch._subclasses.fake_tensor:FakeTensorMode._validate_cache_key
        6e680de04c253ada 1.1.0 1.2.0 1.3.1 1.4.1  e559ead03ce8b441 1.5.1
    torch.ao.quantization.fx._decomposed:quantize_per_tensor_meta  c69f7442c59fa0e2 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.ao.quantization.fx._decomposed:quantize_per_tensor_tensor_meta
        d2bb4e23cdeaa2f3 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.ao.quantization.fx._decomposed:quantize_per_tensor_tensor2_meta
        419e4198297e55fc 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.ao.quantization.fx._decomposed:dequantize_per_tensor_meta  91ed0ea5fd5351d7 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.ao.quantization.fx._decomposed:dequantize_per_tensor_tensor_meta
        4ddfea1d86cf94ac 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.ao.quantization.fx._decomposed:dequantize_per_tensor_tensor2_meta
        5fa00de6477620ee 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.ao.quantization.fx._decomposed:quantize_per_channel_meta  b0cd85e0b5cf968c 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torch.ao.quantization.fx._decomposed:dequantize_per_channel_meta  4c73973091610521 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    """
)


def _install(release: str) -> None:
    import torch
    import torch.ao.quantization.fx._decomposed
    from torch._subclasses.fake_tensor import FakeTensorMode

    room: Any = FakeTensorMode
    validate = room._validate_cache_key
    library = torch.ops.quantized_decomposed
    packets = (
        *(library.quantize_per_tensor, library.dequantize_per_tensor),
        *(library.quantize_per_channel, library.dequantize_per_channel),
    )
    pure = frozenset(getattr(packet, name) for packet in packets for name in packet.overloads())  # type: ignore[no-untyped-call]

    @functools.wraps(validate)
    def validate_cache_key(self: Any, func: Any, args: Any, kwargs: Any) -> None:
        if func not in pure:
            validate(self, func, args, kwargs)

    room._validate_cache_key = validate_cache_key


SHORTCUT = Shortcut("quantize-shapes", None, "fake quantized tensors are cached", FITS, _install)
