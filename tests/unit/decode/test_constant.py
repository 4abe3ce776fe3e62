"""Every data type's bits become their numbers, and different bits different text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from executorch_goldens.decode.constant import CODECS, Constant, make_constant
from executorch_goldens.decode.numbers import Float32
from executorch_goldens.decode.summary import COUNTED, PIECE, summarize
from executorch_goldens.decode.text import code_texts, constant_lines, number_texts
from executorch_goldens.decode.tosa import DTYPES as TOSA_TYPES
from tests.support.decoding.payloads import SCHEMAS

#: Number formats to the types of ml_dtypes that hold the same.
ML_TYPES = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "e8m0": "float8_e8m0fnu",
    "f6e2m3": "float6_e2m3fn",
    "f6e3m2": "float6_e3m2fn",
    "f4e2m1": "float4_e2m1fn",
}


def constant(codec: str, shape: tuple[int, ...], data: bytes) -> Constant:
    made, surplus = make_constant(codec, shape, memoryview(data), CODECS[codec])
    assert not surplus
    return made


def packed(values: list[int], bits: int) -> bytes:
    """Pack numbers from the lowest bit up, independently of the code under test."""
    whole = sum((value & ((1 << bits) - 1)) << bits * at for at, value in enumerate(values))
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


@pytest.mark.parametrize("codec", ML_TYPES)
def test_all_codes_of_small_floats_agree_with_ml_dtypes(codec: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = CODECS[codec].bits
    codes = np.arange(1 << bits)
    expected = codes.astype(np.uint16 if bits > 8 else np.uint8).view(getattr(ml_dtypes, ML_TYPES[codec]))
    found = constant(codec, (1 << bits,), packed(codes.tolist(), bits)).array()
    assert found.dtype == np.float32
    wide = expected.astype(np.float32)
    assert np.array_equal(found, wide, equal_nan=True)
    assert np.array_equal(np.signbit(found[wide == 0]), np.signbit(wide[wide == 0]))


@pytest.mark.parametrize("codec", [name for name, codec in CODECS.items() if codec.bits <= 16])
def test_different_bits_are_different_text(codec: str) -> None:
    bits = 1 if codec == "bool" else CODECS[codec].bits
    codes = np.arange(1 << bits).astype(CODECS[codec].codes)
    texts = code_texts(constant(codec, (0,), b""), codes)
    assert len(set(texts)) == 1 << bits


@pytest.mark.parametrize("bits", [4, 8, 16, 32, 48, 64])
def test_integers_reach_both_ends(bits: int) -> None:
    values = [-(1 << bits - 1), -1, 0, 1, (1 << bits - 1) - 1]
    assert constant(f"i{bits}", (5,), packed(values, bits)).array().tolist() == values
    if f"u{bits}" in CODECS:
        unsigned = [0, 1, (1 << bits) - 1]
        assert constant(f"u{bits}", (3,), packed(unsigned, bits)).array().tolist() == unsigned


@pytest.mark.parametrize(
    "codec", [name for name, codec in CODECS.items() if codec.floating and codec.bits <= 16]
)
def test_arrays_keep_different_bits_apart(codec: str) -> None:
    """NaNs of narrow formats stay different in the wider type they are read into."""
    codes = np.arange(1 << CODECS[codec].bits).astype(CODECS[codec].codes)
    numbers = CODECS[codec].numbers(codes)
    assert len(np.unique(numbers.view(f"u{numbers.itemsize}"))) == len(codes)


def test_int4_packs_the_first_number_into_the_low_bits() -> None:
    assert constant("i4", (3,), b"\x1f\x07").array().tolist() == [-1, 1, 7]


def test_xnnpack_int4_has_its_zero_at_code_eight() -> None:
    assert constant("i4+8", (2,), b"\xf0").array().tolist() == [-8, 7]


def test_codes_may_start_within_a_byte() -> None:
    values = list(range(-8, 8))
    assert number_texts(constant("i4", (16,), packed(values, 4)), 3, 6) == ["-5", "-4", "-3"]
    sixes = constant("f6e2m3", (8,), packed(list(range(8)), 6))
    assert number_texts(sixes, 3, 5) == ["0.375", "0.5"]


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (0x00000000, "0.0"),
        (0x80000000, "-0.0"),
        (0x3F800000, "1.0"),
        (0x3DCCCCCD, "0.1"),
        (0x7F800000, "inf"),
        (0xFF800000, "-inf"),
        (0x7FC00000, "nan:0x7fc00000"),
        (0x7F800001, "nan:0x7f800001"),
        (0x00000001, "1.4013e-45"),
        (0x7F7FFFFF, "3.4028235e+38"),
    ],
)
def test_float32_text_tells_bits_apart(bits: int, text: str) -> None:
    assert str(Float32(bits)) == text
    assert number_texts(constant("f32", (1,), bits.to_bytes(4, "little"))) == [text]


def test_float32_text_reads_back_to_the_same_number() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 20_000, dtype=np.uint32)
    finite = bits[np.isfinite(bits.view(np.float32))]
    for code in finite.tolist():
        number = Float32(code)
        assert np.float32(str(number)).view(np.uint32) == code


def test_float32_is_equal_by_bits() -> None:
    assert Float32(0x7FC00000) == Float32(0x7FC00000)
    assert Float32(0x7FC00000) != Float32(0x7FC00001)
    assert Float32(0) != Float32(0x80000000)
    assert Float32(0x3F800000) == 1.0
    assert hash(Float32(0x3F800000)) == hash(1.0)


@pytest.mark.parametrize(
    ("codec", "shape", "data", "what"),
    [
        ("i32", (2,), bytes(7), "takes 8 bytes, 7 are there"),
        ("i8", (-1,), b"", "negative dimension"),
        ("i4", (1,), b"\x10", "unused bits are not zero"),
        ("bool", (1,), b"\x02", "neither 0 nor 1"),
    ],
)
def test_data_that_cannot_be_the_constant_are_refused(
    codec: str, shape: tuple[int, ...], data: bytes, what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        make_constant(codec, shape, memoryview(data), CODECS[codec])


def test_data_beyond_the_shape_are_returned() -> None:
    made, surplus = make_constant("i8", (1,), memoryview(b"\1\2\3"), CODECS["i8"])
    assert (made.array().tolist(), bytes(surplus)) == ([1], b"\2\3")


#: Sizes around the pieces in which summaries are made.
SIZES = (PIECE - 1, PIECE, PIECE + 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", ["i4", "u8", "bf16", "f32", "i48", "f6e3m2"])
def test_summaries_agree_with_the_whole_array(codec: str, size: int) -> None:
    chooser = np.random.default_rng(size)
    bits = CODECS[codec].bits
    if bits < 8:
        data = packed(chooser.integers(0, 1 << bits, min(size, 5000)).tolist(), bits)
        size = min(size, 5000)
    else:
        data = chooser.bytes(size * bits // 8)
    made = constant(codec, (size,), data)
    numbers, codes = made.array(), made.codes()
    summary = summarize(made)
    kept = numbers == numbers
    assert summary.nans == size - int(kept.sum())
    assert CODECS[codec].numbers(summary.minimum)[0] == numbers[kept].min()
    assert CODECS[codec].numbers(summary.maximum)[0] == numbers[kept].max()
    distinct = len(np.unique(codes))
    assert summary.distinct == (distinct if summary.exact else COUNTED + 1)
    assert summary.exact == (bits <= 16 or distinct <= COUNTED)


def test_a_code_that_occurs_once_and_late_is_seen() -> None:
    numbers = np.arange(-127, 128).repeat(PIECE // 64).astype(np.int8)
    lines = list(constant_lines(constant("i8", (len(numbers) + 1,), numbers.tobytes() + b"\x80"), ""))
    assert lines[1:4] == ["min -128", "max 127", "distinct 256"]


@pytest.mark.parametrize("distinct", [1, 2, COUNTED - 1, COUNTED, COUNTED + 1])
def test_distinct_numbers_of_wide_types_are_counted_up_to_a_limit(distinct: int) -> None:
    numbers = np.zeros(PIECE + 3000, np.int32)
    # The last number that differs is at the very end, the others far apart.
    numbers[len(numbers) - 1 - 60 * np.arange(distinct - 1)] = np.arange(1, distinct)
    summary = summarize(constant("i32", numbers.shape, numbers.tobytes()))
    assert (summary.distinct, summary.exact) == (distinct, distinct <= COUNTED)


def test_minus_zero_counts_as_smaller_than_zero() -> None:
    for order in ([0.0, -0.0], [-0.0, 0.0]):
        data = np.array(order * 40, np.float32).tobytes()
        lines = list(constant_lines(constant("f32", (80,), data), ""))
        assert lines[1:4] == ["min -0.0", "max 0.0", "distinct 2"]


def test_a_constant_of_nans_has_no_extremes() -> None:
    data = np.full(100, math.nan, np.float32).tobytes()
    lines = list(constant_lines(constant("f32", (100,), data), ""))
    assert lines[1:3] == ["nans 100", "distinct 1"]


def test_up_to_64_numbers_are_written_out_and_more_are_summarised() -> None:
    few = list(constant_lines(constant("i8", (64,), bytes(64)), ""))
    many = list(constant_lines(constant("i8", (65,), bytes(65)), ""))
    assert [line.split()[0] for line in few] == ["sha256", "values", "values", "values", "values"]
    assert [line.split()[0] for line in many] == ["sha256", "min", "max", "distinct", "first", "last"]


def test_every_data_type_of_the_schema_has_a_codec() -> None:
    types = SCHEMAS.load("tosa").enums["DType"].names.values()
    assert set(types) - {"UNKNOWN"} == set(TOSA_TYPES)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_empty_and_scalar_shapes(shape: tuple[int, ...]) -> None:
    made = constant("f32", shape, np.ones(math.prod(shape), np.float32).tobytes())
    array: Any = made.array()
    assert array.shape == shape
    assert len(number_texts(made)) == math.prod(shape)
