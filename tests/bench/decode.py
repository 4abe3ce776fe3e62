"""How fast and how lean decoding is: against ``flatc --json`` and against SHA-256 over the constants.

    python -m tests.bench.decode              # a release's bin first on PATH, for flatc
    python -m tests.bench.decode --megabytes 64

Goals: decoding to the object form at least 20 times as fast as ``flatc --json`` and ``json.load``; text in at most
twice the time SHA-256 takes over the constants, plus a fixed part; peak memory at most 1.5 times the payload.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import flatbuffers
import numpy as np

from harness.decode import Schemas, decode
from harness.decode.schemas import PLACES

#: `DType` and `Op` of tosa.fbs that the payloads use.
INT8, FP32 = 3, 7
CONST = 68
#: Constants of a payload: as many as a small network has.
CONSTANTS = 16
REPEATS = 5
#: What text costs however small the payload is: lines, summaries' set-up. Milliseconds.
FIXED_PART = 25.0


def payload(megabytes: int, dtype: int) -> bytes:
    """Return a TOSA payload of about that size: constants with random contents, and an operator for each."""
    builder = flatbuffers.Builder(megabytes << 20)
    generator = np.random.default_rng(0)
    count = (megabytes << 20) // CONSTANTS // (4 if dtype == FP32 else 1)
    tensors, operators = [], []
    for at in range(CONSTANTS):
        numbers = generator.standard_normal(count).astype(np.float32)
        data = builder.CreateNumpyVector(
            (numbers if dtype == FP32 else (numbers * 40).clip(-127, 127).astype(np.int8)).view(np.uint8)
        )
        name = builder.CreateString(f"weight_{at}")
        shape = builder.CreateNumpyVector(np.array([count], np.int32))
        tensors.append(_table(builder, {0: name, 1: shape, 3: data}, {2: dtype}))
        outputs = _vector(builder, [name])
        operators.append(_table(builder, {4: outputs}, {0: CONST}))
    fields = {1: _vector(builder, operators), 2: _vector(builder, tensors)}
    region = _table(builder, {1: _vector(builder, [_table(builder, fields, {})])}, {})
    builder.Finish(_table(builder, {0: _table(builder, {}, {}), 1: _vector(builder, [region])}, {}), b"TOSA")
    return bytes(builder.Output())


def _table(builder: flatbuffers.Builder, offsets: dict[int, int], numbers: dict[int, int]) -> int:
    builder.StartObject(6)
    for slot, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, number in numbers.items():
        builder.PrependUint32Slot(slot, number, 0)
    return int(builder.EndObject())


def _vector(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def milliseconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the shortest of some times."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return 1000 * min(times)


def flatc_and_json(path: Path, schema: Path, folder: Path) -> None:
    """Do with flatc what decoding to the object form does."""
    command = [
        "flatc",
        "--json",
        "--strict-json",
        "--raw-binary",
        "-o",
        str(folder),
        str(schema),
        "--",
        str(path),
    ]
    subprocess.run(command, check=True, capture_output=True)
    with (folder / f"{path.stem}.json").open() as file:
        json.load(file)


def peak(path: Path) -> None:
    """Print by how many bytes decoding and writing out raise the process's peak, its payload included."""
    decode(payload(1, FP32)).text()
    # Resets the high-water mark, which a child otherwise inherits.
    Path("/proc/self/clear_refs").write_text("5")
    before = _high_water()
    for _ in decode(path.read_bytes()).lines():
        pass
    print(_high_water() - before)


def _high_water() -> int:
    """Return the peak resident memory of this process in bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main() -> int:
    """Measure and print; return whether a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        peak(arguments.peak)
        return 0
    if shutil.which("flatc") is None:
        sys.exit("bench: flatc is not on PATH: put the bin of a release's environment first")
    missed = False
    with tempfile.TemporaryDirectory() as name:
        for label, dtype in (("FP32", FP32), ("INT8", INT8)):
            missed |= measure(label, payload(arguments.megabytes, dtype), Path(name))
    return missed


def measure(label: str, data: bytes, folder: Path) -> bool:
    """Measure one payload; tell whether a goal is missed."""
    path = folder / f"{label}.tosa"
    path.write_bytes(data)
    schemas = Schemas.installed()
    schema = next(
        place / one for place in schemas.places for one in PLACES["tosa"] if (place / one).is_file()
    )
    objects = milliseconds(lambda: decode(data))
    flatc = milliseconds(lambda: flatc_and_json(path, schema, folder), repeats=1)
    decoded = decode(data)
    constants = [constant.data for constant in decoded.constants().values()]
    hashing = milliseconds(lambda: [hashlib.sha256(constant).digest() for constant in constants])
    text = milliseconds(decoded.text)
    command = [sys.executable, "-m", "tests.bench.decode", "--peak", str(path)]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / len(data)
    print(f"{label}, {len(data) / (1 << 20):.1f} MB, {len(constants)} constants")
    print(
        f"  object form {objects:8.1f} ms   flatc and json.load {flatc:8.0f} ms: {flatc / objects:.0f} times"
    )
    print(f"  text        {text:8.1f} ms   SHA-256 alone       {hashing:8.1f} ms: {text / hashing:.1f} times")
    print(f"  peak memory {used:8.2f} times the payload")
    return flatc < 20 * objects or text > 2 * hashing + FIXED_PART or used > 1.5


if __name__ == "__main__":
    sys.exit(main())
