"""Sheets: many calls of operators in one program, each with inputs and outputs of its own.

``listings/<zoo>.samples.txt`` has the samples, drawn once and frozen. A line is a sample::

    add-float32-2  torch.add({0}, {1}, alpha=2)  float32 2,3 -9 9 input; float32 3 -9 9 held

``{0}`` is the first tensor. A tensor is its dtype, its shape, the least and the largest of its values, and whether it
is an input of the program or a constant that it holds. Values follow the names of sample and tensor alone. Floats are
odd thirty-seconds, or such parts of a wider or narrower range: none is at a jump of an operator that has some.

``listings/<zoo>.txt`` has the sheets: a line is a case, as `lab.guests.listing` reads it, with the numbers of its
samples in the place of the test's name.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.guests import listing
from lab.guests.listing import FOLDER, Entry, cut

if TYPE_CHECKING:
    import numpy as np
    import torch

    from executorch_goldens.exporting.data import Example

#: Sources of a sample's tensors.
INPUT, HELD = "input", "held"
#: Samples in a sheet, unless one operator has more: docs/guests.md has what they cost in sheets of other sizes.
SIZE = 10
#: Dtypes whose samples share a sheet.
GROUPS = {
    "float32": ("float32",),
    "float16": ("float16",),
    "integers": ("int64", "int32", "int8", "bool"),
}
#: Targets that the sheets of a group are exported for.
TARGETS = {
    "float32": ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8"),
    "float16": ("tosa-fp", "xnnpack-fp32"),
    "integers": ("tosa-fp", "tosa-int"),
}
#: Distance of the floats of most samples, and how far they are off multiples of it.
STEP, OFF = 1 / 16, 1 / 32
#: Fewest values that a float can have in its range before `STEP` is halved.
FEWEST = 16


@dataclass(frozen=True)
class Tensor:
    """A tensor of a sample.

    Attributes
    ----------
    dtype
        As ``torch.`` names it.
    low, high
        Of its values; of booleans 0 and 1.
    kind
        `INPUT` or `HELD`.
    """

    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float
    kind: str = INPUT

    def text(self) -> str:
        shape = ",".join(map(str, self.shape)) or "-"
        return f"{self.dtype} {shape} {self.low:g} {self.high:g} {self.kind}"

    @classmethod
    def from_text(cls, text: str) -> Tensor:
        """Return the sheet that `text` wrote.

        >>> Tensor.from_text("float32 2,3 -9 9 held").shape
        (2, 3)
        """
        dtype, shape, low, high, kind = text.split(" ")
        sizes = tuple(map(int, shape.split(","))) if shape != "-" else ()
        return cls(dtype, sizes, float(low), float(high), kind)


@dataclass(frozen=True)
class Sample:
    """One call of an operator.

    Attributes
    ----------
    call
        Python, ``{0}`` for the first tensor; a call that gives several tensors begins with ``*``.
    """

    name: str
    call: str
    tensors: tuple[Tensor, ...]

    @property
    def operator(self) -> str:
        """Its name without dtype and number."""
        return self.name.rsplit("-", 2)[0]

    @property
    def group(self) -> str:
        """One of `GROUPS`."""
        dtype = self.name.rsplit("-", 2)[1]
        return next(group for group, dtypes in GROUPS.items() if dtype in dtypes)

    def line(self) -> str:
        return f"{self.name}  {self.call}  {'; '.join(each.text() for each in self.tensors)}"


def path_of(zoo: str) -> Path:
    """Return the file of the samples of a zoo."""
    return FOLDER / f"{zoo}.samples.txt"


@functools.cache
def samples(zoo: str) -> tuple[Sample, ...]:
    """Return the samples of a zoo, in order."""
    found = []
    for line in path_of(zoo).read_text(encoding="utf-8").splitlines():
        name, call, tensors = line.split("  ")
        found.append(Sample(name, call, tuple(map(Tensor.from_text, tensors.split("; ")))))
    return tuple(found)


def whole(zoo: str, releases: Sequence[str]) -> Iterator[Entry]:
    """Yield the sheets of a zoo as cases of `releases`, none of them split: one for each target.

    A sheet has the samples of operators whose names follow each other.
    """
    there = samples(zoo)
    for group, targets in TARGETS.items():
        numbers = sorted(
            (n for n in range(len(there)) if there[n].group == group), key=lambda n: there[n].name
        )
        operators = [list(of) for _, of in itertools.groupby(numbers, lambda n: there[n].operator)]
        for place, sheet in enumerate(_packed(operators)):
            for target in targets:
                yield entry(zoo, sheet, place, target, releases)


def _packed(operators: Sequence[list[int]]) -> Iterator[list[int]]:
    sheet: list[int] = []
    for numbers in operators:
        if sheet and len(sheet) + len(numbers) > SIZE:
            yield sheet
            sheet = []
        sheet = sheet + numbers
    if sheet:
        yield sheet


def entry(zoo: str, numbers: Sequence[int], place: int, target: str, releases: Sequence[str]) -> Entry:
    """Return the case of a sheet of the samples of these numbers.

    Parameters
    ----------
    place
        Of the whole sheet among those of its group.
    """
    there = samples(zoo)
    first, last = there[numbers[0]], there[numbers[-1]]
    if len(numbers) == 1:
        stem = first.name
    else:
        to = "" if first.operator == last.operator else f"-to-{last.operator}"
        stem = f"{first.operator}{to}-{first.group}"
    node = ",".join(map(str, numbers))
    name = cut(f"{stem}-{target}", hashlib.sha256(f"{node} {target}".encode()).hexdigest())
    return Entry(name, first.group, node, place, (target,), tuple(releases))


def source(of: Sequence[Sample]) -> str:
    """Return a sheet as Python: the class ``Sheet``, whose ``forward`` makes every call.

    Its ``counts`` says how many outputs each call gives.
    """
    inputs, calls = [], []
    for number, sample in enumerate(of):
        names = []
        for place, tensor in enumerate(sample.tensors):
            name = f"x{number}_{place}"
            if tensor.kind == INPUT:
                inputs.append(name)
            names.append(name if tensor.kind == INPUT else f"self.{name}")
        calls.append(sample.call.format(*names))
    text = ["import torch", "", "", "class Sheet(torch.nn.Module):"]
    for name, form in (("forward", "{}"), ("counts", "len(({},))")):
        text += [f"    def {name}(self, {', '.join(inputs)}):", "        return ("]
        text += [*(f"            {form.format(call)}," for call in calls), "        )", ""]
    return "\n".join(text)


def example(of: Sequence[Sample]) -> Example:
    """Return the program of a sheet with its inputs."""
    from executorch_goldens.exporting.data import Example

    module, inputs = program(of)
    return Example(module, inputs, fill=False)


def parts_of(zoo: str, case: str, release: str) -> tuple[tuple[str, int], ...]:
    """Return the samples of a sheet on a release, each with the number of its outputs."""
    node = next(
        each.node for each in listing.read(zoo).entries if each.name == case and release in each.releases
    )
    of = [samples(zoo)[int(number)] for number in node.split(",")]
    counts: Sequence[int] = (1,) * len(of)
    if any(sample.call.startswith("*") for sample in of):
        import torch

        module, inputs = program(of)
        with torch.no_grad():
            counts = module.counts(*inputs)
    return tuple((sample.name, count) for sample, count in zip(of, counts, strict=True))


def program(of: Sequence[Sample]) -> tuple[Any, tuple[torch.Tensor, ...]]:
    """Return the module of a sheet, an instance of its class ``Sheet``, with its inputs."""
    names: dict[str, Any] = {}
    exec(compile(source(of), "<sheet>", "exec"), names)
    module = names["Sheet"]()
    inputs = []
    for number, sample in enumerate(of):
        for place, tensor in enumerate(sample.tensors):
            made = filled(sample, place)
            if tensor.kind == INPUT:
                inputs.append(made)
            else:
                module.register_buffer(f"x{number}_{place}", made)
    return module, tuple(inputs)


def filled(sample: Sample, place: int) -> torch.Tensor:
    """Return the values of a tensor of a sample."""
    import torch

    from executorch_goldens.exporting.data import Data

    tensor = sample.tensors[place]
    generator = Data(sample.name).generator(str(place))
    size = math.prod(tensor.shape)
    if tensor.dtype.startswith(("float", "bfloat")):
        values = floats(generator, tensor.low, tensor.high, size)
    else:
        values = generator.integers(int(tensor.low), int(tensor.high), size, endpoint=True)
    made = torch.from_numpy(values).reshape(tensor.shape)
    return made.to(getattr(torch, tensor.dtype)).contiguous()


def floats(generator: np.random.Generator, low: float, high: float, size: int) -> np.ndarray[Any, Any]:
    """Return floats between two bounds, distinct where there are enough."""
    import numpy as np

    step = STEP
    span = high - low
    if span == 0.0:
        return np.full(size, low)
    while span / step < FEWEST:
        step /= 2
    first, last = math.ceil(low / step - 0.5), math.floor(high / step - 0.5)
    count = last - first + 1
    drawn = generator.permutation(count)[:size] if size <= count else generator.integers(0, count, size)
    return (first + drawn + 0.5) * step


def built(zoo: str, node: str) -> Example:
    """Build the sheet of the samples whose numbers an entry of the listing has."""
    there = samples(zoo)
    return example([there[int(number)] for number in node.split(",")])
