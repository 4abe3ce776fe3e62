"""Checks that lowering does not modify the input model."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch

from executorch_goldens.artifact import Altered, Tensor
from executorch_goldens.exporting.arrays import array_of


class Given:
    """The parameters and buffers of a model, as they are when it is given.

    Those that numpy cannot hold are left out: sparse ones, those without memory, those of classes of their own; and
    those made in inference mode, whose writes torch does not count.

    Parameters
    ----------
    states
        Buffers that the model writes to when it runs, which are left out: calibrating and folding run it.
    """

    def __init__(self, module: torch.nn.Module, states: Collection[str]) -> None:
        found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        self._states = {
            name: state for name, state in found.items() if name not in states and is_plain(state)
        }
        self._before = {name: _copy(state) for name, state in self._states.items()}
        self._versions = {name: state._version for name, state in self._states.items()}
        self._writers: dict[str, str] = {}

    def note(self, maker: str) -> None:
        """Attribute changes since the last note to `maker`, and drop those that were undone."""
        for name, state in self._states.items():
            if state._version == self._versions[name]:
                continue
            self._versions[name] = state._version
            if _copy(state) == self._before[name]:
                self._writers.pop(name, None)
            else:
                self._writers.setdefault(name, maker)

    def altered(self) -> Iterator[Altered]:
        """Yield tensors that changed, to the last bit, with the one who changed them."""
        for name, state in self._states.items():
            if (after := _copy(state)) != self._before[name]:
                yield Altered(name, self._before[name], after, self._writers.get(name, ""))


def is_plain(state: torch.Tensor) -> bool:
    """Return whether `state` is a dense tensor in this process's memory, of torch's own class, with a version."""
    own = type(state) in (torch.Tensor, torch.nn.Parameter)
    dense = state.layout is torch.strided and state.device.type == "cpu" and not state.is_quantized
    return own and dense and not state.is_inference()


def _copy(state: torch.Tensor) -> Tensor:
    return Tensor.of(array_of(state))
