"""(case, target) -> artifact, in the process it is called in.

An error that ends an export is described by what is the same wherever and however often it is raised.
"""

from __future__ import annotations

import dataclasses
import re
import traceback
from collections.abc import Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any

from executorch_goldens.artifact import DECLARATION, MACHINE, UNSTEADY_MODEL, Artifact, Failure, Lowered
from executorch_goldens.errors import HarnessError
from executorch_goldens.exporting import kernels, recipe
from executorch_goldens.exporting.blame import OF_THE_MACHINE, described, own_error
from executorch_goldens.exporting.observing import NOBODY, Observer
from executorch_goldens.exporting.program import MODEL, ExportProgress, Request
from executorch_goldens.exporting.running import looked_into
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.exporting.trace import Watch
from executorch_goldens.files import logged, shortage
from executorch_goldens.goldens.causes import without_sources
from executorch_goldens.zoo.registry import Case, UnsteadyError, ZooError
from executorch_goldens.zoo.variations import Omission

#: The runtime's message for an input larger than the planned memory.
BOUNDED = "Attempted to resize a bounded tensor"


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
        Bound in place of the target's.
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
    kernels.load()
    watch = Watch(capture, omission)
    request = Request(case, Lowering.named(target), execute, bound, watch, observer)
    reached = ExportProgress(MODEL)
    result: Lowered | Failure
    try:
        with watch:
            for stage in observer.around(request, stages(request)):
                reached = stage
        assert reached.result is not None
        result = reached.result
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        require_memory(reached, error)
        result = failed(reached, error)
        result = dataclasses.replace(result, fault=fault(error, result))
    try:
        # A further lowering for this is none of the export's passes: nothing watches.
        result = looked_into(request, reached, result, partial(again, request))
    except (HarnessError, *OF_THE_MACHINE):
        raise
    except Exception as error:
        require_memory(reached, error)
        raise described(reached.stage, error) from error
    return Artifact(result, tuple(patches), watch.result())


def again(request: Request) -> Lowered:
    """Export once more, without running the program."""
    *_, last = stages(dataclasses.replace(request, execute=False, watch=Watch(), observer=NOBODY))
    assert last.result is not None
    return last.result


def require_memory(reached: ExportProgress, error: BaseException) -> None:
    """Raise MemoryError for an error that says that memory was not given."""
    if shortage.of_memory(error):
        raise MemoryError(f"stage {reached.stage}: {first_cause(error)}") from error


def stages(request: Request) -> Iterator[ExportProgress]:
    """Return the stages of an export: of the harness's recipe, or of the case's own."""
    if not request.case.is_build:
        return recipe.stages(request)
    from executorch_goldens.exporting import built

    return built.stages(request)


#: Parts of a message that differ from run to run or from machine to machine, and what replaces them.
MASKS = (
    (re.compile(r'\bFile "[^"\n]*/'), 'File "…/'),
    # Numbered by how many graphs the process has compiled.
    (re.compile(r"<eval_with_key>\.\d+"), "<eval_with_key>"),
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0x…"),
    # Of absolute paths only, and of what follows the slashes of an address: ``int8/int16/int32`` is no path.
    (re.compile(r"(?:(?<![^\s'\"`:=,;|<>()\[\]{}])|(?<=:/))(?:/[\w.+@-]+)+/(?=[\w.+-]+)"), "…/"),
    (re.compile(r"\bline \d+"), "line …"),
    (re.compile(r"\.py:\d+"), ".py:…"),
    (re.compile(r"\b(graph_)?id=\d{9,}"), r"\1id=…"),
    # Numbers operators by how many autograd has seen in the process.
    (re.compile(r"('seq_nr' =) \d+"), r"\1 …"),
)


#: A printed set; a dictionary has colons with a space after them, and names of operators two without.
SET = re.compile(r"\{((?:[^{}:]|:(?! ))*)\}")


def normalise(message: str) -> str:
    """Take addresses, directories, line numbers and source lines out of `message`, and the order of printed sets.

    >>> normalise("cannot open /opt/env/lib/x.py:12 for <Pass object at 0x7f0123456789>")
    'cannot open …/x.py:… for <Pass object at 0x…>'
    >>> normalise("one of {torch.int8, torch.bool} is needed")
    'one of {torch.bool, torch.int8} is needed'
    >>> normalise("{'b::c', 'a::d'} but not {'b': 2, 'a': 1}")
    "{'a::d', 'b::c'} but not {'b': 2, 'a': 1}"
    """
    for pattern, replacement in MASKS:
        message = pattern.sub(replacement, message)
    # A set prints in the order of its hashes.
    message = SET.sub(lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}", message)
    return without_sources("\n".join(line.rstrip() for line in message.strip().splitlines()))


def first_cause(error: BaseException) -> BaseException:
    """Return the first cause of `error`; for the harness's own errors, itself."""
    seen = {id(error)}
    while (
        not isinstance(error, HarnessError)
        and error.__cause__ is not None
        and id(error.__cause__) not in seen
    ):
        error = error.__cause__
        seen.add(id(error))
    return error


def failed(reached: ExportProgress, error: BaseException) -> Failure:
    """Describe an error that ended an export; raise OwnError for one of the harness's own code."""
    result = failure(reached.stage, error)
    if own := own_error(reached.stage, first_cause(error), error):
        # Till the model is there and has run, what cannot be used is what the case gives.
        if reached.stage != MODEL:
            raise own from error
        used = f"{result.message} (raised where the harness takes what the case gives: {own.casualty.where})"
        result = dataclasses.replace(result, message=normalise(used))
    if reached.stage != "run":
        return result
    log = logged.since(reached.log)
    first, *rest = result.message.split("\n")
    explained = normalise(logged.explained(first, log)) + way_out(reached, first + log)
    return dataclasses.replace(result, message="\n".join((explained, *rest)), made=reached.made)


def way_out(reached: ExportProgress, message: str) -> str:
    """Return advice for the runtime's message, where the case can help; empty otherwise."""
    if BOUNDED not in message or not reached.unbounded:
        return ""
    return (
        f"; memory is planned for the example's size of {', '.join(reached.unbounded)}, which has no bound: "
        "declare max= for it in dynamic_shapes"
    )


def fault(error: BaseException, result: Failure) -> str:
    """Return whose fault an error is that is described; see `Failure`."""
    if shortage.explains(result.type, result.message):
        return MACHINE
    cause = first_cause(error)
    if isinstance(cause, UnsteadyError):
        return UNSTEADY_MODEL
    return DECLARATION if isinstance(cause, ZooError) else ""


def failure(stage: str, error: BaseException) -> Failure:
    """Describe `error` by its invariant parts: class, normalised message, pass and function.

    Pass managers raise "An error occurred when running the ... pass" from the error itself: the cause is described.
    """
    cause = first_cause(error)
    frames = [frame for link in (error, cause) for frame, _ in traceback.walk_tb(link.__traceback__)]
    backend_frames = [frame for frame in frames if _module(frame).startswith("executorch.")]
    passes = [name for frame in backend_frames if (name := _pass_name(frame)) is not None]
    return Failure(
        stage=stage,
        type=f"{type(cause).__module__}.{type(cause).__qualname__}".removeprefix("builtins."),
        message=normalise(str(cause)),
        pass_name=passes[-1] if passes else None,
        function=(
            f"{_module(backend_frames[-1])}.{backend_frames[-1].f_code.co_name}" if backend_frames else None
        ),
        traceback="".join(traceback.format_exception(error)),
    )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


#: Base classes, by name, of what a maintainer calls a pass: graph passes, partitioners, node visitors.
PASS_BASES = frozenset({"PassBase", "Partitioner", "NodeVisitor", "_ExportPassBase"})


def _pass_name(frame: FrameType) -> str | None:
    owner: Any = frame.f_locals.get("self")
    bases = {base.__name__ for base in type(owner).__mro__}
    return type(owner).__name__ if bases & PASS_BASES else None
