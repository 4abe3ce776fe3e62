"""Hooks for runners of delegates, and for observers that record an export without changing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import torch
    from executorch.exir.lowered_backend_module import LoweredBackendModule
    from torch.fx import GraphModule, Node

    from executorch_goldens.artifact import Tensor

#: Runs a delegate: from it and its inputs to its outputs (`executorch_goldens.zoo.targets.Target.simulator`).
Simulator: TypeAlias = "Callable[[LoweredBackendModule, Sequence[torch.Tensor]], list[torch.Tensor]]"


class Marks(Protocol):
    """Follows the nodes of an export to its delegates; an observer gives one to `exporting.trace.Watch.mark`.

    Attributes
    ----------
    delegates
        See `executorch_goldens.artifact.Watched.origins`.
    constants
        Names of the constants of the graph that a backend's passes left.
    """

    delegates: list[tuple[tuple[str, tuple[str, ...]], ...]]
    constants: frozenset[str]

    def note(self, module: GraphModule, maker: str) -> None:
        """Note a graph: everything new in it was made by `maker`."""

    def visited(self, node: Node, arguments: Sequence[Any]) -> None:
        """Note that the visitor of `node` was called with `arguments`."""

    def serialized(self, payload: bytes) -> None:
        """Note that the visited operators became `payload`."""

    def delegate(self, payload: bytes) -> None:
        """Note the next delegate of the lowered program."""


class Observer:
    """Sees an export from its beginning to its end; the methods of this one do nothing more.

    `settings.exports.Settings.observer` names a subclass, which the exporting process makes an instance of.
    """

    def around(self, request: Any, stages: Iterator[Any]) -> Iterator[Any]:
        """Carry out an `exporting.program.Request`: yield each `ExportProgress`, and let what it raises pass."""
        yield from stages

    def runs(self, sample: str, pte: bytes) -> None:
        """See that a program is about to be run on a sample.

        Parameters
        ----------
        pte
            The ``.pte`` that the runtime is given; empty where the reference model runs the delegates.
        """

    def ran(self, sample: str, outputs: Sequence[Tensor]) -> None:
        """See the program's outputs."""

    def calls(self, payload: bytes, arrays: Sequence[Any]) -> None:
        """See that a TOSA delegate is about to be run in the reference model, on arrays of numpy's."""

    def called(self, payload: bytes, arrays: Sequence[Any], outputs: Sequence[Any]) -> None:
        """See the delegate's outputs."""


#: The observer of an export that nobody observes.
NOBODY = Observer()


class Instrument:
    """Sees the sources that the exports of a process run; the methods of this one do nothing.

    `settings.exports.Instrumentation.by` names a subclass. An exporting process makes an instance of it, from these
    settings, before it imports anything of torch or ExecuTorch.
    """

    def imported(self) -> None:
        """See that all is imported that exports of this process have in common."""

    def begin(self) -> None:
        """See that an export begins."""

    def taken(self) -> Mapping[str, Any]:
        """Return what was seen of an export, fields of `executorch_goldens.artifact.Artifact`."""
        return {}


#: Sees nothing.
NOTHING = Instrument()
