"""The scripts of workflows and actions: the commands they call, and their use of the output.

Each script is taken from its file and run by the shell that a runner has, the action and its comment with all their
steps. The programs that these call write down how they were called, and print and end as a test says.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.settings import releases
from executorch_goldens.toolchains.interpreters import find_uv
from tests import REPOSITORY
from tests.support.actions import PULL, REQUEST, Runner, StepError, after_a_run
from tests.support.commands import ended

WORKFLOWS = REPOSITORY / ".github" / "workflows"
#: Mark of a page of ``goldens compare --markdown``.
MARK = "<!-- executorch-goldens: compare -->"
#: A program that writes its words down, and prints and ends as its environment says.
PROGRAM = f"""#!{sys.executable}
import json, os, sys
name = os.path.basename(sys.argv[0])
with open(os.environ["CALLS"], "a") as file:
    print(json.dumps([name, *sys.argv[1:]]), file=file)
if "--html" in sys.argv:
    open(sys.argv[sys.argv.index("--html") + 1], "w").close()
line = " ".join([name, *sys.argv[1:], ""])
all_said = json.loads(os.environ["SAID"]).items()
code, said = next((said for words, said in all_said if line.startswith(words + " ")), (0, ""))
(sys.stderr if code > 1 else sys.stdout).write(said)
sys.exit(code)
"""
#: A command's exit code and output (errors go to standard error), by the beginning of its line.
Answers = Mapping[str, tuple[int, str]]


def script(file: Path, name: str, key: str = "run") -> str:
    """Return the text under ``key: |`` of the step of a name, or the first one after the name of the file's."""
    _, _, step = file.read_text().partition(f"name: {name}\n")
    found = re.search(rf"^( +){key}: \|\n((?:\1  .*\n|\n)+)", step, re.MULTILINE)
    assert found, f"{file.name} has no step {name} with {key}"
    return textwrap.dedent(found[2])


def written_down(folder: Path) -> Path:
    """Make programs in place of pip and of the command, and return their folder."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("goldens", "pip"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    return programs


@dataclass(frozen=True)
class Ran:
    """A script that was run: its exit code, the programs that it called, and its outputs."""

    code: int
    calls: list[list[str]]
    summary: str
    outputs: dict[str, str]
    folder: Path


def run(text: str, folder: Path, answers: Answers, **variables: str) -> Ran:
    """Run a script in a folder, in place of a runner."""
    programs = written_down(folder)
    calls, summary, outputs = (folder / name for name in ("calls", "summary", "outputs"))
    for file in (calls, summary, outputs):
        file.touch()
    done = ended(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        folder,
        env={
            "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(REPOSITORY / "harness"),
            "CALLS": str(calls),
            "SAID": json.dumps(answers),
            "RUNNER_TEMP": str(folder / "temp"),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
            **variables,
        },
    )
    assert not done.stderr, done.stderr
    return Ran(
        done.returncode,
        [json.loads(line) for line in calls.read_text().splitlines()],
        summary.read_text(),
        dict(line.split("=", 1) for line in outputs.read_text().splitlines()),
        folder,
    )


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    (tmp_path / "temp").mkdir()
    return tmp_path


#: What the action is given, and the words of the command that it becomes.
EVERY = {
    "base": "1.5.1 + .@HEAD^1",
    "head": "1.5.1 + .",
    "models": "models lab.options.zoo",
    "cell": "tosa-int/* */linear",
    "pass": "Fold",
    "allow": "renames",
    "require": "reached",
    "budget": "2",
}
#: The options of the command that those of the action become.
NAMED = (
    "--models models --models lab.options.zoo --cell 'tosa-int/*' --cell '*/linear' --pass Fold --allow renames "
    "--require reached --budget 2"
)
PAGE = f"{MARK}\n**page**\n"
LINKED = f"{PAGE}\n[the whole report](https://github.com/o/r/artifacts/report)\n"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; runners have it")
Machine = Callable[..., Runner]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Make a runner of GitHub's with programs in place of pip and of the command, which end as `answers` say."""
    programs, calls = written_down(tmp_path), tmp_path / "calls"
    (programs / "python").symlink_to(sys.executable)
    workspace = committed(tmp_path / "workspace", {"tosa-int/file": ""})
    calls.touch()

    def made(answers: Answers, event: tuple[str, Mapping[str, Any]] = PULL, **others: Any) -> Runner:
        variables = {"CALLS": str(calls), "SAID": json.dumps(answers)}
        return Runner(
            *(tmp_path / "machine", REPOSITORY, workspace, tmp_path / "kept", event, programs),
            variables=variables,
            **others,
        )

    return made


def committed(folder: Path, files: Mapping[str, str]) -> Path:
    """Commit all of a folder, which becomes a repository, with these files; return it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "commit")
    return folder


def git(folder: Path, *words: str) -> None:
    done = ended(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], folder)
    assert done.returncode == 0, done.stderr


def calls_of(runner: Runner) -> list[list[str]]:
    """Return the programs that the steps called."""
    return [json.loads(line) for line in Path(runner.variables["CALLS"]).read_text().splitlines()]


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed; CI installs it")
def test_actionlint_finds_nothing_in_any_workflow() -> None:
    # 1.7.12 does not know this way to name an action of the workflow's own repository, which GitHub has since.
    ignored = ("-ignore", r'specifying action "\$/')
    found = ended(["actionlint", *ignored, *WORKFLOWS.glob("*.yml")])
    assert found.returncode == 0, found.stdout + found.stderr


@needs_node
@pytest.mark.parametrize(
    ("inputs", "words"),
    [(EVERY, [EVERY["base"], EVERY["head"], NAMED]), ({}, ["HEAD^1", "", ""])],
    ids=["every input", "none"],
)
@pytest.mark.parametrize(("code", "result"), [(0, "identical"), (1, "different")])
def test_the_action_hands_its_inputs_on_and_says_whether_both_are_identical(
    machine: Machine, inputs: Mapping[str, str], words: list[str], code: int, result: str
) -> None:
    base, head, named = words
    runner = machine({f"goldens compare {base}": (code, PAGE)})
    temp = runner.root / "temp"
    if "require" in inputs and code:
        with pytest.raises(StepError):
            runner.action(REPOSITORY, inputs)
    else:
        assert runner.action(REPOSITORY, inputs) == {"result": result, "folder": f"{temp}/compare-page"}
    compare, report = calls_of(runner)[-2:]
    assert compare == [
        *filter(None, ("goldens", "compare", base, head)),
        *("--markdown", "--sweeps", f"{temp}/compare", *shlex.split(named)),
    ]
    written = f"{temp}/compare-page/report.html"
    assert report == ["goldens", "report", f"{temp}/compare", "--html", written]
    assert runner.summary == PAGE
    assert runner.posted == [["create", {"owner": "o", "repo": "r", "issue_number": 7, "body": LINKED}]]


def test_the_action_fails_where_the_two_cannot_be_compared(machine: Machine) -> None:
    runner = machine({"goldens compare HEAD^1": (2, "no such revision")})
    with pytest.raises(StepError, match="no such revision"):
        runner.action(REPOSITORY, {})
    assert not runner.posted
    assert not runner.kept.joinpath("artifacts").exists()


@needs_node
@pytest.mark.parametrize("harness", ["executorch-goldens==0.1.0", ""])
def test_the_action_installs_its_own_commit_unless_a_requirement_is_given(
    machine: Machine, harness: str
) -> None:
    runner = machine({"goldens compare": (0, PAGE)})
    runner.action(REPOSITORY, {"harness": harness})
    own = [str(REPOSITORY), str(REPOSITORY / "harness" / "zoo")]
    locked = str(REPOSITORY / "harness/executorch_goldens/locks/harness.txt")
    installs = [[harness]] if harness else [["--require-hashes", "-r", locked], ["--no-deps", *own]]
    assert calls_of(runner)[:-2] == [["pip", "install", *words] for words in installs]


@needs_node
def test_a_page_that_the_token_may_not_post_is_an_artifact_that_the_comment_workflow_posts(
    machine: Machine,
) -> None:
    runner = machine({"goldens compare": (1, PAGE)}, may_write=False)
    runner.action(REPOSITORY, {})
    assert [name for name, _ in runner.posted] == ["info"]
    assert (runner.kept / "artifacts" / "comment" / "summary.md").read_text() == LINKED
    later = after_a_run(runner.kept.parent, LINKED, [REQUEST], [])
    later.job(WORKFLOWS / "comment.yml", "comment")
    assert later.posted == [["create", {"owner": "o", "repo": "r", "issue_number": 7, "body": LINKED}]]


@needs_node
@pytest.mark.parametrize(("event", "inputs"), [(("push", {}), {}), (PULL, {"comment": "false"})])
def test_what_is_no_request_or_asks_for_no_comment_gets_none(
    machine: Machine, event: tuple[str, Mapping[str, Any]], inputs: Mapping[str, str]
) -> None:
    runner = machine({"goldens compare": (0, PAGE)}, event)
    assert runner.action(REPOSITORY, inputs)["result"] == "identical"
    assert not runner.posted
    assert [path.name for path in (runner.kept / "artifacts").iterdir()] == ["report"]


@needs_node
def test_a_run_takes_the_environments_and_the_exports_that_earlier_ones_kept(machine: Machine) -> None:
    folders, commits = ("environments", "exports"), ["none"]
    for number, found in enumerate(("", "0", "0 1", "0 1 2")):
        runner = machine({"goldens compare": (0, PAGE)}, ("push", {}))
        cache = runner.root / "home" / ".cache" / "executorch-goldens"
        for name in folders:
            (cache / name / str(number)).mkdir(parents=True)
        runner.action(REPOSITORY, {})
        there = [" ".join(sorted(each.name for each in (cache / name).iterdir())) for name in folders]
        # An environment is the same for all, and is kept once.
        assert there == [f"0 {number}" if number else "0", f"{found} {number}".strip()]
        commits.append(ended(["git", "rev-parse", "HEAD"], runner.workspace).stdout.strip())
        committed(runner.workspace, {"edited": str(number)})
        shutil.rmtree(runner.kept / "artifacts")
    kept = [path.name.partition("-exports-")[2] for path in (runner.kept / "caches").iterdir()]
    assert sorted(filter(None, kept)) == sorted(map("-".join, itertools.pairwise(commits)))


#: A line of a pass, and what a change makes of it.
EDITED = (
    "backends/arm/_passes/decompose_gelu_pass.py",
    "call_scalar(0.044715, meta)",
    "call_scalar(0.054715, meta)",
)
#: Settings of this machine's package indexes, and where uv keeps what it has downloaded.
INDEXES = re.compile(r"(PIP|UV|SSL)_|.*_proxy$", re.IGNORECASE)


@pytest.fixture
def kept() -> Iterator[Path]:
    """A folder for environments of some GB, which does not stay after the test as `tmp_path` may."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@needs_node
@pytest.mark.slow
def test_an_edited_pass_is_compared_in_a_clean_root_and_the_next_run_reuses_what_the_first_one_kept(
    kept: Path, release: str
) -> None:
    """As on GitHub: from a copy of a commit, in a merge of a request into a repository with ExecuTorch's sources."""
    source = kept / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", source], input=archive.stdout, check=True)
    workspace = request_of(kept / "workspace", release)
    downloaded = ended([find_uv(), "cache", "dir"]).stdout.strip()
    variables = {name: value for name, value in os.environ.items() if INDEXES.match(name)}
    variables["UV_CACHE_DIR"] = downloaded

    artifacts = kept / "kept" / "artifacts"

    def ran(**others: Any) -> tuple[Runner, int, int]:
        shutil.rmtree(artifacts, ignore_errors=True)
        runner = Runner(
            kept / "machine", source, workspace, kept / "kept", PULL, variables=variables, **others
        )
        outputs = runner.action(source, {})
        assert outputs["result"] == "different"
        made, reused = re.findall(r"exports: (\d+), (\d+) of them from the cache", runner.summary)[0]
        return runner, int(made), int(reused)

    first, made, reused = ran()
    ((name, posted),) = first.posted
    assert name == "create"
    assert (made > 0, reused) == (True, 0)
    assert "tosa-fp/gelu-tanh" in posted["body"]
    # The same from a fork, whose token can only read.
    second, again, reused = ran(may_write=False)
    assert [name for name, _ in second.posted] == ["info"]
    assert (artifacts / "comment" / "summary.md").is_file()
    # The base's: those of the head show which edited lines they run.
    assert (again, reused) == (made, made // 2)


def request_of(folder: Path, release: str) -> Path:
    """Make a repository with ExecuTorch's sources, as GitHub checks out a request that edits a pass; return it."""
    (package,) = find_spec("executorch").submodule_search_locations
    for name in ("exir", "backends"):
        shutil.copytree(Path(package, name), folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    committed(folder, {"version.txt": release})
    edited, before, after = EDITED
    text = (folder / edited).read_text()
    assert text.count(before) == 1
    git(folder, "checkout", "-q", "-b", "request")
    committed(folder, {edited: text.replace(before, after)})
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge", "request")
    return folder


BASE = list(releases.load().releases.values())[-1]


def index(newer: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Return pip's newest versions for a release's packages: as in `newer`, else the release's own."""
    newest = {**BASE.stack(), **newer}
    return {
        f"pip index versions {name}": (0, f"{name} ({version})\nAvailable versions: {version}, 0.1\n")
        for name, version in newest.items()
    }


@pytest.mark.parametrize(
    ("newer", "heads"),
    [
        ({}, []),
        ({"torch": "9.1"}, ["{base} + torch==9.1"]),
        (
            {"torch": "9.1", "tosa-tools": "9.2"},
            ["{base} + torch==9.1", "{base} + tosa-tools==9.2", "{base} + torch==9.1 + tosa-tools==9.2"],
        ),
        (
            {"executorch": "9.0", "torch": "9.1"},
            ["executorch==9.0", "{base} + torch==9.1", "executorch==9.0 + torch==9.1"],
        ),
    ],
)
def test_what_is_newer_is_compared_each_alone_and_then_all_together(
    temporary: Path, newer: Mapping[str, str], heads: list[str]
) -> None:
    ran = run(script(WORKFLOWS / "newest.yml", "compare what is newer"), temporary, index(newer))
    wanted = [head.format(base=BASE.version) for head in heads]
    compared = [words for words in ran.calls if words[0] == "goldens"]
    assert compared == [["goldens", "compare", BASE.version, head, "--markdown"] for head in wanted]
    assert ran.code == 0
    assert re.findall(r"^## (.*)$", ran.summary, re.MULTILINE) == wanted
    assert (ran.summary == f"nothing is newer than what {BASE.version} is paired with\n") == (not wanted)
    assert ran.summary == (temporary / "build" / "newest" / "newest.md").read_text()


def test_a_head_that_cannot_be_compared_has_the_reason_on_the_page(temporary: Path) -> None:
    answers = {**index({"torch": "9.1"}), f"goldens compare {BASE.version}": (2, "uv says:\nno such torch\n")}
    ran = run(script(WORKFLOWS / "newest.yml", "compare what is newer"), temporary, answers)
    assert ran.code == 1
    assert ran.summary.endswith("torch==9.1\n\nno such torch\n")


@pytest.mark.parametrize("code", [1, 2])
def test_what_is_newer_and_different_fails_the_job_after_all_of_it_was_compared(
    temporary: Path, code: int
) -> None:
    answers = index({"torch": "9.1", "torchao": "9.2"})
    differs = {f"goldens compare {BASE.version} {BASE.version} + torch==9.1 --markdown": (code, "")}
    ran = run(script(WORKFLOWS / "newest.yml", "compare what is newer"), temporary, {**answers, **differs})
    assert ran.code == 1
    assert len([words for words in ran.calls if words[0] == "goldens"]) == 3


def test_an_index_that_says_nothing_is_no_index_without_news(temporary: Path) -> None:
    answers = {**index({}), "pip index versions torch": (0, "")}
    assert run(script(WORKFLOWS / "newest.yml", "compare what is newer"), temporary, answers).code == 1


Comment = Callable[[str, list[Any], list[Any]], Runner]


@pytest.fixture
def comment(tmp_path: Path) -> Comment:
    """Post a text by comment.yml."""

    def posted(text: str, requests: list[Any], comments: list[Any]) -> Runner:
        runner = after_a_run(tmp_path, text, requests, comments)
        runner.job(WORKFLOWS / "comment.yml", "comment")
        return runner

    return posted


@needs_node
@pytest.mark.parametrize("kind", ["summary", "compare"])
def test_a_page_becomes_a_comment_and_the_next_one_takes_its_place(comment: Comment, kind: str) -> None:
    mark = f"<!-- executorch-goldens: {kind} -->"
    other = "<!-- executorch-goldens: another -->"
    ((name, words),) = comment(f"{mark}\n**page**", [REQUEST], []).posted
    assert (name, words["issue_number"], words["body"]) == ("create", 7, f"{mark}\n**page**")
    before = [
        {"id": 1, "user": {"type": "User"}, "body": mark},
        {"id": 2, "user": {"type": "Bot"}, "body": other},
        {"id": 3, "user": {"type": "Bot"}, "body": f"{mark}\nold"},
    ]
    ((name, words),) = comment(f"{mark}\nnew", [REQUEST], before).posted
    assert (name, words["comment_id"], words["body"]) == ("update", 3, f"{mark}\nnew")


@needs_node
def test_of_html_only_what_folds_a_list_up_is_left_and_nobody_is_called(comment: Comment) -> None:
    folded = "<details open>\n<summary>newly wrong: 1 cell</summary>\n\n- a\n\n</details>\n"
    hostile = '<img src=x>\n<details onclick="x">\n<summary><a href="x"></summary>\n@all ![x](y) x<details>\n'
    ((_, words),) = comment(f"{MARK}\n{folded}{hostile}", [REQUEST], []).posted
    assert words["body"] == (
        f'{MARK}\n{folded}&lt;img src=x>\n&lt;details onclick="x">\n<summary>&lt;a href="x"></summary>\n'
        "@\u200ball !\\[x](y) x&lt;details>\n"
    )


@needs_node
def test_a_comment_is_no_longer_than_github_takes(comment: Comment) -> None:
    ((_, words),) = comment(MARK + "<" * 70_000, [REQUEST], []).posted
    assert len(words["body"]) == 65_000


@needs_node
@pytest.mark.parametrize("other", [{"ref": "copy"}, {"repo": {"full_name": "o/r"}}, {"repo": None}])
def test_a_request_with_the_same_commit_from_elsewhere_gets_no_comment(
    comment: Comment, other: dict[str, object]
) -> None:
    copy = {"number": 6, "head": {**REQUEST["head"], **other}}
    ((name, words),) = comment(MARK, [copy, REQUEST], []).posted
    assert (name, words["issue_number"]) == ("create", 7)


@needs_node
def test_a_text_without_a_mark_is_no_comment(comment: Comment) -> None:
    with pytest.raises(StepError, match="not what goldens merge or compare prints"):
        comment("<!-- anything -->", [REQUEST], [])
    closed = comment(MARK, [{"number": 8, "head": {**REQUEST["head"], "sha": "other"}}], [])
    assert closed.posted == [["info", "the request is closed, or has a newer commit"]]
