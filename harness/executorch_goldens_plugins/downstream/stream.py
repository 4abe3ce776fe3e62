"""Decodes the Ethos-U backend's form of a delegate: the stream that ``VelaBinStream.cpp`` reads."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from executorch_goldens.errors import HarnessError

FIRST, LAST = "vela_bin_stream", "vela_end_stream"
#: Name, padded with zeros, bytes of the data, and what is reserved.
HEADER = struct.Struct("<16sI12s")
ALIGNMENT = 16
#: Shape in six dimensions, bytes of an element, offset and region.
TENSOR = struct.Struct("<9i")

#: Magic word of a command stream, and the driver's actions: the low byte of a word, and the words that follow.
FOURCC = b"COP1"
#: ``DACommands`` of ``ethosu/vela/driver_actions.py``: the configuration is followed by two words; the command stream
#: by as many as its header says.
CONFIG, COMMAND_STREAM, NOTHING = 1, 2, 5
CONFIG_WORDS = 2

#: Low 10 bits: the opcode; bits 14 and 15: 0 for a command of one word, 1 for one that a word of payload follows.
#: Ethos-U55 technical reference manual, "Command stream"; ``ethosu/vela/ethos_u55_regs``.
OPCODE, PAYLOAD_SHIFT = 0x3FF, 14
#: Commands that do something; all the others set registers.
OPERATIONS: Mapping[int, str] = {
    0x000: "NPU_OP_STOP",
    0x001: "NPU_OP_IRQ",
    0x002: "NPU_OP_CONV",
    0x003: "NPU_OP_DEPTHWISE",
    0x005: "NPU_OP_POOL",
    0x006: "NPU_OP_ELEMENTWISE",
    0x007: "NPU_OP_RESIZE",
    0x010: "NPU_OP_DMA_START",
    0x011: "NPU_OP_DMA_WAIT",
    0x012: "NPU_OP_KERNEL_WAIT",
    0x013: "NPU_OP_PMU_MASK",
}
#: Opcodes from here on set registers.
SETS_REGISTERS = 0x100

#: Names of Vela's estimates, with units, by the name in its summary.
ESTIMATES: Mapping[str, tuple[str, str]] = {
    "sram": ("SRAM", " bytes"),
    "dram": ("DRAM", " bytes"),
    "on_chip_flash": ("on-chip flash", " bytes"),
    "off_chip_flash": ("off-chip flash", " bytes"),
    "nn_macs": ("multiplications", ""),
    "cycles_total": ("cycles", ""),
    "cycles_npu": ("cycles of the NPU", ""),
    "cycles_sram_access": ("cycles of SRAM", ""),
    "cycles_dram_access": ("cycles of DRAM", ""),
    "cycles_on_chip_flash_access": ("cycles of on-chip flash", ""),
    "cycles_off_chip_flash_access": ("cycles of off-chip flash", ""),
}


class StreamError(HarnessError, ValueError):
    """The bytes are not such a stream; the message says where, and why."""


@dataclass(frozen=True)
class PlacedTensor:
    """An input or output: its place in its region.

    Attributes
    ----------
    shape
        Six dimensions.
    element
        Bytes of an element.
    offset
        Bytes from the beginning of the region.
    region
        Number of the region; 1 is the scratch memory.
    """

    shape: tuple[int, ...]
    element: int
    offset: int
    region: int


@dataclass(frozen=True)
class Stream:
    """A compiled delegate.

    Attributes
    ----------
    commands
        The driver's input: its header, then the command stream.
    weights
        Weights and biases, encoded.
    scratch
        Bytes of scratch memory that it needs.
    """

    commands: bytes
    weights: bytes
    scratch: int
    inputs: tuple[PlacedTensor, ...]
    outputs: tuple[PlacedTensor, ...]

    def operations(self) -> dict[str, int]:
        """Return how often each operation occurs in the command stream, in the order of their opcodes.

        Raises
        ------
        StreamError
            If the commands are no command stream.
        """
        counts = Counter(opcode for opcode in _opcodes(self.commands) if opcode < SETS_REGISTERS)
        return {OPERATIONS.get(opcode, f"opcode 0x{opcode:03x}"): counts[opcode] for opcode in sorted(counts)}


def digest(data: bytes) -> str:
    """Return size and SHA-256 of bytes, as goldens write them."""
    return f"{len(data)} bytes sha256 {hashlib.sha256(data).hexdigest()}"


def facts(made: bytes, figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a compiled delegate; raise `StreamError`.

    Parameters
    ----------
    figures
        Vela's estimates: see `executorch_goldens_plugins.downstream.vela_driver.summary`.
    """
    stream = decode(made)
    yield "stream", digest(made)
    yield "commands", digest(stream.commands)
    yield from ((name, str(count)) for name, count in stream.operations().items())
    yield "weights", digest(stream.weights)
    yield "scratch", f"{stream.scratch} bytes"
    for what, tensors in (("input", stream.inputs), ("output", stream.outputs)):
        for index, tensor in enumerate(tensors):
            where = f"offset {tensor.offset} of region {tensor.region}"
            yield f"{what} {index}", f"{list(tensor.shape)} of {tensor.element} bytes each, {where}"
    for key, (name, unit) in ESTIMATES.items():
        yield name, f"{figures[key]}{unit}"


def decode(data: bytes) -> Stream:
    """Decode a stream; raise `StreamError`."""
    blocks = dict(_blocks(data))
    missing = {"cmd_data", "weight_data", "scratch_size", "inputs", "outputs"} - blocks.keys()
    if missing:
        raise StreamError(f"the stream has no block {', '.join(sorted(missing))}")
    if len(blocks["scratch_size"]) != struct.calcsize("<I"):
        raise StreamError(f"the block scratch_size has {len(blocks['scratch_size'])} bytes, not 4")
    (scratch,) = struct.unpack("<I", blocks["scratch_size"])
    return Stream(
        blocks["cmd_data"],
        blocks["weight_data"],
        scratch,
        _tensors("inputs", blocks["inputs"]),
        _tensors("outputs", blocks["outputs"]),
    )


def _blocks(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and data of each block between the first and the last, which are empty."""
    position, names = 0, set()
    while position < len(data):
        if len(data) - position < HEADER.size:
            raise StreamError(f"offset {position}: a block's header ends after the {len(data)} bytes")
        raw, length, reserved = HEADER.unpack_from(data, position)
        name = raw.rstrip(b"\0").decode("ascii", errors="backslashreplace")
        start = position + HEADER.size
        if length > len(data) - start:
            raise StreamError(f"offset {position}: block {name!r} of {length} bytes ends after the stream")
        if any(reserved):
            raise StreamError(f"offset {position}: block {name!r} has reserved bytes that are not 0")
        if name in names:
            raise StreamError(f"offset {position}: there are two blocks {name!r}")
        if (position == 0) != (name == FIRST):
            raise StreamError(
                f"offset {position}: the first block is {FIRST}, and only that; this is {name!r}"
            )
        names.add(name)
        yield name, data[start : start + length]
        position = start + length + -length % ALIGNMENT
        if name == LAST and position < len(data):
            raise StreamError(f"offset {position}: {len(data) - position} bytes follow {LAST}")
    if LAST not in names:
        raise StreamError(f"the stream does not end with {LAST}")


def _tensors(name: str, data: bytes) -> tuple[PlacedTensor, ...]:
    if len(data) < struct.calcsize("<i"):
        raise StreamError(f"the block {name} has {len(data)} bytes, and no number of tensors")
    (count,) = struct.unpack_from("<i", data)
    if len(data) - struct.calcsize("<i") != count * TENSOR.size:
        raise StreamError(f"the block {name} has {len(data)} bytes, which are not those of {count} tensors")
    rows = TENSOR.iter_unpack(data[struct.calcsize("<i") :])
    return tuple(PlacedTensor(row[:6], *row[6:]) for row in rows)


def _opcodes(commands: bytes) -> Iterator[int]:
    """Yield the opcode of each command of the command stream."""
    words = _command_stream(commands)
    position = 0
    while position < len(words):
        word = words[position]
        yield word & OPCODE if not word >> PAYLOAD_SHIFT & 0x3 else SETS_REGISTERS
        position += 2 if word >> PAYLOAD_SHIFT & 0x3 == 1 else 1


def _command_stream(commands: bytes) -> tuple[int, ...]:
    """Return the words of the command stream, after the header that the driver reads."""
    if commands[: len(FOURCC)] != FOURCC or len(commands) % 4:
        raise StreamError(f"the commands do not start with {FOURCC.decode()}, or are no whole words")
    words = struct.unpack(f"<{len(commands) // 4}I", commands)
    position = 1
    while position < len(words):
        action = words[position] & 0xFF
        if action == COMMAND_STREAM:
            length = (words[position] >> 8 & 0xFF) << 16 | words[position] >> 16
            if length != len(words) - position - 1:
                raise StreamError(
                    f"the command stream has {len(words) - position - 1} words, its header says {length}"
                )
            return words[position + 1 :]
        if action not in (CONFIG, NOTHING):
            raise StreamError(f"word {position}: action {action} of the driver is not known here")
        position += 1 + (CONFIG_WORDS if action == CONFIG else 0)
    raise StreamError("no command stream follows the driver's header")
