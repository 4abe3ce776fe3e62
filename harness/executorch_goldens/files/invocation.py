"""How a run was started: in CI or not, and its command line, which messages print for one cell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from executorch_goldens.errors import UsageError

#: Option that accepts a golden.
UPDATE = "--snapshot-update"
#: Option of a review that lets a golden name fewer variations than it does.
FEWER = "--fewer-variations"

#: Options that say which cells run, and how many words follow each. A command for one cell replaces them.
SELECTING = {
    "--cell": 1,
    "--tier": 1,
    "--shard": 1,
    "-k": 1,
    "-m": 1,
    "--deselect": 1,
    "--lf": 0,
    "--last-failed": 0,
}
#: Options that say what is written, and how many words follow each. A command that accepts or prunes names its own.
WRITING = {
    **dict.fromkeys((UPDATE, "--snapshot-update-new-only"), 0),
    **dict.fromkeys(("--collect-only", "--co"), 0),
}

#: Values of an environment variable that mean no, in any case.
NO = ("", "0", "false", "no", "off", "n", "f")


def in_ci() -> bool:
    """Return whether this process runs in a CI service: the variable ``CI`` is set and not false."""
    return os.environ.get("CI", "").strip().lower() not in NO


def require_a_person(updating: bool, asked: str = UPDATE) -> None:
    """Raise UsageError where goldens would be written and nobody is there to accept them."""
    if updating and in_ci():
        raise UsageError(
            f"{asked} is refused because CI is set: goldens are accepted by a person, in a checkout. "
            "Run it there and commit the result."
        )


def again(called: Sequence[str], *further: str, replaced: str = "") -> str:
    """Return `called` without options that select cells or write goldens, with `further` words, quoted for a shell.

    The option `replaced`, which takes one word, is left out too: `further` has it.

    >>> again(["pytest", "--jobs", "2", "--cell=a/*", "-k", "x", "--snapshot-update"], "--cell", "a/b")
    'pytest --jobs 2 --cell a/b'
    >>> again(["goldens", "run", "-m", "slow"], "--cell", "a/b")
    'goldens run --cell a/b'
    >>> again(["goldens", "run", "--variations", "quick"], "--variations", "full", replaced="--variations")
    'goldens run --variations full'
    """
    return shlex.join([*_kept(called, {replaced: 1} if replaced else {}), *further])


def _kept(called: Sequence[str], replaced: Mapping[str, int]) -> Iterator[str]:
    dropped = {**SELECTING, **WRITING, **replaced}
    # Python's own -m says what runs; pytest's, further right, selects.
    program = 3 if "-m" in called[1:2] and PurePath(called[0]).name.startswith("python") else 1
    yield from called[:program]
    words = iter(called[program:])
    for word in words:
        name, _, value = word.partition("=")
        if name in dropped:
            for _ in range(0 if value else dropped[name]):
                next(words, None)
        elif word.startswith("-"):
            yield word
        else:
            # The path of a test, or of its file, in which --cell chooses.
            yield word.partition("::")[0]
