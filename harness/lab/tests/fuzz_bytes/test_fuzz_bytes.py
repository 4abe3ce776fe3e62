"""Readers refuse the findings of the fuzzing, and the fuzzing finds planted defects."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from executorch_goldens.errors import HarnessError
from executorch_goldens.goldens.record import MANIFEST
from lab.fuzz_bytes import piece
from lab.fuzz_bytes.corpora import programs
from lab.fuzz_bytes.reader import HERE
from lab.fuzz_bytes.readers import READERS, RESULTS, compiled_goldens, golden_files, records

LINES = (RESULTS / "stock" / "1.3.1" / "results.jsonl").read_bytes()
RUN = (RESULTS / "stock" / "1.3.1" / "run.json").read_bytes()
#: A cell in the list of requested cells, and then in that of the shard.
SELECTED = b'  "tosa-int/cat-h-v",\n'
MANIFEST = golden_files(MANIFEST)[0]
RECORD = records()[0]
COMPILED = compiled_goldens()[0]


def without_a_tolerance() -> bytes:
    """Return a shipped program with an output whose tolerance is gone."""
    shipped = msgspec.msgpack.decode(programs()[2])
    shipped["programs"][0]["samples"][0]["tolerances"].pop()
    return msgspec.msgpack.encode(shipped)


#: Findings by reader: each ended in another exception than the reader declares, or took too much memory.
KEPT = {
    "schema, not UTF-8": ("schema", b"table A {}\x8a"),
    "schema, an enum that is no number": ("schema", b"enum A : byte { B = , C }"),
    "schema, an enum of no type": ("schema", b"enum A : B { C }"),
    "manifest without variations": ("manifest", MANIFEST.replace(b"variations:", b"variatoins:")),
    "record, a digit that int() refuses": ("record", RECORD.replace(b"golden: 3", b"golden: \xc2\xb2")),
    "golden whose delegate is none": (
        "golden",
        b"tosa-fp/linear/delegate_0.tosa\n{} XNNFullyConnected\n",
    ),
    "configuration that nests": ("tool.goldens", b"[tool.goldens]\nmodels = " + b"[" * 2000),
    "matrix that nests": ("releases.toml", b"a = " + b"[" * 2000),
    "matrix, not UTF-8": ("releases.toml", b"\xff"),
    "tensors, not deflated": ("tensors", (HERE / "kept" / "tensors-deflate").read_bytes()),
    "results without seconds": ("results", LINES.replace(b'seconds"', b'second"')),
    "results that nest": ("results", b"[" * 200_000),
    "shard without variations": ("shard", b"results.jsonl\n" + LINES.replace(b'"variations"', b'"v"')),
    "shard with a cell that nobody asked for": ("shard", b"run.json\n" + RUN.replace(SELECTED, b"", 1)),
    "compiled golden with a line that is no fact": ("compiled", COMPILED.replace(b"commands: ", b"commands")),
    "compiled golden without a payload": ("compiled", COMPILED.replace(b"tosa: ", b"tosb: ")),
    "compiled golden with a number that int() refuses": (
        "compiled",
        COMPILED.replace(b"scratch: ", b"scratch: " + b"1" * 5000),
    ),
    "program with an output that has no tolerance": ("program", without_a_tolerance()),
}


@pytest.mark.parametrize(("reader", "data"), KEPT.values(), ids=KEPT)
def test_what_was_found_is_refused_as_declared(reader: str, data: bytes, tmp_path: Path) -> None:
    assert piece.attempt(READERS[reader], data, tmp_path) == ""


def planted(wrong: Callable[[], object]) -> object:
    return replace(READERS["zoo"], read=lambda data, folder: wrong())


def raises() -> None:
    raise KeyError("x")


def says_nothing() -> None:
    raise HarnessError


def takes_long() -> None:
    ends = time.process_time() + 2 * piece.SECONDS
    while time.process_time() < ends:
        pass


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (raises, "KeyError at "),
        (says_nothing, "HarnessError at "),
        (takes_long, "TooSlowError at "),
        (lambda: bytearray(piece.MEGABYTES << 21), "MemoryError at "),
    ],
)
def test_what_is_planted_is_found(wrong: Callable[[], object], what: str, tmp_path: Path) -> None:
    assert piece.attempt(planted(wrong), b"", tmp_path).startswith(what)


def test_a_seed_makes_the_same_mutations_each_time(tmp_path: Path) -> None:
    one, again, other = (piece.run(READERS["run"], 20, seed, tmp_path)["digest"] for seed in (1, 1, 2))
    assert one == again != other
