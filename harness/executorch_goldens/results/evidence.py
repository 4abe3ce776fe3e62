"""Evidence of a cell for its page in a report that neither its texts nor its result row hold.

It is a part of ``cell.json`` (`results.proposals.CellFile`); ``cell.npz`` beside that has the tensors that a golden's
text only summarizes.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from executorch_goldens.artifact import Artifact, Beginning, Lowered, Outcome, Tensor
from executorch_goldens.decode import DecodeError
from executorch_goldens.decode.text import WRITTEN_OUT
from executorch_goldens.files import npz
from executorch_goldens.goldens.deviation import Deviation
from executorch_goldens.goldens.labels import OF_VARIATIONS, Labels
from executorch_goldens.goldens.rendering import decode_delegates
from executorch_goldens.judging.verdict import DISAGREEING

#: File with the arrays of tensors.
TENSORS = "cell.npz"
#: Larger tensors are not kept a second time: they are in the payloads.
MOST_NUMBERS = 1 << 20
#: A disagreement is shown between the first two of the artifacts.
SHOWN_ARTIFACTS = 2

Array = npt.NDArray[Any]

#: Kinds of tensors: an output of the program, the value that begins a departure, a constant of a delegate.
OUTPUT, VALUE, CONSTANT = "output", "value", "constant"


#: Bytes that the tensors of a cell may have, compressed or not.
LARGEST_ARRAYS = 64 << 20
#: Arrays of a tensor.
SIDES = ("actual", "expected", "tolerance")


class ShownTensor(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor.

    Attributes
    ----------
    kind
        ``output``, ``value`` (that begins a departure) or ``constant``.
    name
        Name of the constant in its delegate, or of the tensor in messages.
    where
        The delegate's text without its kind (``delegate_0``), or the sample of inputs.
    variation
        The variation whose program has it.
    expected, tolerance
        Eager's values, and the tolerance of each element; None for a constant.
    """

    kind: str
    name: str
    where: str
    variation: str
    actual: Any = None
    expected: Any = None
    tolerance: Any = None

    @property
    def deviation(self) -> Deviation | None:
        """Its deviation from eager's values; None for a constant."""
        if self.expected is None or self.tolerance is None:
            return None
        return Deviation(Tensor.from_array(self.expected), Tensor.from_array(self.actual), self.tolerance)


class Evidence(msgspec.Struct, frozen=True):
    """What a report shows of a cell beside its result and its artifacts.

    Attributes
    ----------
    message
        The lines below the reason, each after what it is about (`executorch_goldens.words.verdicts.lines`).
    agreeing
        Names of the variations that made the same, a list for each artifact.
    commands
        Commands, by purpose: ``accept``, ``again``, and what plugins propose.
    diverging
        Which pass made the difference, for people; empty where none is known.
    after
        The graph that this pass left, by variation; empty where all made the same.
    tensors
        Tensors beyond those that the texts hold whole.
    """

    message: Sequence[tuple[str, str]] = ()
    agreeing: Sequence[Sequence[str]] = ()
    commands: Mapping[str, str] = {}
    diverging: str = ""
    after: Mapping[str, str] = {}
    tensors: Sequence[ShownTensor] = ()

    def labels(self, verdict: str, sides: Labels) -> Labels:
        """Return the names of the two artifacts that a cell of a verdict is shown with.

        Parameters
        ----------
        sides
            Its golden and the artifact of the run, or two toolchains.
        """
        if verdict not in DISAGREEING:
            return sides
        names = [names[0] for names in self.agreeing]
        return Labels(names[0], names[1]) if len(names) > 1 else OF_VARIATIONS

    def split(self) -> tuple[Evidence, dict[str, Array]]:
        """Return it without the arrays of its tensors, and these by their tensor's number and side."""
        arrays = {
            f"{number}.{side}": array
            for number, tensor in enumerate(self.tensors)
            for side in SIDES
            if (array := getattr(tensor, side)) is not None
        }
        bare = [msgspec.structs.replace(each, **dict.fromkeys(SIDES)) for each in self.tensors]
        return msgspec.structs.replace(self, tensors=bare), arrays

    def with_arrays(self, folder: Path) -> Evidence:
        """Return it with the arrays of its tensors, from the folder of its cell; raise OSError and ValueError."""
        arrays = _arrays(folder / TENSORS)
        tensors = []
        for number, tensor in enumerate(self.tensors):
            sides = {side: arrays.get(f"{number}.{side}") for side in SIDES}
            tensors.append(msgspec.structs.replace(tensor, **sides))
            _require_alike(tensors[-1])
        return msgspec.structs.replace(self, tensors=tensors)


def _require_alike(tensor: ShownTensor) -> None:
    """Raise ValueError unless the sides of a tensor can be compared."""
    actual, expected, tolerance = (getattr(tensor, side) for side in SIDES)
    if actual is None:
        raise ValueError(f"{tensor.name} has no actual values")
    if expected is None and tolerance is None:
        return
    if expected is None or tolerance is None:
        raise ValueError(f"{tensor.name} has only one of expected and tolerance")
    if actual.shape != expected.shape or tolerance.shape not in ((), expected.shape):
        shapes = f"{actual.shape}, {expected.shape} and {tolerance.shape}"
        raise ValueError(f"{tensor.name} has {', '.join(SIDES)} of shapes {shapes}")
    if np.iscomplexobj(tolerance) or not (tolerance >= 0).all():
        raise ValueError(f"{tensor.name} has a tolerance that is no number from 0")


def write_arrays(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Write the arrays of a cell, if there are any; `numpy.savez` would add the time."""
    if not arrays:
        return
    with zipfile.ZipFile(folder / TENSORS, "w") as archive:
        for key, array in arrays.items():
            member = zipfile.ZipInfo(f"{key}.npy")
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)  # type: ignore[no-untyped-call]


def _arrays(path: Path) -> dict[str, Any]:
    """Return the arrays in a file by their tensor's number and side, none where there is no file; raise ValueError."""
    found = npz.read(path, LARGEST_ARRAYS) if path.is_file() else {}
    for key in found:
        number, _, side = key.partition(".")
        if not number.isdecimal() or side not in SIDES:
            raise ValueError(f"{path.name}: {key!r} is no tensor of a cell")
    return found


def tensors(groups: Sequence[Sequence[Outcome]]) -> Iterator[ShownTensor]:
    """Yield the tensors of the first artifacts of a cell, each given with all outcomes that made it."""
    for first, *_ in groups[:SHOWN_ARTIFACTS]:
        if isinstance(first.result, Artifact) and isinstance(first.result.result, Lowered):
            yield from _of_program(first.result.result, first.variation)


def _of_program(lowered: Lowered, variation: str) -> Iterator[ShownTensor]:
    for method in lowered.by_method():
        yield from _of_method(method, variation)
    yield from _of_beginning(lowered, variation)
    yield from _of_constants(lowered, variation)


def _of_method(lowered: Lowered, variation: str) -> Iterator[ShownTensor]:
    """Yield the outputs of one method, each on the sample that a verdict names and on the one that is worst."""
    for index, _ in enumerate(lowered.samples[0].expected if lowered.samples else ()):
        outputs = list(_outputs(lowered, index, variation))
        worst = max(outputs, key=lambda pair: pair[0], default=None)
        # A verdict names the first sample on which an output is wrong, which need not be the worst.
        first = next((pair for pair in outputs if pair[0] > 0), None)
        yield from (pair[1] for pair in (first, worst if worst is not first else None) if pair is not None)


def _of_beginning(lowered: Lowered, variation: str) -> Iterator[ShownTensor]:
    """Yield the value of the operator that begins a departure, if one does and its shape is the graph's."""
    begins = lowered.begins
    if begins is None or isinstance(begins.where, Beginning):
        return
    where = begins.where
    if where.expected.shape == where.actual.shape and where.expected.array().size <= MOST_NUMBERS:
        actual, expected, tolerance = (
            side.array() for side in (where.actual, where.expected, where.tolerance)
        )
        name = where.operator or where.node
        yield ShownTensor(VALUE, name, begins.sample, variation, actual, expected, tolerance)


def _of_constants(lowered: Lowered, variation: str) -> Iterator[ShownTensor]:
    """Yield the constants of delegates that a text only summarizes."""
    try:
        decoded = decode_delegates(lowered)
    except DecodeError:
        return
    for index, payload in enumerate(decoded):
        for name, constant in payload.constants().items():
            if WRITTEN_OUT < constant.size <= MOST_NUMBERS and constant.codec.name != "bytes":
                yield ShownTensor(CONSTANT, name, f"delegate_{index}", variation, constant.array())


def _outputs(lowered: Lowered, index: int, variation: str) -> Iterator[tuple[float, ShownTensor]]:
    """Yield an output on each sample of inputs, with how far it is beyond its tolerance."""
    for sample in lowered.samples:
        if index >= len(sample.outputs):
            continue
        expected, actual = sample.expected[index], sample.outputs[index]
        if expected.shape != actual.shape or expected.array().size > MOST_NUMBERS:
            continue
        allowed = np.broadcast_to(lowered.tolerance(sample, index), expected.shape)
        beyond = Deviation(expected, actual).differences() - allowed
        kept = ShownTensor(
            OUTPUT, f"output {index}", sample.name, variation, actual.array(), expected.array(), allowed
        )
        yield float(beyond.max(initial=-np.inf)), kept
