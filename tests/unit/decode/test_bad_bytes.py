"""Bad bytes give a `DecodeError`, soon and without much memory."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import flatbuffers
import pytest

from executorch_goldens.decode import DecodeError, decode
from tests.support.decoding.payloads import FIXTURES, SCHEMAS

#: Mutations of each payload; 20,000 were run once for every kind (two minutes each).
MUTATIONS = int(os.environ.get("DECODE_MUTATIONS", "1500"))
SECONDS = 1.0
MEGABYTES = 256
MEGABYTE = 1 << 20
#: Numbers that lengths and offsets overflow at.
EXTREMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC)


def attempt(payload: bytes) -> bool:
    """Decode and write out; tell whether it could be. Anything but a `DecodeError` passes through."""
    try:
        decode(payload, schemas=SCHEMAS).text()
    except DecodeError as error:
        if not (error.path and error.what and error.offset >= 0):
            raise AssertionError(f"{error!r} does not say what is wrong where") from error
        return False
    return True


def mutations(payload: bytes, count: int) -> Iterator[bytes]:
    """Yield payloads with flipped bits, replaced bytes, swapped words, and huge or odd lengths and offsets."""
    chooser = random.Random(len(payload))
    for _ in range(count):
        mutated = bytearray(payload)
        for _ in range(chooser.choice((1, 1, 1, 2, 5))):
            at = chooser.randrange(len(payload))
            word = at & ~3
            kind = chooser.randrange(5)
            if kind == 0:
                mutated[at] ^= 1 << chooser.randrange(8)
            elif kind == 1:
                mutated[at] = chooser.randrange(256)
            elif kind == 2:
                number = chooser.choice((*EXTREMES, len(payload), len(payload) // 4, chooser.randrange(4096)))
                mutated[word : word + 4] = number.to_bytes(4, "little")
            elif kind == 3:
                other = chooser.randrange(len(payload)) & ~3
                mutated[word : word + 4], mutated[other : other + 4] = (
                    mutated[other : other + 4],
                    mutated[word : word + 4],
                )
            else:
                number = chooser.choice((0, 4, 0x8000, 0xFFFF, chooser.randrange(64)))
                mutated[at & ~1 : (at & ~1) + 2] = number.to_bytes(2, "little")
        yield bytes(mutated)


def grown_memory(work: Callable[[], object]) -> int:
    """Return how many bytes of memory this process took more, at most, while it did `work`.

    The mark that an earlier test left is reset first (5 resets VmHWM, see proc_pid_clear_refs(5)), which
    `resource.getrusage` cannot. tracemalloc would do without Linux, in eight times the time.
    """
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def resident(name: str) -> int:
    """Return a number of bytes that the kernel says of this process; it counts in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = (line.split() for line in lines if line.startswith(f"{name}:"))
    return int(found[1]) * 1024


def test_truncation_at_every_length_is_an_error(small: bytes) -> None:
    decodable = [length for length in range(len(small)) if attempt(small[:length])]
    # Only zeros of padding may be missing.
    assert all(not any(small[length:]) for length in decodable)


def test_mutations_decode_or_fail_within_bounds(small: bytes) -> None:
    slowest, decodable = 0.0, 0

    def attempt_all() -> None:
        nonlocal slowest, decodable
        for mutated in mutations(small, MUTATIONS):
            started = time.process_time()
            decodable += attempt(mutated)
            slowest = max(slowest, time.process_time() - started)

    grown = grown_memory(attempt_all)
    assert 0 < decodable < MUTATIONS
    assert slowest < SECONDS
    assert grown < MEGABYTES * MEGABYTE


def test_memory_is_measured_though_more_was_used_before() -> None:
    def greedy() -> bytearray:
        return bytearray(os.urandom(MEGABYTE)) * MEGABYTES

    before = bytearray(os.urandom(MEGABYTE)) * (2 * MEGABYTES)
    del before
    # The kernel counts a process's pages in batches.
    assert grown_memory(greedy) > 0.99 * MEGABYTES * MEGABYTE
    assert grown_memory(lambda: None) < MEGABYTE


@pytest.mark.parametrize("payload", [b"", b"\0", b"TOSA", b"\0" * 8, bytes(range(64)), b"PK\3\4" + bytes(60)])
def test_what_is_no_payload_is_an_error_that_names_the_kinds(payload: bytes) -> None:
    with pytest.raises(DecodeError, match="TOSA") as caught:
        decode(payload, schemas=SCHEMAS)
    assert (caught.value.path, caught.value.offset) == ("payload", 4)


@pytest.mark.parametrize(
    ("name", "at", "number", "what"),
    [
        ("1.5.1/xnnpack-int8-0.xnnpack", slice(0, 4), 1, "four zeros expected"),
        ("1.5.1/xnnpack-int8-0.xnnpack", slice(8, 10), 31, "a header of 30 bytes expected, it says 31"),
        ("1.5.1/xnnpack-int8-0.xnnpack", slice(10, 14), 16, "overlaps the header"),
        ("1.5.1/xnnpack-int8-0.xnnpack", slice(14, 18), 1 << 31, "are not in the payload"),
        ("1.5.1/xnnpack-int8-0.xnnpack", slice(18, 22), 40, "overlap the FlatBuffer"),
        ("1.5.1/xnnpack-int8-0.xnnpack", slice(22, 30), 1 << 60, "are not in the payload"),
        ("1.5.1/xnnpack-int4.pte", slice(12, 16), 33, "a header of 33 bytes is not known here"),
        ("1.5.1/xnnpack-int4.pte", slice(16, 24), 1 << 60, "a program of 1152921504606846976 bytes"),
        ("1.5.1/xnnpack-int4.pte", slice(16, 24), 39, "a program of 39 bytes"),
        ("1.5.1/xnnpack-int4.pte", slice(24, 32), 100, "segments at 100: inside the program or past the end"),
        ("1.5.1/xnnpack-int4.pte", slice(32, 40), 1 << 60, "segments of 1152921504606846976 bytes"),
    ],
)
def test_headers_are_checked(name: str, at: slice, number: int, what: str) -> None:
    payload = bytearray((FIXTURES / name).read_bytes())
    payload[at] = number.to_bytes(at.stop - at.start, "little")
    with pytest.raises(DecodeError) as caught:
        decode(bytes(payload), schemas=SCHEMAS)
    assert what in caught.value.what
    assert caught.value.offset == at.start
    assert caught.value.path in ("XNNHeader", "ExtendedHeader")


def test_shared_text_does_not_multiply() -> None:
    """Thousands of references to one long text would make gigabytes of a few kilobytes."""
    builder = flatbuffers.Builder()
    text = builder.CreateString("x" * 6000)
    builder.StartVector(4, 4000, 4)
    for _ in range(4000):
        builder.PrependUOffsetTRelative(text)
    inputs = builder.EndVector()
    block = table(builder, {3: inputs})
    region = table(builder, {1: vector(builder, [block])})
    graph = table(builder, {0: table(builder, {}), 1: vector(builder, [region])})
    builder.Finish(graph, b"TOSA")
    with pytest.raises(DecodeError, match="references to every byte") as caught:
        decode(bytes(builder.Output()), schemas=SCHEMAS)
    assert caught.value.path.startswith("TosaGraph.regions[0].blocks[0].inputs[")


def table(builder: flatbuffers.Builder, fields: dict[int, int]) -> int:
    """Write a table of offsets by slot; return its own offset."""
    builder.StartObject(max(fields, default=0) + 1)
    for slot, offset in fields.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return int(builder.EndObject())


def vector(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    """Write a vector of offsets; return its own offset."""
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())
