"""Finds the change that altered a cell: the commit of a checkout, or the distribution between two releases.

The predicate is ``goldens compare`` over the one cell, which exports what the store does not have: a commit is of after
where it differs from the good one in the way that the bad one does, or in a worse way. Git goes through commits, by
``git bisect run`` in a worktree of its own: the checkout stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from executorch_goldens import releases
from executorch_goldens.against import outcome
from executorch_goldens.against.outcome import KINDS
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.errors import CommandError
from executorch_goldens.toolchains.handing import MAIN
from executorch_goldens.workers.worker import with_harness

#: What ``git bisect run`` takes for a commit that cannot be judged, for one of before, and for one of after
#: (git-bisect(1)).
SKIP, BEFORE, AFTER = 125, 0, 1
#: The script that it runs.
JUDGE = "from executorch_goldens.against.bisecting import judge; judge()"


@dataclass(frozen=True)
class Predicate:
    """The comparison of a cell between two toolchains.

    Attributes
    ----------
    cell
        ``TARGET/CASE``.
    words
        Further words of the command, such as ``--models``.
    folder
        For what is made.
    """

    cell: str
    words: Sequence[str]
    folder: Path

    def command(self, base: str, head: str) -> list[str]:
        """Return the command that compares the cell."""
        named = ["compare", base, head, "--cell", self.cell, "--sweeps", str(self.folder), "--json"]
        return [*with_harness(Path(sys.executable), MAIN), *named, *self.words]

    def found(self, base: str, head: str) -> Found:
        """Return how the cell differs."""
        return Found.of(self.command(base, head))


@dataclass(frozen=True)
class Found:
    """The difference of a cell between two toolchains.

    Attributes
    ----------
    kind
        One of `outcome.KINDS`, or `outcome.SAME`; empty if unknown.
    words
        Kind, cause and figures; or why it is unknown.
    """

    kind: str
    words: str

    @classmethod
    def of(cls, command: Sequence[str], folder: Path | None = None) -> Found:
        """Run a comparison, from a folder."""
        ran = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert ran.stdout is not None
        assert ran.stderr is not None
        # It prints its result at its end, and what it waits for until then.
        errors = [_echoed(line) for line in ran.stderr]
        output = ran.stdout.read()
        if ran.wait() not in (SAME, DIFFERENT):
            last = next((line.strip() for line in reversed(errors) if line.strip()), "")
            return cls("", last.removeprefix("goldens: ") or f"it ended with {ran.returncode}")
        (found,) = json.loads(output)["cells"].values()
        words = (KINDS.get(found["kind"], found["kind"]), found["cause"] or "", found["what"])
        return cls(found["kind"], ": ".join(filter(None, words)))

    @property
    def is_same(self) -> bool:
        return self.kind == outcome.SAME

    def is_as_bad_as(self, kind: str) -> bool:
        """Return whether this is the same kind of difference as `other`, or a worse one."""
        ranks = list(KINDS)
        return not self.is_same and ranks.index(self.kind) <= ranks.index(kind)


def judge() -> NoReturn:
    """Compare a commit with the good one, and end as ``git bisect run`` wants it."""
    command, folder, kind = json.loads(sys.argv[1])
    found = Found.of(command, Path(folder))
    print(found.words, file=sys.stderr)
    sys.exit(SKIP if not found.kind else AFTER if found.is_as_bad_as(kind) else BEFORE)


def _differing(predicate: Predicate, base: str, head: str, good: str, bad: str) -> Found:
    """Return how the cell differs between both ends; raise CommandError where it does not, or that is unknown."""
    found = predicate.found(base, head)
    if found.is_same:
        raise CommandError(f"{predicate.cell} is the same at {good} and at {bad}: there is nothing to find")
    if not found.kind:
        raise CommandError(f"{good} and {bad} cannot be compared: {found.words}")
    return found


# Commits


def of_commits(predicate: Predicate, checkout: Path, over: str, good: str, bad: str) -> Iterator[str]:
    """Yield the result of bisecting the commits of a checkout from `good` to `bad`, laid over a toolchain.

    Raises
    ------
    CommandError
        Where both make the same, or one cannot be compared, and where git finds no first one.
    """
    before = f"{over} + {checkout}@{good}"
    ends = _differing(predicate, before, f"{over} + {checkout}@{bad}", good, bad)
    yield f"from {good} to {bad}: {ends.words}"
    with _worktree(checkout, bad) as tree:
        _echoed(_git(tree, "bisect", "start", bad, good, "--").partition("\n")[0] + "\n")
        asked = [predicate.command(before, f"{over} + {tree}"), str(Path.cwd()), ends.kind]
        judge = [*with_harness(Path(sys.executable), JUDGE), json.dumps(asked)]
        try:
            output = _bisected(tree, judge)
            first = _git(tree, "rev-parse", "--verify", "refs/bisect/bad").strip()
            left = _git(tree, "for-each-ref", "--format=%(refname)", "refs/bisect/skip-*").split()
        finally:
            _git(tree, "bisect", "reset", tolerant=True)
    if "first bad commit" not in output:
        raise CommandError(
            f"git bisect found no first commit, {len(left)} could not be judged: {output.strip()[-300:]}"
        )
    yield _git(checkout, "show", "--no-patch", "--format=%h %s%n  %an, %ad", "--date=short", first).strip()
    at = f"{over} + {checkout}@{first}"
    yield f"  {predicate.found(f'{at}^', at).words}"
    yield from (
        f"  {line}" for line in _git(checkout, "show", "--stat=100", "--format=", first).strip().splitlines()
    )
    if left:
        yield f"  {len(left)} commits could not be judged"


@contextlib.contextmanager
def _worktree(checkout: Path, revision: str) -> Iterator[Path]:
    """Check a revision out beside; nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="goldens-bisect-") as name:
        tree = Path(name) / "checkout"
        _git(checkout, "worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            yield tree
        finally:
            _git(checkout, "worktree", "remove", "--force", str(tree), tolerant=True)


def _echoed(line: str) -> str:
    """Show a line of a command that is waited for, and return it."""
    print(line, end="", file=sys.stderr, flush=True)
    return line


def _bisected(tree: Path, judge: Sequence[str]) -> str:
    """Let git go through the commits; show how many are left, and what the judge says; return git's output."""
    command = ["git", "-C", str(tree), "bisect", "run", *judge]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        return "".join(_echoed(line) if line.startswith("Bisecting: ") else line for line in ran.stdout)


def _git(folder: Path, *words: str, tolerant: bool = False) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=not tolerant
        )
    except FileNotFoundError as error:
        raise CommandError("there is no git on the PATH, which commits are gone through with") from error
    except subprocess.CalledProcessError as error:
        message = " ".join((error.stderr or error.stdout).split())
        raise CommandError(f"git {words[0]} in {folder}: {message[-400:]}") from error
    return done.stdout


# Versions


def of_releases(predicate: Predicate, good: str, bad: str, says: Callable[[str], None]) -> Iterator[str]:
    """Yield which distribution between two releases makes a cell another one.

    Each that differs is tried alone, in the place of the one that the older release has.

    Raises
    ------
    CommandError
        Where both make the same, or cannot be compared.
    """
    matrix = releases.load()
    old, new = (matrix.release(version).stack() for version in (good, bad))
    ends = _differing(predicate, good, bad, good, bad)
    yield f"from {good} to {bad}: {ends.words}"
    moved = {name: (old[name], new[name]) for name in old if old[name] != new[name]}
    blamed: list[str] = []
    untried: list[str] = []
    for name, (was, now) in moved.items():
        word = f"{good} + {name}=={now}"
        says(f"trying {word}")
        found = _place(predicate, word, good, bad)
        if found.startswith(UNTRIED):
            untried.append(name)
        elif found != AS_GOOD:
            blamed.append(name)
        yield f"{name} {was} -> {now} alone: {found}"
    yield _blame(blamed, moved, predicate.cell)
    if untried:
        yield f"not tried alone: {' and '.join(untried)}"


#: Reason for a distribution that cannot be moved.
UNTRIED = "cannot be tried"
#: States of a cell with one distribution moved.
AS_GOOD, AS_BAD, NEITHER = (
    "as before",
    "as on the newer release",
    "neither as before nor as on the newer release",
)


def _place(predicate: Predicate, word: str, good: str, bad: str) -> str:
    """Return the state of a cell with a toolchain: `AS_GOOD`, `AS_BAD`, `NEITHER`, or why it is unknown."""
    found = predicate.found(good, word)
    if not found.kind:
        return f"{UNTRIED}: {found.words}"
    if found.is_same:
        return AS_GOOD
    return AS_BAD if predicate.found(word, bad).is_same else f"{NEITHER} ({found.words})"


def _blame(blamed: Sequence[str], moved: Mapping[str, tuple[str, str]], cell: str) -> str:
    """Return which distribution did it, in a line."""
    if not blamed:
        return f"none of {', '.join(moved)} alone changes {cell}: it takes several of them together"
    named = ", ".join(f"{name} {' -> '.join(moved[name])}" for name in blamed)
    return f"{cell} is moved by {named}"
