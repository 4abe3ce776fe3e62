"""Reads, changes and seals frozen corpora; `tests/data/corpora` has two real ones.

``linear-1.4.1`` has format 1. ``replayed-1.4.1`` has format 2: ``goldens freeze DIR -t 1.4.1 --variations 2`` with a
``--cell`` for each of its cells.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens_plugins.field.format import MANIFEST, OBJECTS, SEAL, FrozenProgram
from executorch_goldens_plugins.field.reading import Corpus
from tests import DATA

FROZEN = DATA / "corpora" / "linear-1.4.1"
XNNPACK, TOSA = Cell("xnnpack-fp32", "linear"), Cell("tosa-int", "linear")
REPLAYED = DATA / "corpora" / "replayed-1.4.1"
#: Its cells: an input and an output that are not in C order in memory, steps that follow one another, bfloat16.
CHANNELS_LAST, STATE = Cell("xnnpack-fp32", "conv2d-grouped-dilated"), Cell("xnnpack-fp32", "running-state")
BFLOAT16 = Cell("tosa-bf16", "linear")


def program(cell: Cell, name: str, folder: Path = FROZEN) -> FrozenProgram:
    """Return a program of a corpus."""
    corpus = Corpus.load(folder)
    (entry,) = (
        program
        for each in corpus.manifest.cells
        if each.cell == str(cell)
        for program in each.programs
        if program.name == name
    )
    return corpus.program(entry)


def sealed(folder: Path, data: bytes) -> None:
    """Write a manifest with a digest that fits, as whoever hands over a corpus can."""
    (folder / MANIFEST).write_bytes(data)
    (folder / SEAL).write_text(f"{hashlib.sha256(data).hexdigest()}  {MANIFEST}\n")


def edited(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    edit(manifest)
    sealed(folder, json.dumps(manifest).encode())


def first_object(folder: Path) -> Path:
    """Return the file of the first program."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    return folder / OBJECTS / manifest["cells"][0]["programs"][0]["sha256"]


def changed(frozen: FrozenProgram, edit: Callable[[bytearray], object]) -> FrozenProgram:
    """Return a program whose bytes are edited: in a corpus that was made for harm, its digest fits."""
    data = bytearray(frozen.data)
    edit(data)
    return dataclasses.replace(frozen, data=bytes(data))


def halved(data: bytearray) -> None:
    del data[len(data) // 2 :]
