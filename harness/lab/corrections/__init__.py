"""Corrections of findings (`findings/`) as patches, to offer upstream: one module each, declared for no release.

Importing this package registers them: ``--models models --models lab.corrections --patches NAME`` exports with one.
"""

from __future__ import annotations

from executorch_goldens import patches
from lab.corrections import (
    fused_relu,
    gelu_tanh,
    log1p_below_zero,
    merged_users,
    repeated_indices,
    same_padding_even_kernel,
    shared_bias,
)

for _module in (
    *(shared_bias, merged_users, gelu_tanh, log1p_below_zero),
    *(repeated_indices, fused_relu, same_padding_even_kernel),
):
    patches.register(_module.PATCH)
