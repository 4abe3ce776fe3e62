"""Runs composite actions and jobs as a runner of GitHub does: expressions, variables, files, caches and artifacts.

Scripts are run by the shell that a runner has. GitHub's own actions are played by what they do: a cache is a folder for
each key, an artifact a folder for each name, and a script has a ``github`` that writes down what is called.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests import REPOSITORY
from tests.support.commands import ended

#: A request from a fork, its event, and the one of a workflow that starts when its run has ended.
REQUEST: dict[str, Any] = {"number": 7, "head": {"sha": "abc", "ref": "fix", "repo": {"full_name": "fork/r"}}}
PULL = ("pull_request", {"pull_request": REQUEST})
ENDED = {
    "event": "pull_request",
    "head_sha": "abc",
    "head_branch": "fix",
    "head_repository": {"full_name": "fork/r"},
}
#: A name in an expression such as ``steps.compare.outputs.folder``, or a text, which stays.
NAME = re.compile(r"'[^']*'|[a-z_]+(?:\.[\w-]+)+")
#: What actions/github-script gives to a script, as far as ours use it; everything that is called is printed.
GITHUB = """
const {script, lists, mayWrite, context} = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const done = [], outputs = {};
const note = (name) => async (words) => {
  if (!mayWrite) throw Object.assign(new Error('Resource not accessible by integration'), {status: 403});
  done.push([name, words]);
};
const core = {
  info: (text) => done.push(['info', text]),
  setOutput: (name, value) => { outputs[name] = String(value); },
};
const github = {
  paginate: async (list) => lists[list],
  rest: {
    pulls: {list: 'pulls'},
    issues: {listComments: 'comments', updateComment: note('update'), createComment: note('create')},
  },
};
const AsyncFunction = Object.getPrototypeOf(async () => null).constructor;
new AsyncFunction('require', 'github', 'context', 'core', script)(require, github, context, core).then(
  () => console.log(JSON.stringify({done, outputs})), (error) => { console.error(error.message); process.exit(1); });
"""


class StepError(Exception):
    """A step that ended with another code than 0; the message is its output."""


@dataclass
class Runner:
    """One job on a machine of its own.

    Attributes
    ----------
    root
        The machine: what an earlier job left there is deleted.
    source
        A copy of this repository: where ``uses: OWNER/executorch-goldens@REF`` has put it.
    workspace
        What the job has checked out.
    kept
        What GitHub keeps: caches and artifacts.
    event
        Name and payload of the event.
    programs
        Folder of programs that are found first; None for a Python with pip, as actions/setup-python gives one.
    may_write
        Whether the token may write comments.
    comments, requests
        Those that there are.
    said, posted
        What the steps printed, and what scripts called.
    """

    root: Path
    source: Path
    workspace: Path
    kept: Path
    event: tuple[str, Mapping[str, Any]]
    programs: Path | None = None
    may_write: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)
    comments: list[Any] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    said: str = ""
    summary: str = ""
    posted: list[list[Any]] = field(default_factory=list)
    _ends: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("home", "temp"):
            (self.root / name).mkdir(parents=True)
        self.environment = {
            "HOME": str(self.root / "home"),
            "PATH": os.pathsep.join(map(str, filter(None, (self.programs, os.defpath)))),
            "CI": "true",
            "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64",
            "RUNNER_TEMP": str(self.root / "temp"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_EVENT_NAME": self.event[0],
            **self.variables,
        }

    def action(self, folder: Path, inputs: Mapping[str, str]) -> dict[str, str]:
        """Run a composite action to its end, with what its steps do after the job; return its outputs."""
        outputs = self._composite(folder, inputs)
        for end in reversed(self._ends):
            end()
        return outputs

    def job(self, workflow: Path, name: str) -> None:
        """Run the steps of a job of a workflow, if its condition holds."""
        job = yaml.safe_load(workflow.read_text())["jobs"][name]
        if self._evaluate(job.get("if", "'yes'"), {"github": self._github(workflow.parent)}):
            self._steps(job["steps"], {}, workflow.parent)

    def _composite(self, folder: Path, inputs: Mapping[str, str]) -> dict[str, str]:
        action = yaml.safe_load((folder / "action.yml").read_text())
        assert action["runs"]["using"] == "composite"
        declared = action.get("inputs", {})
        assert inputs.keys() <= declared.keys(), inputs
        values = {name: inputs.get(name, each.get("default", "")) for name, each in declared.items()}
        contexts = self._steps(action["runs"]["steps"], values, folder)
        return {name: self._text(each["value"], contexts) for name, each in action.get("outputs", {}).items()}

    def _github(self, folder: Path) -> dict[str, Any]:
        head = ended(["git", "rev-parse", "HEAD"], self.workspace).stdout.strip()
        name, payload = self.event
        return {"event_name": name, "event": payload, "action_path": str(folder), "sha": head, "token": "t"}

    def _steps(self, steps: list[Any], inputs: Mapping[str, str], folder: Path) -> dict[str, Any]:
        done: dict[str, Any] = {}
        contexts = {
            "inputs": inputs,
            "steps": done,
            "github": self._github(folder),
            "runner": {"temp": str(self.root / "temp")},
        }
        for step in steps:
            if not self._evaluate(step.get("if", "'yes'"), contexts):
                continue
            variables = {name: self._text(value, contexts) for name, value in step.get("env", {}).items()}
            if "run" in step:
                outputs = self._script(step["run"], folder, variables)
            else:
                given = {name: self._text(value, contexts) for name, value in step.get("with", {}).items()}
                outputs = self._used(step["uses"], given, variables)
            done[step.get("id", "")] = {"outputs": outputs}
        return contexts

    def _text(self, text: object, contexts: Mapping[str, Any]) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: str(self._evaluate(found[1], contexts)), str(text))

    def _evaluate(self, expression: str, contexts: Mapping[str, Any]) -> Any:
        """Return the value of an expression; what is missing is empty, as there."""

        def looked_up(name: str) -> Any:
            found: Any = contexts
            for part in name.split("."):
                found = found.get(part, "") if isinstance(found, Mapping) else ""
            return found

        python = NAME.sub(lambda each: each[0] if each[0][0] == "'" else f"look({each[0]!r})", expression)
        return eval(python.replace("&&", "and").replace("||", "or"), {"look": looked_up})

    def _script(self, text: str, folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
        files = {name: self.root / name for name in ("OUTPUT", "STEP_SUMMARY", "PATH", "ENV")}
        for file in files.values():
            file.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=self.workspace,
            env={
                **self.environment,
                **variables,
                "GITHUB_ACTION_PATH": str(folder),
                **{f"GITHUB_{name}": str(file) for name, file in files.items()},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.said += done.stdout
        self.summary += files["STEP_SUMMARY"].read_text()
        if done.returncode:
            raise StepError(done.stdout)
        assert not files["PATH"].read_text() + files["ENV"].read_text(), "no step of ours needs these yet"
        return dict(line.split("=", 1) for line in files["OUTPUT"].read_text().splitlines())

    def _used(self, uses: str, given: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
        """Run or play an action."""
        if uses.startswith("$/"):
            return self._composite(self.source / uses.removeprefix("$/"), given)
        name, _, commit = uses.partition("@")
        assert re.fullmatch(r"[0-9a-f]{40}", commit), uses
        played = {
            "actions/setup-python": self._python,
            "actions/cache": self._cache,
            "actions/github-script": self._scripted,
            "actions/upload-artifact": self._upload,
            "actions/download-artifact": self._download,
        }
        return played[name](given, variables)

    def _python(self, given: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
        if self.programs is None:
            place = self.root / "python"
            base = Path(sys.base_prefix) / "bin" / f"python{given['python-version']}"
            subprocess.run([base, "-m", "venv", place], check=True)
            self.environment["PATH"] = f"{place / 'bin'}{os.pathsep}{self.environment['PATH']}"
        return {}

    def _cache(self, given: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
        paths = list(map(Path, given["path"].split()))
        caches = self.kept / "caches"
        caches.mkdir(parents=True, exist_ok=True)
        newest = sorted(caches.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        wanted = (given["key"], *given.get("restore-keys", "").split())
        found = next((each for key in wanted for each in newest if each.name.startswith(key)), None)
        if found is not None:
            for number, path in enumerate(paths):
                copy(found / str(number), path)

        def keep() -> None:
            place = caches / given["key"]
            if not place.exists() and any(path.exists() for path in paths):
                place.mkdir()
                for number, path in enumerate(paths):
                    copy(path, place / str(number))

        self._ends.append(keep)
        return {"cache-hit": str(found is not None and found.name == given["key"]).lower()}

    def _upload(self, given: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
        place = self.kept / "artifacts" / given["name"]
        place.mkdir(parents=True)
        shutil.copy(given["path"], place)
        return {"artifact-url": f"https://github.com/o/r/artifacts/{given['name']}"}

    def _download(self, given: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
        shutil.copytree(
            self.kept / "artifacts" / given["name"], given.get("path", self.workspace), dirs_exist_ok=True
        )
        return {}

    def _scripted(self, given: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
        known = {
            "script": given["script"],
            "lists": {"pulls": self.requests, "comments": self.comments},
            "mayWrite": self.may_write,
            "context": {"repo": {"owner": "o", "repo": "r"}, "payload": self.event[1]},
        }
        done = subprocess.run(
            ["node", "-e", GITHUB],
            input=json.dumps(known),
            cwd=self.workspace,
            env={**self.environment, "PATH": os.environ["PATH"], **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StepError(done.stderr)
        printed = json.loads(done.stdout)
        self.posted += printed["done"]
        outputs: dict[str, str] = printed["outputs"]
        return outputs


def after_a_run(folder: Path, page: str, requests: list[Any], comments: list[Any]) -> Runner:
    """Return the runner of a job that starts when the run of `REQUEST` has ended, and has left a page."""
    artifact = folder / "kept" / "artifacts" / "comment"
    artifact.mkdir(parents=True, exist_ok=True)
    (artifact / "summary.md").write_text(page)
    machine, event = folder / "machine", ("workflow_run", {"workflow_run": ENDED})
    return Runner(
        *(machine, REPOSITORY, machine / "home", folder / "kept", event),
        requests=requests,
        comments=comments,
    )


def copy(source: Path, target: Path) -> None:
    """Copy a folder as tar does: with links, and several names of a file as such."""
    target.mkdir(parents=True, exist_ok=True)
    if source.exists():
        subprocess.run(["cp", "-a", f"{source}/.", target], check=True)
