"""``goldens freeze`` and ``goldens thaw``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, ERROR, SAME
from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens.toolchains.naming import Name
from executorch_goldens.toolchains.toolchain import of_person
from executorch_goldens_plugins.field import comparing, running
from executorch_goldens_plugins.field.reading import Corpus
from executorch_goldens_plugins.field.writing import Writer
from tests import REPOSITORY
from tests.plugins.field.corpora import CHANNELS_LAST, FROZEN, REPLAYED, STATE, TOSA, XNNPACK, changed, halved
from tests.support.commands import GOLDENS, ended

#: The harness of this checkout, and its tests.
HERE = (REPOSITORY / "harness", REPOSITORY)
#: The runners that the pages show.
RUNNERS = REPOSITORY / "docs" / "plugins" / "replay"


def harness(*words: str, folder: Path = REPOSITORY, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(map(str, HERE))
    return ended([*GOLDENS, *words], folder, **{"PYTHONPATH": paths, **environment})


@pytest.mark.slow
def test_thaw_says_what_became_of_each_program_and_of_all(folder: Path) -> None:
    python = str(default_interpreter())
    right = harness("thaw", str(folder), "--runtime", python, folder=folder)
    assert right.returncode == SAME, right.stderr
    assert f"same: {XNNPACK} program\n" in right.stdout
    assert f"kept: {TOSA} program: needs a runtime with TOSABackend\n" in right.stdout
    assert f"same: {TOSA} delegate_0\n" in right.stdout
    # Every digest fits, and one program is no program.
    corpus = Corpus.load(folder)
    with Writer(folder.parent / "spoilt") as writer:
        for entry in corpus.manifest.cells:
            programs = [corpus.program(each) for each in entry.programs]
            if entry.cell == str(XNNPACK):
                programs = [changed(each, halved) for each in programs]
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


def thawed(outputs: Path, *words: str) -> tuple[int, str]:
    done = harness("thaw", str(REPLAYED), "--outputs", str(outputs), *words)
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.mark.slow
def test_what_a_runner_of_the_listing_gives_is_judged_sample_by_sample(tmp_path: Path) -> None:
    """The board is ExecuTorch's runtime, in a process that has the corpus and nothing of the harness."""
    board = tmp_path / "board"
    shutil.copytree(REPLAYED, board / "corpus")
    shutil.copy(RUNNERS / "replay.py", board)
    outputs = board / "outputs"
    ran = ended([default_interpreter(), "-I", "replay.py", "corpus", "outputs", "xnnpack-"], board)
    assert ran.returncode == 0, ran.stderr
    words = ("--cell", "xnnpack-fp32/*")
    code, said = thawed(outputs, *words)
    samples = ("example", "zeros", "extremes", "drawn", "second step", "third step")
    assert (code, said.splitlines()[-1]) == (SAME, "10 same"), said
    assert [f"same: {STATE} program, sample {name}" for name in samples] == said.splitlines()[4:10]
    # The TOSA program was not run.
    code, said = thawed(outputs)
    assert (code, said.splitlines()[-1]) == (DIFFERENT, "4 missing, 10 same")
    place = outputs / str(STATE) / "program"
    np.save(place / "example" / "output-0.npy", np.zeros((2, 3), np.float32))
    np.save(place / "zeros" / "output-0.npy", np.zeros((2, 3), np.float16))
    shutil.rmtree(place / "drawn")
    file = place / "third-step" / "output-0.npy"
    file.write_bytes(file.read_bytes()[:-1])
    code, said = thawed(outputs, *words)
    assert code == DIFFERENT
    assert [line for line in said.splitlines() if not line.startswith("same")] == [
        f"wrong: {STATE} program, sample example: output 0 float32[2, 3]: 6 of 6 values differ, "
        "max 1.68316, mean 0.893873 (tolerance 4.5e-06 to 5.7e-06)",
        f"wrong: {STATE} program, sample zeros: output 0 is float16[2, 3] where float32[2, 3] was frozen",
        f"missing: {STATE} program, sample drawn: no folder {place / 'drawn'}",
        f"truncated: {STATE} program, sample third step: output 0 has 23 bytes where float32[2, 3] takes 24, "
        "4 for each element",
        "6 same, 2 wrong, 1 missing, 1 truncated",
    ]
    code, said = thawed(outputs, *words, "--json")
    rows = json.loads(said)["samples"]
    assert code == DIFFERENT
    assert [row["result"] for row in rows if row["sample"] == "drawn"] == ["same", "missing"]
    assert {tuple(row) for row in rows} == {("cell", "program", "sample", "result", "reason")}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--outputs", "no such"), "there is no folder no such: --outputs names the folder"),
        ((), "one of the arguments --runtime --outputs is required"),
        (("--outputs", ".", "--program-timeout", "3"), "--program-timeout"),
        (("--outputs", ".", "--runtime", "python"), "not allowed with argument"),
    ],
)
def test_outputs_are_judged_or_programs_run(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = cli.main(["thaw", str(REPLAYED), *words])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == ERROR
    assert says in capsys.readouterr().err


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner in C++, as the page says to compile it.

    Of the releases, 1.5.1 is the first whose wheel has what a program is linked with.
    """
    environment = of_person().made(Name.parse("1.5.1"))
    (library,) = environment.glob("lib/python*/site-packages/executorch/lib/libexecutorch.so")
    page = (REPOSITORY / "docs" / "plugins" / "field.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sh\n(E=.*?)```", page, re.DOTALL)
    script = script.replace("E=path/to/site-packages/executorch", f"E={library.parents[1]}")
    folder = tmp_path_factory.mktemp("runner")
    shutil.copy(RUNNERS / "replay.cpp", folder)
    subprocess.run(["sh", "-ec", script], cwd=folder, check=True, capture_output=True, timeout=400)
    return folder / "replay"


def ran_by(runner: Path, *words: Path | str) -> tuple[int, str]:
    """Run the runner; return how it ended, and its last line."""
    ran = ended([runner, *words])
    return ran.returncode, ran.stdout.splitlines()[-1]


@pytest.mark.slow
def test_the_runner_in_c_gives_what_was_frozen(runner: Path, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    assert ran_by(runner, REPLAYED, outputs, "xnnpack-") == (0, "10 samples ran, 0 did not")
    code, said = thawed(outputs, "--cell", "xnnpack-fp32/*")
    assert (code, said.splitlines()[-1]) == (SAME, "10 same"), said
    # In memory as it is, which no .npy has.
    assert (outputs / str(CHANNELS_LAST) / "program" / "drawn" / "output-0.bin").exists()
    # A board that has no delegate of TOSA says so, sample by sample.
    assert ran_by(runner, REPLAYED, outputs, "tosa-") == (1, "0 samples ran, 4 did not")
    assert ran_by(runner, tmp_path, outputs) == (2, "0 samples ran, 0 did not")


@pytest.mark.slow
def test_the_runners_take_methods_and_data_files(runner: Path, tmp_path: Path) -> None:
    """A program of two methods whose weights are in a file beside it."""
    torch = pytest.importorskip("torch")
    from executorch.exir import ExecutorchBackendConfig, to_edge

    def exported(name: str, factor: float) -> object:
        layer = torch.nn.Linear(2, 2, bias=False)
        layer.weight.data = torch.eye(2) * factor
        # Weights of one name would be one in the file.
        return torch.export.export(torch.nn.Sequential(OrderedDict({name: layer})), (torch.ones(1, 2),))

    methods = {name: exported(name, factor) for name, factor in (("doubled", 2.0), ("negated", -1.0))}
    made = to_edge(methods).to_executorch(ExecutorchBackendConfig(external_constants=True))
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "pte").write_bytes(made.buffer)
    made.write_tensor_data_to_file(str(corpus))
    (data,) = corpus.glob("*.ptd")
    np.array([[3.0, 4.0]], np.float32).tofile(corpus / "input")
    (corpus / "replay.txt").write_text(
        f"goldens-replay 1\nprogram a/b/program pte -\ndata {data.stem} {data.name}\n"
        "sample a/b/program/one\nstep doubled\ninput float32 1,2 0,1 input\n"
        "step negated\ninput float32 1,2 0,1 input\n"
        "sample a/b/program/other\nstep doubled\ninput float32 1,2 0,1 input\n"
    )
    python = [str(default_interpreter()), "-I", str(RUNNERS / "replay.py")]
    subprocess.run([*python, corpus, tmp_path / "python"], check=True, capture_output=True, timeout=400)
    assert ran_by(runner, corpus, tmp_path / "c") == (0, "2 samples ran, 0 did not")
    for outputs in (tmp_path / "python", tmp_path / "c"):
        for sample, numbers in (("one", [[-3.0, -4.0]]), ("other", [[6.0, 8.0]])):
            assert np.load(outputs / "a/b/program" / sample / "output-0.npy").tolist() == numbers


@pytest.mark.slow
def test_freeze_takes_what_is_right_and_refuses_the_rest_by_name(tmp_path: Path) -> None:
    words = ("--models", "tests.support.zoo", "--goldens", str(tmp_path / "goldens"), "--jobs", "2")
    cells = ("xnnpack-fp32/steady", "xnnpack-fp32/wrong", "xnnpack-fp32/set-of-strings", "tosa-fp/steady")
    chosen = [word for cell in cells for word in ("--cell", cell)]
    done = harness("freeze", str(tmp_path / "corpus"), *words, *chosen)
    assert done.returncode == DIFFERENT, done.stderr
    assert "refused: xnnpack-fp32/wrong: corrupt: " in done.stdout
    assert "refused: xnnpack-fp32/set-of-strings: order-only: " in done.stdout
    assert "2 cells frozen, 2 refused" in done.stdout
    corpus = Corpus.load(tmp_path / "corpus")
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
