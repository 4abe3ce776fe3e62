"""``init`` in somebody's repository: the model it finds, the files it writes, and its refusals."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from executorch_goldens.cli import ERROR, main
from executorch_goldens.exporting.data import Example, example_of
from executorch_goldens.settings import config, releases
from executorch_goldens.toolchains.toolchain import chosen
from executorch_goldens.zoo import registry
from executorch_goldens_plugins.start import init as init_command
from executorch_goldens_plugins.start.files import StarterFiles, write
from executorch_goldens_plugins.start.init import DRAWN
from executorch_goldens_plugins.start.model import Input, ModelName
from tests import REPOSITORY
from tests.support.actions import REQUEST, after_a_run
from tests.support.commands import GOLDENS, ended

MODEL = (REPOSITORY / "tests" / "support" / "wake_word.py").read_text()
TWO_INPUTS = """
import torch

class Sum(torch.nn.Module):
    def forward(self, x, y):
        return x + y
"""
SHIPPED = """
import torch

class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, tokens):
        return self.table(tokens).sum(1)

def model():
    torch.manual_seed(3)
    return Words()
"""
NEEDS = """
from torch import nn

class Sized(nn.Module):
    def __init__(self, size):
        super().__init__()

def absent():
    return None
"""
WORKFLOW, COMMENT = (Path(".github/workflows", name) for name in ("goldens.yml", "goldens-comment.yml"))
#: The harness of this checkout.
HERE = os.pathsep.join([str(REPOSITORY / "harness"), str(REPOSITORY)])
#: Anywhere: what is written names it and installs nothing.
HARNESS = ("--harness", "executorch-goldens==0.1.0")
GIVEN = ("nets/wake_word.py:WakeWord", "--input", "1,40")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one file, a model."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "wake_word.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


Init = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def init(repository: Path) -> Init:
    """Run ``init`` in the repository."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return ended([*GOLDENS, "init", *words], repository, PYTHONPATH=HERE)

    return call


def files(folder: Path) -> dict[str, bytes]:
    """Return every file of a repository that is no trace of a run."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_a_repository_gets_its_first_golden_and_what_stands_in_its_settings_stays(
    repository: Path, init: Init, release: str
) -> None:
    settings = '# Ours.\n[project]\nname = "wake"  # the product\nversion = "1"'
    (repository / "pyproject.toml").write_text(settings)
    (repository / "noxfile.py").write_text("import nox\n")
    done = init("nets/wake_word.py:WakeWord", "--input", "2,40", "--target", "xnnpack-fp32", *HARNESS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nets/wake_word.py:WakeWord takes sound float32[2, 40]\n" in done.stdout
    assert DRAWN in done.stdout
    newest = releases.load().newest
    assert release != newest
    assert (
        f"this Python has ExecuTorch {release}, so goldens are of that; -t {newest} takes the newest"
        in done.stdout
    )
    assert "1 new" in done.stdout
    assert (repository / "goldens" / release / "xnnpack-fp32" / "wake-word.txt").exists()
    written = (repository / "pyproject.toml").read_text()
    assert written.startswith(f"{settings}\n\n[tool.goldens]\n")
    loaded = config.load(repository)
    assert (loaded.targets, loaded.models, loaded.toolchains) == (
        ("xnnpack-fp32",),
        ("goldens_zoo",),
        (release,),
    )
    assert (repository / "noxfile.py").read_text() == "import nox\n"
    assert (repository / WORKFLOW).exists()
    again = ended([*GOLDENS, "run", "--cell", "xnnpack-fp32/wake-word"], repository, PYTHONPATH=HERE)
    assert "1 stable" in again.stdout, again.stdout + again.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("computes", "says"),
    [
        ("self.last(x) if x.sum() > 0 else x[:, :8]", "a FAILURE is recorded only if it is expected"),
        # An export has a working directory of its own.
        ("self.last(x) * float(open('scale.txt').read())", "No such file or directory: 'scale.txt'"),
    ],
)
def test_of_a_model_without_a_golden_yet_the_files_stay(
    repository: Path, init: Init, computes: str, says: str
) -> None:
    (repository / "scale.txt").write_text("0.5")
    (repository / "nets" / "wake_word.py").write_text(MODEL.replace("self.last(x)", computes, 1))
    done = init("nets/wake_word.py:WakeWord", "--input", "1,40", *HARNESS)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert says in done.stdout
    assert "the files stay as written" in done.stdout
    assert tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["goldens"]


@pytest.fixture
def begun(repository: Path) -> Path:
    """`repository` with the files that ``init`` writes."""
    begin(repository)
    return repository


def begin(repository: Path, toolchain: str = "1.4.1") -> None:
    """Write the files that ``init`` writes."""
    model = ModelName(Path("nets/wake_word.py"), "WakeWord")
    given = (Input((1, 40), name="x"),)
    beginning = StarterFiles(model, given, False, ("tosa-fp",), toolchain, HARNESS[1], "3.13")
    write(repository, beginning.texts(repository))


@pytest.fixture
def zoo_of(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[str, Example]]]:
    """Write the files for a model of `SHIPPED`; return the zoo's text, and the example of its case."""
    (repository / "other.py").write_text(SHIPPED)
    path, named = list(sys.path), set(sys.modules)
    # Zoos of one name, one after the other.
    monkeypatch.setattr(registry, "CASES", registry.Registry())

    def write_zoo(*words: str) -> tuple[str, Example]:
        subparsers = argparse.ArgumentParser().add_subparsers()
        init_command.add_to(subparsers)
        arguments = subparsers.choices["init"].parse_args([*words, *HARNESS])
        beginning = init_command.beginning_of(repository, arguments, chosen(None))
        write(repository, beginning.texts(repository))
        (case,) = registry.load(["goldens_zoo"]).values()
        return (repository / "goldens_zoo.py").read_text(), example_of(case)

    yield write_zoo
    sys.path[:] = path
    for name in {"other", "goldens_zoo"} & (set(sys.modules) - named):
        del sys.modules[name]


def test_a_stated_input_has_its_dtype_and_drawn_weights_are_said(
    zoo_of: Callable[..., tuple[str, Example]],
) -> None:
    text, built = zoo_of("other.py:Words", "--input", "1,500:int32")
    (tokens,) = built.inputs
    assert (str(tokens.dtype), tuple(tokens.shape)) == ("torch.int32", (1, 500))
    assert built.fill
    assert 'guards="Words, with weights that the harness draws"' in text
    assert "# Its weights differ each time it is made, so the harness draws them." in text
    built.module(tokens)


def test_weights_that_are_the_same_each_time_stay_and_names_of_the_case_are_imported_as_others(
    zoo_of: Callable[..., tuple[str, Example]],
) -> None:
    text, built = zoo_of("other.py:model", "--input", "1,16:int64")
    torch.manual_seed(3)
    own = importlib.import_module("other").Words().state_dict()
    assert not built.fill
    assert all(torch.equal(value, own[name]) for name, value in built.module.state_dict().items())
    assert "from other import model as make_model\n" in text
    assert 'guards="model as it ships"' in text


def test_the_session_and_the_workflow_are_ones_that_nox_and_a_reader_of_yaml_take(begun: Path) -> None:
    listed = ended(["nox", "-l"], begun)
    assert "* goldens(1.4.1) -> Export and compare" in listed.stdout, listed.stdout + listed.stderr
    for path in ("goldens_zoo.py", "noxfile.py"):
        compile((begun / path).read_text(), path, "exec")
    text = (begun / WORKFLOW).read_text()
    assert "nox -l --json -s goldens |" in text
    assert "machine: [ubuntu-24.04, ubuntu-24.04-arm]\n" in text
    assert 'run: nox -s "$SESSION"\n' in text
    # What is exported is what is checked out for a review.
    assert text.count("ref: ${{ github.event.pull_request.head.sha || github.sha }}\n") == 2
    assert "path: build/sweeps\n" in text


def test_the_workflow_has_a_job_for_each_toolchain_of_the_settings(begun: Path) -> None:
    settings = begun / "pyproject.toml"
    settings.write_text(settings.read_text().replace('["1.4.1"]', '["1.4.1", "1.5.1 + torch==2.15.0"]'))
    text = (begun / WORKFLOW).read_text()
    found = re.search(r"- id: list\n +run: \|\n((?: {10}.*\n)+)", text)
    assert found
    subprocess.run(
        ["bash", "-eo", "pipefail", "-c", textwrap.dedent(found[1])],
        cwd=begun,
        env={**os.environ, "GITHUB_OUTPUT": str(begun / "outputs")},
        check=True,
        timeout=60,
    )
    name, _, sessions = (begun / "outputs").read_text().partition("=")
    assert name == "sessions"
    assert json.loads(sessions) == ["goldens(1.4.1)", "goldens(1.5.1 + torch==2.15.0)"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; runners have it")
def test_the_comment_is_posted_as_this_project_posts_its_own(begun: Path) -> None:
    """By one script, which tests/commands/test_workflows.py runs over what it must not let through."""
    mark = "<!-- executorch-goldens: summary -->"
    runner = after_a_run(begun, f"{mark}\n<b>", [REQUEST], [])
    runner.job(begun / COMMENT, "comment")
    ((name, words),) = runner.posted
    assert (name, words["body"]) == ("create", f"{mark}\n&lt;b>")
    assert "workflows: [goldens]\n" in (begun / COMMENT).read_text()


@pytest.mark.parametrize("toolchain", ["1.5.1", "1.5.1 + torch==2.15.0"])
def test_the_session_installs_the_harness_alone_and_names_the_toolchain_of_the_settings(
    repository: Path, toolchain: str
) -> None:
    begin(repository, toolchain)
    assert config.load(repository).toolchains == (toolchain,)
    # A program of the session's name takes the words that the session would run; nothing is installed.
    (repository / "goldens").write_text(
        '#!/bin/sh\necho "$EXECUTORCH_GOLDENS_CALLED_AS"; printf "%s\\n" "$@"\n'
    )
    (repository / "goldens").chmod(0o755)
    ran = ended(
        ["nox", "--no-venv", "--no-install", "-s", f"goldens({toolchain})", "--", "--cell", "tosa-fp/*"],
        repository,
        PATH=f"{repository}{os.pathsep}{os.environ['PATH']}",
    )
    called, *words = ran.stdout.splitlines()
    assert words == ["run", "-t", toolchain, "--cell", "tosa-fp/*"], ran.stdout + ran.stderr
    assert called == f"nox -s 'goldens({toolchain})' -- --cell 'tosa-fp/*'"
    installed = re.findall(r"session.install\((.*)\)", (repository / "noxfile.py").read_text())
    assert installed == ["HARNESS", "HARNESS"]


@pytest.mark.parametrize(
    ("table", "requirements"),
    [
        ('[project]\nname = "wake"\n', ("-e .",)),
        ("", ()),
        ('[tool.goldens.environment]\nrequirements = ["timm==1.0.20"]\n', ("timm==1.0.20",)),
    ],
)
def test_what_the_models_need_is_stated_in_the_settings_and_what_was_stated_stays(
    repository: Path, table: str, requirements: tuple[str, ...]
) -> None:
    (repository / "pyproject.toml").write_text(table)
    begin(repository)
    assert config.load(repository).requirements == requirements
    written = (repository / "pyproject.toml").read_text()
    assert written.count("[tool.goldens.environment]") == 1
    # Who has no requirement yet sees where one is put.
    assert written.replace("# requirements", "requirements").count("requirements = [") == 1
    assert config.load(repository).models == ("goldens_zoo",)


def test_what_runs_leave_is_ignored_by_git_and_what_was_ignored_before_stays(repository: Path) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    (repository / ".gitignore").write_text("*.pt\nbuild/")
    begin(repository)
    assert (repository / ".gitignore").read_text().startswith("*.pt\nbuild/\n")
    assert (repository / ".gitignore").read_text().count("build/") == 1
    left = ("build/sweeps/a", "goldens/.1.4.1.lock", "goldens/tests/.1.4.1.lock", ".nox/a", "nets/net.pt")
    left += ("__pycache__/nets.cpython-311.pyc", "nets/__pycache__/a.pyc")
    for name in (*left, "goldens/1.4.1/tosa-fp/a.txt"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("")
    shown = subprocess.run(
        ["git", "status", "--short", "--untracked-files=all"], capture_output=True, text=True, check=True
    ).stdout
    assert "goldens/1.4.1/tosa-fp/a.txt" in shown
    assert not [name for name in left if name in shown]


def test_zizmor_finds_nothing_in_the_workflow(begun: Path) -> None:
    found = ended(["zizmor", "--offline", "--no-progress", begun / WORKFLOW, begun / COMMENT])
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed; CI installs it")
def test_actionlint_finds_nothing_in_the_workflows(begun: Path) -> None:
    found = ended(["actionlint", begun / WORKFLOW, begun / COMMENT])
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_workflow_takes_the_actions_that_this_project_takes(begun: Path) -> None:
    """One digest for each, so that raising one here raises it in the written files."""
    own = {line for file in (REPOSITORY / ".github").rglob("*.yml") for line in uses(file)}
    written = {*uses(begun / WORKFLOW), *uses(begun / COMMENT)}
    assert written
    assert written <= own


def uses(workflow: Path) -> list[str]:
    """Return the actions that a workflow takes, each with its digest and tag."""
    found = re.findall(r"uses: (\S+@[0-9a-f]{40} # v[\d.]+)$", workflow.read_text(), re.MULTILINE)
    assert len(found) == len(re.findall(r"uses: (?!\./|\$/)", workflow.read_text()))
    return found


@pytest.mark.parametrize(
    ("there", "words", "says"),
    [
        ({"goldens_zoo.py": ""}, (), "has goldens_zoo.py or [tool.goldens] already"),
        ({"pyproject.toml": "[tool.goldens]\n"}, (), "has goldens_zoo.py or [tool.goldens] already"),
        ({"pyproject.toml": "tool = { ruff = {} }\n"}, (), "takes no table [tool.goldens] at its end"),
        ({"pyproject.toml": "[tool"}, (), "pyproject.toml: cannot be read: "),
        ({".github": ""}, (), "cannot be written"),
        ({}, ("nets/wake_word.py:WakeWord",), "does not run on no input: "),
        ({"other.py": TWO_INPUTS}, ("other.py:Sum", "--input", "1,4"), "does not run on float32[1, 4]: "),
        ({}, ("nets/wake_word.py:WakeWord", "--input", "1,4:int4"), "'1,4:int4' is no input such as"),
        ({}, ("nets/wake_word.py:WakeWord", "--input", "1;4"), "'1;4' is no input such as"),
        ({"other.py": NEEDS}, ("other.py:Sized",), "other.py:Sized cannot be called"),
        ({"other.py": NEEDS}, ("other.py:absent",), "other.py:absent returns None, and no torch.nn.Module"),
        ({"other.py": NEEDS}, ("other.py:gone",), "other.py has no gone; it has Sized"),
        (
            {"other.py": "import gone"},
            ("other.py:Net",),
            "No module named 'gone'; if the model needs it beside ExecuTorch, write requirements = [\"gone\"] under "
            "[tool.goldens.environment] in pyproject.toml, and begin again",
        ),
        ({"other.py": ""}, ("other.py",), "other.py names nothing in a Python file: pass FILE:CLASS"),
        ({}, ("gone.py",), "gone.py is no file"),
        ({}, ("/etc/passwd",), "is no file under"),
        ({"net.pt2": ""}, ("net.pt2:Net",), "net.pt2:Net names nothing in a Python file"),
        ({}, (*GIVEN, "--target", "xnpack"), "xnpack"),
        # They hide the file, or it would hide them from torch.
        ({"keyword.py": MODEL}, ("keyword.py:WakeWord",), "keyword.py cannot be imported: keyword is /"),
        ({"types.py": MODEL}, ("types.py:WakeWord",), "types.py cannot be imported: types is /"),
        ({"numpy.py": MODEL}, ("numpy.py:WakeWord",), "numpy/__init__.py; rename the file"),
        (
            {"other.py": "\n\nfrom nets.no import x"},
            ("other.py:Net",),
            "/other.py, line 3: ModuleNotFoundError: ",
        ),
        ({"other.py": "x = 1\nexit(3)"}, ("other.py:Net",), "/other.py, line 2: SystemExit: 3; "),
        (
            {"other.py": "class E(BaseException): ...\ndef net():\n    raise E('no')"},
            ("other.py:net",),
            "/other.py, line 3: E: no; ",
        ),
        ({}, (*GIVEN, "--harness", "not a requirement!"), "--harness 'not a requirement!' installs nothing"),
    ],
)
def test_what_cannot_be_begun_is_one_clear_error_and_nothing_is_written(
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    there: dict[str, str],
    words: tuple[str, ...],
    says: str,
) -> None:
    for name, text in there.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    before = files(repository)
    path = list(sys.path)
    named = set(sys.modules)
    try:
        harness = () if "--harness" in words else HARNESS
        assert main(["init", *(words or GIVEN), *harness]) == ERROR
    finally:
        sys.path[:] = path
        for name in {"other", "nets", "nets.wake_word"} & (set(sys.modules) - named):
            del sys.modules[name]
    said = capsys.readouterr().err
    assert says in said
    assert said.startswith("goldens: ")
    assert files(repository) == before
    assert not list(repository.rglob(".*.partial"))
