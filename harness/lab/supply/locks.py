"""``python -m lab locks``: whether the locks of environments hold all that these need.

A lock is a requirements file of pip's with hashes, for every Python that has wheels of all it holds. `wanted` says
which locks there are, and what of. The checks of `problems` need no network. `main` also lets uv resolve each lock
again, with the versions that it has, so that what it lacks comes to light.
"""

from __future__ import annotations

import argparse
import functools
import json
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
from urllib.parse import unquote

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from executorch_goldens.settings import releases
from executorch_goldens.toolchains import interpreters, locking
from executorch_goldens.toolchains.interpreters import ENTRY
from lab import REPOSITORY
from lab.guests import layer

HEADER = f"# Made by `{locking.UPDATE}`: docs/lab/supply-chain.md.\n"

#: Packages that only PyPI's build of torch needs, on Linux: libraries of CUDA, and the compiler for it.
OF_TORCH = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
#: Extras of pyproject.toml that have an environment of their own.
ALONE = ("cluster", "explore", "docs")

HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}(?=\s)")
#: Machines on which a Python has to have all wheels.
LINUX = ("x86_64", "aarch64")
#: Versions of glibc that wheels name, 2.5 to this.
GLIBC = 39


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
    """One distribution of a lock: its version and its text."""

    name: str
    version: str
    text: str


@dataclass(frozen=True)
class Resolution:
    """What uv found for a lock: its parts, and the Pythons that have wheels of all; none where any has.

    Attributes
    ----------
    parts
        The distributions of each lock of it, by the lock's name.
    """

    parts: dict[str, dict[str, Locked]]
    pythons: tuple[str, ...]


class LockError(ValueError):
    """A lock that is none; the message names the file and the line."""


def wanted() -> dict[str, Wanted]:
    """Return the locks that there should be, by name; those of torch are parts of others."""
    matrix = releases.load()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    lab = tomllib.loads((REPOSITORY / "harness" / "lab" / "pyproject.toml").read_text(encoding="utf-8"))
    own = project["project"]["dependencies"]
    extras = project["project"]["optional-dependencies"]
    groups = project["dependency-groups"] | lab["dependency-groups"]
    default = matrix.release(matrix.default)
    numpy = f"numpy=={default.pins['numpy']}"
    locks = {locking.BUILD: Wanted(tuple(project["build-system"]["requires"]))}
    for release in matrix.releases.values():
        locks[release.version] = Wanted((*release.requirements(), *own), torch=locking.torch_of(release))
        for session, (first, *rest) in locking.COMPILERS.items():
            if version := release.compilers.get(first):
                pins = (f"{name}=={release.compilers[name]}" for name in (first, *rest))
                locks[f"{session}-{version}"] = Wanted((*pins, numpy))
    locks |= {
        "audit": Wanted(tuple(groups["audit"])),
        "tests": Wanted((*groups["tests"], *extras["cluster"]), default),
        "lint": Wanted(tuple(groups["lint"]), default),
        **{
            layer.lock_of(version): Wanted(tuple(groups[layer.lock_of(version)]), matrix.release(version))
            for version in matrix.releases
            if layer.lock_of(version) in groups
        },
        "harness": Wanted(tuple(own)),
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
        if not HASH.search(match[0]):
            raise LockError(f"{name}: {canonical} has no hash")
        found[canonical] = Locked(canonical, version, match[0])
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


def oldest() -> str:
    """Return the oldest Python that this project runs in."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["requires-python"]).removeprefix(">=")


def uv(words: Sequence[str], name: str) -> None:
    """Run uv without the settings of a person, and without a folder of wheels of this machine."""
    program = shutil.which("uv")
    if program is None:
        sys.exit("nox -s lab -- locks needs uv: pip install uv")
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("UV_FIND_LINKS", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_TORCH_BACKEND", "UV_CONSTRAINT")
    }
    command = [
        program,
        "pip",
        "compile",
        "--quiet",
        "--no-config",
        "--universal",
        "--python-version",
        oldest(),
    ]
    done = subprocess.run(
        [*command, "--no-header", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{name}: uv could not resolve it: {done.stderr.strip()}")


def resolved(folder: Path, name: str, lock: Wanted, words: Sequence[str]) -> str:
    """Return uv's resolution of a lock's requirements, preferring the lock's versions."""
    # One version for all Pythons where there is one: they have the same packages.
    command = ["--generate-hashes", "--annotation-style", "line", "--fork-strategy", "fewest"]
    with tempfile.TemporaryDirectory() as scratch:
        into, wish, constraint = (Path(scratch) / each for each in ("lock.txt", "wanted", "over"))
        files = (folder / f"{each}.txt" for each in (name, lock.torch) if each)
        into.write_text("".join(file.read_text(encoding="utf-8") for file in files if file.is_file()))
        wish.write_text("".join(f"{requirement}\n" for requirement in lock.requirements))
        over = with_what_it_is_over(folder, "", Wanted((), lock.over)).values()
        constraint.write_text("".join(f"{each.name}=={each.version}\n" for each in over))
        command += ["--output-file", str(into), "--constraint", str(constraint), *words, str(wish)]
        uv(command, name)
        return into.read_text(encoding="utf-8")


def wheels(text: str, name: str) -> list[dict[str, Any]]:
    """Return the distributions of a lock with the files that the index has of each, in the form of PEP 751."""
    with tempfile.TemporaryDirectory() as scratch:
        held, into = Path(scratch) / "held.txt", Path(scratch) / "pylock.toml"
        held.write_text(text, encoding="utf-8")
        uv(["--no-deps", "--format", "pylock.toml", "--output-file", str(into), str(held)], name)
        packages: list[dict[str, Any]] = tomllib.loads(into.read_text(encoding="utf-8"))["packages"]
        return packages


def pythons(packages: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the Pythons that have wheels of all packages, the oldest first; none where no wheel is for one Python.

    A package that has no wheel for a machine is built there, by any. Raises `LockError` where no Python has them all.
    """
    named = [
        {tag for wheel in each.get("wheels", ()) for tag in parse_wheel_filename(_file_of(wheel))[-1]}
        for each in packages
    ]
    own = {tag.interpreter for tags in named for tag in tags if tag.abi != "abi3"}
    versions = sorted({f"3.{each[3:]}" for each in own if re.fullmatch(r"cp3\d+", each)}, key=Version)

    def has_wheels(python: str, machine: str) -> bool:
        return all(
            not _is_for(each, python, machine)
            or tags & supported(python, machine)
            or not any(tags & supported(other, machine) for other in versions)
            for each, tags in zip(packages, named, strict=True)
        )

    new = (python for python in versions if Version(python) >= Version(oldest()))
    found = tuple(python for python in new if all(has_wheels(python, machine) for machine in LINUX))
    if versions and not found:
        raise LockError(f"no Python from {oldest()} has wheels of all that it holds")
    return found


def _file_of(wheel: dict[str, str]) -> str:
    return wheel.get("name") or unquote(wheel["url"].rpartition("/")[2])


def _is_for(package: dict[str, Any], python: str, machine: str) -> bool:
    at = {"python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine}
    linux = {"sys_platform": "linux", "platform_system": "Linux", "implementation_name": "cpython"}
    return "marker" not in package or Marker(package["marker"]).evaluate({**at, **linux})


@functools.cache
def supported(python: str, machine: str) -> frozenset[Tag]:
    """Return the tags of wheels that a Python takes on Linux."""
    major, minor = map(int, python.split("."))
    names = [f"manylinux_2_{number}" for number in range(5, GLIBC + 1)] + ["manylinux2014", "manylinux2010"]
    platforms = [f"{name}_{machine}" for name in (*names, "manylinux1", "linux")]
    own = cpython_tags((major, minor), [f"cp{major}{minor}"], platforms)
    return frozenset([*own, *compatible_tags((major, minor), f"cp{major}{minor}", platforms)])


def resolution(folder: Path, name: str, lock: Wanted, words: Sequence[str]) -> Resolution:
    """Return uv's resolution of a lock, for the Pythons that have wheels of it."""
    text = resolved(folder, name, lock, words)
    # The files that uv was handed are gone.
    text = re.sub(r"-[rc] /[^,\n]+(, )?", "", text)
    text = re.sub(r"(, )?$|^    # via *\n", "", text, flags=re.MULTILINE)
    try:
        found = pythons(wheels(text, name))
    except LockError as error:
        sys.exit(f"{name}: {error}")
    kept = [set(ENTRY.findall(interpreters.part_of(text, python))) for python in found or (oldest(),)]
    held = entries(
        "".join(entry for entry in ENTRY.findall(text) if any(entry in each for each in kept)), name
    )
    if lock.over is not None:
        for each in with_what_it_is_over(folder, "", Wanted((), lock.over)):
            held.pop(each, None)
    if not lock.torch:
        return Resolution({name: held}, found)
    torch = {each: entry for each, entry in held.items() if OF_TORCH.fullmatch(each)}
    rest = {each: entry for each, entry in held.items() if each not in torch}
    return Resolution({lock.torch: torch, name: rest}, found)


def update(folder: Path, words: Sequence[str]) -> None:
    """Write every lock, and delete unused ones."""
    folder.mkdir(parents=True, exist_ok=True)
    written, lines = set(), [HEADER.rstrip()]
    for name, lock in wanted().items():
        found = resolution(folder, name, lock, words)
        for part, held in found.parts.items():
            text = HEADER + "".join(entry.text for entry in held.values())
            (folder / f"{part}.txt").write_text(text, encoding="utf-8")
            written.add(part)
            print(f"{part}: {len(held)} distributions", flush=True)
        lines += [stated(name, found.pythons)] * bool(found.pythons)
    (folder / interpreters.FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for file in folder.glob("*.txt"):
        if file.stem not in written:
            file.unlink()


def stated(name: str, found: Sequence[str]) -> str:
    """Return the line of `interpreters.FILE` about a lock.

    >>> stated("1.1.0", ["3.11", "3.12"])
    '"1.1.0" = ["3.11", "3.12"]'
    """
    return f"{json.dumps(name)} = {json.dumps(list(found))}"


def incomplete(folder: Path) -> Iterator[str]:
    """Yield packages that a lock lacks, or does not need, and Pythons that it is for, by uv and the index."""
    known = (folder / interpreters.FILE).read_text(encoding="utf-8").splitlines()
    for name, lock in wanted().items():
        found = resolution(folder, name, lock, ())
        if found.pythons and stated(name, found.pythons) not in known:
            yield f"{interpreters.FILE} lacks {stated(name, found.pythons)}"
        for part, held in found.parts.items():
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
