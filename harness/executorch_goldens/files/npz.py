"""Reads ``.npz`` files of others: `numpy.load` may unpickle, and takes the memory that a file claims."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from executorch_goldens.files import untrusted

Array = NDArray[Any]
#: Bytes of all arrays of a file together.
LARGEST = 1 << 30
#: Exceptions of reading a damaged archive, beside ValueError.
DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError)


def read(path: Path, largest: int = LARGEST) -> dict[str, Array]:
    """Return the arrays of a file by name, numbers all of them.

    Raises
    ------
    ValueError
        For what is no ``.npz`` file, or none that is read.
    OSError
        For a file that cannot be opened.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(untrusted.contents(path, largest))) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > largest:
                raise ValueError(f"it holds more than {largest:,} bytes")
            return {member.filename.removesuffix(".npy"): _named(archive, member) for member in members}
    except DAMAGED as error:
        raise ValueError(str(error)) from error


def _named(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    try:
        return array(archive.read(member))
    except ValueError as error:
        raise ValueError(f"{member.filename}: {error}") from error


def array(content: bytes) -> Array:
    """Return an array of numbers from an ``.npy`` file; raise ValueError for any other."""
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):  # type: ignore[no-untyped-call]
        raise ValueError("the version of an array is not 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)  # type: ignore[no-untyped-call]
    if dtype.hasobject or dtype.kind not in "biufc" or any(length < 0 for length in shape):
        raise ValueError(f"an array of {dtype} and shape {shape} is none of numbers")
    data = content[file.tell() :]
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an array of {dtype} and shape {shape} in {len(data)} bytes")
    made: Array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return made
