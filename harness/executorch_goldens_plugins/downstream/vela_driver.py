"""Runs in Vela's environment: compiles payloads for an Ethos-U, and packs Vela's results."""

from __future__ import annotations

import csv
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens_plugins.downstream.driver import Compile

#: Bytes of a block's name, of its header, and to which its data are padded, in what ``arm_vela.py`` packs.
NAME_LENGTH = 16
ALIGNMENT = 16
#: An input or output of Vela's has six dimensions.
DIMENSIONS = 6

#: Fields of Vela's summary: bytes used in a memory (it says KiB), and whole numbers.
MEMORIES = ("sram", "dram", "on_chip_flash", "off_chip_flash")
KIB = 1024
COUNTS = ("nn_macs", "cycles_npu", *(f"cycles_{memory}_access" for memory in MEMORIES), "cycles_total")


def load() -> Compile:
    """Import Vela; return a function that calls it as ``vela_compile`` of ``backends/arm/arm_vela.py`` does."""
    from ethosu.vela import vela

    def compile_payload(
        arguments: Sequence[str], payload: Path, directory: Path
    ) -> tuple[bytes, dict[str, Any]]:
        source = directory / "out.tosa"
        source.write_bytes(payload.read_bytes())
        output = directory / "output"
        vela.main([*arguments, f"--output-dir={output}", str(source)])
        made, parts = packed(output / "out_vela.npz")
        return made, {**parts, **summary(output)}

    return compile_payload


def packed(archive: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the stream that the runtime's Ethos-U backend reads, from Vela's files; and what is where in it.

    Source: ``vela_compile`` of ``backends/arm/arm_vela.py`` (1.1.0 to 1.4.1; 1.5.1 with nothing placed outside), and
    ``backends/arm/runtime/VelaBinStream.cpp``, which reads it.
    """
    import numpy as np

    # Written by this process's own Vela a moment ago.
    with np.load(archive, allow_pickle=False) as data:
        scratch = int(data["scratch_shape"][0])
        inputs, outputs = (list(placed_tensors(prefix, data)) for prefix in ("input", "output"))
        blocks = {
            "vela_bin_stream": b"",
            "cmd_data": data["cmd_data"].tobytes(),
            "weight_data": data["weight_data"].tobytes(),
            "scratch_size": struct.pack("<I", scratch),
            "inputs": packed_tensors(inputs),
            "outputs": packed_tensors(outputs),
            "vela_end_stream": b"",
        }
    stream, places = b"", {}
    for name, block in blocks.items():
        stream += name.encode()[: NAME_LENGTH - 1].ljust(NAME_LENGTH, b"\0")
        stream += struct.pack("<iiii", len(block), 0, 0, 0)
        places[name] = (len(stream), len(stream) + len(block))
        stream += block + b"\0" * (-len(block) % ALIGNMENT)
    parts = {"bytes": len(stream), "commands": places["cmd_data"], "weights": places["weight_data"]}
    return stream, {**parts, "scratch": scratch, "inputs": inputs, "outputs": outputs}


def placed_tensors(prefix: str, data: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
    """Yield the shape, bytes of an element, offset and region of each input or output."""
    for index, shape in enumerate(data[f"{prefix}_shape"]):
        if len(shape) != DIMENSIONS:
            raise ValueError(f"{prefix} {index} of Vela's has {len(shape)} dimensions, not {DIMENSIONS}")
        fields = (int(data[f"{prefix}_{name}"][index]) for name in ("elem_size", "offset", "region"))
        yield (*shape.tolist(), *fields)


def packed_tensors(tensors: Sequence[tuple[int, ...]]) -> bytes:
    """Return the inputs or outputs as a stream has them."""
    return struct.pack("<i", len(tensors)) + b"".join(struct.pack("<9i", *tensor) for tensor in tensors)


def summary(output: Path) -> dict[str, int]:
    """Return Vela's estimates: bytes in each memory, multiplications, cycles."""
    (table,) = output.glob("*_summary_*.csv")
    with table.open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    used = {memory: round(float(row[f"{memory}_memory_used"]) * KIB) for memory in MEMORIES}
    return {**used, **{name: round(float(row[name])) for name in COUNTS}}
