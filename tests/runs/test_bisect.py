"""``goldens bisect``: the commit that swaps strides, among commits that do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from executorch_goldens.against.bisecting import Found
from executorch_goldens.cli import ERROR, SAME
from executorch_goldens.toolchains.sources import package_in
from tests import REPOSITORY
from tests.runs.test_compare import DILATION, PASS, REFACTORED, SWAPPED
from tests.support.runner import DROPPED

CELL = "tosa-fp/conv2d-depthwise-scaled"
GIT = ("git", "-c", "user.name=somebody", "-c", "user.email=somebody@example.org")


def bisect(*words: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return subprocess.run(
        [sys.executable, "-m", "executorch_goldens", "bisect", *words],
        cwd=REPOSITORY,
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of one pass: as in the release, refactored, wrong, wrong with another note."""
    folder = tmp_path_factory.mktemp("checkout")
    file = folder / PASS
    file.parent.mkdir(parents=True)
    text = (package_in(Path(sys.prefix)) / PASS).read_text()
    subprocess.run([*GIT, "init", "-q", "-b", "main"], cwd=folder, check=True)
    texts = {
        "as released": text,
        "a name for it": text.replace(DILATION, REFACTORED),
        "one order of strides": text.replace(DILATION, SWAPPED),
        "a note": text.replace(DILATION, SWAPPED) + "# A note.\n",
    }
    for subject, each in texts.items():
        file.write_text(each)
        subprocess.run([*GIT, "add", "-A"], cwd=folder, check=True)
        subprocess.run([*GIT, "commit", "-qm", subject], cwd=folder, check=True)
    return folder


@pytest.mark.slow
def test_the_commit_that_made_it_wrong_is_found_and_the_checkout_stays(checkout: Path, release: str) -> None:
    done = bisect(CELL, "--good", "main~3", "--bad", "main", "--checkout", str(checkout), "-t", release)
    assert done.returncode == SAME, done.stdout + done.stderr
    first, commit, _, what, *_ = done.stdout.splitlines()
    assert first.startswith("from main~3 to main: newly wrong: RewriteConvPass (TOSA)")
    assert commit.endswith(" one order of strides")
    assert what.startswith("  newly wrong: RewriteConvPass (TOSA)")
    listed = subprocess.run(
        [*GIT, "worktree", "list"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert len(listed.stdout.splitlines()) == 1
    assert not subprocess.run(
        [*GIT, "status", "--porcelain"], cwd=checkout, capture_output=True, check=True
    ).stdout


@pytest.mark.slow
def test_what_is_the_same_at_both_ends_has_nothing_to_find(checkout: Path, release: str) -> None:
    done = bisect(CELL, "--good", "main~3", "--bad", "main~2", "--checkout", str(checkout), "-t", release)
    assert done.returncode == ERROR
    assert "is the same at main~3 and at main~2: there is nothing to find" in done.stderr


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--good", "1.3.1", "--bad", "1.4.1", "--checkout", "."), ("go with revisions",)),
        (("--good", "nowhere", "--bad", "main", "-t", "newest"), ("'newest' is no toolchain",)),
        (
            ("--good", "main~1", "--bad", "main", "--checkout", "../nowhere"),
            ("--checkout ../nowhere is no folder: name a checkout of ExecuTorch",),
        ),
        (("--good", "main~1", "--bad", "main"), ("is no checkout of ExecuTorch: name one with --checkout",)),
    ],
)
def test_what_cannot_be_gone_through_is_one_error(words: tuple[str, ...], facts: tuple[str, ...]) -> None:
    done = bisect(CELL, *words)
    assert done.returncode == ERROR, done.stdout + done.stderr
    assert all(fact in done.stderr for fact in facts), done.stderr
    assert "Traceback" not in done.stderr


def test_a_commit_is_of_after_where_it_is_as_bad_as_the_bad_one() -> None:
    assert Found("wrong", "").is_as_bad_as("wrong")
    assert Found("wrong", "").is_as_bad_as("memory")
    # Something else that changed before.
    assert not Found("renamed", "").is_as_bad_as("wrong")
    assert not Found("identical", "").is_as_bad_as("better")
