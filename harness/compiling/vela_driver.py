"""Runs in Vela's environment: compiles payloads, each in a process of its own, and packs what Vela made.

A request comes as JSON on the standard input, see `Request`. Vela is imported once; each payload is compiled by a
forked child, so that no payload sees what an earlier one left behind, and one that kills Vela takes no other with it. A
child leaves in its folder what it made: ``stream`` and ``summary.json``, or ``refused.json``, and a log.
"""

from __future__ import annotations

import contextlib
import csv
import ctypes
import json
import os
import random
import signal
import struct
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.variations import perturb_heap, shuffle_listings

#: Requests of Vela's own code, which is C++, go to the C library's allocator: blocks of these sizes are held.
NATIVE_SIZES = (16, 1024)
NATIVE_BLOCKS = 20_000

#: Bytes of a block's name, of its header, and to which its data are padded, in what ``arm_vela.py`` packs.
NAME_LENGTH = 16
ALIGNMENT = 16
#: An input or output of Vela's has six dimensions.
DIMENSIONS = 6

#: Of Vela's summary: bytes used in a memory (it says KiB), and whole numbers.
MEMORIES = ("sram", "dram", "on_chip_flash", "off_chip_flash")
KIB = 1024
COUNTS = ("nn_macs", "cycles_npu", *(f"cycles_{memory}_access" for memory in MEMORIES), "cycles_total")


@dataclass(frozen=True)
class Request:
    """What is to be compiled.

    Attributes
    ----------
    payloads
        Files.
    folders
        For each, where its child leaves what it made. They exist.
    arguments
        For each, of Vela.
    directories
        For each, its working and output directory.
    heap_seed, listings_seed, history_seed
        See `harness.variations.Variation`. A history of n lets a child compile the n payloads that come after its own
        first.
    limit
        Seconds that one child may take.
    """

    payloads: list[str]
    folders: list[str]
    arguments: list[list[str]]
    directories: list[str]
    heap_seed: int
    listings_seed: int
    history_seed: int
    limit: int


def main() -> None:
    """Carry out the request on the standard input."""
    request = Request(**json.load(sys.stdin))
    shuffle_listings(request.listings_seed)
    held = perturb_heap(request.heap_seed), perturb_native_heap(request.heap_seed)
    from ethosu.vela import vela

    for index, folder in enumerate(request.folders):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with Path(folder, "log").open("wb") as log:
                    os.dup2(log.fileno(), 1)
                    os.dup2(log.fileno(), 2)
                signal.alarm(request.limit)
                code = compile_one(vela, request, index)
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        Path(folder, "status").write_text(str(os.waitstatus_to_exitcode(status)))
    del held


def perturb_native_heap(seed: int) -> list[int]:
    """Leave holes of random sizes in the C library's heap; return the blocks that stay, which nothing frees."""
    if seed == 0:
        return []
    generator = random.Random(seed)
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    blocks = [library.malloc(generator.randint(*NATIVE_SIZES)) for _ in range(NATIVE_BLOCKS)]
    generator.shuffle(blocks)
    for block in blocks[::2]:
        library.free(block)
    return blocks[1::2]


def compile_one(vela: Any, request: Request, index: int) -> int:
    """Compile one payload of a request, after those that its history names; return the exit code of the child."""
    directory = Path(request.directories[index])
    directory.mkdir(parents=True, exist_ok=True)
    os.chdir(directory)
    os.environ["TMPDIR"] = str(directory)
    count = len(request.payloads)
    for earlier in range(request.history_seed):
        other = (index + 1 + earlier) % count
        with contextlib.suppress(Exception, SystemExit):
            run_vela(
                vela, request.arguments[other], request.payloads[other], directory / f"earlier-{earlier}"
            )
    folder = Path(request.folders[index])
    try:
        made = run_vela(vela, request.arguments[index], request.payloads[index], directory / "work")
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        said = {"type": type(error).__name__, "message": str(error)}
        (folder / "refused.json").write_text(json.dumps(said), encoding="utf-8")
        return 0
    (folder / "stream").write_bytes(packed(made / "out_vela.npz"))
    (folder / "summary.json").write_text(json.dumps(summary(made)), encoding="utf-8")
    return 0


def run_vela(vela: Any, arguments: Sequence[str], payload: str, directory: Path) -> Path:
    """Call Vela as ``vela_compile`` of ``backends/arm/arm_vela.py`` does; return its output directory."""
    directory.mkdir()
    source = directory / "out.tosa"
    source.write_bytes(Path(payload).read_bytes())
    output = directory / "output"
    vela.main([*arguments, f"--output-dir={output}", str(source)])
    return output


def packed(archive: Path) -> bytes:
    """Return the stream that the runtime's Ethos-U backend reads, from what Vela wrote.

    Source: ``vela_compile`` of ``backends/arm/arm_vela.py`` (1.1.0 to 1.4.1; 1.5.1 with nothing placed outside), and
    ``backends/arm/runtime/VelaBinStream.cpp``, which reads it.
    """
    import numpy as np

    # What this process's own Vela wrote a moment ago.
    with np.load(archive, allow_pickle=False) as data:  # noqa: TID251
        blocks = {
            "vela_bin_stream": b"",
            "cmd_data": data["cmd_data"].tobytes(),
            "weight_data": data["weight_data"].tobytes(),
            "scratch_size": struct.pack("<I", int(data["scratch_shape"][0])),
            "inputs": packed_tensors("input", data),
            "outputs": packed_tensors("output", data),
            "vela_end_stream": b"",
        }
    return b"".join(
        name.encode()[: NAME_LENGTH - 1].ljust(NAME_LENGTH, b"\0")
        + struct.pack("<iiii", len(block), 0, 0, 0)
        + block
        + b"\0" * (ALIGNMENT - 1 - (len(block) - 1) % ALIGNMENT)
        for name, block in blocks.items()
    )


def packed_tensors(prefix: str, data: Mapping[str, Any]) -> bytes:
    """Return the inputs or outputs of a stream: shape, bytes of an element, offset and region of each."""
    shapes = data[f"{prefix}_shape"]
    packed = struct.pack("<i", len(shapes))
    for index, shape in enumerate(shapes):
        if len(shape) != DIMENSIONS:
            raise ValueError(f"{prefix} {index} of Vela's has {len(shape)} dimensions, not {DIMENSIONS}")
        fields = (int(data[f"{prefix}_{name}"][index]) for name in ("elem_size", "offset", "region"))
        packed += struct.pack("<9i", *shape.tolist(), *fields)
    return packed


def summary(output: Path) -> dict[str, int]:
    """Return what Vela estimates: bytes in each memory, multiplications, cycles."""
    (table,) = output.glob("*_summary_*.csv")
    with table.open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    used = {memory: round(float(row[f"{memory}_memory_used"]) * KIB) for memory in MEMORIES}
    return {**used, **{name: round(float(row[name])) for name in COUNTS}}
