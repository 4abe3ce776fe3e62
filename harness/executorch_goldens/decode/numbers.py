"""Floating-point numbers that keep their bits.

Python's float cannot tell NaN payloads of float32 apart (widening quiets them) and its ``==`` denies that a
NaN equals itself and that 0.0 differs from -0.0. Goldens need all three, and the shortest text that reads
back to the same bits.
"""

from __future__ import annotations

import math
import struct

#: Any float32 reads back exactly from nine significant digits (IEEE 754, 5.12.2); most need fewer.
FLOAT32_DIGITS = range(6, 10)

_F32 = struct.Struct("<f")
_U32 = struct.Struct("<I")
_F64 = struct.Struct("<d")


class _Exact(float):
    """A number that is equal to another of its type only if all of their bits are."""

    __slots__ = ()

    def _stored(self) -> int | bytes:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Exact) and type(other) is type(self):
            return self._stored() == other._stored()
        return float.__eq__(self, other) if isinstance(other, float | int) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._stored()) if math.isnan(self) else float.__hash__(self)

    def __str__(self) -> str:
        return repr(self)


class Float32(_Exact):
    """A float32, given by its 32 bits."""

    __slots__ = ("bits",)
    bits: int

    def __new__(cls, bits: int) -> Float32:
        self = super().__new__(cls, _F32.unpack(_U32.pack(bits))[0])
        self.bits = bits
        return self

    @classmethod
    def nearest(cls, value: float) -> Float32:
        """Return the float32 nearest to `value`."""
        return cls(_U32.unpack(_F32.pack(value))[0])

    def _stored(self) -> int:
        return self.bits

    def __reduce__(self) -> tuple[type[Float32], tuple[int]]:
        return Float32, (self.bits,)

    def __repr__(self) -> str:
        return float32_text(float(self), self.bits)


class Double(_Exact):
    """A float64."""

    __slots__ = ()

    def _stored(self) -> bytes:
        return _F64.pack(self)

    def __repr__(self) -> str:
        return f"nan:0x{_F64.pack(self)[::-1].hex()}" if math.isnan(self) else float.__repr__(self)


def read_number(text: str) -> float | complex:
    """Read a number, or a boolean, of the golden text; the bits after ``nan:`` are left out.

    Examples
    --------
    >>> read_number("-0.5"), read_number("true"), read_number("nan:0x7fc00001"), read_number("(1.0,-2.0)")
    (-0.5, 1.0, nan, (1-2j))
    """
    if text.startswith("("):
        real, _, imaginary = text[1:-1].partition(",")
        return complex(read_number(real), read_number(imaginary))
    if text in ("true", "false"):
        return float(text == "true")
    return math.nan if text.startswith("nan") else float(text)


def float32_text(value: float, nan_bits: int, nan_digits: int = 8) -> str:
    """Return the shortest decimal text that reads back to the float32 `value`.

    Parameters
    ----------
    value
        A number that float32 holds exactly.
    nan_bits, nan_digits
        The bits to show if `value` is not a number, and how many hexadecimal digits they have.

    Examples
    --------
    >>> float32_text(0.10000000149011612, 0), float32_text(-0.0, 0), float32_text(3e38, 0)
    ('0.1', '-0.0', '3e+38')
    >>> float32_text(float("nan"), 0x7FC00001)
    'nan:0x7fc00001'
    """
    if value != value:
        return f"nan:0x{nan_bits:0{nan_digits}x}"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    for digits in FLOAT32_DIGITS:
        text = f"{value:.{digits}g}"
        try:
            if _F32.unpack(_F32.pack(float(text)))[0] == value:
                break
        except OverflowError:  # rounded up past the largest float32: needs more digits
            continue
    return text if "." in text or "e" in text else text + ".0"
