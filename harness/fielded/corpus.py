"""A program as it is handed from the environment that made it to those that run it: a file, MessagePack under a digest.

It is kept under ``build`` and made anew at will: no format for others.
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from harness import untrusted
from harness.artifact import Cell, Tensor
from harness.errors import HarnessError
from harness.untrusted import UntrustedError

T = TypeVar("T")

#: First bytes of a file, with the version of the format. The SHA-256 of the content comes next, then the content.
MAGIC = b"executorch-goldens fielded 1\n"
DIGEST_BYTES = 32
#: Bytes that a file may have.
LARGEST = 2**29
SUFFIX = ".program"

#: What a program did on its own release: it was right; it departed from eager beyond its tolerance; it was refused; its
#: process died, or took too long.
RIGHT, WRONG, REFUSED, CRASHED = "right", "wrong", "refused", "crashed"
OWN = (RIGHT, WRONG, REFUSED, CRASHED)


class CorpusError(HarnessError):
    """A program, or what came of one, that cannot be read; the message names the file and the way out."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(path, what)
        self.path = path
        self.what = what

    def __str__(self) -> str:
        return f"{self.path}: {self.what}: delete it, and the next run makes it anew"


class Input(msgspec.Struct, frozen=True):
    """An input of a program, as it lies in memory.

    Attributes
    ----------
    dtype
        Name in torch; in numpy, for a payload of TOSA.
    shape, strides
        In elements; no strides for a payload of TOSA.
    data
        Its elements in C order, whatever the strides.
    same_as
        Number of the input of this step that is the same tensor, or None.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    data: bytes
    same_as: int | None = None


class Run(msgspec.Struct, frozen=True):
    """What one program, or one payload of TOSA, is run on.

    Attributes
    ----------
    name
        Of the sample; of a payload, with the number of the call within it.
    binary
        Which of the program's binaries.
    steps
        The inputs of runs that follow one another; the outputs of the last count.
    expected
        What it should give: the outputs of eager; for a payload of TOSA, what its own release's reference model gave.
        Empty where that is not known.
    tolerances
        For each of them, float64, for each element or for all: how far it may be off.
    outputs
        What it gave on its own release; None where it gave nothing.
    """

    name: str
    binary: int
    steps: tuple[tuple[Input, ...], ...]
    expected: tuple[Tensor, ...]
    tolerances: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...] | None


class Program(msgspec.Struct, frozen=True):
    """A program with all that it is run on.

    Attributes
    ----------
    release
        That made it.
    runs_in
        See `harness.targets.Target.runs`.
    binaries
        The ``.pte``; for TOSA, the payloads of its delegates. None where the cell does not lower.
    own
        One of `OWN`.
    """

    cell: Cell
    release: str
    runs_in: str
    binaries: tuple[bytes, ...]
    runs: tuple[Run, ...]
    own: str = RIGHT


class Ran(msgspec.Struct, frozen=True):
    """What came of a run: its outputs, or the error with which it was refused."""

    outputs: tuple[Tensor, ...] = ()
    error: str | None = None


def tensor_of(array: np.ndarray[Any, Any]) -> Tensor:
    """Return an output of a payload; of a dtype that numpy lacks, bfloat16 for instance, the bits as whole numbers."""
    known = array.dtype.kind in "biufc"
    return Tensor.of(array if known else array.view(f"u{array.dtype.itemsize}"))


def write(path: Path, content: Program | list[Ran]) -> None:
    """Leave a whole file, or nothing."""
    encoded = msgspec.msgpack.encode(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{uuid.uuid4().hex}.partial")
    try:
        aside.write_bytes(MAGIC + hashlib.sha256(encoded).digest() + encoded)
        aside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def read(path: Path) -> Program:
    """Return a program; raise `CorpusError`."""
    program = _read(path, Program)
    try:
        for name in (program.cell.target, program.cell.case, program.release):
            untrusted.require_name(name)
    except UntrustedError as error:
        raise CorpusError(path, str(error)) from error
    if any(not 0 <= run.binary < len(program.binaries) for run in program.runs) or program.own not in OWN:
        raise CorpusError(path, "it does not hold together")
    return program


def read_results(path: Path) -> list[Ran]:
    """Return what came of the runs of a program; raise `CorpusError`."""
    return _read(path, list[Ran])


def _read(path: Path, kind: type[T]) -> T:
    try:
        whole = untrusted.contents(path, LARGEST)
        head, content = whole[: len(MAGIC) + DIGEST_BYTES], whole[len(MAGIC) + DIGEST_BYTES :]
        if head != MAGIC + hashlib.sha256(content).digest():
            raise UntrustedError("it is damaged, or of another version")
        return msgspec.msgpack.decode(content, type=kind)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CorpusError(path, str(error)) from error
