"""Reads a corpus: runs nothing of it, and uses nothing whose digest differs (harness/lab/docs/supply-chain.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.files import untrusted
from executorch_goldens_plugins.field.format import (
    ENGINES,
    FORMAT,
    LARGEST_PROGRAM,
    LARGEST_TENSOR,
    MANIFEST,
    OBJECTS,
    READ,
    SEAL,
    CellEntry,
    CorpusError,
    FrozenProgram,
    FrozenSample,
    FrozenTensor,
    Head,
    Manifest,
    ProgramEntry,
    SampleEntry,
    TensorEntry,
    require_whole,
    tensors,
)
from executorch_goldens_plugins.field.replay import LISTING, listing, require_replayable

#: Bytes of the file with the manifest's digest.
LARGEST_SEAL = 1 << 10
#: Way out for a file that differs from the frozen one.
COPY = "Nothing of the corpus was run: copy it again from where it was frozen"


@dataclass(frozen=True)
class Corpus:
    """A corpus whose manifest holds together; `check` says whether the rest does."""

    folder: Path
    manifest: Manifest

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Read the manifest of the corpus in `folder`; raise `CorpusError`."""
        path = folder / MANIFEST
        if not folder.is_dir() or not path.exists():
            raise CorpusError(
                folder, f"is no corpus: it has no {MANIFEST}", "Name a folder that freeze has written"
            )
        data = _contents(path, untrusted.LARGEST_TEXT)
        seal = _contents(folder / SEAL, LARGEST_SEAL)
        if seal.split()[:1] != [hashlib.sha256(data).hexdigest().encode()]:
            raise CorpusError(path, f"does not have the digest in {SEAL}: one of them was changed", COPY)
        try:
            manifest = parsed(data)
        except UnknownFormatError as error:
            raise CorpusError(
                path, str(error), "Use the executorch-goldens that this corpus names"
            ) from error
        except ValueError as error:
            raise CorpusError(path, f"is no manifest of a corpus: {error}", COPY) from error
        return cls(folder, manifest)

    def check(self) -> None:
        """Compare every file with its digest; raise `CorpusError` for the first that differs."""
        sizes: dict[str, int] = {}
        for digest, size in self._objects():
            if sizes.setdefault(digest, size) != size:
                raise CorpusError(
                    self.folder / MANIFEST,
                    f"says {size:,} and {sizes[digest]:,} bytes of one file, {digest}",
                    COPY,
                )
        for digest, size in sizes.items():
            self._object(digest, size)
        if self.manifest.format > 1:
            path = self.folder / LISTING
            if _contents(path, untrusted.LARGEST_TEXT) != listing(self.manifest).encode():
                raise CorpusError(path, f"was changed: its digest is not the one in {MANIFEST}", COPY)

    def _objects(self) -> Iterator[tuple[str, int]]:
        for cell in self.manifest.cells:
            for program in cell.programs:
                yield program.sha256, program.size
                yield from ((file.sha256, file.size) for file in program.files)
                for sample in program.samples:
                    yield from ((tensor.sha256, tensor.size) for tensor in tensors(sample))

    def program(self, entry: ProgramEntry) -> FrozenProgram:
        """Return a program with all that it is run on; raise `CorpusError`."""
        return FrozenProgram(
            entry.name,
            entry.engine,
            tuple(entry.backends),
            self._object(entry.sha256, entry.size),
            tuple(map(self._sample, entry.samples)),
            tuple((file.name, self._object(file.sha256, file.size)) for file in entry.files),
        )

    def _sample(self, entry: SampleEntry) -> FrozenSample:
        return FrozenSample(
            entry.name,
            tuple(tuple(map(self._value, step)) for step in entry.steps),
            tuple(map(self._value, entry.outputs)),
            tuple(map(self._value, entry.expected)),
            tuple(self._value(each) if isinstance(each, TensorEntry) else each for each in entry.tolerances),
            tuple(entry.methods),
        )

    def _value(self, entry: TensorEntry) -> FrozenTensor:
        made = FrozenTensor if self.manifest.format == 1 else FrozenTensor.of_memory
        return made(entry.dtype, entry.shape, self._object(entry.sha256, entry.size), entry.strides)

    def _object(self, digest: str, size: int) -> bytes:
        """Return the bytes that have a digest; raise `CorpusError` where no file has them."""
        folder = self.folder / OBJECTS
        path = folder / digest
        if folder.is_symlink():
            raise CorpusError(folder, "is a link, which is not followed", COPY)
        data = _contents(path, max(LARGEST_PROGRAM, LARGEST_TENSOR))
        if len(data) != size:
            raise CorpusError(path, f"has {len(data):,} bytes where {size:,} were frozen", COPY)
        if hashlib.sha256(data).hexdigest() != digest:
            raise CorpusError(path, "was changed: its SHA-256 is not its name", COPY)
        return data


class UnknownFormatError(ValueError):
    """A manifest of another format than `FORMAT`."""


def parsed(data: bytes) -> Manifest:
    """Return the content of a manifest; raise ValueError unless it is one, UnknownFormatError for another version."""
    try:
        version = msgspec.json.decode(data, type=Head).format
        if version not in READ:
            raise UnknownFormatError(f"has format {version}, and this harness reads {READ[0]} to {FORMAT}")
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    _require_sound(manifest)
    return manifest


def _require_sound(manifest: Manifest) -> None:
    """Raise ValueError where a manifest of the right types does not hold together."""
    names = set()
    for entry in manifest.cells:
        cell = cell_of(entry)
        if cell in names:
            raise ValueError(f"{cell} is there twice")
        names.add(cell)
        untrusted.require_names(program.name for program in entry.programs)
        if len({program.name for program in entry.programs}) < len(entry.programs):
            raise ValueError(f"{cell} has two programs of one name")
        for program in entry.programs:
            _require_sound_program(cell, program, manifest.format)


def _require_sound_program(cell: Cell, program: ProgramEntry, version: int) -> None:
    if program.engine not in ENGINES:
        raise ValueError(f"{cell}: no engine {program.engine!r} is known")
    try:
        if version > 1:
            require_replayable(program)
    except ValueError as error:
        raise ValueError(f"{cell}, {program.name}: {error}") from error
    for sample in program.samples:
        try:
            require_whole(sample)
        except ValueError as error:
            raise ValueError(f"{cell}, {program.name}, sample {sample.name!r}: {error}") from error


def cell_of(entry: CellEntry) -> Cell:
    """Return the cell that an entry is of; raise ValueError."""
    try:
        cell = Cell.named(entry.cell)
    except ValueError:
        raise ValueError(f"{entry.cell!r} is not TARGET/CASE") from None
    untrusted.require_name(cell.target)
    untrusted.require_name(cell.case)
    return cell


def _contents(path: Path, most: int) -> bytes:
    try:
        return untrusted.contents(path, most)
    except FileNotFoundError:
        raise CorpusError(path, "is missing", COPY) from None
    except untrusted.UntrustedError as error:
        raise CorpusError(path, f"is not read: {error}", COPY) from error
    except OSError as error:
        raise CorpusError(path, f"cannot be read: {error.strerror or error}", COPY) from error
