"""Cases that are files: ``[[tool.goldens.cases]]`` of the repository, as a zoo that needs no source.

It is the zoo called by this module's name (`executorch_goldens.settings.config.CASES`). Importing it registers the
cases of the first ``pyproject.toml`` on the path that has any: processes that export have the repository there first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from executorch_goldens import registry, targets
from executorch_goldens.registry import ZooError
from executorch_goldens.settings import config
from executorch_goldens.settings.config import FileCase

if TYPE_CHECKING:
    from executorch_goldens.exporting import building
    from executorch_goldens.exporting.data import Data, Example


@dataclass(frozen=True)
class Build:
    """Makes the example of a case that is a file.

    Attributes
    ----------
    folder
        The folder that the files are relative to.
    file
        An exported program.
    inputs
        Its inputs, or none where it brings its own.
    """

    folder: Path
    file: Path
    inputs: Path | None

    def __call__(self, data: Data) -> Example:
        from executorch_goldens.exporting.archives import example_of_files

        return example_of_files(self.folder, self.file, self.inputs)


@dataclass(frozen=True)
class ProgramFile:
    """Brings the program of a case that is a ``.pte``, with its results elsewhere.

    Attributes
    ----------
    folder
        The folder that the files are relative to.
    entry
        Names the files.
    """

    folder: Path
    entry: FileCase

    def __call__(self, build: building.Build) -> building.Built:
        from executorch_goldens.exporting.building import BOUND, Built
        from executorch_goldens.exporting.recorded import runs

        entry = self.entry
        assert entry.file is not None
        assert entry.inputs is not None
        assert entry.outputs is not None
        bound = BOUND if entry.bound is None else entry.bound
        for sample, (inputs, outputs) in runs(self.folder, entry.inputs, entry.outputs).items():
            build.recorded(inputs, outputs, sample=sample, bound=bound)
        data = {} if entry.data is None else {Path(entry.data).name: (self.folder / entry.data).read_bytes()}
        return Built((self.folder / entry.file).read_bytes(), data)


def cases_of(folder: Path, stated: tuple[FileCase, ...]) -> Iterator[registry.Case]:
    """Yield the cases of a table; raise `ZooError` for files that are missing or of another kind."""
    for entry in stated:
        if entry.file is not None and entry.file.endswith(".pte"):
            yield _program_file(folder, entry)
            continue
        for what in ("outputs", "bound", "data"):
            if getattr(entry, what) is not None:
                raise ZooError(f"[[tool.goldens.cases]]: {what} is of a .pte file alone")
        for file, inputs in _files(folder, entry):
            if file.suffix != ".pt2":
                raise ZooError(
                    f"[[tool.goldens.cases]]: {file} is no .pt2 file, an exported program, and no .pte"
                )
            for each in filter(None, (file, inputs)):
                if not (folder / each).is_file():
                    raise ZooError(f"[[tool.goldens.cases]]: there is no file {each} in {folder}")
            yield registry.Case(
                name=entry.name or file.stem.lower().replace("_", "-"),
                family="files",
                guards=entry.guards or f"the exported program {file.as_posix()}",
                build=Build(folder, file, inputs),
                backends=entry.targets or entry.backends,
                also=tuple(name for name in entry.targets if targets.find(name).opt_in),
            )


def _program_file(folder: Path, entry: FileCase) -> registry.Case:
    """Return the case of a ``.pte``; raise `ZooError` for files that are missing or keys that do not fit it."""
    assert entry.file is not None
    if entry.targets or entry.backends:
        raise ZooError(f"[[tool.goldens.cases]]: {entry.file} is lowered: it has no targets and no backends")
    for what in ("inputs", "outputs"):
        if getattr(entry, what) is None:
            raise ZooError(f"[[tool.goldens.cases]]: {entry.file} has no {what}: name an .npz file")
    for each in filter(None, (entry.file, entry.inputs, entry.outputs, entry.data)):
        if not (folder / each).is_file():
            raise ZooError(f"[[tool.goldens.cases]]: there is no file {each} in {folder}")
    return registry.Case(
        name=entry.name or Path(entry.file).stem.lower().replace("_", "-"),
        family="files",
        guards=entry.guards or f"the program {Path(entry.file).as_posix()}",
        build=ProgramFile(folder, entry),
        is_build=True,
    )


def _files(folder: Path, entry: FileCase) -> Iterator[tuple[Path, Path | None]]:
    if (entry.file is None) == (entry.folder is None):
        raise ZooError("[[tool.goldens.cases]]: each has either file or folder")
    if entry.file is not None:
        yield Path(entry.file), Path(entry.inputs) if entry.inputs is not None else None
        return
    assert entry.folder is not None
    if entry.name is not None or entry.inputs is not None:
        raise ZooError("[[tool.goldens.cases]]: a folder has no name and no inputs: its files have")
    found = sorted((folder / entry.folder).glob("*.pt2"))
    if not found:
        raise ZooError(f"[[tool.goldens.cases]]: there is no .pt2 file in {folder / entry.folder}")
    for file in found:
        place, inputs = file.relative_to(folder), file.with_suffix(".npz").relative_to(folder)
        yield place, inputs if (folder / inputs).is_file() else None


def register() -> None:
    """Register the cases of the repository that is first on the path."""
    for entry in sys.path:
        if not (Path(entry) / config.FILE).is_file():
            continue
        found = config.load(Path(entry))
        if found.cases:
            for case in cases_of(found.root, found.cases):
                registry.CASES.add(case)
            return


register()
