"""Time and memory of decoding: against ``flatc --json`` and against SHA-256 over the constants."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import flatbuffers
import numpy as np

from executorch_goldens.decode import Schemas, decode
from executorch_goldens.decode.schemas import PLACES
from lab.bench.measurement import Goal

#: `DType` and `Op` of tosa.fbs that the payloads use.
INT8, FP32 = 3, 7
CONST = 68
MEGABYTES = 16
#: Constants of a payload: as many as a small network has.
CONSTANTS = 16
REPEATS = 5
#: Fixed cost of text, however small the payload is: lines, summaries' set-up. Milliseconds.
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
    """Do with flatc the equivalent of decoding to the object form."""
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
    """Print by how many bytes decoding and writing out raise this process's peak, its payload included."""
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


def measure() -> Mapping[str, float]:
    """Measure payloads of floats and of int8 codes; raise RuntimeError where there is no flatc."""
    if shutil.which("flatc") is None:
        raise RuntimeError("bench: flatc is not on the PATH: put the bin of a release's environment first")
    with tempfile.TemporaryDirectory() as folder:
        return {
            **measured("FP32", payload(MEGABYTES, FP32), Path(folder)),
            **measured("INT8", payload(MEGABYTES, INT8), Path(folder)),
        }


def goals(label: str) -> tuple[Goal, ...]:
    """Return the goals for a payload's object form, text and memory."""
    return (
        Goal(f"{label}: flatc --json and json.load / decoding to the object form", 20),
        Goal(f"{label}: text, less {FIXED_PART:g} ms / SHA-256 of the constants", 2, at_most=True),
        Goal(f"{label}: peak memory of decoding and text / size of the payload", 1.5, at_most=True),
    )


GOALS = (*goals("FP32"), *goals("INT8"))


def measured(label: str, data: bytes, folder: Path) -> dict[str, float]:
    """Return the ratios of one payload."""
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
    command = [sys.executable, "-m", "lab.bench.decode", str(path)]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / len(data)
    by_object, by_text, by_memory = (goal.name for goal in goals(label))
    return {by_object: flatc / objects, by_text: (text - FIXED_PART) / hashing, by_memory: used}


if __name__ == "__main__":
    peak(Path(sys.argv[1]))
