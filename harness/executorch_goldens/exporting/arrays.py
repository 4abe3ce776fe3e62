"""Tensors of any dtype as arrays of numpy, which has fewer dtypes than torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

#: Dtypes whose elements hold several values, or none that torch computes with, and the dtype of their bits.
PACKED: dict[torch.dtype, torch.dtype] = {
    getattr(torch, name): torch.int16 if name == "bits16" else torch.uint8
    for name in (
        *("float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"),
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)),
    )
}
#: Floating dtypes that numpy has.
IN_NUMPY = (torch.float16, torch.float32, torch.float64)


def type_name(tensor: torch.Tensor) -> str:
    """Return dtype and shape of a tensor: ``float32[2, 3]``."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the values of `tensor`, exactly.

    bfloat16 and the dtypes of 8 bits become float32, complex32 becomes complex64, packed ones their bits.
    """
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype in PACKED:
        tensor = tensor.view(PACKED[tensor.dtype])
    elif tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    elif tensor.is_floating_point() and tensor.dtype not in IN_NUMPY:
        tensor = tensor.float()
    return tensor.numpy()
