"""What is compared in a clone of ExecuTorch that nobody named two toolchains in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.errors import UsageError
from executorch_goldens.toolchains import carrying
from executorch_goldens.toolchains.carrying import Carried, Commit
from executorch_goldens_plugins.compare.clone import Taken, taken
from tests.support.screens import screen

IDENTITY = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")

Git = Callable[..., str]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a commit of upstream's main, another on a branch of somebody's own, and an edit."""
    folder = tmp_path / "executorch"
    for name in ("exir/a.py", "backends/b.py"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("a = 1\n")
    (folder / "version.txt").write_text("1.5.0a0\n")
    git = running(folder)
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "upstream's")
    git("remote", "add", "fork", "git@github.com:somebody/executorch.git")
    git("remote", "add", "source", "https://github.com/pytorch/executorch.git")
    git("update-ref", "refs/remotes/source/main", "HEAD")
    git("checkout", "-qb", "mine")
    (folder / "exir" / "a.py").write_text("a = 2\n")
    git("commit", "-qam", "mine")
    # What the fork's main has counts only where upstream's is not there.
    git("update-ref", "refs/remotes/fork/main", "HEAD")
    (folder / "exir" / "a.py").write_text("a = 3\n")
    return folder


def running(folder: Path) -> Git:
    def git(*words: str) -> str:
        command = ["git", *IDENTITY, "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    return git


def test_without_a_name_the_working_tree_is_compared_with_where_it_left_upstreams_main(
    clone: Path, snapshot: SnapshotAssertion
) -> None:
    commit = running(clone)("rev-parse", "--short=12", "source/main")
    found = taken([], clone / "exir")
    assert (found.base, found.head) == (f"1.5.1 + {clone}@{commit}", f"1.5.1 + {clone}")
    assert screen(found.why, {clone: "CLONE", commit: "COMMIT"}) == snapshot


def test_a_remote_that_is_not_upstreams_serves_where_that_is_not_there(clone: Path) -> None:
    git = running(clone)
    git("remote", "remove", "source")
    assert taken([], clone).base.endswith(f"@{git('rev-parse', '--short=12', 'HEAD')}")
    git("remote", "remove", "fork")
    assert taken([], clone).base.endswith(f"@{git('rev-parse', '--short=12', 'main')}")


def test_one_name_is_a_release_or_a_revision(clone: Path) -> None:
    git = running(clone)
    # As upstream's tags are called, which name a release before its last commits.
    git("tag", "1.4.1", "HEAD")
    assert taken(["1.4.1"], clone).base == "1.4.1"
    assert taken(["HEAD"], clone).base == f"1.5.1 + {clone}@{git('rev-parse', '--short=12', 'HEAD')}"
    assert taken(["1.5.1", "1.5.1 + here"], clone.parent) == Taken("1.5.1", "1.5.1 + here")


@pytest.mark.parametrize(
    ("said", "release"),
    [("1.5.0a0", "1.5.1"), ("1.5.7", "1.5.1"), ("2.0.0", "1.5.1"), ("1.2.0", "1.2.0"), ("0.4.0", "1.1.0")],
)
def test_the_release_is_of_the_version_that_the_base_says(clone: Path, said: str, release: str) -> None:
    (clone / "version.txt").write_text(f"{said}\n")
    running(clone)("commit", "-qam", "another version")
    assert taken(["HEAD"], clone).head == f"{release} + {clone}"


def test_a_release_that_carries_the_base_is_taken_where_the_one_of_its_version_does_not(
    clone: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    first, second = (Commit(running(clone)("rev-parse", each), "2026-08-20") for each in ("main", "mine"))
    until = Carried(since=first, until=first, commits=0, cells=1, beyond=second, fails="ImportError")
    measured = {"1.4.1": Carried(since=first, until=second, commits=1, cells=1), "1.5.1": until}
    monkeypatch.setattr(carrying, "load", lambda: measured)
    found = taken(["HEAD"], clone)
    assert (found.base, found.head) == (f"1.4.1 + {clone}@{second.commit[:12]}", f"1.4.1 + {clone}")
    assert screen(found.why, {clone: "CLONE", second.commit[:12]: "COMMIT"}) == snapshot
    assert taken(["main"], clone).head == f"1.5.1 + {clone}"


def test_what_cannot_be_compared_is_one_error_with_the_way_out(
    clone: Path, snapshot: SnapshotAssertion
) -> None:
    git = running(clone)
    said = [refusal(["nowhere"], clone), refusal(["--all"], clone), refusal(["a", "b", "c"], clone)]
    said += [refusal(words, clone.parent) for words in ([], ["HEAD"], ["1.5.1"])]
    git("checkout", "-q", "--orphan", "other")
    git("commit", "-qam", "of nothing")
    git("branch", "-D", "main")
    said.append(refusal([], clone))
    (clone / "version.txt").write_text("newest\n")
    git("commit", "-qam", "no version")
    said.append(refusal(["HEAD"], clone))
    (clone / "exir").rename(clone / "other")
    said.append(refusal(["HEAD"], clone))
    assert screen(said, {clone: "CLONE", clone.parent: "FOLDER"}) == snapshot


def refusal(words: list[str], here: Path) -> str:
    with pytest.raises(UsageError) as raised:
        taken(words, here)
    return str(raised.value)
