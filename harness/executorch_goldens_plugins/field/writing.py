"""Writes a corpus: whole, or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable, untrusted
from executorch_goldens_plugins.field.format import (
    FORMAT,
    LARGEST_PROGRAM,
    MANIFEST,
    OBJECTS,
    SEAL,
    CellEntry,
    CorpusError,
    FileEntry,
    FrozenProgram,
    FrozenSample,
    FrozenTensor,
    Manifest,
    ProgramEntry,
    SampleEntry,
    TensorEntry,
    require_whole,
)
from executorch_goldens_plugins.field.replay import LISTING, listing, require_replayable


class Writer:
    """Collects cells in a folder beside `folder`, which takes its name when `finish` is called.

    Parameters
    ----------
    folder
        Must not exist: a corpus is never changed.

    Raises
    ------
    CorpusError
        Where it cannot be written, there and by every method.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.cells: list[CellEntry] = []
        require_new(self.folder)
        try:
            self._aside = Path(
                tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=self.folder.parent)
            )
            (self._aside / OBJECTS).mkdir()
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Nothing is left of it if it has got its name.
        shutil.rmtree(self._aside, ignore_errors=True)

    def add(self, cell: Cell, variations: Sequence[str], programs: Sequence[FrozenProgram]) -> None:
        """Write the programs of a cell; raise ValueError, and list nothing, if a corpus cannot hold one."""
        objects: dict[str, bytes] = {}
        entries = [_program(program, objects) for program in programs]
        try:
            for digest, data in objects.items():
                path = self._aside / OBJECTS / digest
                if not path.exists():
                    durable.write_new(path, data)
        except OSError as error:
            raise self._unwritable(error) from error
        self.cells.append(CellEntry(str(cell), list(variations), entries))

    def finish(self, made_with: Mapping[str, str], patches: Sequence[str]) -> None:
        """Write the manifest, and give the corpus its name."""
        manifest = Manifest(FORMAT, dict(made_with), list(patches), self.cells)
        data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
        if len(data) > untrusted.LARGEST_TEXT:
            raise CorpusError(
                self.folder,
                f"its manifest would have {len(data):,} bytes, more than the {untrusted.LARGEST_TEXT:,} that are read",
                "Nothing was written: choose fewer cells, or freeze them into two corpora",
            )
        seal = f"{hashlib.sha256(data).hexdigest()}  {MANIFEST}\n"
        try:
            durable.write_new(self._aside / LISTING, listing(manifest).encode())
            durable.write_new(self._aside / MANIFEST, data)
            durable.write_new(self._aside / SEAL, seal.encode())
            self._aside.chmod(0o755)
            for each in (self._aside / OBJECTS, self._aside):
                durable.sync_folder(each)
            require_new(self.folder)
            self._aside.rename(self.folder)
            durable.sync_folder(self.folder.parent)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> CorpusError:
        return CorpusError(
            self.folder,
            f"cannot be written: {error.strerror or error}",
            "Nothing was left there: name a folder that does not exist, in one that can be written to",
        )


def require_new(folder: Path) -> None:
    """Raise `CorpusError` if the folder is not empty: a corpus is released once and never added to."""
    if folder.exists() or folder.is_symlink():
        raise CorpusError(
            folder, "exists, and a corpus is never changed", "Name another folder, or delete this one"
        )


def _program(program: FrozenProgram, objects: dict[str, bytes]) -> ProgramEntry:
    """Return the manifest entry of a program, whose bytes and tensors go to `objects`; raise ValueError."""
    if len(program.data) > LARGEST_PROGRAM:
        raise ValueError(f"{program.name} has {len(program.data):,} bytes, more than {LARGEST_PROGRAM:,}")
    entry = ProgramEntry(
        program.name,
        program.engine,
        list(program.backends),
        _object(program.data, objects),
        len(program.data),
        [_sample(sample, objects) for sample in program.samples],
        [FileEntry(name, _object(data, objects), len(data)) for name, data in program.files],
    )
    require_replayable(entry)
    return entry


def _sample(sample: FrozenSample, objects: dict[str, bytes]) -> SampleEntry:
    def entry(value: FrozenTensor) -> TensorEntry:
        return TensorEntry(value.dtype, value.shape, _object(value.memory(), objects), value.strides)

    made = SampleEntry(
        sample.name,
        [[entry(value) for value in step] for step in sample.steps],
        [entry(value) for value in sample.outputs],
        [entry(value) for value in sample.expected],
        [each if isinstance(each, float) else entry(each) for each in sample.tolerances],
        [method for method, _ in sample.calls()],
    )
    require_whole(made)
    return made


def _object(data: bytes, objects: dict[str, bytes]) -> str:
    digest = hashlib.sha256(data).hexdigest()
    objects[digest] = data
    return digest
