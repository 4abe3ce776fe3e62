"""Makes environments of releases by uv, once for all repositories: ``environments`` beside the cache of exports.

An environment is in a folder whose name has a digest of all that it was made of. It is made aside, and renamed when
it is whole; a lock makes two that ask for it at once wait for one. uv's own cache holds the packages: files of
environments on the same disk are links to them, but for those that people edit (`records`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock
from packaging.requirements import Requirement
from packaging.version import Version

from executorch_goldens.settings import releases
from executorch_goldens.settings.releases import Matrix, Release
from executorch_goldens.toolchains import interpreters, locking, records
from executorch_goldens.toolchains.interpreters import Interpreter
from executorch_goldens.toolchains.locking import InstallStep
from executorch_goldens.toolchains.naming import Name, ToolchainError, named
from executorch_goldens.toolchains.records import EditedError, Published

#: Folder of the environments, in the cache directory.
FOLDER = "environments"
#: Hexadecimal digits of the digest in a folder's name.
DIGITS = 12
#: The file with an environment's ingredients.
MADE = "goldens.json"
#: Ends the name of one that is not whole.
PARTIAL = ".partial"
#: Index of CPU builds of torch (https://docs.astral.sh/uv/guides/integration/pytorch/): 200 MB, not 5 GB.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
#: Seconds to wait for it. uv itself finds out only after ten seconds of retries.
CPU_INDEX_TIMEOUT = 3.0

#: Says a line of what takes long.
Says = Callable[[str], None]


@dataclass(frozen=True)
class Layer:
    """Requirements of a repository's zoo, on top of those of a release.

    Attributes
    ----------
    requirements
        Requirements as pip reads them: ``timm==1.0.20``, ``-e .``.
    folder
        The folder that paths in them are relative to.
    locks
        Names of locks that were made over the release: installed with it, with their hashes.
    """

    requirements: tuple[str, ...] = ()
    folder: Path = Path()
    locks: tuple[str, ...] = ()


@functools.cache
def torch_backend() -> tuple[tuple[str, ...] | None, str]:
    """Return arguments that choose a build of torch, None for PyPI's, and one line that says why."""
    if "UV_TORCH_BACKEND" in os.environ:
        return (), f"backend {os.environ['UV_TORCH_BACKEND']!r}, from UV_TORCH_BACKEND"
    try:
        urllib.request.build_opener().open(f"{CPU_INDEX}/torch/", timeout=CPU_INDEX_TIMEOUT).close()
    except (urllib.error.URLError, OSError) as error:
        return None, f"PyPI's build, because {CPU_INDEX} does not answer ({getattr(error, 'reason', error)})"
    return ("--torch-backend", "cpu"), f"CPU build from {CPU_INDEX}"


def say(line: str) -> None:
    """Print a line where it is not mixed with the command's output."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Environments:
    """The environments under a folder.

    Attributes
    ----------
    says
        Gets a line before what takes long.
    """

    folder: Path
    says: Says = say

    def made(self, name: Name, layer: Layer = Layer()) -> Path:
        """Return the folder of the environment that a name asks for, made where there is none.

        Raises
        ------
        EditedError
            Where its files are not as they were published.
        ToolchainError
            Where it cannot be made; nothing is left of it then.
        """
        matrix = releases.load()
        elsewhere, why = torch_backend()

        def place_of(version: str) -> Path:
            return (
                self.folder / f"{name.version}-{_digest(_content(name, layer, matrix, elsewhere, version))}"
            )

        assert name.version is not None
        pythons = interpreters.with_wheels((closest(name.version, matrix).version, *layer.locks))
        python = interpreters.chosen(pythons, lambda version: place_of(version).is_dir())
        place = place_of(python.version)

        def make(aside: Path) -> None:
            self.says(
                f"making the environment of {name.word} with Python {python.version}, in {place} (torch: {why})"
            )
            _Maker(name.word, aside, matrix, python, pythons).make(name, layer, elsewhere)
            self.sign(aside, name.word)

        self.once(place, make)
        self.require(place, records.listed(place), is_of_uv=True)
        return place

    def require(self, place: Path, expected: Mapping[str, Published], *, is_of_uv: bool) -> None:
        """Raise `EditedError` unless an environment has these files; of uv's, its cache may have an edit too."""
        if found := records.edited(place, expected, self._memory(place)):
            remedy = f"goldens env remove {place.name}"
            if is_of_uv:
                remedy += f" && {interpreters.find_uv()} cache clean {' '.join(sorted({*found.values()}))}"
            raise EditedError(name_of(place), found, remedy)

    def _memory(self, place: Path) -> Path:
        return self.folder / f"{place.name}.digests"

    def once(self, place: Path, make: Callable[[Path], None]) -> Path:
        """Return `place`; where it is missing, `make` makes it aside, while others that ask for it wait."""
        if place.is_dir():
            return place
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone(place):
            if place.is_dir():
                return place
            aside = place.with_name(place.name + PARTIAL)
            shutil.rmtree(aside, ignore_errors=True)
            try:
                make(aside)
                aside.rename(place)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        return place

    @contextlib.contextmanager
    def _alone(self, place: Path) -> Iterator[None]:
        lock = filelock.FileLock(place.with_name(f"{place.name}.lock"))
        try:
            held = lock.acquire(timeout=0)
        except filelock.Timeout:
            self.says(f"{place.name} is being made by a different process: waiting for it")
            held = lock.acquire()
        with held:
            yield

    def sign(self, aside: Path, word: str) -> None:
        """Write into an environment by which name it was asked for."""
        (aside / MADE).write_text(json.dumps({"name": word}) + "\n", encoding="utf-8")

    def remove(self, place: Path) -> None:
        """Delete an environment; nobody takes half of one for a whole one."""
        gone = place.with_name(f"{place.name}{PARTIAL}")
        with self._alone(place):
            shutil.rmtree(gone, ignore_errors=True)
            # While this waited, a different process may have deleted it.
            if place.is_dir():
                place.rename(gone)
                shutil.rmtree(gone)
            self._memory(place).unlink(missing_ok=True)

    def there(self) -> dict[str, Path]:
        """Return the environments that there are: the name of each, and its folder."""
        return {file.parent.name: file.parent for file in sorted(self.folder.glob(f"*/{MADE}"))}


def python_of(environment: Path) -> Path:
    """Return the Python of an environment."""
    return environment / "bin" / "python"


def name_of(environment: Path) -> str:
    """Return the name by which an environment was first asked for."""
    try:
        return str(json.loads((environment / MADE).read_text())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return environment.name


def _content(
    name: Name, layer: Layer, matrix: Matrix, elsewhere: Sequence[str] | None, python: str
) -> Mapping[str, object]:
    """Return the ingredients of an environment with one version of Python, as JSON values."""
    release = matrix.releases.get(name.version or "")
    locks: list[str] = []
    if release is not None:
        names = [release.version, *([locking.torch_of(release)] if elsewhere is None else []), *layer.locks]
        # What a lock has for other Pythons is in none of this one.
        texts = (
            interpreters.part_of(locking.path(each).read_text(encoding="utf-8"), python) for each in names
        )
        locks = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    return {
        "python": python,
        "version": name.version,
        # Environments that there are keep their names.
        "wheel": None,
        "locks": locks,
        "torch": None if elsewhere is None else [*elsewhere, os.environ.get("UV_TORCH_BACKEND", "")],
        "requirements": [*name.requirements],
        # A package installed from a folder belongs to that folder.
        "layer": [*layer.requirements, *([str(layer.folder)] if layer.requirements else [])],
    }


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:DIGITS]


def closest(version: str, matrix: Matrix) -> Release:
    """Return the release of the matrix of the same minor version, else the last before it, else the first of all."""
    ordered = sorted(matrix.releases, key=Version)
    minor = Version(version).release[:2]
    before = [known for known in ordered if Version(known).release[:2] <= minor]
    return matrix.releases[(before or ordered[:1])[-1]]


@dataclass(frozen=True)
class _Maker:
    """Makes one environment, in `aside`, for a name, `word`, with one of the Pythons that have wheels."""

    word: str
    aside: Path
    matrix: Matrix
    python: Interpreter
    pythons: Sequence[str]

    def make(self, name: Name, layer: Layer, elsewhere: Sequence[str] | None) -> None:
        # Entry points say where their Python is by a path of their own: the folder is renamed.
        self._venv()
        release = self.matrix.releases.get(name.version or "")
        if release is not None:
            for step in locking.steps(release, layer.locks, elsewhere):
                self._install(step)
        else:
            self._resolve(name, elsewhere)
        for alone in (True, False):
            # Further requirements of executorch belong to the release, or are requested.
            of_it = [each for each in name.requirements if (named(each) == "executorch") == alone]
            if of_it:
                self._install(self._over([*(("--no-deps",) if alone else ()), *of_it], elsewhere))
        if layer.requirements:
            words = (word for each in layer.requirements for word in _words(each))
            self._install(self._over(tuple(words), elsewhere), layer.folder)
        records.separate(self.aside)

    def _venv(self) -> None:
        try:
            self._uv("venv", "--quiet", "--relocatable", "--python", self.python.request, str(self.aside))
        except ToolchainError as error:
            raise ToolchainError(
                f"{self.word!r} has wheels for Python {', '.join(reversed(self.pythons))}; this command runs in "
                f"{interpreters.own()}, and uv finds no {self.python.version} and cannot download it: install one of "
                f"these so that it is on the PATH, by the system's packages or `uv python install "
                f"{self.python.version}` ({error})"
            ) from error

    def _over(self, requirements: Sequence[str], elsewhere: Sequence[str] | None) -> InstallStep:
        of_torch = any(not each.startswith("-") and named_or_none(each) == "torch" for each in requirements)
        return InstallStep((*requirements, *((elsewhere or ()) if of_torch else ())), {})

    def _resolve(self, name: Name, elsewhere: Sequence[str] | None) -> None:
        """Install packages that no lock holds: the environment's own, and those beside the nearest release."""
        wanted = f"executorch=={name.version}"
        self._install(InstallStep(("--no-deps", wanted), locking.building()))
        nearest = closest(name.version or "", self.matrix)
        stated = self._required() | {named(each) for each in name.requirements}
        pins = [f"{each}=={pin}" for each, pin in nearest.pins.items() if each not in stated | {"executorch"}]
        others = [line for line in _locked(nearest) if named(line) not in stated | set(nearest.pins)]
        self._install(InstallStep((wanted, *pins, *others, *(elsewhere or ())), locking.building()))

    def _required(self) -> set[str]:
        """Return the distributions that the installed executorch itself requires."""
        code = "from importlib import metadata; print('\\n'.join(metadata.requires('executorch') or ()))"
        python = python_of(self.aside)
        printed = subprocess.run(
            [python, "-P", "-c", code], capture_output=True, text=True, check=True
        ).stdout
        found = (Requirement(line) for line in printed.splitlines() if line)
        return {each.name for each in found if each.marker is None or each.marker.evaluate({"extra": ""})}

    def _install(self, step: InstallStep, folder: Path | None = None) -> None:
        """Install by uv, with its progress shown in a terminal."""
        python = str(python_of(self.aside))
        shown = () if sys.stderr.isatty() else ("--quiet",)
        self._uv(
            "pip",
            "install",
            *shown,
            "--compile-bytecode",
            "--python",
            python,
            *step.arguments,
            changed=step.environment,
            folder=folder,
        )

    def _uv(
        self, *words: str, changed: Mapping[str, str | None] | None = None, folder: Path | None = None
    ) -> None:
        variables = {**os.environ, **(changed or {})}
        environment = {name: value for name, value in variables.items() if value is not None}
        # Of an environment that this process may run in.
        environment.pop("VIRTUAL_ENV", None)
        try:
            subprocess.run(
                [interpreters.find_uv(), *words],
                check=True,
                env=environment,
                cwd=folder,
                stdout=sys.stderr,
                stderr=None if sys.stderr.isatty() else subprocess.PIPE,
                text=True,
            )
        except subprocess.CalledProcessError as error:
            said = " ".join((error.stderr or "uv says why above").split())
            raise ToolchainError(
                f"no environment of {self.word!r} can be made; uv {words[0]} says: {said}"
            ) from error


def _words(requirement: str) -> list[str]:
    """Return the words of one requirement: ``-e .`` is two."""
    option, space, rest = requirement.partition(" ")
    return [option, rest.strip()] if option.startswith("-") and space else [requirement]


def named_or_none(requirement: str) -> str | None:
    """Return the name of the distribution of a requirement; None for a path."""
    try:
        return named(requirement)
    except ValueError:
        return None


#: Packages that the harness itself needs in an environment, and a release may lack.
OF_HARNESS = (
    "filelock",
    "flatbuffers",
    "jinja2",
    "msgspec",
    "numpy",
    "packaging",
    "pytest",
    "syrupy",
    "tomlkit",
)


def _locked(release: Release) -> Iterator[str]:
    """Yield the requirements of `OF_HARNESS` in the lock of a release."""
    for line in locking.path(release.version).read_text().splitlines():
        requirement = line.partition(" ")[0].rstrip("\\").strip()
        if "==" in requirement and requirement.partition("==")[0] in OF_HARNESS:
            yield requirement
