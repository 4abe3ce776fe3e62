"""A hook for what writes down what an export runs, and changes nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executorch_goldens.artifact import Lowered, Tensor
    from executorch_goldens.exporting.export import Export


class Observer:
    """Sees an export from its beginning to its end; the methods of this one do nothing more.

    `settings.exports.Settings.observer` names a subclass, which the exporting process makes an instance of.
    """

    def around(self, attempt: Export) -> Lowered:
        """Carry out the export: return what ``attempt.run()`` returns, and let pass what it raises."""
        return attempt.run()

    def runs(self, sample: str, pte: bytes) -> None:
        """See that a program is about to be run on a sample.

        Parameters
        ----------
        pte
            The ``.pte`` that the runtime is given; empty where the reference model runs the delegates.
        """

    def ran(self, sample: str, outputs: Sequence[Tensor]) -> None:
        """See what the program gave."""

    def calls(self, payload: bytes, arrays: Sequence[Any]) -> None:
        """See that a TOSA delegate is about to be run in the reference model, on arrays of numpy's."""

    def called(self, payload: bytes, arrays: Sequence[Any], outputs: Sequence[Any]) -> None:
        """See what the delegate gave."""


#: The observer of an export that nobody observes.
NOBODY = Observer()
