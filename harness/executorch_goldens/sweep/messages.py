"""Messages between a sweep and its templates, a JSON object each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from executorch_goldens.settings.exports import Settings
from executorch_goldens.zoo.variations import Variation


class TemplateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a template takes on before its first export, and a fresh interpreter before its only one.

    Attributes
    ----------
    answers
        Descriptor to answer on.
    beat
        Seconds after which to say that it is alive.
    paths
        Where zoos are imported from before anywhere else.
    targets
        Targets to warm up for.
    records
        Folder for the records of templates; None where nothing is recorded.
    """

    settings: Settings
    variation: Variation
    answers: int
    beat: float
    paths: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    records: str | None = None


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one export is asked to do.

    Attributes
    ----------
    settings
        Those of the sweep, with the patches of its cell.
    changes
        What is changed of the case: see `Settings.changing`.
    scratch, cwd
        Directories of this export alone: for its files, and to work in.
    log
        File for its output.
    module, others
        The module that registers the case, and all that register one.
    record
        File for the record of what it depends on; None for none.
    """

    id: int
    target: str
    case: str
    settings: Settings
    scratch: str
    log: str
    cwd: str
    module: str | None = None
    others: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
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


def encoded(message: TemplateRequest | ExportRequest | Answer) -> bytes:
    """Return a message in one line, without its end."""
    return msgspec.json.encode(message, enc_hook=of_settings)


def of_settings(value: Any) -> Any:
    """Return what JSON has no form for, and settings have: a path, or a mapping that is no dict."""
    return dict(value) if isinstance(value, Mapping) else os.fspath(value)


def decoded(line: bytes, kind: Any) -> Any:
    """Return a message; raise ValueError for a line that is none of this kind, a class or several."""
    return msgspec.json.decode(line, type=kind, dec_hook=lambda kind, value: kind(value))
