"""What ``goldens compare`` compares in a clone of ExecuTorch: the working tree, with a revision that it came from.

Both are Python sources over one release, whose compiled parts they get. The release is the newest of the minor version
that ``version.txt`` of the base says, for main says which release comes next; else the nearest lower one; and the
nearest of those that carry the base, where that one was measured not to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from executorch_goldens.errors import UsageError
from executorch_goldens.files import git
from executorch_goldens.settings import releases
from executorch_goldens.toolchains import carrying
from executorch_goldens.toolchains.naming import Sources
from executorch_goldens.toolchains.sources import PARTS

#: Where upstream's repository is, as the address of a remote ends.
UPSTREAM = re.compile(r"[/:]pytorch/executorch(\.git)?/?$")
#: The file with the version, and upstream's branch.
VERSION, BRANCH = "version.txt", "main"
NAMED = "name two toolchains, e.g. goldens compare 1.5.1 '1.5.1 + ../executorch'"


@dataclass(frozen=True)
class Taken:
    """What is compared, by name.

    Attributes
    ----------
    base, head
        Names of toolchains.
    why
        How they were chosen, in a line for people; empty where both were named.
    """

    base: str
    head: str
    why: str = ""


def taken(words: Sequence[str], here: Path) -> Taken:
    """Return the toolchains to compare.

    Parameters
    ----------
    words
        Both names; or a revision of the clone, or a release, to compare the working tree with; or none: then the merge
        base with upstream's branch.
    here
        A folder in the clone.

    Raises
    ------
    UsageError
        Where fewer than two are named outside of a clone; for what is no revision, and where nothing says which.
    """
    if len(words) > 2:
        raise UsageError(
            f"{len(words)} toolchains are named, and two are compared: quote a name with spaces in it"
        )
    if len(words) == 2:
        return Taken(words[0], words[1])
    clone = _clone(here)
    matrix = releases.load().releases
    if words and words[0] in matrix:
        (release,) = words
        return Taken(release, f"{release} + {clone}", f"{clone} is compared with ExecuTorch {release}")
    revision, origin = (_commit(clone, words[0]), words[0]) if words else _merge_base(clone)
    said = git.text(clone, "show", f"{revision}:{VERSION}")
    asked = _release(said, tuple(matrix))
    release = carrying.fitting(asked, Sources(clone, revision))
    chosen = (
        f"because {VERSION} says {said}"
        if release == asked
        else f"which carries its Python, and {asked} does not"
    )
    head = f"{release} + {clone}"
    base = f"{head}@{revision[:12]}"
    why = (
        f"{clone} is compared with {revision[:12]}, {origin}, each over ExecuTorch {release}, {chosen}; to "
        f"name others: goldens compare REVISION, or goldens compare '{base}' '{head}'"
    )
    return Taken(base, head, why)


def _clone(here: Path) -> Path:
    """Return the top folder of the clone of ExecuTorch that a folder is in; raise UsageError."""
    top = git.text(here, "rev-parse", "--show-toplevel")
    clone = Path(top)
    if not top or not (clone / VERSION).is_file() or not all((clone / part).is_dir() for part in PARTS):
        raise UsageError(
            f"{here} is in no clone of pytorch/executorch, whose changes could be compared: {NAMED}"
        )
    return clone


def _commit(clone: Path, revision: str) -> str:
    """Return the commit of a revision; raise UsageError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found := git.text(clone, *words):
        return found
    raise UsageError(
        f"{revision} is neither a release ({', '.join(releases.load().releases)}) nor a revision of {clone}: name one, "
        "or get it by git fetch"
    )


def _merge_base(clone: Path) -> tuple[str, str]:
    """Return the commit at which the working tree left upstream's branch, and which one that is in words."""
    remotes = git.text(clone, "remote").split()
    urls = {name: git.text(clone, "remote", "get-url", name) for name in remotes}
    upstream = [name for name, url in urls.items() if UPSTREAM.search(url)]
    branches = [*(f"refs/remotes/{name}/{BRANCH}" for name in [*upstream, *remotes]), f"refs/heads/{BRANCH}"]
    for branch in branches:
        if found := git.text(clone, "merge-base", "HEAD", branch):
            return found, f"its merge base with {branch.split('/', 2)[2]}"
    raise UsageError(
        f"{clone}: HEAD has no commit in common with a branch {BRANCH} of a remote: name what to compare with, e.g. "
        "goldens compare HEAD~1; a shallow clone gets more by git fetch --unshallow"
    )


def _release(said: str, known: Sequence[str]) -> str:
    """Return the release for a version of ``version.txt``; raise UsageError for what is no version.

    >>> _release("1.4.0a0", ("1.3.1", "1.4.1", "1.5.1")), _release("1.7.0", ("1.4.1", "1.5.1"))
    ('1.4.1', '1.5.1')
    """
    try:
        version = Version(said)
    except InvalidVersion as error:
        raise UsageError(
            f"{VERSION} of the base says {said!r}, which is no version: name the release, e.g. goldens compare "
            f"'{known[-1]} + .@REVISION' '{known[-1]} + .'"
        ) from error
    older = [each for each in known if Version(each).release[:2] <= version.release[:2]]
    return max(older or known[:1], key=Version)
