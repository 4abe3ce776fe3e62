"""The scripts of workflows and actions: the commands they call, and their use of the output.

Each script is taken from its file and run by the shell that a runner has. The programs that it calls write down how
they were called, and print and end as a test says.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from executorch_goldens.settings import releases
from tests import REPOSITORY
from tests.support.commands import ended

WORKFLOWS = REPOSITORY / ".github" / "workflows"
COMPARE = REPOSITORY / ".github" / "actions" / "compare" / "action.yml"
#: Mark of a page of ``goldens compare --markdown``.
MARK = "<!-- executorch-goldens: compare -->"
#: A program that writes its words down, and prints and ends as its environment says.
PROGRAM = f"""#!{sys.executable}
import json, os, sys
name = os.path.basename(sys.argv[0])
with open(os.environ["CALLS"], "a") as file:
    print(json.dumps([name, *sys.argv[1:]]), file=file)
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
    programs = folder / "programs"
    programs.mkdir()
    for name in ("goldens", "pip"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
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
            "GITHUB_ACTION_PATH": str(COMPARE.parent),
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


SIDES = {"BASE": "1.5.1 + .@HEAD^1", "HEAD": "1.5.1 + ."}
EVERY = {
    "MODELS": "models lab.pairs.zoo",
    "CELL": "tosa-int/* */linear",
    "OF_PASS": "Fold",
    "ALLOW": "renames",
}
#: The options of the command that those of the action become.
NAMED = (
    "--models models --models lab.pairs.zoo --cell 'tosa-int/*' --cell '*/linear' --pass Fold --allow renames"
)


@pytest.mark.parametrize(
    ("inputs", "words"), [(EVERY, NAMED), (dict.fromkeys(EVERY, ""), "")], ids=["every input", "none"]
)
@pytest.mark.parametrize(("code", "result"), [(0, "identical"), (1, "different")])
def test_the_action_hands_its_inputs_on_and_says_whether_both_are_identical(
    temporary: Path, inputs: Mapping[str, str], words: str, code: int, result: str
) -> None:
    # A pattern of cells is none of files.
    (temporary / "tosa-int").mkdir()
    (temporary / "tosa-int" / "file").touch()
    answers = {f"goldens compare {SIDES['BASE']}": (code, f"{MARK}\n**page**\n")}
    ran = run(script(COMPARE, "compare both"), temporary, answers, **SIDES, **inputs)
    temp = temporary / "temp"
    compare, report = ran.calls
    assert compare == [
        *("goldens", "compare", *SIDES.values(), "--markdown", "--sweeps", f"{temp}/compare"),
        *shlex.split(words),
    ]
    written = f"{temp}/compare-page/report.html"
    assert report == ["goldens", "report", f"{temp}/compare", "--html", written]
    assert ran.code == 0
    assert ran.outputs == {"result": result, "folder": f"{temp}/compare-page"}
    assert ran.summary == (temp / "compare-page" / "summary.md").read_text() == f"{MARK}\n**page**\n"


def test_the_action_fails_where_the_two_cannot_be_compared(temporary: Path) -> None:
    answers = {f"goldens compare {SIDES['BASE']}": (2, "")}
    ran = run(script(COMPARE, "compare both"), temporary, answers, **SIDES, **dict.fromkeys(EVERY, ""))
    assert ran.code == 2
    assert len(ran.calls) == 1
    assert not ran.outputs


@pytest.mark.parametrize(
    ("harness", "installs"),
    [
        ("executorch-goldens==0.1.0", [["executorch-goldens==0.1.0"]]),
        (
            "",
            [
                ["--require-hashes", "-r", str(REPOSITORY / "harness/executorch_goldens/locks/harness.txt")],
                ["--no-deps", "--editable", str(REPOSITORY)],
            ],
        ),
    ],
)
def test_the_action_installs_its_own_commit_unless_a_requirement_is_given(
    temporary: Path, harness: str, installs: list[list[str]]
) -> None:
    ran = run(script(COMPARE, "install"), temporary, {}, HARNESS=harness)
    assert ran.calls == [["pip", "install", *words] for words in installs]
    assert ran.code == 0


def test_every_input_of_the_workflow_is_one_of_the_action_and_is_handed_on() -> None:
    workflow = (WORKFLOWS / "compare.yml").read_text()
    declared = re.findall(r"^  ([\w-]+):\n    description: ", COMPARE.read_text(), re.MULTILINE)
    inputs = [name for name in declared if name not in ("result", "folder")]
    assert (
        re.findall(r"^      ([\w-]+):\n        description: .*\n        type: ", workflow, re.MULTILINE)
        == inputs
    )
    assert re.findall(r"^          ([\w-]+): \$\{\{ inputs\.\1 \}\}$", workflow, re.MULTILINE) == inputs


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


#: A stub of GitHub's action for scripts, as far as comment.yml uses it; its calls are printed as JSON.
GITHUB = """
const done = [];
const note = (name) => async (words) => { done.push([name, words]); };
const context = {repo: {owner: 'o', repo: 'r'}, payload: {workflow_run: RUN}};
const core = {info: (text) => done.push(['info', text])};
const lists = {pulls: REQUESTS, comments: COMMENTS};
const github = {
  paginate: async (list) => lists[list],
  rest: {
    pulls: {list: 'pulls'},
    issues: {listComments: 'comments', updateComment: note('update'), createComment: note('create')},
  },
};
(async () => {
SCRIPT
})().then(() => console.log(JSON.stringify(done)), (error) => { console.error(error.message); process.exit(1); });
"""
TRIGGER = {"head_sha": "abc", "head_branch": "fix", "head_repository": {"full_name": "fork/r"}}
REQUEST = {"number": 7, "head": {"sha": "abc", "ref": "fix", "repo": {"full_name": "fork/r"}}}


def comment(folder: Path, text: str, requests: object, comments: object) -> subprocess.CompletedProcess[str]:
    """Run the script of comment.yml over a text."""
    (folder / "summary.md").write_text(text)
    lines = script(WORKFLOWS / "comment.yml", "comment", "script")
    program = (
        GITHUB.replace("SCRIPT", lines)
        .replace("REQUESTS", json.dumps(requests))
        .replace("RUN", json.dumps(TRIGGER))
    )
    return ended(["node", "-e", program.replace("COMMENTS", json.dumps(comments))], folder)


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; runners have it")


@needs_node
@pytest.mark.parametrize("kind", ["summary", "compare"])
def test_a_page_becomes_a_comment_and_the_next_one_takes_its_place(tmp_path: Path, kind: str) -> None:
    mark = f"<!-- executorch-goldens: {kind} -->"
    other = "<!-- executorch-goldens: another -->"
    first = comment(tmp_path, f"{mark}\n**page**", [REQUEST], [])
    ((name, words),) = json.loads(first.stdout)
    assert (name, words["issue_number"], words["body"]) == ("create", 7, f"{mark}\n**page**")
    before = [
        {"id": 1, "user": {"type": "User"}, "body": mark},
        {"id": 2, "user": {"type": "Bot"}, "body": other},
        {"id": 3, "user": {"type": "Bot"}, "body": f"{mark}\nold"},
    ]
    ((name, words),) = json.loads(comment(tmp_path, f"{mark}\nnew", [REQUEST], before).stdout)
    assert (name, words["comment_id"], words["body"]) == ("update", 3, f"{mark}\nnew")


@needs_node
def test_of_html_only_what_folds_a_list_up_is_left_and_nobody_is_called(tmp_path: Path) -> None:
    folded = "<details open>\n<summary>newly wrong: 1 cell</summary>\n\n- a\n\n</details>\n"
    hostile = '<img src=x>\n<details onclick="x">\n<summary><a href="x"></summary>\n@all ![x](y) x<details>\n'
    done = comment(tmp_path, f"{MARK}\n{folded}{hostile}", [REQUEST], [])
    ((_, words),) = json.loads(done.stdout)
    assert words["body"] == (
        f'{MARK}\n{folded}&lt;img src=x>\n&lt;details onclick="x">\n<summary>&lt;a href="x"></summary>\n'
        "@\u200ball !\\[x](y) x&lt;details>\n"
    )


@needs_node
@pytest.mark.parametrize("other", [{"ref": "copy"}, {"repo": {"full_name": "o/r"}}, {"repo": None}])
def test_a_request_with_the_same_commit_from_elsewhere_gets_no_comment(
    tmp_path: Path, other: dict[str, object]
) -> None:
    copy = {"number": 6, "head": {**REQUEST["head"], **other}}
    ((name, words),) = json.loads(comment(tmp_path, MARK, [copy, REQUEST], []).stdout)
    assert (name, words["issue_number"]) == ("create", 7)


@needs_node
def test_a_text_without_a_mark_is_no_comment(tmp_path: Path) -> None:
    refused = comment(tmp_path, "<!-- anything -->", [REQUEST], [])
    assert refused.returncode == 1
    assert "not what goldens merge or compare prints" in refused.stderr
    closed = comment(tmp_path, MARK, [{"number": 8, "head": {**REQUEST["head"], "sha": "other"}}], [])
    assert json.loads(closed.stdout) == [["info", "the request is closed, or has a newer commit"]]
