"""A program that is about to ship, against its golden: its bytes, its content, its build, its kernels."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, ERROR, SAME, main
from executorch_goldens.commands import payload_files
from executorch_goldens.decode import Schemas, decode
from executorch_goldens.goldens import golden, program, rendering
from executorch_goldens.goldens.record import GRAPH, Record
from executorch_goldens.settings.exports import Machine, Settings, cores, default_interpreter
from executorch_goldens_plugins.shipping import kernels
from executorch_goldens_plugins.shipping.builds import builds, capabilities, made
from tests import DATA, REPOSITORY
from tests.support.commands import ended
from tests.support.decoding.other_order import other_order
from tests.support.decoding.payloads import FIXTURES, SCHEMAS

CELL = Cell("tosa-fp", "firm")
TOSA = FIXTURES / "1.5.1" / "tosa-fp.pte"
PORTABLE = FIXTURES / "1.5.1" / "portable.pte"
#: Seconds that a build, or a run of one cell, may take on a busy machine.
LIMIT = 600.0
PATCHES = ("partition-order", "output-aliases", "folded-scales")


def record(root: Path, pte: bytes, release: str = "1.5.1", cell: Cell = CELL) -> Path:
    """Write a golden of a program, as a run would, without the parts that only an export has; return `root`."""
    decoded = decode(pte, schemas=SCHEMAS)
    texts = {GRAPH: "graph\n", "pte": program.section(decoded.text())}
    for index, delegate in enumerate(decoded.delegates):
        texts[f"delegate_{index}.{delegate.decoded.kind}"] = delegate.decoded.text()
    of_layout = rendering.layout(pte, [delegate.payload for delegate in decoded.delegates], SCHEMAS)
    said = {
        "patches": "none",
        "variations": "seed0-heap0",
        "pte": f"{len(pte)} bytes sha256 {hashlib.sha256(pte).hexdigest()[:16]}",
        golden.LAYOUT: f"sha256 {of_layout[:16]}",
    }
    golden.write(golden.file_of(root / release, cell), Record(said, texts))
    return root


def diff(pte: Path, root: Path, *words: str, cell: Cell = CELL) -> int:
    return main(["diff", str(pte), str(cell), "--goldens", str(root), *words])


# Bytes, layout, content


def test_the_bytes_of_the_golden_are_the_golden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(TOSA, record(tmp_path, TOSA.read_bytes())) == SAME
    assert capsys.readouterr().out == (
        f"{TOSA} is the golden of {CELL} on ExecuTorch 1.5.1, byte for byte: CPU capability default, oneDNN off, "
        "1 thread, no patches\n"
    )


def test_an_order_that_the_serializer_leaves_open_is_said_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pte = TOSA.read_bytes()
    (delegate,) = decode(pte, schemas=SCHEMAS).delegates
    payload = bytes(delegate.payload)
    shipped = tmp_path / "shipped.pte"
    shipped.write_bytes(pte.replace(payload, other_order(SCHEMAS.load("tosa"), payload)))
    assert diff(shipped, record(tmp_path / "goldens", pte)) == SAME
    assert capsys.readouterr().out == (
        f"{shipped} has the content of the golden of {CELL} on ExecuTorch 1.5.1, in a byte layout that the "
        "serializer leaves open\n"
    )


def test_a_changed_byte_of_a_weight_is_shown_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pte = bytearray(PORTABLE.read_bytes())
    held = decode(bytes(pte), schemas=SCHEMAS)
    constant = next(each for each in held.constants().values() if len(each.data) > 4)
    at = bytes(pte).index(bytes(constant.data))
    pte[at] ^= 1
    shipped = tmp_path / "shipped.pte"
    shipped.write_bytes(pte)
    assert diff(shipped, record(tmp_path / "goldens", PORTABLE.read_bytes())) == DIFFERENT
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"{shipped} is not the golden of {CELL} on ExecuTorch 1.5.1"
    assert "pte" in rest
    assert any("1 of" in line and "differ" in line for line in rest)


def test_without_executorch_the_schemas_are_those_of_the_goldens_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def of_release(name: str) -> SimpleNamespace:
        asked.append(name)
        return SimpleNamespace(site_packages=SCHEMAS.places[0])

    monkeypatch.setattr(payload_files, "chosen", of_release)
    monkeypatch.setattr(Schemas, "installed", classmethod(lambda cls: cls(())))
    root = record(tmp_path, PORTABLE.read_bytes())
    assert diff(TOSA, root) == DIFFERENT
    assert "is not the golden of" in capsys.readouterr().out
    assert asked == ["1.5.1"]


# What cannot be compared


@pytest.mark.parametrize(
    ("shipped", "said"),
    [
        (TOSA.read_bytes()[:2000], "cannot be decoded: ExtendedHeader: "),
        (b"no program at all", "cannot be decoded: payload: "),
        ((FIXTURES / "1.5.1" / "tosa-int-0.tosa").read_bytes(), "is a tosa payload and no .pte"),
    ],
    ids=["truncated", "none", "a payload"],
)
def test_what_is_no_program_is_refused(
    shipped: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shipped.pte"
    file.write_bytes(shipped)
    assert diff(file, record(tmp_path / "goldens", TOSA.read_bytes())) == ERROR
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith(f"goldens: {file} {said}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("cell", "words", "said"),
    [
        (Cell("tosa-fp", "frim"), (), "tosa-fp/frim has no golden under {root}: did you mean tosa-fp/firm?"),
        (Cell("xnnpack-int8", "x"), (), "xnnpack-int8/x has no golden under {root}, which has tosa-fp/firm"),
        (CELL, ("--release", "1.3.1"), "tosa-fp/firm has no golden on 1.3.1, but on 1.4.1, 1.5.1 ({root})"),
        (CELL, (), "tosa-fp/firm has goldens on 1.4.1, 1.5.1: name one with --release"),
    ],
    ids=["unknown", "far", "without golden", "several"],
)
def test_a_cell_without_the_golden_asked_for_is_refused(
    cell: Cell, words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = record(tmp_path, TOSA.read_bytes())
    record(root, TOSA.read_bytes(), "1.4.1")
    assert diff(TOSA, root, *words, cell=cell) == ERROR
    assert capsys.readouterr().err == f"goldens: {said.format(root=root)}\n"


def test_a_golden_of_a_failure_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    root = REPOSITORY / "goldens"
    folder = root / "1.4.1"
    cell = next(cell for cell in golden.recorded(folder) if golden.read(golden.file_of(folder, cell)).fails)
    assert diff(TOSA, root, "--release", "1.4.1", cell=cell) == ERROR
    assert capsys.readouterr().err == (
        f"goldens: the golden of {cell} on ExecuTorch 1.4.1 is a failure to lower: it has no program to compare with\n"
    )


# Kernels


def codegen(*words: str) -> None:
    """Run the selective build's own generator, as the wheel has it."""
    command = [sys.executable, "-m", "executorch.codegen.tools.gen_oplist", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)


def test_kernels_and_dtypes_are_those_that_codegen_finds_in_the_program(tmp_path: Path) -> None:
    file = tmp_path / "selected_operators.yaml"
    codegen(f"--model_file_path={PORTABLE}", f"--output_path={file}")
    selection = kernels.read(file.read_bytes(), str(file))
    needed = kernels.needs(decode(PORTABLE.read_bytes(), schemas=SCHEMAS))
    assert needed.keys() == selection.operators
    numbers = {name: {kernels.SCALAR_TYPES[dtype] for dtype in dtypes} for name, dtypes in needed.items()}
    # Of a list of tensors codegen takes the first; this one has floats and shorts, and the kernel reads both.
    assert numbers.pop("aten::cat.out") == {*selection.dtypes["aten::cat.out"], kernels.SCALAR_TYPES["SHORT"]}
    assert numbers == {name: set(selection.dtypes[name]) for name in numbers}


def test_what_a_selective_build_lacks_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "selected_operators.yaml"
    chosen = '{"aten::add.out": ["Float"], "aten::cat.out": [], "aten::mul.out": ["v1/6;0,1|6;0,1"]}'
    codegen(f"--ops_dict={chosen}", f"--output_path={file}")
    root = record(tmp_path / "goldens", PORTABLE.read_bytes())
    assert diff(PORTABLE, root, "--kernels", str(file)) == DIFFERENT
    assert capsys.readouterr().out.splitlines()[1:] == [
        "kernels outside delegates:",
        "  aten::add.out FLOAT SHORT; missing SHORT",
        "  aten::cat.out FLOAT SHORT",
        "  aten::copy_ FLOAT; missing",
        "  aten::mul.out FLOAT",
        "  aten::select_copy.int_out FLOAT; missing",
        "  aten::sum.IntList_out FLOAT; missing",
        "  dim_order_ops::_to_dim_order_copy.out FLOAT LONG SHORT; missing",
        f"{file} lacks 5 of 7",
    ]


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("# firmware 7\naten::add.out, aten::cat.out\naten::copy_ aten::mul.out\n", 3),
        ("include_all_operators: true\n", 0),
        ("operators:\n  aten::add:\n    include_all_overloads: true\n", 6),
    ],
    ids=["a list", "every operator", "every overload"],
)
def test_other_selections_are_read(
    text: str, lacking: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "selected"
    file.write_text(text)
    code = diff(PORTABLE, record(tmp_path / "goldens", PORTABLE.read_bytes()), "--kernels", str(file))
    assert code == (DIFFERENT if lacking else SAME)
    assert capsys.readouterr().out.splitlines()[-1] == f"{file} lacks {lacking} of 7"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff\xfe\x00", "it is no text"),
        (b"", "it has none of operators, et_kernel_metadata, include_all_operators"),
        (b"hello world\n", "it has none of operators, et_kernel_metadata, include_all_operators"),
        (b"operators: [aten::add.out]\n", "operators and et_kernel_metadata are mappings by operator"),
        (b"et_kernel_metadata:\n  aten::add.out: [v2/6;0]\n", "'v2/6;0' is no kernel key of version v1"),
        (
            b"et_kernel_metadata:\n  aten::add.out: 6\n",
            "et_kernel_metadata has a list of kernel keys for each operator",
        ),
        (b"a: [b\n", "while parsing a flow sequence"),
        (b"!!python/object/apply:os.system [id]\n", "could not determine a constructor for the tag"),
    ],
    ids=["bytes", "empty", "words", "operators", "version", "keys", "broken", "hostile"],
)
def test_what_is_no_selection_is_refused(
    data: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "selected"
    file.write_bytes(data)
    root = record(tmp_path / "goldens", PORTABLE.read_bytes())
    assert diff(PORTABLE, root, "--kernels", str(file)) == ERROR
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith(
        f"goldens: {file} is neither a selected_operators.yaml of ExecuTorch's codegen nor a list of operators: {why}"
    )
    assert printed.err.count("\n") == 1


# How it was built


def test_likely_builds_come_first_and_each_comes_once() -> None:
    every = builds(("", "default", "avx2"), 8, PATCHES)
    assert [str(build) for build in every[:4]] == [
        "CPU capability native, oneDNN on, 8 threads, no patches",
        f"CPU capability native, oneDNN on, 8 threads, patches {' '.join(PATCHES)}",
        "CPU capability default, oneDNN off, 1 thread, no patches",
        f"CPU capability default, oneDNN off, 1 thread, patches {' '.join(PATCHES)}",
    ]
    assert len(every) == len(set(every)) == 3 * 2 * 2 * 2
    assert len(builds(("", "default"), 1, (), PATCHES, PATCHES)) == 2 * 2 * 2


def test_the_capabilities_are_those_below_the_cpus_own() -> None:
    first, *lower = capabilities(default_interpreter())
    assert not first
    assert lower in (["default"], ["default", "avx2"], [])


@dataclass(frozen=True)
class Firm:
    """A repository with one golden, and the programs that its build script makes."""

    folder: Path

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
        own = {"PATH": path, "PYTHONPATH": str(REPOSITORY / "harness"), **variables}
        return ended([sys.executable, *words], self.folder, **own)

    def build(self, file: str, *words: str, **variables: str) -> None:
        ended = self.run("build.py", file, *words, **variables)
        assert not ended.returncode, ended.stderr

    def goldens(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "executorch_goldens", *words)


@pytest.fixture(scope="module")
def firm(tmp_path_factory: pytest.TempPathFactory) -> Firm:
    folder = tmp_path_factory.mktemp("firm") / "repository"
    shutil.copytree(DATA / "shipped_project", folder)
    firm = Firm(folder)
    firm.build("plain.pte")
    firm.build("pinned.pte", "pinned", ATEN_CPU_CAPABILITY="default")
    recorded = firm.goldens(
        *(
            "run",
            "--cell",
            "xnnpack-int8/firm",
            "--variations",
            "quick",
            "--cache",
            "off",
            "--snapshot-update",
        )
    )
    assert not recorded.returncode, recorded.stdout
    return firm


@pytest.mark.slow
def test_a_pinned_build_of_a_firms_own_script_is_the_golden(firm: Firm) -> None:
    ended = firm.goldens("diff", "pinned.pte", "xnnpack-int8/firm", "--rebuild")
    assert (ended.returncode, ended.stderr) == (SAME, "")
    first, _, settings = ended.stdout.partition(", byte for byte: ")
    assert first.startswith("pinned.pte is the golden of xnnpack-int8/firm on ExecuTorch ")
    assert settings == "CPU capability default, oneDNN off, 1 thread, no patches\n"


@pytest.mark.slow
def test_a_plain_build_is_not_and_its_settings_are_found(firm: Firm) -> None:
    if len(capabilities(default_interpreter())) == 1:
        pytest.skip("this CPU has no kernels but the plain ones: a plain build is a pinned one")
    ended = firm.goldens("diff", "plain.pte", "xnnpack-int8/firm", "--rebuild")
    assert ended.returncode == DIFFERENT
    assert "quantization.scale" in ended.stdout
    threads = f"{cores()} thread{'s' if cores() > 1 else ''}"
    last = ended.stdout.splitlines()[-1]
    assert last.startswith("plain.pte equals the export of ")
    assert last.endswith(f" with CPU capability native, oneDNN on, {threads}, no patches")


@pytest.mark.slow
def test_a_build_that_does_not_finish_says_why_and_the_others_are_made(firm: Firm) -> None:
    settings = Settings(
        default_interpreter(), ("zoo",), (), jobs=1, limit=0.01, machine=Machine(paths=(firm.folder,))
    )
    ended = [
        program for _, program in made(Cell("xnnpack-int8", "firm"), settings, builds(("",), 1, PATCHES)[:2])
    ]
    assert len(ended) == 2
    assert all(isinstance(program, str) and program.startswith("timed-out: ") for program in ended)
