"""A golden-artifact regression harness for ExecuTorch exports.

The public face of a zoo, a module that registers cases::

    from executorch_goldens import Data, Example, case

    @case(guards="a linear layer keeps its bias")
    def linear(data: Data) -> Example:
        return Example(torch.nn.Linear(4, 4), (data.tensor("x", 1, 4),))

or that has the program made as it ships, whatever makes it::

    from executorch_goldens import Build, case

    @case(guards="the wake word that ships")
    def wake_word(build: Build) -> ExecutorchProgramManager:
        inputs = (build.data.tensor("x", 1, 49, 10),)
        model = build.method(load_model(), inputs)
        program = torch.export.export(model, inputs)
        return to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from executorch_goldens.zoo.registry import case

if TYPE_CHECKING:
    from executorch_goldens.exporting.building import Build, Built
    from executorch_goldens.exporting.data import Data, Example

__all__ = ["Build", "Built", "Data", "Example", "case"]


def __getattr__(name: str) -> Any:
    """Import names that need torch on first use: commands and the plugin do without."""
    if name in ("Data", "Example"):
        from executorch_goldens.exporting import data

        return getattr(data, name)
    if name in ("Build", "Built"):
        from executorch_goldens.exporting import building

        return getattr(building, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
