"""``python -m lab locks``: whether the locks of environments hold all that these need.

A lock is a requirements file of pip's with hashes. `wanted` says which there are, and what of. The checks of
`problems` need no network. `main` also lets uv resolve each lock again, with the versions that it has, so that what it
lacks comes to light.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker, default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from executorch_goldens import releases
from executorch_goldens.toolchains import locking
from lab import REPOSITORY
from lab.guests import layer

HEADER = f"# Made by `{locking.UPDATE}`: docs/lab/supply-chain.md.\n"

#: Packages that only PyPI's build of torch needs, on Linux: libraries of CUDA, and the compiler for it.
OF_TORCH = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
#: Extras of pyproject.toml that have an environment of their own.
ALONE = ("cluster", "review", "report", "explore", "docs")

#: One distribution of a lock: its line, and those below it that are indented.
ENTRY = re.compile(r"^\S.*\n(?:[ \t]+.*\n)*", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}(?=\s)")
#: Platforms of environments: packages for none of these are left out.
MACHINES = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))


@dataclass(frozen=True)
class Wanted:
    """The sources of a lock.

    Attributes
    ----------
    requirements
        The requirements.
    over
        The release beside which it is installed: what that has is not in this lock.
    torch
        Name of the lock that has torch and what only it needs, empty where it is not apart.
    """

    requirements: tuple[str, ...]
    over: releases.Release | None = None
    torch: str = ""


@dataclass(frozen=True)
class Locked:
    """One distribution of a lock: its version, how many hashes it has, and its text."""

    name: str
    version: str
    hashes: int
    text: str


class LockError(ValueError):
    """A lock that is none; the message names the file and the line."""


def wanted() -> dict[str, Wanted]:
    """Return the locks that there should be, by name; those of torch are parts of others."""
    matrix = releases.load()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    own, extras = project["project"]["dependencies"], project["project"]["optional-dependencies"]
    groups = project["dependency-groups"]
    default = matrix.release(matrix.default)
    numpy = f"numpy=={default.pins['numpy']}"
    beside = [each for name in ("cluster", "review", "report", "branches") for each in extras[name]]
    locks = {locking.BUILD: Wanted(tuple(project["build-system"]["requires"]))}
    for release in matrix.releases.values():
        locks[release.version] = Wanted((*release.requirements(), *own), torch=locking.torch_of(release))
        for session, (first, *rest) in locking.COMPILERS.items():
            if version := release.compilers.get(first):
                pins = (f"{name}=={release.compilers[name]}" for name in (first, *rest))
                locks[f"{session}-{version}"] = Wanted((*pins, numpy))
    locks |= {
        "audit": Wanted(tuple(groups["audit"])),
        "tests": Wanted((*groups["tests"], *beside), default),
        "lint": Wanted(tuple(groups["lint"]), default),
        "branches": Wanted(tuple(extras["branches"]), default),
        **{
            layer.lock_of(version): Wanted(tuple(groups[layer.lock_of(version)]), matrix.release(version))
            for version in matrix.releases
            if layer.lock_of(version) in groups
        },
        "nox": Wanted((*own, *extras["nox"])),
    }
    return locks | {name: Wanted((*own, *extras[name])) for name in ALONE}


# Reading


def entries(text: str, name: str) -> dict[str, Locked]:
    """Return the packages of a lock, by canonical name; raise `LockError` for a forbidden entry."""
    found: dict[str, Locked] = {}
    for match in ENTRY.finditer(text):
        line = match[0].partition("\n")[0].removesuffix("\\").strip()
        if line.startswith("#"):
            continue
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            raise LockError(f"{name}: {line!r} is not a pinned distribution") from error
        pins = [each for each in requirement.specifier if each.operator == "=="]
        if requirement.url or len(pins) != 1 or len(requirement.specifier) != 1:
            raise LockError(f"{name}: {line!r} is not a pinned distribution")
        version = pins[0].version
        if "*" in version or Version(version).local:
            raise LockError(f"{name}: {line!r} does not pin a public version")
        canonical = canonicalize_name(requirement.name)
        if canonical in found:
            raise LockError(f"{name}: {canonical} occurs twice")
        hashes = len(HASH.findall(match[0]))
        if not hashes:
            raise LockError(f"{name}: {canonical} has no hash")
        found[canonical] = Locked(canonical, version, hashes, match[0])
    return found


def read(folder: Path, name: str) -> dict[str, Locked]:
    """Return the packages of the lock of a name, empty where there is no file; raise `LockError`."""
    file = folder / f"{name}.txt"
    return entries(file.read_text(encoding="utf-8"), file.name) if file.is_file() else {}


def with_what_it_is_over(folder: Path, name: str, lock: Wanted) -> dict[str, Locked]:
    """Return all that the environment of a lock holds."""
    held = read(folder, name) | (read(folder, lock.torch) if lock.torch else {})
    if lock.over is not None:
        held |= read(folder, lock.over.version) | read(folder, locking.torch_of(lock.over))
    return held


def problems(folder: Path = locking.FOLDER) -> Iterator[str]:
    """Yield the defects of the locks: a line each, with the lock and what it lacks."""
    locks = wanted()
    names = {*locks, *(lock.torch for lock in locks.values() if lock.torch)}
    present = {file.stem for file in folder.glob("*.txt")}
    yield from (f"{name}.txt is missing" for name in sorted(names - present))
    yield from (f"{name}.txt belongs to no release and no session" for name in sorted(present - names))
    for name, lock in locks.items():
        if name not in present:
            continue
        try:
            held = with_what_it_is_over(folder, name, lock)
        except LockError as error:
            yield str(error)
            continue
        for requirement in map(Requirement, lock.requirements):
            entry = held.get(canonicalize_name(requirement.name))
            if entry is None:
                yield f"{name}.txt has no {requirement.name}, and {requirement} is wanted"
            elif not requirement.specifier.contains(entry.version, prereleases=True):
                yield f"{name}.txt has {entry.name} {entry.version}, and {requirement} is wanted"


# Making


def applies(entry: str) -> bool:
    """Return whether a distribution is installed on any of `MACHINES` with the Python of the matrix."""
    _, separator, marker = entry.partition("\n")[0].removesuffix("\\").partition(" ; ")
    if not separator:
        return True
    python = releases.load().python
    environment: dict[str, Any] = {**default_environment()}
    at = {"python_version": python, "python_full_version": f"{python}.0", "implementation_name": "cpython"}
    systems = {"linux": "Linux", "darwin": "Darwin"}
    return any(
        Marker(marker).evaluate(
            {
                **environment,
                **at,
                "sys_platform": system,
                "platform_system": systems[system],
                "platform_machine": machine,
            }
        )
        for system, machine in MACHINES
    )


def resolved(folder: Path, name: str, lock: Wanted, words: Sequence[str]) -> str:
    """Return uv's resolution of a lock's requirements, preferring the lock's versions."""
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("nox -s lab -- locks needs uv: pip install uv")
    python = releases.load().python
    # Nothing of this machine must get into a lock: no settings of a person, no folder of wheels.
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("UV_FIND_LINKS", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_TORCH_BACKEND", "UV_CONSTRAINT")
    }
    command = [uv, "pip", "compile", "--quiet", "--no-config", "--universal", "--python-version", python]
    command += ["--generate-hashes", "--no-header", "--annotation-style", "line"]
    with tempfile.TemporaryDirectory() as scratch:
        into, wish, constraint = (Path(scratch) / each for each in ("lock.txt", "wanted", "over"))
        files = (folder / f"{each}.txt" for each in (name, lock.torch) if each)
        into.write_text("".join(file.read_text(encoding="utf-8") for file in files if file.is_file()))
        wish.write_text("".join(f"{requirement}\n" for requirement in lock.requirements))
        over = with_what_it_is_over(folder, "", Wanted((), lock.over)).values()
        constraint.write_text("".join(f"{each.name}=={each.version}\n" for each in over))
        command += ["--output-file", str(into), "--constraint", str(constraint), *words, str(wish)]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            sys.exit(f"{name}: uv could not resolve it: {done.stderr.strip()}")
        return into.read_text(encoding="utf-8")


def parts(
    folder: Path, name: str, lock: Wanted, words: Sequence[str]
) -> Iterator[tuple[str, dict[str, Locked]]]:
    """Yield the locks of one resolution, with the packages of each."""
    text = "".join(entry for entry in ENTRY.findall(resolved(folder, name, lock, words)) if applies(entry))
    # The files that uv was handed are gone.
    text = re.sub(r"-[rc] /[^,\n]+(, )?", "", text)
    text = re.sub(r"(, )?$|^    # via *\n", "", text, flags=re.MULTILINE)
    held = entries(text, name)
    if lock.over is not None:
        for each in with_what_it_is_over(folder, "", Wanted((), lock.over)):
            held.pop(each, None)
    if lock.torch:
        yield lock.torch, {each: entry for each, entry in held.items() if OF_TORCH.fullmatch(each)}
        held = {each: entry for each, entry in held.items() if not OF_TORCH.fullmatch(each)}
    yield name, held


def update(folder: Path, words: Sequence[str]) -> None:
    """Write every lock, and delete unused ones."""
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for name, lock in wanted().items():
        for part, held in parts(folder, name, lock, words):
            text = HEADER + "".join(entry.text for entry in held.values())
            (folder / f"{part}.txt").write_text(text, encoding="utf-8")
            written.add(part)
            print(f"{part}: {len(held)} distributions", flush=True)
    for file in folder.glob("*.txt"):
        if file.stem not in written:
            file.unlink()


def incomplete(folder: Path) -> Iterator[str]:
    """Yield packages that a lock lacks, or does not need, by uv."""
    for name, lock in wanted().items():
        for part, held in parts(folder, name, lock, ()):
            now, has = (
                {each.name: each.version for each in locks.values()} for locks in (held, read(folder, part))
            )
            yield from (
                f"{part}.txt has {each} {has.get(each, 'not at all')}, and needs {now.get(each, 'none')}"
                for each in sorted(now.keys() | has.keys())
                if now.get(each) != has.get(each)
            )


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "locks",
        description="Check that locks hold all that environments need, or write them.",
    )
    parser.add_argument(
        "--update", action="store_true", help="write them; versions that still fit are kept, but for"
    )
    parser.add_argument("--upgrade", action="store_true", help="everything, or")
    parser.add_argument(
        "--upgrade-package", action="append", default=[], metavar="NAME", help="this one; repeatable"
    )
    parser.add_argument("--exclude-newer", metavar="DATE", help="take nothing that came later to the index")
    parser.set_defaults(run=run, refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    """Check the locks, or write them; return 1 where one does not hold."""
    words = ["--upgrade"] * options.upgrade
    words += [word for name in options.upgrade_package for word in ("--upgrade-package", name)]
    words += ["--exclude-newer", options.exclude_newer] if options.exclude_newer else []
    if words and not options.update:
        options.refuse(f"{words[0]}: only with --update")
    folder = locking.FOLDER
    if options.update:
        update(folder, words)
    found = list(problems(folder)) or ([] if options.update else list(incomplete(folder)))
    print(
        "\n".join(
            [f"harness/executorch_goldens/locks/{problem}" for problem in found]
            or ["the locks hold all that is needed"]
        )
    )
    if found:
        print(f"to mend that: {locking.UPDATE}")
    return int(bool(found))
