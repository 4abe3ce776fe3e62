"""Lays the Python sources of a checkout of ExecuTorch over those of an environment.

What most pull requests to a lowering pass change is Python. The compiled parts stay those of the release, so that
nothing is built. The environment with other sources is one of its own: the files that do not differ are links to those
of the environment below it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from executorch_goldens.files import git
from executorch_goldens.files.wording import count
from executorch_goldens.toolchains.environments import DIGITS, MADE, Environments, name_of
from executorch_goldens.toolchains.naming import Sources, ToolchainError
from executorch_goldens.toolchains.records import RECORD, Published, listed

#: Folders of the package; a checkout has at least one.
PARTS = ("exir", "backends")
#: Environments over one other that are kept.
KEPT = 16
#: Modes of files in git that are no links.
REGULAR = ("100644", "100755")
#: In a checkout that is laid out as an installed package.
PACKAGE = "executorch"


def package_in(environment: Path) -> Path:
    """Return where the package executorch is in an environment; raise `ToolchainError`."""
    for found in sorted(environment.glob(f"lib/python*/site-packages/{PACKAGE}")):
        return found
    raise ToolchainError(f"{environment} has no package {PACKAGE} in it")


def laid_over(environments: Environments, below: Path, sources: Sources) -> Path:
    """Return an environment like `below`, with other Python sources; `below` itself where none differs.

    Raises
    ------
    EditedError
        Where a file is neither the checkout's nor as it was published.
    ToolchainError
        Where the checkout has no such sources, or not the revision.
    """
    package = package_in(below)
    changed = _differing(package, sources)
    if not changed:
        return below
    digest = hashlib.sha256()
    for name, content in sorted(changed.items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    place = environments.folder / f"{below.name}-{digest.hexdigest()[:DIGITS]}"

    def make(aside: Path) -> None:
        environments.says(f"laying {count(len(changed), 'file')} of {described(sources)} over {below.name}")
        shutil.copytree(below, aside, symlinks=True, copy_function=_linked)
        # A link to the file of the environment below.
        (aside / MADE).unlink(missing_ok=True)
        environments.sign(aside, f"{name_of(below)} + {described(sources)}")
        for name, content in changed.items():
            _put(aside / package.relative_to(below) / name, content)

    made = environments.once(place, make)
    expected = listed(made)
    for name, content in changed.items():
        file = (package.relative_to(below) / name).as_posix()
        expected[file] = Published(PACKAGE, hashlib.sha256(content).hexdigest())
    environments.require(made, expected, is_of_uv=False)
    os.utime(made)
    _forget(environments, below)
    return made


def _linked(source: str, target: str) -> None:
    """Let a file have a second name; a package's list of its files is copied, which installers write to."""
    if Path(source).name == RECORD:
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def _forget(environments: Environments, below: Path) -> None:
    """Delete the environments laid over another that were asked for longest ago; a bisection makes many."""
    above = [path for path in environments.there().values() if path.name.startswith(f"{below.name}-")]
    above.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for place in above[KEPT:]:
        environments.remove(place)


def _put(path: Path, content: bytes) -> None:
    """Write a file in the place of a link to another environment's, and leave no byte-code of that one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _differing(package: Path, sources: Sources) -> dict[str, bytes]:
    """Return the files that replace one of the package, or are further Python in a part that it has."""
    wanted: dict[str, str | Path] = {}
    for name, held in _held(sources).items():
        installed = package / name
        if installed.is_file():
            if not _is_same(held, installed.read_bytes()):
                wanted[name] = held
        elif name.endswith(".py") and (package / PurePosixPath(name).parts[0]).is_dir():
            wanted[name] = held
    of_git = [held for held in wanted.values() if isinstance(held, str)]
    blobs = git.blobs(sources.checkout, of_git)
    if missing := [name for name, held in wanted.items() if isinstance(held, str) and held not in blobs]:
        raise ToolchainError(
            f"{sources.checkout}@{sources.revision}: git cannot read {missing[0]}: a clone that lacks files gets them "
            "by git fetch --refetch"
        )
    return {
        name: held.read_bytes() if isinstance(held, Path) else blobs[held] for name, held in wanted.items()
    }


def _is_same(held: str | Path, content: bytes) -> bool:
    """Return whether a file of a checkout has this content; of a blob, git's name says so."""
    return (
        held.read_bytes() == content if isinstance(held, Path) else held == git.blob_name(content, len(held))
    )


def _held(sources: Sources) -> dict[str, str | Path]:
    """Return the files of a checkout by their places in the package: of a revision, the names of their blobs.

    Raises
    ------
    ToolchainError
        Where the checkout has no such sources, or not the revision.
    """
    files = dict(_of_folder(sources.checkout) if sources.revision is None else _of_revision(sources))
    nested = {
        name.removeprefix(f"{PACKAGE}/"): held
        for name, held in files.items()
        if name.startswith(f"{PACKAGE}/")
    }
    for found in (files, nested):
        if {PurePosixPath(name).parts[0] for name in found}.intersection(PARTS):
            return found
    raise ToolchainError(
        f"{sources.checkout} has no Python sources of ExecuTorch: neither {' nor '.join(PARTS)} is a folder in it, "
        f"or in {PACKAGE} in it"
    )


def _of_folder(folder: Path) -> Iterator[tuple[str, str | Path]]:
    names = git.names(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if not names:
        # Not under git, or in a folder that a repository around it ignores.
        names = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    for name in names:
        path = folder / name
        # Upstream's checkout has links to its own folders, in src.
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            yield name, path


def _of_revision(sources: Sources) -> Iterator[tuple[str, str | Path]]:
    listed = git.names(
        sources.checkout, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", str(sources.revision)
    )
    if not listed and shutil.which("git") is None:
        raise ToolchainError(
            f"{sources.checkout}@{sources.revision}: git, which reads a revision, is not on the PATH"
        )
    if not listed:
        raise ToolchainError(
            f"{sources.checkout} has no revision {sources.revision}: name a commit, a branch or a tag; a shallow clone "
            "gets more by git fetch --unshallow"
        )
    for entry in listed:
        about, name = entry.split("\t", 1)
        mode, _, blob = about.split()
        if mode in REGULAR:
            yield name, blob


def described(sources: Sources) -> str:
    """Return a checkout in words: its folder, the commit, and whether anything in it is not committed."""
    asked = sources.revision or "HEAD"
    found = git.text(sources.checkout, "rev-parse", "--short=12", "--end-of-options", f"{asked}^{{commit}}")
    if not found:
        return str(sources.checkout)
    dirty = sources.revision is None and bool(git.output(sources.checkout, "status", "--porcelain"))
    return f"{sources.checkout} at {found}{' with uncommitted changes' if dirty else ''}"
