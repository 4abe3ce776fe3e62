"""Up to which commit of upstream's main the compiled parts of a release carry its Python: ``settings/carried.toml``.

``nox -s lab -- carried`` measures it. Sources beyond are refused before an environment is made of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import msgspec

from executorch_goldens.files import git, untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.settings import releases
from executorch_goldens.settings.tables import as_declared
from executorch_goldens.toolchains.naming import Sources, ToolchainError
from executorch_goldens.toolchains.sources import described

FILE = releases.MATRIX.with_name("carried.toml")


class Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A commit of main, with the day that it was committed on."""

    commit: str
    date: str

    def __str__(self) -> str:
        return f"{self.commit[:12]} ({self.date})"


class Carried(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The commits of main that a release carries, on from its branch point; or back, where that was not at hand.

    Attributes
    ----------
    since
        The commit that the release branched off; None where main at hand ends before that.
    until
        The last commit that is carried, on or back.
    commits
        Number of commits of main, first parents only, that were passed.
    cells
        Number of the core's cells that lower at the branch point, or as published.
    beyond
        The first commit that is not carried; None where all that is at hand is.
    fails
        What fails there most, in one line.
    """

    since: Commit | None = None
    until: Commit
    commits: int
    cells: int
    beyond: Commit | None = None
    fails: str = ""

    def is_beyond(self, sources: Sources) -> bool:
        """Return whether sources are not carried, as far as git has their history."""
        if self.beyond is None:
            return False
        # On from the branch point, the first that is not carried is in their history; back, the last that is, is not.
        mark = (self.beyond if self.since else self.until).commit
        shared = git.text(sources.checkout, "merge-base", mark, _revision(sources))
        return bool(shared) and (shared == mark) == (self.since is not None)

    def carries(self, sources: Sources) -> bool:
        """Return whether sources are between the two ends, as far as git has their history."""
        first = (self.since or self.until).commit
        return (
            not self.is_beyond(sources)
            and git.text(sources.checkout, "merge-base", first, _revision(sources)) == first
        )

    def way(self, sources: Sources) -> str:
        """Return in words how far sources are from the last commit that is carried."""
        ends = self.until.commit, _revision(sources)
        span, when = ("..".join(ends), "later") if self.since else ("..".join(ends[::-1]), "earlier")
        commits = git.text(sources.checkout, "rev-list", "--count", "--first-parent", span)
        return f"{count(int(commits), 'commit')} {when}"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    releases: dict[str, Carried]


@functools.cache
def load(path: Path = FILE) -> Mapping[str, Carried]:
    """Return what was measured, by release."""
    return as_declared(untrusted.toml(path), _File).releases


def fitting(version: str, sources: Sources, known: Mapping[str, Carried] | None = None) -> str:
    """Return a release, or where it was measured not to carry sources the nearest that does; itself without one."""
    known = load() if known is None else known
    if version not in known or not known[version].is_beyond(sources):
        return version
    # The last that branched off before is the nearest.
    fits = [each for each in releases.load().releases if each in known and known[each].carries(sources)]
    return fits[-1] if fits else version


def require(version: str, sources: Sources, known: Mapping[str, Carried] | None = None) -> None:
    """Raise ToolchainError for sources that a release was measured not to carry."""
    known = load() if known is None else known
    here = known.get(version)
    if here is None or not here.is_beyond(sources):
        return
    other = fitting(version, sources, known)
    remedy = f"take release {other}"
    if other == version:
        remedy = "build it in an environment of yours, and name its Python"
    raise ToolchainError(
        f"{version} carries main {'up' if here.since else 'back'} to {here.until}; {described(sources)} is "
        f"{here.way(sources)}: what fails first is {here.fails}; {remedy}"
    )


def _revision(sources: Sources) -> str:
    return sources.revision or "HEAD"
