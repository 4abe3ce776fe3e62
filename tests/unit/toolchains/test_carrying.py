"""A checkout of upstream's main beyond what the compiled parts of a release carry is one line that says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.errors import UsageError
from executorch_goldens.settings import config, releases
from executorch_goldens.toolchains import carrying
from executorch_goldens.toolchains.carrying import Carried, Commit, require
from executorch_goldens.toolchains.naming import Sources, ToolchainError
from executorch_goldens.toolchains.toolchain import Toolchain

FIRST, SECOND, *_, LAST = releases.load().releases


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    return subprocess.run(
        ["git", "-C", folder, *own, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def main(tmp_path: Path) -> list[str]:
    """Make six commits, in a repository in `tmp_path`."""
    git(tmp_path, "init", "-q", "-b", "main")
    for number in range(6):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", str(number))
    return git(tmp_path, "rev-list", "--reverse", "main").split()


def in_words(error: Exception, folder: Path, main: list[str]) -> str:
    """Return an error with names of the folder and of its commits."""
    words = str(error).replace(str(folder), "CHECKOUT")
    for place, commit in enumerate(main):
        words = words.replace(commit[:12], f"COMMIT-{place}")
    return words


def up_to(main: list[str], place: int, since: int = 0) -> Carried:
    """Return what was measured where the last commit that is carried is at a place."""
    begins, until, *beyond = (Commit(each, "2026-03-10") for each in (main[since], *main[place : place + 2]))
    return Carried(
        since=begins,
        until=until,
        commits=place,
        cells=100,
        beyond=beyond[0] if beyond else None,
        fails="ImportError: no name 'x'" if beyond else "",
    )


def test_sources_beyond_are_refused_with_what_fails_and_the_nearest_release_that_carries_them(
    tmp_path: Path, main: list[str], snapshot: SnapshotAssertion
) -> None:
    known = {FIRST: up_to(main, 2), LAST: up_to(main, 5)}
    for revision in (None, "main~1"):
        with pytest.raises(ToolchainError) as error:
            require(FIRST, Sources(tmp_path, revision), known)
        assert in_words(error.value, tmp_path, main) == snapshot
    with pytest.raises(ToolchainError, match="build it in an environment of yours"):
        require(FIRST, Sources(tmp_path), {FIRST: up_to(main, 2), LAST: up_to(main, 4)})


def test_the_nearest_release_that_carries_sources_fits_them_where_the_one_asked_for_does_not(
    tmp_path: Path, main: list[str]
) -> None:
    _, second, *_ = releases.load().releases
    asked = Sources(tmp_path)
    known = {FIRST: up_to(main, 5), second: up_to(main, 5), LAST: up_to(main, 2)}
    assert carrying.fitting(LAST, asked, known) == second
    assert carrying.fitting(FIRST, asked, known) == FIRST
    assert carrying.fitting(LAST, asked, {LAST: up_to(main, 2)}) == LAST
    assert carrying.fitting(second, asked, {LAST: up_to(main, 2)}) == second


def test_a_release_without_its_branch_point_carries_main_back_to_a_commit(
    tmp_path: Path, main: list[str], snapshot: SnapshotAssertion
) -> None:
    until, beyond = (Commit(each, "2026-08-20") for each in (main[4], main[3]))
    back = Carried(until=until, commits=2, cells=100, beyond=beyond, fails="ModuleNotFoundError: no '_C'")
    # The second branched off after the sources that are asked for.
    known = {FIRST: up_to(main, 4), SECOND: up_to(main, 4, since=3), LAST: back}
    require(LAST, Sources(tmp_path), known)
    require(LAST, Sources(tmp_path, main[4]), known)
    with pytest.raises(ToolchainError) as error:
        require(LAST, Sources(tmp_path, main[1]), known)
    assert in_words(error.value, tmp_path, main) == snapshot


def test_what_is_carried_was_not_measured_or_has_no_history_of_main_is_taken(
    tmp_path: Path, main: list[str]
) -> None:
    known = {FIRST: up_to(main, 2)}
    require(FIRST, Sources(tmp_path, main[2]), known)
    require(LAST, Sources(tmp_path), known)
    require(FIRST, Sources(tmp_path), {FIRST: up_to(main, 5)})
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "release sources")
    require(FIRST, Sources(other), known)


def test_what_was_measured_is_of_releases_of_the_matrix() -> None:
    for version, each in carrying.load().items():
        assert version in releases.load().releases
        assert bool(each.fails) == (each.beyond is not None)


def test_a_toolchain_asks_before_anything_is_made(
    tmp_path: Path, main: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "load", lambda: {FIRST: up_to(main, 2)})
    # No folder: what makes an environment there fails at once.
    (tmp_path / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UsageError, match=f"{FIRST} carries main up to"):
        Toolchain.from_name(f"{FIRST} + {tmp_path}", config.load())
