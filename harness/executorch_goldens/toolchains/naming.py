"""Names of toolchains: how a person refers to an exporting environment.

============================  ===================================================================================
``1.5.1``                     a release of the matrix
``executorch==1.6.0``         one that the matrix may lack, with what the nearest release is paired with
``path/to/python``            an environment that there is, or its folder, or a checkout with ``.venv`` in it
``… + torch==2.15.0``         with another version of a distribution
``… + path/to/executorch``    with the Python sources of a checkout in place of the installed ones
``… + path@REV``              of one of its revisions
============================  ===================================================================================
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from executorch_goldens.errors import UsageError
from executorch_goldens.settings import releases

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
        Revision of git; None is what the folder has, committed or not.
    """

    checkout: Path
    revision: str | None = None


@dataclass(frozen=True)
class Name:
    """A name, read.

    Attributes
    ----------
    word
        The word as it was given.
    version
        Public version of executorch; None for an environment that is there.
    python
        Interpreter of an environment that is there; None for one that is made.
    requirements
        Requirements installed over those of the release, as pip reads them.
    sources
        The sources that replace the installed Python files; None for none.
    """

    word: str
    version: str | None = None
    python: Path | None = None
    requirements: tuple[str, ...] = ()
    sources: Sources | None = None

    @classmethod
    def parse(cls, word: str) -> Name:
        """Read a name; raise `ToolchainError` if it is none, or a path that leads nowhere.

        >>> name = Name.parse("1.5.1 + torch==2.15.0")
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
        path = Path(first).expanduser()
        is_path = bool(first) and (path.exists() or (os.sep in first and "==" not in first))
        python = _python(word, path) if is_path else None
        if python is not None and requirements:
            raise ToolchainError(
                f"{word!r}: {requirements[0]} would be installed in an environment of yours: install it there "
                "yourself, or begin with a release, whose environment is made"
            )
        return cls(
            word=word.strip(),
            version=None if is_path else _version(word, first),
            python=python,
            requirements=tuple(requirements),
            sources=sources[0] if sources else None,
        )


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
    if not path.exists():
        raise ToolchainError(f"{word!r}: {path} does not exist; a toolchain is e.g. {EXAMPLES}")
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


def named(requirement: str) -> str:
    """Return the normalized name of the distribution that a requirement is of."""
    return canonicalize_name(Requirement(requirement).name)
