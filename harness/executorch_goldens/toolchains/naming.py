"""Names of toolchains: how a person refers to an exporting environment.

============================  ===================================================================================
``1.5.1``                     a release of the matrix
``executorch==1.6.0``         one that the matrix may lack, with what the nearest release is paired with
``./executorch-1.6.0.whl``    a wheel, likewise
``path/to/python``            an environment that there is, or its folder, or a checkout with ``.venv`` in it
``… + torch==2.15.0``         with another version of a distribution
``… + python==3.12``          in a Python of that version
``… + path/to/executorch``    with the Python sources of a checkout in place of the installed ones
``… + path@REV``              of one of its revisions
============================  ===================================================================================
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from executorch_goldens import releases
from executorch_goldens.errors import UsageError

#: Separator of the parts of a name; a local version has a plus sign without spaces.
PLUS = re.compile(r"\s+\+\s+")
#: Paths of an environment's Python, from a folder that is one, or has one in it.
PYTHONS = ("bin/python", ".venv/bin/python", "venv/bin/python")
EXAMPLES = "1.5.1, '1.5.1 + torch==2.15.0', executorch==1.6.0, path/to/python, '1.5.1 + path/to/checkout'"


class ToolchainError(UsageError):
    """A toolchain that cannot be had; the message names it and the way out."""


@dataclass(frozen=True)
class Sources:
    """Python sources of ExecuTorch in a checkout.

    Attributes
    ----------
    revision
        Of git; None is what the folder has, committed or not.
    """

    checkout: Path
    revision: str | None = None


@dataclass(frozen=True)
class Name:
    """A name, read.

    Attributes
    ----------
    word
        As it was given.
    version
        Public version of executorch; None for an environment that is there.
    wheel
        A file that has it; None for the package index.
    python
        Interpreter of an environment that is there; None for one that is made.
    requirements
        Requirements installed over those of the release, as pip reads them.
    sources
        The sources that replace the installed Python files; None for none.
    interpreter
        Version of Python of an environment that is made; None where the wheels decide.
    """

    word: str
    version: str | None = None
    wheel: Path | None = None
    python: Path | None = None
    requirements: tuple[str, ...] = ()
    sources: Sources | None = None
    interpreter: str | None = None

    @classmethod
    def read(cls, word: str) -> Name:
        """Read a name; raise `ToolchainError` if it is none, or a path that leads nowhere.

        >>> name = Name.read("1.5.1 + torch==2.15.0")
        >>> name.version, name.requirements
        ('1.5.1', ('torch==2.15.0',))
        """
        first, *further = PLUS.split(word.strip())
        # A folder comes first: ``checkout@main`` is a requirement as well.
        sources = [found for each in further if (found := _sources(each)) is not None]
        requirements = [each for each in further if _sources(each) is None]
        for each in requirements:
            if not _is_requirement(each):
                raise ToolchainError(
                    f"{word!r}: {each} is neither a requirement, such as torch==2.15.0, nor a folder: name e.g. "
                    f"{EXAMPLES}"
                )
        if len(sources) > 1:
            raise ToolchainError(f"{word!r} names two checkouts: one replaces the installed sources")
        interpreters = [each for each in requirements if named(each) == "python"]
        requirements = [each for each in requirements if each not in interpreters]
        own = dict(_first(word, first))
        if "python" in own and (requirements or interpreters):
            raise ToolchainError(
                f"{word!r}: {(*requirements, *interpreters)[0]} would be installed in an environment of yours: install "
                "it there yourself, or begin with a release, whose environment is made"
            )
        return cls(
            word=word.strip(),
            requirements=tuple(requirements),
            sources=sources[0] if sources else None,
            interpreter=_interpreter(word, interpreters),
            **own,  # type: ignore[arg-type]
        )


def _first(word: str, first: str) -> Iterator[tuple[str, object]]:
    """Yield the fields that the first part of a name gives."""
    path = Path(first).expanduser()
    if path.suffix == ".whl":
        yield "wheel", _existing(word, path).resolve()
        yield "version", _version_of(word, path)
    elif first and (path.exists() or (os.sep in first and "==" not in first)):
        yield "python", _python(word, _existing(word, path))
    else:
        yield "version", _version(word, first)


def _existing(word: str, path: Path) -> Path:
    if not path.exists():
        raise ToolchainError(f"{word!r}: {path} does not exist; a toolchain is e.g. {EXAMPLES}")
    return path


def _version_of(word: str, wheel: Path) -> str:
    try:
        name, version, *_ = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename as error:
        raise ToolchainError(f"{word!r}: {wheel.name} is no name of a wheel") from error
    if name != "executorch":
        raise ToolchainError(f"{word!r} is a wheel of {name}, and not of executorch")
    return version.public


def _version(word: str, text: str) -> str:
    """Return the version that ``1.5.1``, a release of the matrix, or ``executorch==1.6.0`` names."""
    bare = text.removeprefix("executorch==")
    try:
        version = Version(bare).public
    except InvalidVersion as error:
        raise ToolchainError(f"{word!r} is no toolchain: name e.g. {EXAMPLES}") from error
    known = releases.load().releases
    if bare == text and version not in known:
        raise ToolchainError(
            f"unknown release {text!r}; known are {', '.join(known)}. A version that is "
            f"not listed is named executorch=={text}"
        )
    return version


def _python(word: str, path: Path) -> Path:
    """Return the Python that a path leads to; links are kept, for an environment's python is one."""
    if path.is_file():
        return path.absolute()
    for inside in PYTHONS:
        if (path / inside).exists():
            return (path / inside).absolute()
    raise ToolchainError(
        f"{word!r}: {path} has no environment in it ({', '.join(PYTHONS)}): name its Python, or lay its Python "
        f"sources over a release: '1.5.1 + {path}'"
    )


def _is_requirement(text: str) -> bool:
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        return False
    return bool(parsed.specifier) or parsed.url is not None


def _sources(text: str) -> Sources | None:
    """Return the checkout, and its revision, that ``path`` or ``path@REV`` names; None where no folder is there."""
    path = Path(text).expanduser()
    if path.is_dir():
        return Sources(path.resolve())
    place, at, revision = text.rpartition("@")
    folder = Path(place).expanduser()
    if at and place and revision and folder.is_dir():
        return Sources(folder.resolve(), revision)
    return None


def _interpreter(word: str, requirements: Sequence[str]) -> str | None:
    """Return the version of Python that ``python==3.12`` names; None where nothing does."""
    versions = [each for text in requirements for each in Requirement(text).specifier]
    if not versions:
        return None
    if len(versions) > 1 or versions[0].operator != "==" or "*" in versions[0].version:
        raise ToolchainError(f"{word!r}: a Python is named by its version alone, e.g. python==3.12")
    return versions[0].version


def named(requirement: str) -> str:
    """Return the normalized name of the distribution that a requirement is of."""
    return canonicalize_name(Requirement(requirement).name)
