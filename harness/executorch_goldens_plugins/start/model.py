"""The model of a first case and its inputs, as a person states them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.errors import UsageError

#: Dtypes of inputs.
FLOATS = ("float32", "float16", "bfloat16", "float64")
WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")
_STATED = re.compile(r"([1-9]\d*(?:,[1-9]\d*)*)(?::([a-z]+\d*))?")


@dataclass(frozen=True)
class ModelName:
    """A class or function that makes a model.

    Attributes
    ----------
    file
        Relative to the repository's folder.
    """

    file: Path
    name: str

    def __str__(self) -> str:
        return f"{self.file.as_posix()}:{self.name}"

    @property
    def module(self) -> str:
        """Name that the file is imported by: a folder ``src`` is where packages are, and not one itself."""
        parts = self.file.with_suffix("").parts
        parts = parts[1:] if parts[0] == "src" else parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def model_named(text: str, folder: Path) -> ModelName:
    """Read ``FILE:NAME``, a file of `folder`; raise UsageError."""
    path, _, name = text.partition(":")
    file = (folder / path).resolve()
    if not file.is_file():
        raise UsageError(f"{path} is no file: name the one that has your model, as FILE:CLASS")
    if not file.is_relative_to(folder):
        raise UsageError(f"{path} is no file under {folder}: start in the folder of your repository")
    if file.suffix != ".py" or not name.isidentifier():
        raise UsageError(
            f"{text} names nothing in a Python file: pass FILE:CLASS, or FILE:FUNCTION that returns the model"
        )
    return ModelName(file.relative_to(folder), name)


@dataclass(frozen=True)
class Input:
    """An input of a model.

    Attributes
    ----------
    name
        Name of the input in the model's ``forward``.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}".strip()

    @property
    def code(self) -> str:
        """The expression that makes it in a case.

        >>> Input((1, 40), name="x").code, Input((1, 16), "bool", "on").code
        ('data.tensor("x", 1, 40)', 'torch.from_numpy(data.generator("on").integers(0, 2, (1, 16))).to(torch.bool)')
        """
        if self.dtype in FLOATS:
            drawn = f'data.tensor("{self.name}", {", ".join(map(str, self.shape))})'
            return drawn if self.dtype == "float32" else f"{drawn}.to(torch.{self.dtype})"
        drawn = f'torch.from_numpy(data.generator("{self.name}").integers(0, 2, {self.shape}))'
        return drawn if self.dtype == "int64" else f"{drawn}.to(torch.{self.dtype})"


def stated(text: str) -> Input:
    """Read an input; raise UsageError.

    >>> str(stated("1,3,224,224")), str(stated("1,16:int64"))
    ('float32[1, 3, 224, 224]', 'int64[1, 16]')
    """
    match = _STATED.fullmatch(text)
    if match is None or (match[2] or "float32") not in (*FLOATS, *WHOLE):
        raise UsageError(
            f"{text!r} is no input such as 1,3,224,224 or 1,16:int64; dtypes are {', '.join((*FLOATS, *WHOLE))}"
        )
    return Input(tuple(map(int, match[1].split(","))), match[2] or "float32")
