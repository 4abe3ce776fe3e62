"""Messages between a sweep and its templates, a JSON object each."""

from __future__ import annotations

import msgspec

from executorch_goldens.artifact import Omission


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one export is asked to do; see `executorch_goldens.settings.exports.Settings`.

    Attributes
    ----------
    changes
        What is changed of the case (`executorch_goldens.exporting.changing`).
    tolerance
        Bound in place of the target's.
    scratch, cwd
        Directories of this export alone: for its files, and to work in.
    log
        File for its output.
    module, others
        The module that registers the case, and all that register one.
    pickled, record
        File with the module in place of a case, and file for the record of what it depends on; None for none.
    """

    id: int
    target: str
    case: str
    scratch: str
    log: str
    cwd: str
    limit: float
    models: tuple[str, ...] = ()
    module: str | None = None
    others: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    pickled: str | None = None
    tolerance: float | None = None
    patches: tuple[str, ...] = ()
    capture: int = 0
    execute: bool = True
    omission: Omission | None = None
    observer: str | None = None
    twins: int = 0
    memory: int | None = None
    record: str | None = None


class Ready(msgspec.Struct, frozen=True, tag=True):
    """A template takes requests from now on."""


class Alive(msgspec.Struct, frozen=True, tag=True):
    """A template has these exports, and is not stuck."""

    ids: tuple[int, ...]


class Started(msgspec.Struct, frozen=True, tag=True):
    """The child of an export, and the process that forked it; the file for its artifact comes along."""

    id: int
    process: int
    template: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """How the child of an export ended, with what it took.

    Attributes
    ----------
    status
        Exit status or, below 0, the signal.
    seconds, core_seconds, idle
        Wall time, processor time, and how long it was idle at last.
    """

    id: int
    status: int
    timed_out: bool = False
    seconds: float = 0.0
    core_seconds: float = 0.0
    idle: float = 0.0
    peak_mb: float = 0.0


Answer = Ready | Alive | Started | Ended
