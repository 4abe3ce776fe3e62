"""Inputs of a first case, as a person states them and as a zoo makes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from executorch_goldens.errors import UsageError

#: Dtypes of inputs, as torch calls them.
FLOATS = ("float32", "float16", "bfloat16", "float64")
WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")
_STATED = re.compile(r"([1-9]\d*(?:,[1-9]\d*)*)(?::([a-z]+\d*))?")


@dataclass(frozen=True)
class Input:
    """An input of a model.

    Attributes
    ----------
    shape
        Lengths of the dimensions.
    dtype
        One of `FLOATS` or `WHOLE`.
    name
        As the model's ``forward`` calls it.
    below
        Of whole numbers: what all are below. A model that looks them up in a table takes no larger ones.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    name: str = ""
    below: int = 2

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}".strip()

    @property
    def stated(self) -> str:
        """The input as a person writes it."""
        suffix = "" if self.dtype == "float32" else f":{self.dtype}"
        return f"{','.join(map(str, self.shape))}{suffix}"

    @property
    def code(self) -> str:
        """The expression that makes it in a case.

        >>> Input((1, 40), name="x").code, Input((1, 16), "bool", "on").code
        ('data.tensor("x", 1, 40)', 'torch.from_numpy(data.generator("on").integers(0, 2, (1, 16))).to(torch.bool)')
        """
        if self.dtype in FLOATS:
            drawn = f'data.tensor("{self.name}", {", ".join(map(str, self.shape))})'
            return drawn if self.dtype == "float32" else f"{drawn}.to(torch.{self.dtype})"
        drawn = f'torch.from_numpy(data.generator("{self.name}").integers(0, {self.below}, {self.shape}))'
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


def is_example(text: str) -> bool:
    """Return whether a text names a function rather than a shape.

    >>> is_example("nets.examples:inputs"), is_example("1,16:int64")
    (True, False)
    """
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text) is not None
