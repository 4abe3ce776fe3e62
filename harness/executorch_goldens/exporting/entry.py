"""(case, target) -> artifact, in the process it is called in."""

from __future__ import annotations

import time
from collections.abc import Sequence

from executorch_goldens.artifact import Artifact, Failure, Lowered, Omission
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting import kernels
from executorch_goldens.exporting.blame import OF_THE_MACHINE, described
from executorch_goldens.exporting.export import Export, first_cause
from executorch_goldens.exporting.observing import NOBODY, Observer
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.files import shortage
from executorch_goldens.patches import shortcuts
from executorch_goldens.zoo.registry import Case


def export(
    case: Case,
    target: str,
    patches: Sequence[str] = (),
    capture: int = 0,
    execute: bool = True,
    bound: float | None = None,
    omission: Omission | None = None,
    observer: Observer = NOBODY,
) -> Artifact:
    """Export `case` for `target`; an exception of the release is an artifact, too.

    Parameters
    ----------
    patches
        Names of the patches that the caller has installed in this process; noted in the artifact.
    capture, omission
        See `executorch_goldens.exporting.trace.Watch`.
    execute
        Whether the program is executed on the case's samples.
    bound
        In place of the target's.
    observer
        Sees what is run.

    Raises
    ------
    executorch_goldens.zoo.targets.UnknownTargetError, executorch_goldens.zoo.targets.TargetError
        For a target that this environment does not have, or cannot make.
    executorch_goldens.exporting.blame.OwnError
        For an exception of the harness's own code, once the case has been built and run.
    MemoryError
        If memory was not given: the case may export all the same.
    """
    started = time.perf_counter()
    kernels.load()
    attempt = kind_of(case)(case, Lowering.named(target), capture, execute, bound, omission, observer)
    result: Lowered | Failure
    try:
        with attempt.watch:
            result = attempt.observer.around(attempt)
    except (Exception, SystemExit) as error:
        if shortage.of_memory(error):
            raise MemoryError(f"stage {attempt.stage}: {first_cause(error)}") from error
        result = attempt.failed(error)
    try:
        # A further lowering for this is none of the export's passes: nothing watches.
        result = attempt.looked_into(result)
    except (HarnessError, *OF_THE_MACHINE):
        raise
    except Exception as error:
        if shortage.of_memory(error):
            raise MemoryError(f"stage {attempt.stage}: {first_cause(error)}") from error
        raise described(attempt.stage, error) from error
    seconds = time.perf_counter() - started
    noted = attempt.watch.result()
    return Artifact(result, tuple(patches), seconds, noted, tuple(shortcuts.INSTALLED))


def kind_of(case: Case) -> type[Export]:
    """Return the class that exports a case: the harness's recipe, or the case's own."""
    if not case.is_build:
        return Export
    from executorch_goldens.exporting.built import BuiltExport

    return BuiltExport
