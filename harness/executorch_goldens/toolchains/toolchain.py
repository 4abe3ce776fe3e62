"""A toolchain: a thing that exports, had by its name."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from executorch_goldens import patches
from executorch_goldens.patches.guard import resolve
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.config import Config
from executorch_goldens.settings.exports import (
    EXPORT_TIMEOUT,
    Settings,
    default_interpreter,
    in_checkout,
    worker_environment,
)
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.store import default_root
from executorch_goldens.toolchains import carrying, sources
from executorch_goldens.toolchains.environments import (
    FOLDER,
    Environments,
    Layer,
    closest,
    python_of,
    say,
)
from executorch_goldens.toolchains.installed import Installed, find_release
from executorch_goldens.toolchains.naming import Name, Sources, ToolchainError

#: Code that an environment runs to report its patches and shortcuts.
FITTING = "from executorch_goldens.patches import fitting; fitting.main()"


@dataclass(frozen=True)
class Toolchain:
    """An exporting environment, with its description.

    Attributes
    ----------
    name
        The name as it was asked for.
    python
        Its interpreter.
    site_packages
        Where its packages are.
    release
        The release, as the matrix has it; for one that the matrix lacks, as it would have it.
    source
        The checkout that its ExecuTorch comes from, with the commit; empty for a wheel's.
    is_declared
        Whether it is sure to be what the matrix pairs: patches and shortcuts fit it.
    checkout
        The folder with the sources that are laid over it; None for none, or a revision.
    """

    name: str
    python: Path
    site_packages: Path
    release: Release
    source: str = ""
    is_declared: bool = True
    checkout: Path | None = None

    def settings(
        self, models: Sequence[str], jobs: int, limit: float = EXPORT_TIMEOUT, **others: Any
    ) -> Settings:
        """Return how cells are exported with it: with the patches of ``[tool.goldens]``, unless `others` name some."""
        others.setdefault("patches", patches.select(config.load().patches, self.release.patches))
        others.setdefault("checkout", self.checkout)
        return Settings(self.python, tuple(models), jobs=jobs, limit=limit, **others)

    @classmethod
    def from_name(cls, word: str, repository: Config) -> Toolchain:
        """Return the toolchain of a name, whose environment is made where there is none.

        Raises
        ------
        ToolchainError
            For what is no name, and for an environment that cannot be made.
        UsageError
            For a Python that cannot be run, or has no ExecuTorch.
        """
        name = Name.parse(word)
        if name.python is not None:
            if name.sources is not None:
                raise ToolchainError(
                    f"{word!r}: {name.sources.checkout} would be laid over an environment of yours: install it there "
                    "yourself, or begin with a release"
                )
            return cls._installed(name.word, name.python, _checkout_of(name.python), is_plain=False)
        if name.version is not None and name.sources is not None:
            carrying.require(name.version, name.sources)
        environments = of_person()
        environment = environments.made(name, Layer(repository.requirements, repository.root))
        source, checkout = "", None
        if name.sources is not None:
            checkout = name.sources.checkout if name.sources.revision is None else None
            environment = sources.laid_over(environments, environment, name.sources)
            source = sources.described(name.sources)
        is_plain = not (source or name.requirements)
        made = cls._installed(name.word, python_of(environment), source, is_plain)
        return replace(made, checkout=checkout)

    @classmethod
    def _installed(cls, name: str, python: Path, source: str, is_plain: bool) -> Toolchain:
        """Return the packages of an interpreter; `is_plain` where only wheels of a release can be in it."""
        installed = Installed.probe(python)
        version = installed.versions.get("executorch")
        if version is None:
            raise ToolchainError(
                f"no ExecuTorch is installed for {python}: install one, or pass a release such as "
                f"-t {releases.load().newest}, whose environment is made"
            )
        known = releases.load().releases.get(version)
        if known is None or not installed.versions.items() >= known.stack().items():
            known, is_plain = _as_declared(installed, version), False
        return cls(name, python, installed.site_packages, known, source, is_plain)


def here() -> Toolchain:
    """Return this Python's toolchain, a release of the matrix; raises as `Installed.probe` and `find_release`."""
    python = default_interpreter()
    installed = Installed.probe(python)
    release = find_release(installed)
    return Toolchain(release.version, python, installed.site_packages, release)


def chosen(word: str | None) -> Toolchain:
    """Return a command's toolchain: that of a name, else this Python's, the repository's first, or the newest release.

    Raises as `Toolchain.from_name` and `find_release`.
    """
    repository = config.load()
    if word is None and importlib.util.find_spec("executorch") is not None:
        return here()
    if word is not None or not repository.toolchains:
        return Toolchain.from_name(word or releases.load().newest, repository)
    try:
        return Toolchain.from_name(repository.toolchains[0], repository)
    except ToolchainError as error:
        raise ToolchainError(f"[tool.goldens] toolchains: {error}") from error


def of_person() -> Environments:
    """Return the environments of the person, which all repositories share."""
    return Environments(default_root() / FOLDER)


def _as_declared(installed: Installed, version: str) -> Release:
    """Return the matrix's description of an environment that it does not have: that of the nearest release."""
    matrix = releases.load()
    nearest = closest(version, matrix)
    pins = {**nearest.pins, **installed.versions}
    return replace(
        nearest,
        version=version,
        pins=pins,
        # Those of a release fit its own code, whatever is installed beside it.
        patches=nearest.patches if version == nearest.version else (),
        issues={},
    )


def _checkout_of(python: Path) -> str:
    """Return the checkout that the ExecuTorch of an environment is installed from; empty where it is a wheel's."""
    for folder in map(Path.resolve, map(Path, Installed.probe(python).places)):
        if "site-packages" not in folder.parts:
            return sources.described(Sources(folder))
    return ""


@dataclass(frozen=True)
class Fit:
    """The patches and shortcuts that fit a toolchain.

    Attributes
    ----------
    patches, shortcuts
        Name to why it does not fit; empty where it does.
    """

    patches: Mapping[str, str]
    shortcuts: Mapping[str, str]

    def those(self, kind: str, unfit: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names that fit, and say why others are left out."""
        for name, why in unfit.items():
            if why:
                say(f"left out: {kind} {name}: {why}")
        return tuple(name for name, why in unfit.items() if not why)

    @classmethod
    def verify(cls, toolchain: Toolchain, named: Sequence[str], shortcuts: Mapping[str, str]) -> Fit:
        """Verify patches, and shortcuts by hook, in a toolchain; those of a release's own wheels are known to fit."""
        if toolchain.is_declared:
            return cls(dict.fromkeys(named, ""), dict.fromkeys(shortcuts, ""))
        from executorch_goldens.sweep.worker import with_harness

        command = with_harness(toolchain.python, FITTING)
        asked = json.dumps([toolchain.release.version, list(named), dict(shortcuts)])
        key = _guarded(toolchain, named, shortcuts.values()), asked
        if key in _FITS:
            return _FITS[key]
        try:
            printed = subprocess.run(
                [*command, asked],
                capture_output=True,
                text=True,
                check=True,
                env=worker_environment(toolchain.python, 0),
            ).stdout
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
            where = in_checkout(last, toolchain.python, toolchain.checkout)
            raise ToolchainError(f"{toolchain.name!r} cannot be imported: {where}") from error
        return _FITS.setdefault(key, cls(*json.loads(printed.splitlines()[-1])))


#: Answers that this process has got, by `_guarded` and the question.
_FITS: dict[tuple[str, str], Fit] = {}


def _guarded(toolchain: Toolchain, named: Iterable[str], hooks: Iterable[str]) -> str:
    """Return a digest of the modules whose functions patches and shortcuts are written for, as a toolchain has them."""
    version, found = toolchain.release.version, hashlib.sha256()
    guarded = [*(patches.available()[name] for name in named), *map(resolve, hooks)]
    functions = {function for patch in guarded for function in patch.fits.get(version, ())}
    for module in sorted({function.partition(":")[0] for function in functions}):
        place = toolchain.site_packages.joinpath(*module.split("."))
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            found.update(file.read_bytes() if file.is_file() else b"")
        found.update(module.encode())
    return found.hexdigest()
