"""A program as it is handed from the environment that made it to those that run it: a file, MessagePack under a digest.

It is kept under ``build`` and made again at will: no format for others.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import FileError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.untrusted import UntrustedError
from executorch_goldens_plugins.field.format import ENGINES, FrozenProgram

#: First bytes of a file, with the version of the format. The SHA-256 of the content comes next, then the content.
MAGIC = b"executorch-goldens fielded 2\n"
DIGEST_BYTES = 32
#: Bytes that a file may have.
LARGEST = 2**29
SUFFIX = ".program"
#: Name of a ``.pte``; a payload has its number.
WHOLE = "program"

#: What a program did on its own release: it was right; it departed from eager beyond its tolerance; it was refused; its
#: process died, or took too long.
RIGHT, WRONG, REFUSED, CRASHED = "right", "wrong", "refused", "crashed"
OWN = (RIGHT, WRONG, REFUSED, CRASHED)


#: Way out for a program that cannot be read.
AGAIN = "Delete it: the next run makes it again"


class CorpusError(FileError):
    """A program that cannot be read."""


class Shipped(msgspec.Struct, frozen=True):
    """A program that a release made of a cell, with all its inputs.

    Attributes
    ----------
    release
        That made it.
    programs
        The ``.pte``; for TOSA, the payloads of its delegates. None where the cell does not lower. A sample has no
        outputs where it gave none on its own release; what a payload should give is what its own release's reference
        model gave.
    own
        One of `OWN`.
    """

    cell: Cell
    release: str
    programs: tuple[FrozenProgram, ...]
    own: str = RIGHT


def write(path: Path, content: Shipped) -> None:
    """Leave a whole file, or nothing."""
    encoded = msgspec.msgpack.encode(content)
    durable.replace(path, MAGIC + hashlib.sha256(encoded).digest() + encoded, synced=False)


def read(path: Path) -> Shipped:
    """Return the shipped programs; raise `CorpusError`."""
    try:
        whole = untrusted.contents(path, LARGEST)
        head, content = whole[: len(MAGIC) + DIGEST_BYTES], whole[len(MAGIC) + DIGEST_BYTES :]
        if head != MAGIC + hashlib.sha256(content).digest():
            raise UntrustedError("it is damaged, or of another version")
        shipped = msgspec.msgpack.decode(content, type=Shipped)
        for name in (shipped.cell.target, shipped.cell.case, shipped.release):
            untrusted.require_name(name)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CorpusError(path, str(error), AGAIN) from error
    if shipped.own not in OWN or any(program.engine not in ENGINES for program in shipped.programs):
        raise CorpusError(path, "it does not hold together", AGAIN)
    return shipped
