"""Makes an exporting process record the inputs of the program and of its TOSA delegates: no artifact has them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executorch_goldens.artifact import Cell
from executorch_goldens.exporting.observing import Observer
from executorch_goldens.numerics import open_sizes
from executorch_goldens_plugins.field.format import FrozenTensor
from executorch_goldens_plugins.field.record import FOLDER, RecordedInputs, TosaCall

if TYPE_CHECKING:
    from executorch_goldens.exporting.program import ExportProgress, Reference, Request


class InputRecorder(Observer):
    """Leaves a `RecordedInputs` of an export that makes a program.

    Attributes
    ----------
    of_delegates
        The calls of delegates, by name of the sample.
    """

    def __init__(self) -> None:
        self.of_delegates: dict[str, list[TosaCall]] = {}

    def around(self, request: Request, stages: Iterator[ExportProgress]) -> Iterator[ExportProgress]:
        """Export, then write the record."""
        references: Sequence[Reference] = ()
        for reached in stages:
            references = reached.references
            yield reached
        steps = [(each, *sample) for each in references for sample in each.samples.items()]
        samples = {name: tuple(tuple(map(of_tensor, step)) for step in given) for _, name, given in steps}
        # The harness's own recipe makes one method.
        methods = {name: each.methods_of(given) for each, name, given in steps if request.case.is_build}
        calls = {name: tuple(made) for name, made in self.of_delegates.items()}
        constants = [value for each in references for call in each.calls for value in call.constants]
        RecordedInputs(samples, calls, ", ".join(map(repr, constants)), methods).write(
            Path(os.environ[FOLDER]), Cell(request.target.name, request.case.name)
        )

    def runs(self, sample: str, pte: bytes) -> None:
        """Begin a sample."""
        if not pte:
            self.of_delegates[sample] = []

    def called(self, payload: bytes, arrays: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Note one call."""
        given, gave = (tuple(map(FrozenTensor.of_array, each)) for each in (arrays, outputs))
        next(reversed(self.of_delegates.values())).append(
            TosaCall(payload, of_sizes(payload, arrays), given, gave)
        )


def of_sizes(payload: bytes, arrays: Sequence[Any]) -> bytes:
    """Return a payload that any reference model can run on some arrays: it leaves no size open."""
    return open_sizes.with_sizes(payload, [array.shape for array in arrays])


def of_tensor(tensor: Any) -> FrozenTensor:
    """Return an input, with its strides where its elements are contiguous in another order than C's."""
    import torch

    tensor = tensor.detach()
    plain = tensor.contiguous()
    strides = tensor.stride()
    in_some_order = tensor.permute(tensor.dim_order()).is_contiguous()
    # A single element may have any stride, which a view as bytes does not take.
    flat = plain.as_strided((plain.numel(),), (1,))
    data = flat.view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return FrozenTensor(
        str(plain.dtype).partition(".")[2],
        tuple(plain.shape),
        data,
        strides if in_some_order and strides != plain.stride() else None,
    )
