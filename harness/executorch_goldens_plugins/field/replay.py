"""Lists programs for a device: the corpus in lines that a runner reads without a JSON parser.

A line is a word and its fields, with one space between them; no field has a space. What a line belongs to is above it:

``program NAME FILE BACKENDS``
    A ``.pte``, ``TARGET/CASE/program``. ``BACKENDS`` are ids with a comma between them, or ``-``.
``data NAME FILE``
    A data file (``.ptd``) of the program.
``sample FOLDER``
    Inputs, from its initial state. Its outputs go to this folder, below one of the runner's.
``step METHOD``
    A run of a method. Steps follow one another; outputs are those of the last.
``input DTYPE SHAPE ORDER FILE``
    The next input of the step, as its bytes are in memory.
``output DTYPE SHAPE ORDER FILE EXPECTED_DTYPE EXPECTED_FILE TOLERANCE``
    The next output: what it gave, as its bytes are in memory; what it is measured by, in C order; and how far each
    element may be from that, a number or a file of float64 in C order.

Files are relative to the corpus, bytes are little endian. ``SHAPE`` is lengths with a comma between them, and ``ORDER``
the dimensions, the outermost in memory first; both are ``-`` for a tensor of no dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from executorch_goldens.files import untrusted
from executorch_goldens_plugins.field.format import (
    OBJECTS,
    REFERENCE_MODEL,
    Manifest,
    ProgramEntry,
    SampleEntry,
    TensorEntry,
    order_in_memory,
)

#: The file beside the manifest.
LISTING = "replay.txt"
#: The first line, with a version.
HEAD = "goldens-replay 1"
#: A field, or a part of one.
_FIELD = re.compile(r"[^\s,]+")
#: Characters that a sample's name may have, and a folder's not.
_UNFIT = re.compile(r"[^A-Za-z0-9_.+-]+")


def is_listed(program: ProgramEntry) -> bool:
    """Return whether a device runs it: a TOSA delegate alone is not a program of ExecuTorch's."""
    return program.engine != REFERENCE_MODEL


def folder_of(cell: str, program: str, sample: str) -> PurePosixPath:
    """Return the folder of a program's outputs on a sample, below the runner's output folder.

    >>> str(folder_of("xnnpack-fp32/gru", "program", "second step"))
    'xnnpack-fp32/gru/program/second-step'
    """
    return PurePosixPath(cell, program, _UNFIT.sub("-", sample))


def require_replayable(program: ProgramEntry) -> None:
    """Raise ValueError where a listing could not represent a program."""
    if not is_listed(program):
        return
    folders = [folder_of("", program.name, sample.name).name for sample in program.samples]
    untrusted.require_names(folders)
    if len(set(folders)) < len(folders):
        raise ValueError("two samples of one folder")
    methods = [method for sample in program.samples for method, _ in sample.calls()]
    for field in (*program.backends, *methods, *(file.name for file in program.files)):
        if not _FIELD.fullmatch(field):
            raise ValueError(f"{field!r} is no name of a method, of a backend or of a data file")


def listing(manifest: Manifest) -> str:
    """Return the lines for a manifest."""
    return "".join(f"{line}\n" for line in (HEAD, *_lines(manifest)))


def _lines(manifest: Manifest) -> Iterator[str]:
    for cell in manifest.cells:
        for program in filter(is_listed, cell.programs):
            backends = ",".join(program.backends) or "-"
            yield f"program {cell.cell}/{program.name} {OBJECTS}/{program.sha256} {backends}"
            yield from (f"data {file.name} {OBJECTS}/{file.sha256}" for file in program.files)
            for sample in program.samples:
                yield f"sample {folder_of(cell.cell, program.name, sample.name)}"
                yield from _of_sample(sample)


def _of_sample(sample: SampleEntry) -> Iterator[str]:
    for method, inputs in sample.calls():
        yield f"step {method}"
        yield from (f"input {_tensor(each)}" for each in inputs)
    for output, expected, tolerance in zip(sample.outputs, sample.expected, sample.tolerances, strict=True):
        far = _file(tolerance) if isinstance(tolerance, TensorEntry) else repr(tolerance)
        yield f"output {_tensor(output)} {expected.dtype} {_file(expected)} {far}"


def _tensor(entry: TensorEntry) -> str:
    order = order_in_memory(entry.shape, entry.strides)
    return f"{entry.dtype} {_numbers(entry.shape)} {_numbers(order)} {_file(entry)}"


def _numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers)) or "-"


def _file(entry: TensorEntry) -> str:
    return f"{OBJECTS}/{entry.sha256}"
