"""The format of a corpus: values and programs in memory, and its manifest.

The manifest is JSON, read with a declared type for everything in it: what is not declared here is an error. Tensors
and programs are raw bytes in files of their own, named by their SHA-256: a header of a format of arrays would be one
more thing that can claim what is not there, and none has bfloat16. `replay` lists the same for what reads no JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from executorch_goldens.artifact import Tensor
from executorch_goldens.decode.constant import CODECS
from executorch_goldens.errors import FileError

#: Version of what is written, and those that are read. Format 1 has no methods and no listing for a device, and its
#: files hold tensors in C order whatever their strides are.
FORMAT = 2
READ = (1, 2)
#: The method of a step where a manifest of format 1 names none.
FORWARD = "forward"
#: The manifest; the file beside it with its digest, as sha256sum writes it; and the folder of everything else.
MANIFEST, SEAL, OBJECTS = "corpus.json", "corpus.json.sha256", "objects"

#: Engines of a program: ExecuTorch's runtime, the reference model of tosa-tools, or only the device it was made for.
EXECUTORCH, REFERENCE_MODEL, DEVICE = ENGINES = ("executorch", "tosa-reference-model", "device")

#: Bytes of an element, by what torch calls the dtype.
ITEMSIZE = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
#: Dtypes of these that numpy has not, with how their bits become float32.
NOT_IN_NUMPY = {
    "bfloat16": CODECS["bf16"],
    "float8_e4m3fn": CODECS["f8e4m3fn"],
    "float8_e5m2": CODECS["f8e5m2"],
}

#: Bytes of a program, and of a tensor. The largest of the zoo have 3 MB and 0.6 MB.
LARGEST_PROGRAM = 1 << 30
LARGEST_TENSOR = 1 << 28
#: Largest numbers of a manifest's entries, each by itself; the size of the file bounds them together.
MOST_CELLS, MOST_PROGRAMS, MOST_SAMPLES, MOST_TENSORS = 10_000, 1_000, 100, 1_000
#: Dimensions of a tensor: as in ExecuTorch (runtime/core/exec_aten/util/tensor_dimension_limit.h).
MOST_DIMENSIONS = 16


class CorpusError(FileError):
    """A corpus, or a file of it, that is not used."""


@dataclass(frozen=True)
class FrozenTensor:
    """A tensor of any dtype of `ITEMSIZE`.

    Attributes
    ----------
    dtype
        Dtype in torch's words: ``float32``, ``bfloat16``.
    shape
        Lengths of the dimensions.
    data
        The elements in C order, little endian, ``prod(shape) * ITEMSIZE[dtype]`` bytes.
    strides
        Distance of elements from each other in memory when it is handed to a program, where not as in C order: a
        channels-last image for instance.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes = field(repr=False)
    strides: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where there are not the bytes that dtype and shape take, or strides do not fit."""
        if self.dtype not in ITEMSIZE:
            raise ValueError(f"no dtype {self.dtype!r} is known")
        size = math.prod(self.shape) * ITEMSIZE[self.dtype]
        if len(self.data) != size:
            raise ValueError(f"{self.dtype}{list(self.shape)} takes {size:,} bytes, not {len(self.data):,}")
        _require_strides(self.shape, self.strides)

    @classmethod
    def from_tensor(cls, tensor: Tensor) -> FrozenTensor:
        return cls(tensor.dtype, tensor.shape, tensor.data)

    @classmethod
    def of_memory(
        cls, dtype: str, shape: tuple[int, ...], memory: bytes, strides: tuple[int, ...] | None
    ) -> FrozenTensor:
        """Return the tensor whose elements are `memory` where `strides` put them; raise ValueError."""
        if strides is None:
            return cls(dtype, shape, memory)
        # Checks dtype, number of bytes and strides before they are used.
        stored = cls(dtype, shape, memory, strides)
        order = order_in_memory(shape, strides)
        there = np.frombuffer(memory, stored._bits()).reshape([shape[at] for at in order])
        return cls(dtype, shape, there.transpose(np.argsort(order)).tobytes(), strides)

    def memory(self) -> bytes:
        """Return the elements in the order that they have in memory.

        >>> FrozenTensor("int8", (2, 3), bytes(range(6)), (1, 2)).memory().hex()
        '000301040205'
        """
        if self.strides is None:
            return self.data
        elements = np.frombuffer(self.data, self._bits()).reshape(self.shape)
        return elements.transpose(order_in_memory(self.shape, self.strides)).tobytes()

    def _bits(self) -> np.dtype[Any]:
        """Return a dtype of numpy's with as many bytes."""
        return np.dtype(f"V{ITEMSIZE[self.dtype]}")

    @classmethod
    def of_array(cls, array: np.ndarray[Any, Any]) -> FrozenTensor:
        """Return an array of the reference model; of a dtype that numpy lacks, the bits as whole numbers."""
        bits = array if array.dtype.kind in "biufc" else array.view(f"u{array.dtype.itemsize}")
        return cls(str(bits.dtype), tuple(bits.shape), bits.tobytes())

    def tensor(self) -> Tensor:
        """Return the same numbers in a dtype that numpy has.

        >>> FrozenTensor("bfloat16", (2,), bytes.fromhex("803f00c0")).tensor().array()
        array([ 1., -2.], dtype=float32)
        """
        if codec := NOT_IN_NUMPY.get(self.dtype):
            numbers = codec.numbers(np.frombuffer(self.data, codec.codes))
            return Tensor("float32", self.shape, numbers.astype("<f4").tobytes())
        return Tensor(self.dtype, self.shape, self.data)

    def narrowed(self, dtype: str) -> FrozenTensor:
        """Return the numbers of a float32 tensor in a dtype of `NOT_IN_NUMPY`; raise ValueError where it lacks some.

        >>> FrozenTensor.from_tensor(Tensor.from_array(np.float32([1.0, -2.0]))).narrowed("bfloat16").data.hex()
        '803f00c0'
        """
        codec = NOT_IN_NUMPY[dtype]
        every = codec.numbers(np.arange(1 << codec.bits).astype(codec.codes)).astype("<f4")
        numbers = np.frombuffer(self.data, "<f4")
        # As bits, so that zeros of both signs are two; which NaN it is says nothing.
        by_bits = np.argsort(every.view("<u4"))
        found = np.searchsorted(every.view("<u4"), numbers.view("<u4"), sorter=by_bits)
        codes = by_bits[np.minimum(found, by_bits.size - 1)]
        codes = np.where(np.isnan(numbers), np.flatnonzero(np.isnan(every))[0], codes)
        if not np.array_equal(every[codes], numbers, equal_nan=True):
            raise ValueError(f"it gives numbers that {dtype} has not")
        return FrozenTensor(dtype, self.shape, codes.astype(codec.codes).tobytes(), self.strides)


@dataclass(frozen=True)
class FrozenSample:
    """Inputs and expected outputs of a program.

    Attributes
    ----------
    name
        See `executorch_goldens.zoo.registry.SAMPLES`.
    steps
        The inputs of runs that follow one another; a program with a state keeps it between them.
    outputs
        The outputs of the last of them when it was frozen.
    expected
        Reference of each output: what the (quantized) eager model gives.
    tolerances
        The largest absolute difference from `expected` that rounding explains, for each output: of all its elements, or
        float64 for each.
    methods
        The method that each step runs; empty where all run `FORWARD`. A delegate by itself has no methods.
    """

    name: str
    steps: tuple[tuple[FrozenTensor, ...], ...]
    outputs: tuple[FrozenTensor, ...] = ()
    expected: tuple[FrozenTensor, ...] = ()
    tolerances: tuple[float | FrozenTensor, ...] = ()
    methods: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where tolerances do not fit the expected outputs, or methods the steps."""
        _require_measures(self.expected, self.tolerances)
        _require_methods(self.methods, self.steps)

    def calls(self) -> tuple[tuple[str, tuple[FrozenTensor, ...]], ...]:
        """Return the method and the inputs of each step."""
        return tuple(zip(self.methods or (FORWARD,) * len(self.steps), self.steps, strict=True))

    def tolerance(self, index: int) -> npt.NDArray[np.float64] | float:
        """Return how far an output may be off, for all its elements or for each."""
        tolerance = self.tolerances[index]
        return tolerance.tensor().wide() if isinstance(tolerance, FrozenTensor) else tolerance


@dataclass(frozen=True)
class FrozenProgram:
    """A program with its samples.

    Attributes
    ----------
    name
        ``program`` for the whole of a cell; ``delegate_<n>`` for a payload that can be run by itself, and
        ``delegate_<n>-sizes-<m>`` for each of the sizes that it was run at, where it leaves sizes open.
    engine
        One of `ENGINES`.
    backends
        Ids of the backends of its delegates.
    data
        A ``.pte``, or a TOSA flatbuffer.
    files
        The data files (``.ptd``) that it needs, by name.
    """

    name: str
    engine: str
    backends: tuple[str, ...]
    data: bytes = field(repr=False)
    samples: tuple[FrozenSample, ...]
    files: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)


# The manifest

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Length = Annotated[int, Meta(ge=0, le=LARGEST_TENSOR)]
Dimensions = Annotated[tuple[Length, ...], Meta(max_length=MOST_DIMENSIONS)]


class _Struct(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the structures in a manifest."""


class TensorEntry(_Struct):
    """A `FrozenTensor`, with the digest of its bytes in their place."""

    dtype: Name
    shape: Dimensions
    sha256: Digest
    strides: Dimensions | None = None

    @property
    def size(self) -> int:
        """Bytes that it has."""
        return math.prod(self.shape) * ITEMSIZE[self.dtype]


Tensors = Annotated[list[TensorEntry], Meta(max_length=MOST_TENSORS)]


class SampleEntry(_Struct):
    """A `FrozenSample`."""

    name: Name
    steps: Annotated[list[Tensors], Meta(min_length=1, max_length=MOST_SAMPLES)]
    outputs: Tensors
    expected: Tensors
    tolerances: Annotated[list[Annotated[float, Meta(ge=0)] | TensorEntry], Meta(max_length=MOST_TENSORS)]
    methods: Annotated[list[Name], Meta(max_length=MOST_SAMPLES)] = []

    def calls(self) -> list[tuple[str, list[TensorEntry]]]:
        """Return the method and the inputs of each step."""
        return list(zip(self.methods or [FORWARD] * len(self.steps), self.steps, strict=True))


class FileEntry(_Struct):
    """A data file, with the digest and number of its bytes in their place."""

    name: Name
    sha256: Digest
    size: Annotated[int, Meta(ge=0, le=LARGEST_PROGRAM)]


class ProgramEntry(_Struct):
    """A `FrozenProgram`, with the digest and number of its bytes in their place."""

    name: Name
    engine: Name
    backends: Annotated[list[Name], Meta(max_length=MOST_PROGRAMS)]
    sha256: Digest
    size: Annotated[int, Meta(ge=0, le=LARGEST_PROGRAM)]
    samples: Annotated[list[SampleEntry], Meta(min_length=1, max_length=MOST_SAMPLES)]
    files: Annotated[list[FileEntry], Meta(max_length=MOST_SAMPLES)] = []


class CellEntry(_Struct):
    """A cell: its name, the variations that agreed on it, its programs."""

    cell: Name
    variations: Annotated[list[Name], Meta(min_length=2, max_length=MOST_SAMPLES)]
    programs: Annotated[list[ProgramEntry], Meta(min_length=1, max_length=MOST_PROGRAMS)]


class Manifest(_Struct):
    """The contents of a corpus, and the versions of the tools that made it."""

    format: int
    made_with: Annotated[dict[Name, Name], Meta(max_length=MOST_TENSORS)]
    patches: Annotated[list[Name], Meta(max_length=MOST_TENSORS)]
    cells: Annotated[list[CellEntry], Meta(min_length=1, max_length=MOST_CELLS)]


class Head(msgspec.Struct):
    """The fields that every version of a manifest has."""

    format: int


def tensors(sample: SampleEntry) -> Iterator[TensorEntry]:
    """Yield every tensor of a sample."""
    for step in sample.steps:
        yield from step
    yield from sample.outputs
    yield from sample.expected
    yield from (each for each in sample.tolerances if isinstance(each, TensorEntry))


def require_whole(sample: SampleEntry) -> None:
    """Raise ValueError where the tensors of a sample do not fit together."""
    for tensor in tensors(sample):
        if tensor.dtype not in ITEMSIZE:
            raise ValueError(f"no dtype {tensor.dtype!r} is known")
        if tensor.size > LARGEST_TENSOR:
            raise ValueError(f"a tensor of {tensor.size:,} bytes, more than {LARGEST_TENSOR:,}")
        _require_strides(tensor.shape, tensor.strides)
    if len(sample.outputs) != len(sample.expected):
        raise ValueError("the numbers of outputs and of expected outputs differ")
    _require_measures(sample.expected, sample.tolerances)
    for expected, tolerance in zip(sample.expected, sample.tolerances, strict=True):
        if expected.dtype in NOT_IN_NUMPY:
            raise ValueError(f"{expected.dtype} expected, which nothing can be measured by")
        # A number that is the same for all elements is written as one number here.
        if isinstance(tolerance, TensorEntry) and tolerance.shape != expected.shape:
            raise ValueError(f"a tolerance is {tolerance.dtype}{list(tolerance.shape)}")
    _require_methods(sample.methods, sample.steps)


def _require_methods(methods: Sequence[str], steps: Sequence[object]) -> None:
    """Raise ValueError unless each step has a method, or none has."""
    if methods and len(methods) != len(steps):
        raise ValueError("methods and steps are not as many")


def _require_measures(
    expected: Sequence[FrozenTensor | TensorEntry], tolerances: Sequence[float | FrozenTensor | TensorEntry]
) -> None:
    """Raise ValueError unless each tensor that is expected has a tolerance: for all elements, or for each."""
    if len(expected) != len(tolerances):
        raise ValueError("the numbers of expected outputs and of tolerances differ")
    for tensor, tolerance in zip(expected, tolerances, strict=True):
        if isinstance(tolerance, FrozenTensor | TensorEntry) and (
            tolerance.dtype != "float64" or tolerance.shape not in ((), tensor.shape)
        ):
            raise ValueError(f"a tolerance is {tolerance.dtype}{list(tolerance.shape)}")


def order_in_memory(shape: Sequence[int], strides: Sequence[int] | None) -> list[int]:
    """Return the dimensions, the outermost in memory first.

    >>> order_in_memory((1, 1, 4, 5), (20, 1, 5, 1))
    [0, 2, 3, 1]
    """
    if strides is None:
        return list(range(len(shape)))
    # A dimension of size one may be anywhere: torch places it inside of those with the same stride.
    return sorted(range(len(shape)), key=lambda at: (-strides[at], shape[at] == 1))


def _require_strides(shape: Sequence[int], strides: Sequence[int] | None) -> None:
    """Raise ValueError unless the elements are contiguous in some order of the dimensions."""
    if strides is None:
        return
    if len(strides) != len(shape):
        raise ValueError("strides are not as many as dimensions")
    span = 1
    # A dimension of one element may have any stride: no other element is reached by it.
    for stride, length in sorted(zip(strides, shape, strict=True)):
        if length > 1 and stride != span:
            raise ValueError(f"strides {list(strides)} do not fit the shape {list(shape)}")
        span *= length
