"""Finds the models that a repository's source has, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.errors import UsageError, some

#: Folders that hold no model to ship.
LEFT_OUT = frozenset({"build", "dist", "goldens", "node_modules", "site-packages", "test", "tests"})


#: Suffix of a program exported by torch.export.
PROGRAM = ".pt2"


@dataclass(frozen=True)
class ModelName:
    """A class or function that makes a model, or an exported program.

    Attributes
    ----------
    file
        Relative to the repository's folder.
    name
        Of the class or function in it; that of the file, without its ending, for a program.
    checkpoint
        File with the state that the model is given, relative to the folder as well.
    """

    file: Path
    name: str
    checkpoint: Path | None = None

    @property
    def is_program(self) -> bool:
        """True if the file is the model itself."""
        return self.file.suffix == PROGRAM

    def __str__(self) -> str:
        if self.is_program:
            return self.file.as_posix()
        loaded = f"@{self.checkpoint.as_posix()}" if self.checkpoint else ""
        return f"{self.file.as_posix()}:{self.name}{loaded}"

    @property
    def module(self) -> str:
        """Name that the file is imported by: a folder ``src`` is where packages are, and not one itself."""
        parts = self.file.with_suffix("").parts
        parts = parts[1:] if parts[0] == "src" else parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def models_of(folder: Path) -> list[ModelName]:
    """Return the models in the files of a folder that no other model of their file contains."""
    return [
        ModelName(file.relative_to(folder), name)
        for file in sorted(folder.rglob("*.py"))
        if not any(_is_left_out(parent) for parent in file.parents if folder in parent.parents)
        for name in _outermost(file)
    ]


def model_named(text: str, folder: Path) -> ModelName:
    """Read ``FILE``, ``FILE:NAME``, ``FILE:NAME@CHECKPOINT`` or a ``.pt2``.

    Raises
    ------
    UsageError
        Where there is no one such model.
    """
    source, _, checkpoint = text.partition("@")
    path, _, name = source.partition(":")
    file = _file_in(folder, path, "name the one that has your model, as FILE:CLASS")
    if file.suffix == PROGRAM and not name and not checkpoint:
        return ModelName(file, file.stem)
    if file.suffix != ".py":
        raise UsageError(
            f"{path} is no Python file: name the model's class, as FILE:CLASS@CHECKPOINT, or a function that loads "
            "it and returns it, or it and its inputs, as FILE:FUNCTION"
        )
    state = (
        _file_in(folder, checkpoint, "name a checkpoint, as FILE:CLASS@CHECKPOINT") if checkpoint else None
    )
    if name:
        return ModelName(file, name, state)
    found = _outermost(folder / file)
    if len(found) != 1:
        has = f"has {some(found)}" if found else "has no class that derives from torch.nn.Module"
        raise UsageError(
            f"{path} {has}: name the class, or a function that returns the model, as {path}:NAME"
        )
    return ModelName(file, found[0], state)


def _file_in(folder: Path, path: str, way_out: str) -> Path:
    """Return a file of a folder, relative to it; raise UsageError."""
    file = (folder / path).resolve()
    if not file.is_file():
        raise UsageError(f"{path} is no file: {way_out}")
    if not file.is_relative_to(folder):
        raise UsageError(f"{path} is no file under {folder}: start in the folder of your repository")
    return file.relative_to(folder)


def _is_left_out(parent: Path) -> bool:
    return (
        parent.name in LEFT_OUT
        or parent.name.startswith(".")
        # An environment.
        or (parent / "pyvenv.cfg").exists()
    )


def _outermost(file: Path) -> list[str]:
    """Return the classes of a file that derive from ``Module`` and that no other such class uses."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return []
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    models: dict[str, ast.ClassDef] = {}
    for node in classes:
        if any(base == "Module" or base in models for base in _bases(node)):
            models[node.name] = node
    used = {
        name.id
        for owner, node in models.items()
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and name.id != owner
    }
    return [name for name in models if name not in used]


def _bases(node: ast.ClassDef) -> Iterator[str]:
    """Yield the last part of the name of each base: ``nn.Module`` is ``Module``."""
    for base in node.bases:
        if isinstance(base, ast.Name):
            yield base.id
        elif isinstance(base, ast.Attribute):
            yield base.attr
