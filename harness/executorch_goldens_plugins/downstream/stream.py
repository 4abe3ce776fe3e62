"""The facts of the Ethos-U backend's form of a delegate: the stream that ``VelaBinStream.cpp`` reads."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from executorch_goldens.errors import HarnessError

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


def digest(data: bytes) -> str:
    """Return size and SHA-256 of bytes, as goldens write them."""
    return f"{len(data)} bytes sha256 {hashlib.sha256(data).hexdigest()}"


def facts(made: bytes, said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a compiled delegate; raise `StreamError`.

    Parameters
    ----------
    made
        The stream.
    said
        What is where in it, and Vela's estimates: see `executorch_goldens_plugins.downstream.vela_driver`.
    """
    if len(made) != said["bytes"]:
        raise StreamError(f"the stream has {len(made)} bytes where {said['bytes']} were packed")
    commands, weights = (made[slice(*said[part])] for part in ("commands", "weights"))
    yield "stream", digest(made)
    yield "commands", digest(commands)
    yield from ((name, str(count)) for name, count in operations(commands).items())
    yield "weights", digest(weights)
    yield "scratch", f"{said['scratch']} bytes"
    for what in ("input", "output"):
        for index, (*shape, element, offset, region) in enumerate(said[f"{what}s"]):
            where = f"offset {offset} of region {region}"
            yield f"{what} {index}", f"{shape} of {element} bytes each, {where}"
    for key, (name, unit) in ESTIMATES.items():
        yield name, f"{said[key]}{unit}"


def operations(commands: bytes) -> dict[str, int]:
    """Return how often each operation occurs in a command stream, in the order of their opcodes; raise `StreamError`.

    Parameters
    ----------
    commands
        The driver's input: its header, then the command stream.
    """
    counts = Counter(opcode for opcode in _opcodes(commands) if opcode < SETS_REGISTERS)
    return {OPERATIONS.get(opcode, f"opcode 0x{opcode:03x}"): counts[opcode] for opcode in sorted(counts)}


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
