"""Frozen programs run in another interpreter, and their untrusted results."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT
from executorch_goldens.exporting import kernels
from executorch_goldens.files import logged
from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens_plugins.field import comparing, runner, running
from executorch_goldens_plugins.field.format import EXECUTORCH, REFERENCE_MODEL, FrozenProgram, FrozenTensor
from executorch_goldens_plugins.field.running import ProgramLimits, Ran, RunningError, Runtime
from executorch_goldens_plugins.field.writing import Writer
from tests.plugins.field.corpora import XNNPACK, changed, halved
from tests.unit.test_rooms import imported


def judged(frozen: FrozenProgram, runtime: Runtime) -> comparing.Result:
    return comparing.compare(frozen, runtime.run(frozen))


def test_what_was_frozen_gives_the_same_again(
    runtime: Runtime, xnnpack: FrozenProgram, tosa: FrozenProgram
) -> None:
    assert runtime.versions["executorch"]
    for frozen in (xnnpack, tosa):
        result = judged(frozen, runtime)
        assert (result.word, result.reason) == (comparing.SAME, "")
        assert len(result.samples) == len(frozen.samples) > 1


def test_an_input_lies_in_memory_as_it_did() -> None:
    torch = pytest.importorskip("torch")
    from executorch_goldens_plugins.field.recorder import of_tensor

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


def test_one_element_may_have_any_stride() -> None:
    torch = pytest.importorskip("torch")
    from executorch_goldens_plugins.field.recorder import of_tensor

    column = torch.full((2, 5), 1.5)[:1, 0]
    assert column.stride() == (5,)
    data = torch.tensor([1.5]).numpy().tobytes()
    assert of_tensor(column).data == data
    assert runner._of_tensor(torch, column) == ("float32", [1], data)


def _other_version(data: bytearray) -> None:
    # "File identifiers" of FlatBuffers: four letters after the first offset.
    assert data[4:8] == b"ET12"
    data[4:8] = b"ET99"


def _header(data: bytearray) -> None:
    # The header of the XNNPACK delegate (XNNHeader, backends/xnnpack/serialization/xnnpack_graph_serialize.py).
    at = data.index(b"XH00")
    data[at] ^= 1


#: Damage, and what the runtime says of it.
REFUSED: dict[str, tuple[Callable[[bytearray], object], str]] = {
    "delegate": (_header, "version identifier 'YH00'"),
    "truncated": (halved, "size"),
    "version": (_other_version, "'ET99'"),
}


def test_programs_that_were_changed_are_refused_each_with_its_reason(
    tmp_path: Path, xnnpack: FrozenProgram, capsys: pytest.CaptureFixture[str]
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
    runtime: Runtime, xnnpack: FrozenProgram, at: int
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
        (halved, (running.CRASHED, running.REFUSED), "killed by SIG"),
    ],
)
def test_a_tosa_payload_that_was_changed_is_no_result(
    runtime: Runtime,
    tosa: FrozenProgram,
    edit: Callable[[bytearray], object],
    words: tuple[str, ...],
    what: str,
) -> None:
    result = judged(changed(tosa, edit), runtime)
    assert result.word in words
    assert what in result.reason
    assert judged(tosa, runtime).word == comparing.SAME


def test_a_program_that_takes_too_long_is_ended(xnnpack: FrozenProgram) -> None:
    with Runtime(default_interpreter(), (EXECUTORCH,), ProgramLimits(seconds=0.0)) as hurried:
        result = judged(xnnpack, hurried)
    assert (result.word, result.reason) == (running.TIMED_OUT, "not done within 0 s")


def test_a_program_that_takes_too_much_is_no_result(xnnpack: FrozenProgram) -> None:
    large = FrozenTensor("float32", (1 << 22,), bytes(1 << 24))
    sample = dataclasses.replace(xnnpack.samples[0], steps=((large,) * 8,))
    with Runtime(default_interpreter(), (EXECUTORCH,), ProgramLimits(megabytes=64)) as small:
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


def left(tmp_path: Path, frozen: FrozenProgram, status: int = 0, **files: bytes) -> Ran:
    for name, data in files.items():
        (tmp_path / name.replace("_", "-").replace("-json", ".json")).write_bytes(data)
    return running._taken(
        frozen, tmp_path, {"status": status, "timed_out": False, "seconds": 0.1}, ProgramLimits()
    )


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
def test_outputs_that_are_none_are_refused(tmp_path: Path, xnnpack: FrozenProgram, kind: str) -> None:
    files, what = NO_OUTPUTS[kind]
    ran = left(tmp_path, xnnpack, **{name: data.replace(b",]", b"]") for name, data in files.items()})
    assert (ran.stopped, ran.outputs) == (running.REFUSED, ())
    assert "cannot be read" in ran.reason
    assert what in ran.reason


def test_a_process_that_ends_without_a_result_has_crashed(tmp_path: Path, xnnpack: FrozenProgram) -> None:
    ran = left(tmp_path, xnnpack)
    assert ran.stopped == running.CRASHED
    assert "without a result for sample example" in ran.reason


def test_a_process_that_died_has_crashed_whatever_it_left(tmp_path: Path, xnnpack: FrozenProgram) -> None:
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


@pytest.mark.slow
def test_what_a_program_gave_before_it_was_refused_is_there_with_the_reason(
    runtime: Runtime, xnnpack: FrozenProgram
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


@pytest.mark.slow
def test_the_runner_has_the_kernels_of_the_release() -> None:
    code = (
        "import importlib.util as i, sys; spec = i.spec_from_file_location('runner', sys.argv[1]); "
        "runner = i.module_from_spec(spec); spec.loader.exec_module(runner); runner.load('executorch'); "
        "from executorch.extension.pybindings import portable_lib; print(len(portable_lib._get_operator_names()))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", code, running.RUNNER], capture_output=True, text=True, check=True
    )
    assert run.stdout.split()[-1] == str(len(kernels.load()))


def test_what_another_interpreter_runs_needs_nothing_of_the_harness() -> None:
    engines = {"executorch", "torch", "numpy", "tosa_reference_model"}
    assert {each.partition(".")[0] for each in imported(running.RUNNER)} - engines <= sys.stdlib_module_names
    at_once = {
        alias.name.partition(".")[0]
        for node in ast.parse(running.RUNNER.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert not at_once & engines
