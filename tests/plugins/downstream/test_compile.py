"""Compiling TOSA payloads: real payloads, real compilers in environments of their own.

The payloads for an Ethos-U are those of ``tosa-u55/linear`` and ``tosa-u55/shuffled-dimensions`` on 1.4.1. Variables
name the Pythons that have the Vela of 1.4.1, that of 1.3.1, and the model converter. Where they are not set, the tests
that need them are skipped and say so; ``nox -s tests`` sets them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell
from executorch_goldens.settings import releases
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.variations import variations
from executorch_goldens_plugins.downstream import golden, stream
from executorch_goldens_plugins.downstream.compilers import (
    KINDS,
    MAIN,
    Compiled,
    CompileJob,
    Compiler,
    CompilerError,
    Died,
    Refused,
    environment,
)
from executorch_goldens_plugins.downstream.payloads import Payloads, keep
from executorch_goldens_plugins.downstream.targets import CONVERTER, TARGETS, VELA
from executorch_goldens_plugins.downstream.verdicts import judge
from executorch_goldens_plugins.downstream.vgf import TablesError, facts
from tests import DATA, GOLDENS

VARIABLE = KINDS[VELA].variable
EARLIER = "EXECUTORCH_GOLDENS_EARLIER_VELA_PYTHON"
PAYLOADS = DATA / "payloads"
LINEAR = PAYLOADS / "linear-u55-1.4.1.tosa"
SHUFFLED = PAYLOADS / "shuffled-dimensions-u55-1.4.1.tosa"
#: Float: nothing for an Ethos-U.
FLOAT = PAYLOADS / "equal-buffers-1.2.0.tosa"
U55 = TARGETS["ethos-u55-128"]
MATRIX = releases.load()
#: Releases that name the two Velas.
RELEASE, EARLIER_RELEASE = "1.4.1", "1.3.1"


def vela_of(variable: str, release: str) -> Compiler:
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no Python that has Vela: nox -s tests does")
    return Compiler.find(VELA, Path(os.environ[variable]), MATRIX.release(release).compilers, release)


@pytest.fixture(scope="module")
def vela() -> Compiler:
    """The Vela that 1.4.1 names."""
    return vela_of(VARIABLE, RELEASE)


@pytest.fixture(scope="module")
def earlier() -> Compiler:
    """The Vela that 1.3.1 names."""
    return vela_of(EARLIER, EARLIER_RELEASE)


@pytest.fixture(scope="module")
def linear(vela: Compiler) -> Compiled:
    """The payload that Vela makes of LINEAR."""
    (made,) = compiled(vela, LINEAR)
    assert isinstance(made, Compiled)
    return made


def compiled(vela: Compiler, *files: Path, release: str = RELEASE, variation: int = 0) -> Sequence[object]:
    jobs = [CompileJob(file.read_bytes(), U55.arguments(release)) for file in files]
    return vela.compile(jobs, variations()[variation], 60)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, outside of any repository, with results of a run of 1.3.1 and 1.4.1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    for release in (RELEASE, EARLIER_RELEASE):
        put(release, "linear", LINEAR)
        put(release, "shuffled-dimensions", SHUFFLED)
    return tmp_path


def put(release: str, case: str, *files: Path, takes: str = U55.takes) -> None:
    named = tuple((f"lowered_module_{index}", file.read_bytes()) for index, file in enumerate(files))
    keep(Path("build/compiled") / release / takes / case, Payloads(named))


def compile_cells(vela: Compiler | None, *words: str, release: str = RELEASE) -> int:
    named = ["--vela", str(vela.python)] if vela else []
    return cli.main(["compile", "--release", release, "--exported", *named, *words])


def test_arguments_and_specification_are_those_of_the_releases_own_compile_spec() -> None:
    """Fails if 1.4.1 hands Vela something else, or lowers for something else, than is done here."""
    compile_spec = pytest.importorskip("executorch.backends.arm.ethosu.compile_spec")
    for target in (each for each in TARGETS.values() if each.compiler == VELA):
        spec = compile_spec.EthosUCompileSpec(target.name)
        assert tuple(spec.compiler_flags) == target.arguments(RELEASE)
        given = targets.find(target.takes).specification
        assert str(spec.tosa_spec) == str(type(spec.tosa_spec).create_from_string(given))


@pytest.mark.slow
def test_the_stream_is_byte_for_byte_what_the_release_makes_of_the_payload(
    vela: Compiler, linear: Compiled, tmp_path: Path
) -> None:
    """The release's own `vela_compile`, in this environment, with Vela's package at the end of its path."""
    site = subprocess.run(
        [vela.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from pathlib import Path\n"
        "from executorch.backends.arm.arm_vela import vela_compile\n"
        "from executorch.backends.arm.ethosu.compile_spec import EthosUCompileSpec\n"
        "flags = EthosUCompileSpec('ethos-u55-128').compiler_flags\n"
        "Path(sys.argv[3]).write_bytes(vela_compile(Path(sys.argv[2]).read_bytes(), flags))\n"
    )
    made = tmp_path / "stream"
    subprocess.run(
        [sys.executable, "-c", code, site, str(LINEAR), str(made)], check=True, capture_output=True
    )
    assert made.read_bytes() == linear.made


def vgf() -> Compiler:
    """Return the model converter and the VGF library that 1.3.1 names."""
    kind = KINDS[CONVERTER]
    if not os.environ.get(kind.variable):
        pytest.skip(f"{kind.variable} names no Python that has the model converter: nox -s tests does")
    pins = MATRIX.release(EARLIER_RELEASE).compilers
    return Compiler.find(CONVERTER, Path(os.environ[kind.variable]), pins, EARLIER_RELEASE)


@pytest.mark.slow
def test_vgf_is_byte_for_byte_what_the_release_makes_of_the_payload(tmp_path: Path) -> None:
    """The release's own `vgf_compile`, in this environment, with the converter on its path."""
    converter = vgf()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from executorch.backends.arm.vgf.backend import vgf_compile\n"
        "Path(sys.argv[2]).write_bytes(vgf_compile(Path(sys.argv[1]).read_bytes(), []))\n"
    )
    path = os.pathsep.join([str(converter.python.parent), os.environ["PATH"]])
    own = tmp_path / "vgf"
    subprocess.run(
        [sys.executable, "-c", code, str(FLOAT), str(own)],
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": path},
    )
    (made,) = converter.compile([CompileJob(FLOAT.read_bytes(), ())], variations()[0], 60)
    assert isinstance(made, Compiled)
    assert own.read_bytes() == made.made


@pytest.mark.slow
def test_tables_of_vgf_are_recorded_and_stable_under_every_variation(folder: Path) -> None:
    converter = vgf()
    put(EARLIER_RELEASE, "float", FLOAT, takes="tosa-fp")
    put(EARLIER_RELEASE, "newer", PAYLOADS / "loop-1.4.1.tosa", takes="tosa-fp")
    words = ["compile", "--release", EARLIER_RELEASE, "--exported", "--vgf", str(converter.python)]
    assert cli.main([*words, "--cell", "vgf-fp/*", "--snapshot-update"]) == cli.SAME
    root = folder / "goldens"
    text = golden.path_of(root, EARLIER_RELEASE, "vgf-fp", "float").read_text()
    assert "ai-ml-sdk-model-converter: 0.9.0\n" in text
    assert "module 0: GRAPH graph_partition_0 graph_partition_0, SPIR-V of " in text
    assert "VK_FORMAT_R32_SFLOAT VK_DESCRIPTOR_TYPE_TENSOR_ARM" in text
    newer = golden.path_of(root, EARLIER_RELEASE, "vgf-fp", "newer").read_text()
    assert "refused: ConverterError: ERROR: TOSA file created with newer SerLib version 2026.5.0" in newer
    assert cli.main(words) == cli.SAME


def test_a_release_without_a_compiler_has_no_cells_for_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(RELEASE, "float", FLOAT, takes="tosa-fp")
    assert compile_cells(None, "--cell", "vgf-fp/float") == cli.ERROR
    assert "unknown target 'vgf-fp'; this release has ethos-u55-128" in capsys.readouterr().err


def test_tables_that_lack_something_are_one_clear_error() -> None:
    with pytest.raises(TablesError, match="have no 'modules'"):
        dict(facts(b"", {"header": {"major": 0, "minor": 4, "patch": 0}}))


@pytest.mark.slow
def test_cells_are_recorded_and_stable_under_every_variation(
    vela: Compiler, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_cells(vela, "--cell", "ethos-u55-128/*") == cli.DIFFERENT
    assert "new: ethos-u55-128/linear: there is no golden" in capsys.readouterr().out
    assert compile_cells(vela, "--cell", "ethos-u55-128/*", "--snapshot-update") == cli.SAME
    path = golden.path_of(folder / "goldens", RELEASE, "ethos-u55-128", "linear")
    text = path.read_text()
    assert "ethos-u-vela: 5.1.0\n" in text
    assert "variations: seed0-heap0 seed4-heap1 seed27-heap2 seed37-heap3\n" in text
    assert "NPU_OP_STOP: 1\nNPU_OP_CONV: 1\nweights: " in text
    assert "weights: 208 bytes sha256 " in text
    assert "scratch: 80 bytes\n" in text
    assert "cycles: 208\n" in text
    capsys.readouterr()
    assert compile_cells(vela) == cli.SAME
    assert capsys.readouterr().out.splitlines()[-1] == "2 stable"
    assert path.read_text() == text


@pytest.mark.slow
def test_an_upgrade_of_vela_is_told_from_a_change_before_it(
    vela: Compiler, earlier: Compiler, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = ("--cell", "ethos-u55-128/*")
    update = compile_cells(earlier, *every, "--snapshot-update", release=EARLIER_RELEASE)
    assert update == cli.SAME
    capsys.readouterr()
    assert compile_cells(vela, release=EARLIER_RELEASE) == cli.DIFFERENT
    said = capsys.readouterr().out
    assert "ethos-u-vela 5.1.0\n  1.3.1 names 5.0.0" in said
    assert "changed: ethos-u55-128/shuffled-dimensions: by Vela 5.0.0 -> 5.1.0, of the same TOSA" in said
    assert "  delegate 0, cycles: 3041 -> 2849 (-192)\n" in said
    put(EARLIER_RELEASE, "linear", SHUFFLED)
    assert compile_cells(earlier, "--cell", "*/linear", release=EARLIER_RELEASE) == cli.DIFFERENT
    assert "changed: ethos-u55-128/linear: before Vela: the TOSA payload changed" in capsys.readouterr().out
    assert compile_cells(vela, "--cell", "*/linear", release=EARLIER_RELEASE) == cli.DIFFERENT
    assert "Vela changed as well, 5.0.0 -> 5.1.0" in capsys.readouterr().out
    assert compile_cells(vela, *every, "--snapshot-update", release=EARLIER_RELEASE) == cli.ERROR
    assert "1.3.1 names ethos-u-vela 5.0.0" in capsys.readouterr().err


def test_two_velas_are_compared_without_a_golden(
    vela: Compiler, earlier: Compiler, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--cell", "*/shuffled*", "--variations", "1", "--against", str(earlier.python))
    assert compile_cells(vela, *words) == cli.DIFFERENT
    said = capsys.readouterr().out
    assert "by Vela 5.0.0 -> 5.1.0, of the same TOSA payloads\n" in said
    assert "  delegate 0, cycles: 3041 -> 2849 (-192)\n" in said
    assert compile_cells(earlier, *words) == cli.SAME
    capsys.readouterr()
    assert compile_cells(vela, *words, "--snapshot-update") == cli.ERROR
    assert "leave one of them out" in capsys.readouterr().err
    assert not (folder / "goldens").exists()


def test_what_vela_refuses_is_recorded_with_the_operators_and_reasons(vela: Compiler, folder: Path) -> None:
    put(RELEASE, "float", FLOAT)
    assert compile_cells(vela, "--cell", "*/float", "--snapshot-update") == cli.SAME
    text = golden.path_of(folder / "goldens", RELEASE, "ethos-u55-128", "float").read_text()
    assert "refused: RuntimeError: Compilation failed: Validation error\n" in text
    assert "refused operator 0: " in text
    assert "data type not supported" in text
    assert str(folder) not in text
    assert compile_cells(vela) == cli.SAME


def test_bytes_that_are_no_tosa_are_refused_and_harm_no_other_payload(
    vela: Compiler, linear: Compiled
) -> None:
    jobs = [CompileJob(payload, U55.arguments(RELEASE)) for payload in (b"", b"nothing", LINEAR.read_bytes())]
    empty, nothing, made = vela.compile(jobs, variations()[0], 60)
    assert isinstance(empty, Refused | Died)
    assert isinstance(nothing, Refused | Died)
    assert made == linear


def test_a_payload_that_hangs_is_ended_at_its_limit(vela: Compiler, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "payload")
    request = {
        "folders": [str(tmp_path)],
        "arguments": [list(U55.arguments(RELEASE))],
        "directory": "in",
        **{"heap_seed": 0, "listings_seed": 0, "history_seed": 0, "limit": 1},
    }
    subprocess.run(
        with_harness(vela.python, MAIN.format("vela_driver")),
        input=json.dumps(request),
        text=True,
        check=True,
        timeout=300,
        env=environment(variations()[0]),
    )
    assert (tmp_path / "status").read_text() == "-14"


def test_variations_that_disagree_are_unstable_and_never_recorded(vela: Compiler, earlier: Compiler) -> None:
    """Two Velas act as one that makes two results of one payload."""
    (one,), (other,) = compiled(earlier, SHUFFLED), compiled(vela, SHUFFLED)
    assert isinstance(one, Compiled)
    assert isinstance(other, Compiled)
    payload = SHUFFLED.read_bytes()
    made = {name: (golden.facts(VELA, "m", payload, each),) for name, each in (("a", one), ("b", other))}
    verdict = judge(Cell("ethos-u55-128", "x"), made, None, {"arguments": ""})
    assert verdict.name == "unstable"
    assert "under a and b" in verdict.reason
    assert any("NPU_OP_ELEMENTWISE: 5 -> 1 (-4)" in fact for fact in verdict.facts)


def test_history_and_heap_reach_the_process(vela: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variations reach the process: the payload after one's own is compiled first."""
    seen = []

    def run(command: Sequence[str], **given: object) -> subprocess.CompletedProcess[str]:
        seen.append((json.loads(str(given["input"])), given["env"]))
        return subprocess.CompletedProcess(command, 1, "", "stopped")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CompilerError, match="could not be started: stopped"):
        compiled(vela, LINEAR, SHUFFLED, variation=2)
    ((request, variables),) = seen
    assert (request["heap_seed"], request["listings_seed"], request["history_seed"]) == (2, 2, 2)
    assert (variables["PYTHONHASHSEED"], variables["MALLOC_PERTURB_"]) == ("27", "2")


@pytest.mark.parametrize("variation", [1, 3])
def test_compiling_others_before_changes_nothing(vela: Compiler, linear: Compiled, variation: int) -> None:
    made, shuffled = compiled(vela, LINEAR, SHUFFLED, variation=variation)
    assert made == linear
    assert isinstance(shuffled, Compiled)


def test_a_stream_that_was_not_written_whole_is_one_clear_error(linear: Compiled) -> None:
    with pytest.raises(stream.StreamError, match="879 bytes where 880 were packed"):
        list(stream.facts(linear.made[:-1], linear.details))


def test_commands_that_lie_are_one_clear_error(linear: Compiled) -> None:
    commands = linear.made[slice(*linear.details["commands"])]
    for wrong in (b"", commands[:-4], b"COP2" + commands[4:], b"COP1", b"COP1\xff\0\0\0"):
        with pytest.raises(stream.StreamError):
            stream.operations(wrong)


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ((), ["no ethos-u-vela", "--vela", "ethos-u-vela==5.1.0", "compile(1.4.1)"]),
        (("--vela", "/no/such/python"), ["/no/such/python", "cannot be run"]),
        (("--vela", sys.executable), ["has no ethos-u-vela", "pip install ethos-u-vela==5.1.0"]),
    ],
)
def test_a_missing_vela_is_one_clear_error(
    folder: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], facts: Sequence[str]
) -> None:
    assert compile_cells(None, "--cell", "*/linear", *words) == cli.ERROR
    said = capsys.readouterr().err
    assert all(fact in said for fact in facts), said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ((), ["has no golden", "--cell", "--snapshot-update"]),
        (("--cell", "ethos-u55-128/lineal"), ["'lineal'", "did you mean linear?"]),
        (("--cell", "ethos-u56-128/linear"), ["'ethos-u56-128'", "ethos-u55-128"]),
        (("--variations", "1", "--snapshot-update", "--cell", "*/linear"), ["at least 2 variations"]),
        (("--release", "1.4.2"), ["1.4.2", "1.4.1"]),
        (("--cell", "*/empty"), ["no payloads of tosa-u55/empty", "without --exported"]),
    ],
)
def test_what_cannot_be_done_is_one_clear_error(
    vela: Compiler,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    words: Sequence[str],
    facts: Sequence[str],
) -> None:
    Path("build/compiled/1.4.1/tosa-u55/empty").mkdir()
    assert compile_cells(vela, *words) == cli.ERROR
    said = capsys.readouterr().err
    assert all(fact in said for fact in facts), said
    assert not (folder / "goldens").exists()


def test_recording_is_refused_in_ci(
    vela: Compiler, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "1")
    assert compile_cells(vela, "--cell", "*/linear", "--snapshot-update") == cli.ERROR
    assert "refused because CI is set" in capsys.readouterr().err
    assert not (folder / "goldens").exists()


@pytest.mark.parametrize("old", ["cycles: 208", "format: 1", "contents"])
def test_a_golden_that_was_edited_is_no_change(
    vela: Compiler, folder: Path, capsys: pytest.CaptureFixture[str], old: str
) -> None:
    assert compile_cells(vela, "--cell", "*/linear", "--snapshot-update") == cli.SAME
    path = golden.path_of(folder / "goldens", RELEASE, "ethos-u55-128", "linear")
    path.write_text(path.read_text().replace(old, old.replace("1", "2").replace("0", "1").replace("n", "m")))
    assert compile_cells(vela) == cli.ERROR
    said = capsys.readouterr().err
    assert str(path) in said
    assert "edited by hand or damaged" in said


@pytest.mark.parametrize(
    "path", sorted((GOLDENS / golden.FOLDER).rglob("*.txt")), ids=lambda path: str(path.relative_to(GOLDENS))
)
def test_a_committed_golden_is_whole_and_of_the_compiler_that_its_release_names(path: Path) -> None:
    read = golden.read(path)
    release, target = path.parent.parent.name, TARGETS[path.parent.name]
    assert read.text() == path.read_text()
    assert read.head["executorch"] == release
    assert read.head[target.compiler] == MATRIX.release(release).compilers[target.compiler]
    assert read.head.get("arguments", "") == " ".join(target.arguments(release))
    assert len(read.head["variations"].split()) == len(variations())


def test_a_payload_that_a_golden_of_its_target_names_is_the_one_that_was_compiled() -> None:
    """A compiled golden names the payload; where the TOSA target has a golden too, it names the same one."""
    compared = 0
    for path in (GOLDENS / golden.FOLDER).rglob("*.txt"):
        release, target = path.parent.parent.name, path.parent.name
        manifest = GOLDENS / release / TARGETS[target].takes / f"{path.stem}.txt"
        if manifest.exists():
            read = golden.read(path)
            for facts in read.delegates:
                assert f" {facts['tosa'][:-48]}\n" in manifest.read_text(), path
                compared += 1
    assert compared


def test_another_release_has_other_arguments() -> None:
    assert "--debug-force-regor" in U55.arguments("1.1.0")
    assert replace(U55, name="ethos-u55-64").arguments("1.4.1")[0] == "--accelerator-config=ethos-u55-64"
