"""Constants: a data type, a shape and the exact bytes, and how each data type's bits become numbers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Codec:
    """The encoding of numbers of one data type.

    Attributes
    ----------
    name
        Short name of the number format: ``i8``, ``bf16``, ``f8e4m3fn``.
    bits
        Bits a number takes. Numbers of fewer than eight follow each other from the lowest bit of a byte to
        the highest, the last byte filled up with zeros.
    codes
        Type in which the stored bits of a number fit.
    numbers
        Maps an array of codes to an array of the numbers they encode, each exactly.
    floating
        True for formats with a sign of zero, infinities or NaN.
    """

    name: str
    bits: int
    codes: np.dtype[Any]
    numbers: Callable[[Array], Array]
    floating: bool = False


@dataclass(frozen=True)
class Constant:
    """A constant tensor.

    Attributes
    ----------
    dtype
        The data type in the words of the payload's format, for instance ``INT48`` or ``xnn_datatype_qcint8``.
    shape
        Dimensions, outermost first. The numbers are in row-major order.
    data
        The bytes as they are in the payload (a view where the payload is kept).
    codec
        Codec of the bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes | memoryview = field(repr=False)
    codec: Codec = field(repr=False)

    @property
    def type(self) -> str:
        """Data type and shape."""
        return type_text(self.dtype, self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    def codes(self, start: int = 0, stop: int | None = None) -> Array:
        """Return the stored bits of numbers ``start`` to ``stop`` as unsigned integers, one dimension."""
        stop = self.size if stop is None else min(stop, self.size)
        bits = self.codec.bits
        if bits >= 8:
            width = bits // 8
            raw = np.frombuffer(self.data, np.uint8, (stop - start) * width, start * width)
            if width == self.codec.codes.itemsize:
                return raw.view(self.codec.codes)
            return _widened(raw.reshape(-1, width), self.codec.codes)
        return _unpacked(self.data, bits, start, stop)

    def array(self) -> Array:
        """Return the numbers in their shape, in a numpy type that holds each of them exactly.

        Formats that numpy lacks widen: 4- and 6-bit and 8-bit floats and BF16 to float32, INT4 to int8, INT48
        to int64, complex numbers of two float16 to complex64. Different NaNs stay different.
        """
        return self.codec.numbers(self.codes()).reshape(self.shape)

    def sha256(self) -> str:
        """Return the SHA-256 of the stored bytes in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    """Return a data type and a shape, for instance ``INT8[1,3,8,8]``."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def make_constant(
    dtype: str, shape: tuple[int, ...], data: memoryview, codec: Codec
) -> tuple[Constant, memoryview]:
    """Return the constant of this shape at the start of `data`, and the bytes after it.

    Some lowerings store more than a shape calls for (Arm's convolutions: a zero point for every output
    channel in a tensor of one number), and that is a fact of the payload, not of the constant.

    Raises
    ------
    ValueError
        If the data are too short for the shape, or hold bits that no number of the type has.
    """
    what = f"{dtype}{list(shape)}"
    if any(length < 0 for length in shape):
        raise ValueError(f"{what} has a negative dimension")
    bits = math.prod(shape) * codec.bits
    size = (bits + 7) // 8
    if len(data) < size:
        raise ValueError(f"{what} takes {size} bytes, {len(data)} are there")
    constant = Constant(dtype, shape, data[:size], codec)
    if bits % 8 and data[size - 1] >> bits % 8:
        raise ValueError(f"{what}: the last byte's {8 - bits % 8} unused bits are not zero")
    if codec.name == "bool" and size and constant.codes().max() > 1:
        raise ValueError(f"{what} holds a byte that is neither 0 nor 1")
    return constant, data[size:]


def opaque(data: memoryview) -> Constant:
    """Return bytes of unknown meaning as a constant."""
    return Constant("bytes", (len(data),), data, CODECS["bytes"])


def _widened(raw: Array, codes: np.dtype[Any]) -> Array:
    """Return little-endian numbers of an odd width (INT48) as wider unsigned integers."""
    wide = np.zeros((len(raw), codes.itemsize), np.uint8)
    wide[:, : raw.shape[1]] = raw
    return wide.view(codes).reshape(-1)


def _unpacked(data: bytes | memoryview, bits: int, start: int, stop: int) -> Array:
    """Return numbers narrower than a byte, one to a byte."""
    first = start * bits // 8
    last = (stop * bits + 7) // 8
    stream = np.unpackbits(np.frombuffer(data, np.uint8)[first:last], bitorder="little")
    skip = start * bits - first * 8
    rows = stream[skip : skip + (stop - start) * bits].reshape(-1, bits)
    return np.packbits(rows, axis=1, bitorder="little").reshape(-1)


@cache
def _small_floats(exponent_bits: int, mantissa_bits: int, bias: int, special: str) -> Array:
    """Return the float32 that each code of a small floating-point format encodes.

    Parameters
    ----------
    special
        Codes that are not finite numbers: ``ieee`` (all-ones exponent: infinities and NaN), ``fn`` (all
        ones: NaN), ``fnuz`` (minus zero: NaN), ``none``.
    """
    count = 1 << (1 + exponent_bits + mantissa_bits)
    half = count // 2
    values = np.zeros(count, np.float32)
    for code in range(count):
        exponent, fraction = divmod(code % half, 1 << mantissa_bits)
        mantissa = fraction / (1 << mantissa_bits)
        magnitude = (1 + mantissa) * 2.0 ** (exponent - bias) if exponent else mantissa * 2.0 ** (1 - bias)
        values[code] = math.copysign(magnitude, -1.0 if code >= half else 1.0)
    if special == "ieee":
        # All ones in the exponent: the least of these is infinity.
        least = ((1 << exponent_bits) - 1) << mantissa_bits
        for sign, first in ((1.0, least), (-1.0, half + least)):
            values[first] = math.copysign(math.inf, sign)
            values[first + 1 : first + (1 << mantissa_bits)] = math.copysign(math.nan, sign)
    elif special == "fn":
        values[[half - 1, count - 1]] = math.nan, -math.nan
    elif special == "fnuz":
        values[half] = -math.nan
    return _with_codes_in_nans(values)


def _with_codes_in_nans(values: Array) -> Array:
    """Tell NaN codes apart: put each into the low bits of its float32 NaN."""
    codes = np.flatnonzero(np.isnan(values))
    values.view(np.uint32)[codes] |= codes.astype(np.uint32)
    return values


def _integers(bits: int, signed: bool) -> Codec:
    whole = next(width for width in (8, 16, 32, 64) if width >= bits)
    codes = np.dtype(f"<u{whole // 8}")
    stored = np.dtype(f"<i{whole // 8}")
    spare = whole - bits

    def numbers(raw: Array) -> Array:
        if not signed:
            return raw
        # Shift the sign bit up and back down: arithmetic shift copies it.
        return raw.view(stored) if not spare else (raw << spare).view(stored) >> spare

    return Codec(f"{'i' if signed else 'u'}{bits}", bits, codes, numbers)


def _ieee(bits: int) -> Codec:
    codes = np.dtype(f"<u{bits // 8}")
    stored = np.dtype(f"<f{bits // 8}")
    return Codec(f"f{bits}", bits, codes, lambda raw: raw.view(stored), floating=True)


def _complex(bits: int, parts: np.dtype[Any], codes: np.dtype[Any]) -> Codec:
    """Return a format of two numbers of type `parts`, the real one first; numpy has none of two float16."""

    def numbers(raw: Array) -> Array:
        stored = np.ascontiguousarray(raw).view(parts)
        return (
            stored.view(np.complex128)
            if parts.itemsize == 8
            else stored.astype(np.float32).view(np.complex64)
        )

    return Codec(f"c{bits}", bits, codes, numbers, floating=True)


def _lookup(name: str, bits: int, table: Callable[[], Array]) -> Codec:
    return Codec(name, bits, np.dtype(np.uint8), lambda raw: table()[raw], floating=True)


def _bfloat16(raw: Array) -> Array:
    return (raw.astype(np.uint32) << 16).view(np.float32)


def _powers_of_two() -> Array:
    """OCP MX E8M0: 2**(code - 127), 255 is NaN."""
    powers = (2.0 ** (code - 127) for code in range(255))
    return _with_codes_in_nans(np.array([*powers, math.nan], np.float32))


#: Number formats by name. 8-bit floats: OCP 8-bit Floating Point Specification 1.0 and, for ``fnuz``,
#: arXiv 2206.02915; 4- and 6-bit floats, ``e8m0`` and ``mxi8``: OCP Microscaling Formats 1.0, section 5.3.
CODECS: Mapping[str, Codec] = {
    codec.name: codec
    for codec in (
        *(_integers(bits, True) for bits in (4, 8, 16, 32, 48, 64)),
        *(_integers(bits, False) for bits in (4, 8, 16, 32, 64)),
        *(_ieee(bits) for bits in (16, 32, 64)),
        # Contents of unknown type.
        Codec("bytes", 8, np.dtype(np.uint8), lambda raw: raw),
        Codec("bool", 8, np.dtype(np.uint8), lambda raw: raw.astype(np.bool_)),
        Codec("bf16", 16, np.dtype("<u2"), _bfloat16, floating=True),
        _complex(32, np.dtype("<f2"), np.dtype("<u4")),
        _complex(64, np.dtype("<f4"), np.dtype("<u8")),
        # No integer of numpy's has 128 bits.
        _complex(128, np.dtype("<f8"), np.dtype([("real", "<u8"), ("imaginary", "<u8")])),
        _lookup("f8e4m3fn", 8, lambda: _small_floats(4, 3, 7, "fn")),
        _lookup("f8e5m2", 8, lambda: _small_floats(5, 2, 15, "ieee")),
        _lookup("f8e4m3fnuz", 8, lambda: _small_floats(4, 3, 8, "fnuz")),
        _lookup("f8e5m2fnuz", 8, lambda: _small_floats(5, 2, 16, "fnuz")),
        _lookup("f6e2m3", 6, lambda: _small_floats(2, 3, 1, "none")),
        _lookup("f6e3m2", 6, lambda: _small_floats(3, 2, 3, "none")),
        _lookup("f4e2m1", 4, lambda: _small_floats(2, 1, 1, "none")),
        _lookup("e8m0", 8, _powers_of_two),
        # XNNPACK's 4-bit weights: code 8 is zero (kernel_zero_point of xnnpack's qc4w operators).
        Codec("i4+8", 4, np.dtype(np.uint8), lambda raw: raw.view(np.int8) - np.int8(8)),
        # A multiple of 1/64.
        Codec("mxi8", 8, np.dtype(np.uint8), lambda raw: raw.view(np.int8) / np.float32(64), floating=False),
    )
}
