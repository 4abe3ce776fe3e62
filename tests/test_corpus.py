"""Frozen programs: what is written is read, what is damaged is named, what is run again is judged, whoever wrote it.

`tests/corpora` has a real corpus, with how it was made.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell, Delegate, Lowered
from executorch_goldens.cli import DIFFERENT, ERROR, SAME
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.files import logged, untrusted
from executorch_goldens.programs import comparing, freezing, runner, running
from executorch_goldens.programs.format import (
    EXECUTORCH,
    MANIFEST,
    OBJECTS,
    REFERENCE_MODEL,
    SEAL,
    CorpusError,
    FrozenSample,
    Program,
    Value,
)
from executorch_goldens.programs.reading import Corpus
from executorch_goldens.programs.record import Record
from executorch_goldens.programs.recorder import Recorder
from executorch_goldens.programs.running import Limits, Ran, RunningError, Runtime
from executorch_goldens.programs.writing import Writer
from executorch_goldens.settings.exports import default_interpreter
from tests.conftest import DROPPED, REPOSITORY

FROZEN = REPOSITORY / "tests" / "corpora" / "linear-1.4.1"
XNNPACK, TOSA = Cell("xnnpack-fp32", "linear"), Cell("tosa-int", "linear")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the corpus, to be changed."""
    return Path(shutil.copytree(FROZEN, tmp_path / "corpus"))


def program(cell: Cell, name: str, folder: Path = FROZEN) -> Program:
    """Return a program of a corpus."""
    corpus = Corpus.read(folder)
    (entry,) = (
        program
        for each in corpus.manifest.cells
        if each.cell == str(cell)
        for program in each.programs
        if program.name == name
    )
    return corpus.program(entry)


def sealed(folder: Path, data: bytes) -> None:
    """Write a manifest with a digest that fits, as whoever hands over a corpus can."""
    (folder / MANIFEST).write_bytes(data)
    (folder / SEAL).write_text(f"{hashlib.sha256(data).hexdigest()}  {MANIFEST}\n")


def edited(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    edit(manifest)
    sealed(folder, json.dumps(manifest).encode())


def first_object(folder: Path) -> Path:
    """Return the file of the first program."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    return folder / OBJECTS / manifest["cells"][0]["programs"][0]["sha256"]


# Reading and writing


def test_a_corpus_that_was_read_is_written_with_the_same_bytes(tmp_path: Path) -> None:
    corpus = Corpus.read(FROZEN)
    corpus.check()
    with Writer(tmp_path / "again") as writer:
        for entry in corpus.manifest.cells:
            programs = [corpus.program(each) for each in entry.programs]
            writer.add(Cell.named(entry.cell), entry.variations, programs)
        writer.finish(corpus.manifest.made_with, corpus.manifest.patches)
    written = {str(path.relative_to(tmp_path / "again")) for path in (tmp_path / "again").rglob("*")}
    assert written == {str(path.relative_to(FROZEN)) for path in FROZEN.rglob("*")}
    for name in written:
        if (FROZEN / name).is_file():
            assert (tmp_path / "again" / name).read_bytes() == (FROZEN / name).read_bytes()


def test_sha256sum_and_python_alone_read_a_corpus() -> None:
    # What docs/corpus.md promises.
    subprocess.run(["sha256sum", "--check", "--quiet", SEAL], cwd=FROZEN, check=True)
    manifest = json.loads((FROZEN / MANIFEST).read_bytes())
    for cell in manifest["cells"]:
        for each in cell["programs"]:
            data = (FROZEN / OBJECTS / each["sha256"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == each["sha256"]
            for sample in each["samples"]:
                for tensor in (*sample["steps"][0], *sample["outputs"], *sample["expected"]):
                    raw = (FROZEN / OBJECTS / tensor["sha256"]).read_bytes()
                    np.frombuffer(raw, tensor["dtype"]).reshape(tensor["shape"])


def test_a_corpus_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    frozen = program(XNNPACK, "program")
    with Writer(tmp_path / "new") as writer:
        writer.add(XNNPACK, ["one", "other"], [frozen])
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_what_a_corpus_cannot_hold_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    frozen = program(XNNPACK, "program")
    narrow = (Value("bfloat16", (1,), b"12"),)
    odd = dataclasses.replace(
        frozen, data=b"odd", samples=(FrozenSample("example", ((),), narrow, narrow, (0.0,)),)
    )
    with Writer(tmp_path / "new") as writer:
        with pytest.raises(ValueError, match="bfloat16 expected, which nothing can be measured by"):
            writer.add(XNNPACK, ["one", "other"], [odd])
        writer.add(XNNPACK, ["one", "other"], [frozen])
        writer.finish({}, [])
    Corpus.read(tmp_path / "new").check()
    assert not (tmp_path / "new" / OBJECTS / hashlib.sha256(b"odd").hexdigest()).exists()


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        (("int4", (1,), b"1"), "no dtype 'int4' is known"),
        (("float32", (1 << 40,), b"1234"), "takes 4,398,046,511,104 bytes, not 4"),
        (("int8", (2, 3), b"123456", (2, 1)), "do not fit the shape"),
    ],
)
def test_a_tensor_that_does_not_hold_together_is_none(facts: tuple[Any, ...], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Value(*facts)


@pytest.mark.parametrize("there", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_what_exists_is_never_written_to(tmp_path: Path, there: Callable[[Path], None]) -> None:
    there(tmp_path / "corpus")
    with pytest.raises(CorpusError, match="exists, and a corpus is never changed"):
        Writer(tmp_path / "corpus")
    with pytest.raises(CorpusError, match="cannot be written"):
        Writer(tmp_path / "no such" / "corpus")


# Damage


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _link(path: Path) -> None:
    outside = path.parent.parent.parent / "outside"
    shutil.move(path, outside)
    path.symlink_to(outside)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "byte": (lambda folder: _flip(first_object(folder)), OBJECTS, "its SHA-256 is not its name"),
    "truncated": (lambda folder: os.truncate(first_object(folder), 100), OBJECTS, "has 100 bytes where"),
    "missing": (lambda folder: first_object(folder).unlink(), OBJECTS, "is missing"),
    "link": (lambda folder: _link(first_object(folder)), OBJECTS, "is a link, which is not followed"),
    "pipe": (lambda folder: _pipe(first_object(folder)), OBJECTS, "is no file"),
    "links": (lambda folder: _link(folder / OBJECTS), OBJECTS, "is a link, which is not followed"),
    "manifest": (lambda folder: _flip(folder / MANIFEST), MANIFEST, "one of them was changed"),
    "seal": (lambda folder: (folder / SEAL).unlink(), SEAL, "is missing"),
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "", "is no corpus"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_corpus_is_one_error_that_names_the_file(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, file, what = DAMAGE[kind]
    damage(folder)
    assert cli.main(["thaw", str(folder), "--runtime", "/no/such/python"]) == ERROR
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(folder / file) in said
    assert what in said
    assert "copy it again" in said or kind == "no manifest"


def _first(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["cells"][0]["programs"][0]
    return found


def _tensor(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = _first(manifest)["samples"][0]["steps"][0][0]
    return found


def _least(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a cell that takes few bytes."""
    sample = {"name": "example", "steps": [[]], "outputs": [], "expected": [], "tolerances": []}
    program = {**_first(manifest), "samples": [sample]}
    return {**manifest["cells"][0], "programs": [program]}


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "newer": (lambda m: m.update(format=2, more={}), "has format 2, and this harness reads 1"),
    "unknown field": (lambda m: m.update(run="rm"), "unknown field `run`"),
    "too many cells": (
        lambda m: m.update(cells=[_least(m)] * 10_001),
        "Expected `array` of length <= 10000",
    ),
    "no cell": (lambda m: m.update(cells=[]), "length >= 1"),
    "twice": (lambda m: m["cells"].append(m["cells"][0]), "is there twice"),
    "path": (lambda m: m["cells"][0].update(cell="../x"), "cannot be the name of a file"),
    "no cell's name": (lambda m: m["cells"][0].update(cell="linear"), "is not TARGET/CASE"),
    "digest": (lambda m: _first(m).update(sha256="../../outside"), "matching regex"),
    "engine": (lambda m: _first(m).update(engine="sh"), "no engine 'sh' is known"),
    "size": (lambda m: _first(m).update(size=1 << 40), "`int` <= 1073741824"),
    "dtype": (lambda m: _tensor(m).update(dtype="object"), "'object'"),
    "huge": (lambda m: _tensor(m).update(shape=[1 << 20, 1 << 20]), "more than 268,435,456"),
    "negative": (lambda m: _tensor(m).update(shape=[-1]), "`int` >= 0"),
    "dimensions": (lambda m: _tensor(m).update(shape=[1] * 17), "length <= 16"),
    "strides": (
        lambda m: _tensor(m).update(strides=[9 for _ in _tensor(m)["shape"]]),
        "do not fit the shape",
    ),
    "outputs": (lambda m: _first(m)["samples"][0]["outputs"].clear(), "are not as many"),
    "tolerance": (lambda m: _first(m)["samples"][0].update(tolerances=[-1.0]), ">= 0"),
    "one variation": (lambda m: m["cells"][0].update(variations=["seed0"]), "length >= 2"),
    "colours": (lambda m: m["cells"][0].update(cell="\x1b[2J/x"), "cannot be the name of a file"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_manifest_that_does_not_hold_together_is_one_error(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, what = HOSTILE[kind]
    edited(folder, edit)
    assert cli.main(["thaw", str(folder), "--runtime", "/no/such/python"]) == ERROR
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(folder / MANIFEST) in said
    assert what in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"format": 1, "x": ' + b"[" * 100_000, b"\xff", b"[]", b"", b"null"]
)
def test_a_manifest_that_is_none_is_refused(folder: Path, data: bytes) -> None:
    sealed(folder, data)
    with pytest.raises(CorpusError, match="is no manifest of format 1") as raised:
        Corpus.read(folder)
    assert raised.value.path == folder / MANIFEST


def test_reading_imports_neither_torch_nor_a_zoo() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from executorch_goldens.commands import thaw; from executorch_goldens.programs.reading import Corpus\n"
        f"Corpus.read(Path({str(FROZEN)!r})).check()\n"
        "print([name for name in ('torch', 'executorch', 'models', 'tosa_reference_model') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert said.stdout == "[]\n"


# Running


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """The environment of the tests, in a process that has nothing of the harness."""
    with Runtime(default_interpreter(), (EXECUTORCH, REFERENCE_MODEL)) as started:
        yield started


@pytest.fixture
def xnnpack() -> Program:
    return program(XNNPACK, "program")


@pytest.fixture
def tosa() -> Program:
    return program(TOSA, "delegate_0")


def judged(frozen: Program, runtime: Runtime) -> comparing.Result:
    return comparing.compare(frozen, runtime.run(frozen))


def test_what_was_frozen_gives_the_same_again(runtime: Runtime, xnnpack: Program, tosa: Program) -> None:
    assert runtime.versions["executorch"]
    for frozen in (xnnpack, tosa):
        result = judged(frozen, runtime)
        assert (result.word, result.reason) == (comparing.SAME, "")
        assert len(result.samples) == len(frozen.samples) > 1


def test_an_input_lies_in_memory_as_it_did() -> None:
    torch = pytest.importorskip("torch")
    from executorch_goldens.programs.recorder import of_tensor

    image = torch.arange(24.0).reshape(1, 2, 3, 4)
    for given in (
        image,
        image.to(memory_format=torch.channels_last),
        image.transpose(1, 3),
        torch.ones(3, dtype=torch.bfloat16),
        torch.empty(0, 3),
        torch.tensor(True),
        torch.arange(3, dtype=torch.int8)[::2],
        torch.ones(1).expand(4),
    ):
        value = of_tensor(given)
        meta = {"dtype": value.dtype, "shape": value.shape, "strides": value.strides}
        again = runner._tensor(torch, meta, value.data)
        assert again.dtype is given.dtype
        assert torch.equal(again, given)
        # What does not lie side by side is handed over as if it did.
        if value.strides is not None or given.is_contiguous():
            assert again.stride() == given.stride()
    assert of_tensor(image.transpose(1, 3)).strides is not None


def changed(frozen: Program, edit: Callable[[bytearray], object]) -> Program:
    """Return a program whose bytes are edited: in a corpus that was made for harm, its digest fits."""
    data = bytearray(frozen.data)
    edit(data)
    return dataclasses.replace(frozen, data=bytes(data))


def _other_version(data: bytearray) -> None:
    # "File identifiers" of FlatBuffers: four letters after the first offset.
    assert data[4:8] == b"ET12"
    data[4:8] = b"ET99"


def _header(data: bytearray) -> None:
    # The header of the XNNPACK delegate (XNNHeader, backends/xnnpack/serialization/xnnpack_graph_serialize.py).
    at = data.index(b"XH00")
    data[at] ^= 1


def _half(data: bytearray) -> None:
    del data[len(data) // 2 :]


#: Damage, and what the runtime says of it.
REFUSED: dict[str, tuple[Callable[[bytearray], object], str]] = {
    "delegate": (_header, "version identifier 'YH00'"),
    "truncated": (_half, "size"),
    "version": (_other_version, "'ET99'"),
}


def test_programs_that_were_changed_are_refused_each_with_its_reason(
    tmp_path: Path, xnnpack: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    with Writer(tmp_path / "corpus") as writer:
        writer.add(XNNPACK, ["one", "other"], [xnnpack])
        for name, (edit, _) in REFUSED.items():
            writer.add(Cell("xnnpack-fp32", name), ["one", "other"], [changed(xnnpack, edit)])
        writer.finish({}, [])
    words = ["thaw", str(tmp_path / "corpus"), "--runtime", str(default_interpreter())]
    assert cli.main(words) == DIFFERENT
    _, sound, *refused, counts = capsys.readouterr().out.splitlines()
    assert sound == "same: xnnpack-fp32/linear program"
    for line, (name, (_, what)) in zip(refused, REFUSED.items(), strict=True):
        assert line.startswith(f"refused: xnnpack-fp32/{name} program: RuntimeError: ")
        assert what in line
    assert counts == "1 same, 3 refused"


@pytest.mark.parametrize("at", range(0, 12))
def test_whatever_byte_of_a_delegate_is_changed_the_next_program_is_run(
    runtime: Runtime, xnnpack: Program, at: int
) -> None:
    start = xnnpack.data.index(b"XH00")

    def edit(data: bytearray) -> None:
        data[start + at * (len(data) - start) // 12] ^= 0x40

    assert judged(changed(xnnpack, edit), runtime).word in (
        *(comparing.SAME, comparing.ROUNDING, comparing.WRONG),
        *(running.REFUSED, running.CRASHED, running.TIMED_OUT),
    )
    assert judged(xnnpack, runtime).word == comparing.SAME


def _other_tosa(data: bytearray) -> None:
    assert data[4:8] == b"TOSA"
    data[4:8] = b"TOSB"


@pytest.mark.parametrize(
    ("edit", "words", "what"),
    [
        # Written through C's buffers.
        (_other_tosa, (running.REFUSED,), "; TOSA graph data is invalid, should start with TOSA"),
        # It reads what is not there: the reference model of 2026.5.0 dies of SIGSEGV.
        (_half, (running.CRASHED, running.REFUSED), "killed by SIG"),
    ],
)
def test_a_tosa_payload_that_was_changed_is_no_result(
    runtime: Runtime, tosa: Program, edit: Callable[[bytearray], object], words: tuple[str, ...], what: str
) -> None:
    result = judged(changed(tosa, edit), runtime)
    assert result.word in words
    assert what in result.reason
    assert judged(tosa, runtime).word == comparing.SAME


def test_a_program_that_takes_too_long_is_ended(xnnpack: Program) -> None:
    with Runtime(default_interpreter(), (EXECUTORCH,), Limits(seconds=0.0)) as hurried:
        result = judged(xnnpack, hurried)
    assert (result.word, result.reason) == (running.TIMED_OUT, "not done within 0 s")


def test_a_program_that_takes_too_much_is_no_result(xnnpack: Program) -> None:
    large = Value("float32", (1 << 22,), bytes(1 << 24))
    sample = dataclasses.replace(xnnpack.samples[0], steps=((large,) * 8,))
    with Runtime(default_interpreter(), (EXECUTORCH,), Limits(megabytes=64)) as small:
        result = judged(dataclasses.replace(xnnpack, samples=(sample,)), small)
        assert result.word in (running.REFUSED, running.CRASHED)
        assert "Memory" in result.reason or "memory" in result.reason


def test_an_interpreter_that_is_none_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(RunningError, match=r"no-such-python cannot be run: .*executorch and torch"),
        Runtime(tmp_path / "no-such-python", (EXECUTORCH,)),
    ):
        pass
    (tmp_path / "odd").write_text("#!/bin/sh\necho not a Python\nexit 3\n")
    (tmp_path / "odd").chmod(0o755)
    with (
        pytest.raises(RunningError, match=r"odd ended \(exit status 3\).*not a Python"),
        Runtime(tmp_path / "odd", (EXECUTORCH,)),
    ):
        pass


@pytest.mark.parametrize(
    ("engine", "needs"), [(EXECUTORCH, "executorch and torch"), (REFERENCE_MODEL, "tosa-tools")]
)
def test_an_environment_without_an_engine_is_named(tmp_path: Path, engine: str, needs: str) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare" / "bin" / "python"
    with (
        pytest.raises(RunningError, match="install them there, name another") as raised,
        Runtime(python, (engine,)),
    ):
        pass
    for fact in (str(python), engine, "ModuleNotFoundError", needs):
        assert fact in str(raised.value)


# What a program leaves may be anything


def left(tmp_path: Path, frozen: Program, status: int = 0, **files: bytes) -> Ran:
    for name, data in files.items():
        (tmp_path / name.replace("_", "-").replace("-json", ".json")).write_bytes(data)
    return running._taken(frozen, tmp_path, {"status": status, "timed_out": False, "seconds": 0.1}, Limits())


NO_OUTPUTS: dict[str, tuple[dict[str, bytes], str]] = {
    "deep": ({"out_0_json": b"[" * 100_000}, "Expected `object`"),
    "type": ({"out_0_json": b"{}"}, "Expected `array`"),
    "size": (
        {"out_0_json": b'[{"dtype": "float32", "shape": [1000000000]}]', "out_0_0": b"1234"},
        "`int` <= 268435456",
    ),
    "short": (
        {"out_0_json": b'[{"dtype": "float32", "shape": [2]}]', "out_0_0": b"1234"},
        "takes 8 bytes, not 4",
    ),
    "dtype": (
        {"out_0_json": b'[{"dtype": "object", "shape": [1]}]', "out_0_0": b"12345678"},
        "'object'",
    ),
    "missing": ({"out_0_json": b'[{"dtype": "float32", "shape": [1]}]'}, "No such file"),
    "many": ({"out_0_json": b"[" + b'{"dtype": "bool", "shape": [0]},' * 1001 + b"]"}, "1001 outputs"),
}


@pytest.mark.parametrize("kind", NO_OUTPUTS)
def test_outputs_that_are_none_are_refused(tmp_path: Path, xnnpack: Program, kind: str) -> None:
    files, what = NO_OUTPUTS[kind]
    ran = left(tmp_path, xnnpack, **{name: data.replace(b",]", b"]") for name, data in files.items()})
    assert (ran.stopped, ran.outputs) == (running.REFUSED, ())
    assert "cannot be read" in ran.reason
    assert what in ran.reason


def test_a_process_that_ends_without_a_result_has_crashed(tmp_path: Path, xnnpack: Program) -> None:
    ran = left(tmp_path, xnnpack)
    assert ran.stopped == running.CRASHED
    assert "without a result for sample example" in ran.reason


def test_a_process_that_died_has_crashed_whatever_it_left(tmp_path: Path, xnnpack: Program) -> None:
    log = b"\xff\n[cpuinfo_utils.cpp:9] no error\n"
    log += b"[program.cpp:226] InternalConsistency verification requested but not available\n"
    log += b"[method.cpp:7] first\n[method.cpp:8] second\n"
    ran = left(tmp_path, xnnpack, status=-11, log=log, error=b"not this")
    assert ran.stopped == running.CRASHED
    assert ran.reason == "killed by SIGSEGV; first"
    assert left(tmp_path, xnnpack, status=-63).reason == "killed by signal 63; first"
    refused = left(tmp_path, xnnpack, status=3)
    assert (refused.stopped, refused.reason) == (running.REFUSED, "not this; first")


def test_the_reason_of_a_refused_payload_is_the_reference_models_error_not_its_warning() -> None:
    log = "WARNING: Different TOSA spec\nERROR: TOSA file created with newer SerLib\nWARNING AT /x.cpp"
    said = logged.explained("ValueError:\n Invalid", log)
    assert said == "ValueError: Invalid; TOSA file created with newer SerLib"


def test_what_a_program_gave_before_it_was_refused_is_there_with_the_reason(
    runtime: Runtime, xnnpack: Program
) -> None:
    # The input of the second sample is too large.
    first, *_ = xnnpack.samples
    (value,) = first.steps[0]
    larger = dataclasses.replace(value, shape=(*value.shape, 2), data=value.data * 2)
    ran = runtime.run(
        dataclasses.replace(xnnpack, samples=(first, dataclasses.replace(first, steps=((larger,),))))
    )
    assert (len(ran.outputs), ran.stopped) == (1, running.REFUSED)
    assert "; " in ran.reason


# Comparing


def given(frozen: Program, *, nudge: float) -> Ran:
    """Return a run that gives what was frozen, with the first value of the first sample off by `nudge`."""
    first, *others = [sample.outputs for sample in frozen.samples]
    array = first[0].tensor().array().copy()
    array.flat[0] += nudge
    off = dataclasses.replace(first[0], data=array.tobytes())
    return Ran(((off, *first[1:]), *others), "", "", 0.1)


def test_what_is_within_the_tolerance_is_within_rounding_and_beyond_it_wrong(xnnpack: Program) -> None:
    sample = xnnpack.samples[0]
    tolerance = sample.tolerances[0]
    wide = tolerance if isinstance(tolerance, float) else float(tolerance.tensor().array().flat[0])
    assert wide > 0.0
    assert comparing.compare(xnnpack, given(xnnpack, nudge=0.0)).word == comparing.SAME
    near = comparing.compare(xnnpack, given(xnnpack, nudge=wide / 2))
    assert (near.word, near.is_right) == (comparing.ROUNDING, True)
    assert near.samples[0] == ("example", comparing.ROUNDING)
    assert near.samples[1][1] == comparing.SAME
    far = comparing.compare(xnnpack, given(xnnpack, nudge=4 * wide))
    assert (far.word, far.is_right) == (comparing.WRONG, False)
    assert "sample example: output 0" in far.reason
    assert "1 of" in far.reason


def test_a_float_that_becomes_none_is_wrong(xnnpack: Program) -> None:
    assert comparing.compare(xnnpack, given(xnnpack, nudge=np.nan)).word == comparing.WRONG


def test_integer_codes_may_not_be_off(tosa: Program) -> None:
    assert tosa.samples[0].outputs[0].dtype == "int8"
    assert comparing.compare(tosa, given(tosa, nudge=1)).word == comparing.WRONG


def test_another_dtype_shape_or_number_of_outputs_is_wrong(xnnpack: Program) -> None:
    (value,) = xnnpack.samples[0].outputs
    for outputs in (
        (),
        (value, value),
        (dataclasses.replace(value, dtype="int32"),),
        (dataclasses.replace(value, shape=(*value.shape, 1)),),
    ):
        word, reason = comparing.of_sample(xnnpack.samples[0], outputs)
        assert word == comparing.WRONG
        assert "frozen" in reason


def test_bfloat16_is_compared_by_its_numbers() -> None:
    frozen = Value("bfloat16", (1,), bytes.fromhex("803f"))
    expected = Value("float32", (1,), np.float32(1.0).tobytes())
    sample = FrozenSample("example", ((),), (frozen,), (expected,), (0.01,))
    near, far = Value("bfloat16", (1,), bytes.fromhex("813f")), Value("bfloat16", (1,), bytes.fromhex("8a3f"))
    assert comparing.of_sample(sample, (near,))[0] == comparing.ROUNDING
    assert comparing.of_sample(sample, (far,))[0] == comparing.WRONG


def test_what_was_run_before_a_program_stopped_is_said(xnnpack: Program) -> None:
    ran = Ran((xnnpack.samples[0].outputs,), running.CRASHED, "SIGSEGV", 0.1)
    result = comparing.compare(xnnpack, ran)
    assert (result.word, result.samples) == (running.CRASHED, (("example", comparing.SAME),))
    assert f"SIGSEGV after 1 of {len(xnnpack.samples)} samples" == result.reason


# The commands


def harness(*words: str, folder: Path = REPOSITORY, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return subprocess.run(
        [sys.executable, "-m", "executorch_goldens", *words],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(REPOSITORY)} | environment,
        capture_output=True,
        text=True,
        timeout=400,
    )


def test_thaw_says_what_became_of_each_program_and_of_all(folder: Path) -> None:
    python = str(default_interpreter())
    right = harness("thaw", str(folder), "--runtime", python, folder=folder)
    assert right.returncode == SAME, right.stderr
    assert f"same: {XNNPACK} program\n" in right.stdout
    assert f"kept: {TOSA} program: only what has TOSABackend runs it\n" in right.stdout
    assert f"same: {TOSA} delegate_0\n" in right.stdout
    # Every digest fits, and one program is no program.
    corpus = Corpus.read(folder)
    with Writer(folder.parent / "spoilt") as writer:
        for entry in corpus.manifest.cells:
            programs = [corpus.program(each) for each in entry.programs]
            if entry.cell == str(XNNPACK):
                programs = [changed(each, _half) for each in programs]
            writer.add(Cell.named(entry.cell), entry.variations, programs)
        writer.finish(corpus.manifest.made_with, corpus.manifest.patches)
    wrong = harness("thaw", str(folder.parent / "spoilt"), "--runtime", python, "--json")
    assert wrong.returncode == DIFFERENT, wrong.stderr
    said = json.loads(wrong.stdout)
    assert said["made_with"]["executorch"] == "1.4.1"
    found = {(row["cell"], row["program"]): row["result"] for row in said["programs"]}
    assert found.pop((str(XNNPACK), "program")) == running.REFUSED
    assert set(found.values()) == {comparing.SAME, comparing.KEPT}


def test_thaw_takes_cells_and_refuses_those_that_are_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["thaw", str(FROZEN), "--runtime", str(tmp_path / "none"), "--cell"]
    assert cli.main([*words, "tosa-int/no-such"]) == ERROR
    assert "unknown case 'no-such'" in capsys.readouterr().err
    assert cli.main([*words, "tosa-int/*"]) == ERROR
    assert "has tosa-tools" in capsys.readouterr().err


@pytest.mark.slow
def test_freeze_takes_what_is_right_and_refuses_the_rest_by_name(tmp_path: Path) -> None:
    words = ("--models", "tests.zoo", "--goldens", str(tmp_path / "goldens"), "--jobs", "2")
    cells = ("xnnpack-fp32/steady", "xnnpack-fp32/wrong", "xnnpack-fp32/set-of-strings", "tosa-fp/steady")
    chosen = [word for cell in cells for word in ("--cell", cell)]
    done = harness("freeze", str(tmp_path / "corpus"), *words, *chosen)
    assert done.returncode == DIFFERENT, done.stderr
    assert "refused: xnnpack-fp32/wrong: corrupt: " in done.stdout
    assert "refused: xnnpack-fp32/set-of-strings: order-only: " in done.stdout
    assert "2 cells frozen, 2 refused" in done.stdout
    corpus = Corpus.read(tmp_path / "corpus")
    corpus.check()
    assert {entry.cell for entry in corpus.manifest.cells} == {"xnnpack-fp32/steady", "tosa-fp/steady"}
    again = harness("freeze", str(tmp_path / "corpus"), *words, *chosen)
    assert again.returncode == ERROR
    assert "exists, and a corpus is never changed" in again.stderr
    nothing = harness("freeze", str(tmp_path / "none"), *words, "--cell", "xnnpack-fp32/wrong")
    assert nothing.returncode == ERROR
    assert "no cell could be frozen" in nothing.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"corpus"}
    thawed = harness(
        "thaw", str(tmp_path / "corpus"), "--runtime", str(default_interpreter()), folder=tmp_path
    )
    assert thawed.returncode == SAME, thawed.stdout + thawed.stderr


def test_a_payload_that_leaves_sizes_open_is_frozen_at_the_sizes_of_its_samples(runtime: Runtime) -> None:
    """No reference model takes it as it is."""
    payload = (REPOSITORY / "tests/decode/fixtures/1.5.1/tosa-shape-0.tosa").read_bytes()
    recorder = Recorder()
    for number, (height, width) in enumerate([(8, 9), (5, 12), (8, 9)]):
        image = np.arange(3 * height * width, dtype=np.float32).reshape(1, 3, height, width) % 8
        recorder.runs(f"sample {number}", b"")
        recorder.called(payload, [image], numerics.run_model(payload, [image]))
    calls = {name: tuple(made) for name, made in recorder.of_delegates.items()}
    delegates = (Delegate("lowered_module_0", "TOSABackend", payload),)
    lowered = Lowered(graph="", delegates=delegates, pte=b"", samples=(), bound=1e-5, schemas=())
    _, *frozen = freezing._programs(Cell("tosa-fp+shape", "any"), lowered, Record({}, calls))
    assert [(each.name, len(each.samples)) for each in frozen] == [
        ("delegate_0-sizes-0", 2),
        ("delegate_0-sizes-1", 1),
    ]
    for each in frozen:
        # A corpus that is read may have no other.
        untrusted.require_name(each.name)
        again = freezing._run_again(each, runtime)
        assert comparing.compare(again, runtime.run(again)).word == comparing.SAME
