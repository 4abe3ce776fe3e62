"""A golden-artifact regression harness for ExecuTorch exports.

The public face of a zoo, a module that registers cases::

    from executorch_goldens import Data, Example, case

    @case(guards="a linear layer keeps its bias")
    def linear(data: Data) -> Example:
        return Example(torch.nn.Linear(4, 4), (data.tensor("x", 1, 4),))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from executorch_goldens.registry import case

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example

__all__ = ["Data", "Example", "case"]


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is asked for: commands and the plugin do without."""
    if name in ("Data", "Example"):
        from executorch_goldens.exporting import data

        return getattr(data, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
