"""Export the patterns of the XNNPACK quantizer's annotators once, and hand out copies.

For every model it exports the same twelve little models with ``torch.export``, a convolution and a batch norm in
training mode each, to look for them in the model's graph: 58% of the export of an int8 linear. A pattern follows
from the function that builds it, from what that function closes over, and from the shapes of its example inputs.
"""

from __future__ import annotations

import copy
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import replaces
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = by_release(
    """
    executorch.backends.xnnpack.quantizer.xnnpack_quantizer_utils:_do_annotate_conv_bn
        873daa992df61b96 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    executorch.backends.xnnpack.quantizer.xnnpack_quantizer_utils:WrapperModule
        ac48d2dda17b7d61 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    torchao.quantization.pt2e.utils:_get_aten_graph_module_for_pattern  2760e12e1e6e5325 1.1.0 1.2.0 1.3.1 1.4.1 1.5.1
    """
)


def _install(release: str) -> None:
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer_utils as room

    patterns: dict[Any, Any] = {}

    @replaces(room, "_get_aten_graph_module_for_pattern")
    def pattern_of(
        upstream: Any, pattern: Any, example_inputs: tuple[Any, ...], is_cuda: bool = False, **kwargs: Any
    ) -> Any:
        if kwargs or not isinstance(pattern, room.WrapperModule):
            return upstream(pattern, example_inputs, is_cuda, **kwargs)
        build = pattern.fn
        closed_over = tuple(cell.cell_contents for cell in build.__closure__ or ())
        key = (build.__code__, closed_over, is_cuda, *((tuple(x.shape), x.dtype) for x in example_inputs))
        if key not in patterns:
            patterns[key] = upstream(pattern, example_inputs, is_cuda)
        # The matcher takes the names out of a pattern's output.
        return copy.deepcopy(patterns[key])


SHORTCUT = Shortcut("annotation-patterns", None, "annotators' patterns are exported once", FITS, _install)
