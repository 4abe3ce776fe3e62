"""Results that come back from a device, against the frozen ones."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens_plugins.field import comparing, returned
from executorch_goldens_plugins.field.format import FrozenSample, FrozenTensor
from executorch_goldens_plugins.field.returned import JudgedSample, judge
from tests.plugins.field.corpora import BFLOAT16, CHANNELS_LAST, REPLAYED, program

CELL = Cell("xnnpack-fp32", "any")
PLACE = Path("xnnpack-fp32", "any", "program", "example")


def sample_of(*outputs: FrozenTensor, tolerance: float = 0.0) -> FrozenSample:
    """Return a sample that gives `outputs`."""
    expected = tuple(FrozenTensor.from_tensor(output.tensor()) for output in outputs)
    return FrozenSample("example", ((),), outputs, expected, (tolerance,) * len(outputs))


def array(values: object, dtype: str) -> FrozenTensor:
    return FrozenTensor.of_array(np.array(values, dtype))


def judged(sample: FrozenSample, folder: Path) -> JudgedSample:
    return judge(CELL, "program", sample, folder)


def npy(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The folder of the sample."""
    folder = tmp_path / PLACE
    folder.mkdir(parents=True)
    return folder


ROW = np.array([[1.0, 2.0, 3.0]], np.float32)


@pytest.mark.parametrize(
    ("name", "data", "result", "reason"),
    [
        ("output-0.npy", npy(ROW), comparing.SAME, ""),
        ("output-0.npy", npy(ROW.astype(">f4")), comparing.SAME, ""),
        ("output-0.npy", npy(np.asfortranarray(ROW)), comparing.SAME, ""),
        ("output-0.bin", ROW.tobytes(), comparing.SAME, ""),
        ("output-0.npy", npy(ROW + np.float32(0.25)), comparing.ROUNDING, "1 of 1 outputs differ"),
        ("output-0.npy", npy(ROW + np.float32(1.0)), comparing.WRONG, "3 of 3 values differ, max 1"),
        (
            "output-0.bin",
            (ROW * np.float32(np.nan)).tobytes(),
            comparing.WRONG,
            "3 of 3 values differ, max inf",
        ),
        (
            "output-0.npy",
            npy(ROW.astype(np.float64)),
            comparing.WRONG,
            "is float64[1, 3] where float32[1, 3]",
        ),
        ("output-0.npy", npy(ROW.T), comparing.WRONG, "is float32[3, 1] where float32[1, 3] was frozen"),
        ("output-0.npy", npy(ROW)[:-4], returned.TRUNCATED, "has 8 bytes where float32[1, 3] takes 12"),
        ("output-0.npy", npy(ROW) + b"more", comparing.WRONG, "has 16 bytes where float32[1, 3] takes 12"),
        ("output-0.npy", npy(ROW)[:20], comparing.WRONG, "output 0 is no .npy"),
        ("output-0.npy", b"", returned.TRUNCATED, "output 0 is no .npy"),
        ("output-0.bin", ROW.tobytes()[:5], returned.TRUNCATED, "has 5 bytes where float32[1, 3] takes 12"),
        ("output-0.bin", ROW.tobytes() * 2, comparing.WRONG, "has 24 bytes where float32[1, 3] takes 12"),
        ("output-1.npy", npy(ROW), comparing.WRONG, "more outputs than the 1 that were frozen: output-1"),
        ("output.npy", npy(ROW), returned.MISSING, "output 0 of 1: no output-0.npy or output-0.bin in "),
    ],
)
def test_an_output_is_judged_by_its_values_dtype_shape_and_bytes(
    tmp_path: Path, there: Path, name: str, data: bytes, result: str, reason: str
) -> None:
    (there / name).write_bytes(data)
    found = judged(sample_of(array(ROW, "float32"), tolerance=0.5), tmp_path)
    assert (found.result, found.is_right) == (result, result in comparing.RIGHT)
    assert reason in found.reason
    assert bool(found.reason) == (result != comparing.SAME)
    assert "\n" not in found.reason


def test_an_array_of_objects_is_no_output_and_is_not_unpickled(tmp_path: Path, there: Path) -> None:
    np.save(there / "output-0.npy", np.array([print], object), allow_pickle=True)
    found = judged(sample_of(array([1.0], "float32")), tmp_path)
    assert (found.result, "is object[1] where float32[1] was frozen" in found.reason) == (
        comparing.WRONG,
        True,
    )


def test_a_header_that_is_code_or_has_no_end_is_no_array(tmp_path: Path, there: Path) -> None:
    for header in (
        b"__import__('os')",
        b"(" * 500,
        b"{'descr'",
        b"\xff",
        b"{'descr': '<f4', 'shape': (-1,)}",
    ):
        (there / "output-0.npy").write_bytes(
            b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        )
        found = judged(sample_of(array([1.0], "float32")), tmp_path)
        assert (found.result, "output 0 is no .npy" in found.reason) == (comparing.WRONG, True)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda there: there.rmdir(), "no folder "),
        (lambda there: (there.rmdir(), there.symlink_to("/")), "is a link, which is not followed"),
        (
            lambda there: (there / "output-0.npy").symlink_to("/etc/passwd"),
            "is a link, which is not followed",
        ),
        (lambda there: (there / "output-0.bin").mkdir(), "cannot be read"),
        (lambda there: [(there / f"output-0.{each}").touch() for each in ("npy", "bin")], "is there twice"),
    ],
)
def test_what_is_no_file_of_an_output_is_not_read(
    tmp_path: Path, there: Path, make: Callable[[Path], object], reason: str
) -> None:
    make(there)
    found = judged(sample_of(array([1.0], "float32")), tmp_path)
    assert not found.is_right
    assert reason in found.reason


def test_of_several_outputs_the_one_that_is_not_there_is_named(tmp_path: Path, there: Path) -> None:
    sample = sample_of(array([1.0], "float32"), array([2], "int8"))
    np.save(there / "output-0.npy", np.float32([1.0]))
    assert judged(sample, tmp_path).reason.startswith("output 1 of 2: no output-1.npy")
    np.save(there / "output-1.npy", np.int8([3]))
    assert "output 1 int8[1]: 1 of 1 values differ" in judged(sample, tmp_path).reason


def test_memory_of_a_channels_last_output_is_read_in_its_order(tmp_path: Path) -> None:
    frozen = program(CHANNELS_LAST, "program", REPLAYED).samples[0]
    (output,) = frozen.outputs
    assert output.strides is not None
    folder = tmp_path / str(CHANNELS_LAST) / "program" / "example"
    folder.mkdir(parents=True)
    (folder / "output-0.bin").write_bytes(output.memory())
    assert judge(CHANNELS_LAST, "program", frozen, tmp_path).result == comparing.SAME
    assert output.memory() != output.data
    (folder / "output-0.bin").write_bytes(output.data)
    assert judge(CHANNELS_LAST, "program", frozen, tmp_path).result == comparing.WRONG


def test_bfloat16_comes_back_as_memory_and_is_judged_by_its_numbers(tmp_path: Path) -> None:
    frozen = program(BFLOAT16, "program", REPLAYED).samples[0]
    (output,) = frozen.outputs
    assert output.dtype == "bfloat16"
    folder = tmp_path / str(BFLOAT16) / "program" / "example"
    folder.mkdir(parents=True)
    (folder / "output-0.bin").write_bytes(output.data)
    assert judge(BFLOAT16, "program", frozen, tmp_path).result == comparing.SAME
    # One code further.
    codes = np.frombuffer(output.data, "<u2") + np.uint16(1)
    (folder / "output-0.bin").write_bytes(codes.tobytes())
    wide = dataclasses.replace(frozen, tolerances=(1.0,))
    assert judge(BFLOAT16, "program", wide, tmp_path).result == comparing.ROUNDING
    (folder / "output-0.bin").unlink()
    np.save(folder / "output-0.npy", output.tensor().array())
    assert "is bfloat16, which no .npy has" in judge(BFLOAT16, "program", frozen, tmp_path).reason


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats_keep_every_code(dtype: str) -> None:
    bits = 16 if dtype == "bfloat16" else 8
    codes = FrozenTensor(dtype, (1 << bits,), np.arange(1 << bits).astype(f"<u{bits // 8}").tobytes())
    wide = FrozenTensor.from_tensor(codes.tensor())
    again = wide.narrowed(dtype)
    is_number = ~np.isnan(wide.tensor().array())
    before, after = (np.frombuffer(each.data, f"<u{bits // 8}") for each in (codes, again))
    assert np.array_equal(before[is_number], after[is_number])
    assert np.isnan(again.tensor().array()[~is_number]).all()
    with pytest.raises(ValueError, match=f"numbers that {dtype} has not"):
        FrozenTensor.of_array(np.float32([1.0 + 2.0**-20])).narrowed(dtype)
