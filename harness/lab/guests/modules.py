"""Samples of PyTorch's database of modules, drawn once and frozen.

``listings/torch-modules.samples.txt`` has a line a sample, as that of `lab.guests.sheets`, and what makes the module::

    linear-0  torch.nn.Linear(10, 8)  ({0})  float32 4,10 -9 9 input
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.guests.listing import FOLDER
from lab.guests.sheets import Sample, Tensor, filled

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Example

FILE = FOLDER / "torch-modules.samples.txt"


@dataclass(frozen=True)
class ModuleSample:
    """One call of a module.

    Attributes
    ----------
    made
        Python of the module.
    call
        Its arguments in brackets, ``{0}`` for the first tensor.
    """

    name: str
    made: str
    call: str
    tensors: tuple[Tensor, ...]

    def line(self) -> str:
        return "  ".join((self.name, self.made, self.call, "; ".join(each.text() for each in self.tensors)))


@functools.cache
def samples() -> tuple[ModuleSample, ...]:
    """Return the samples, in order."""
    found = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        name, made, call, tensors = line.split("  ")
        found.append(ModuleSample(name, made, call, tuple(map(Tensor.from_text, tensors.split("; ")))))
    return tuple(found)


def source(sample: ModuleSample) -> str:
    """Return a sample as Python: the class ``Called``."""
    names = [f"x{place}" for place in range(len(sample.tensors))]
    return "\n".join(
        (
            "import torch",
            "",
            "",
            "class Called(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            f"        self.module = {sample.made}",
            "",
            f"    def forward(self, {', '.join(names)}):",
            f"        return self.module{sample.call.format(*names)}",
            "",
        )
    )


def example(sample: ModuleSample) -> Example:
    """Return the program of a sample with its inputs; its weights are filled as those of other cases."""
    from executorch_goldens.exporting.data import Example

    names: dict[str, Any] = {}
    exec(compile(source(sample), "<module>", "exec"), names)
    of = Sample(sample.name, sample.call, sample.tensors)
    return Example(names["Called"](), tuple(filled(of, place) for place in range(len(sample.tensors))))
