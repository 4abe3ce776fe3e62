"""Reads ``[tool.goldens]`` of the repository that a run is started in.

The nearest ``pyproject.toml`` with such a table counts, from the working directory upwards. What the command line says
goes over it, and what neither says has a default. Paths in it are relative to the file; zoos are imported from its
directory. A comparison may take the file of the installed zoo in its place: `take_zoo`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from executorch_goldens import plugins
from executorch_goldens.errors import UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.settings import tables
from executorch_goldens.settings.arguments import amount
from executorch_goldens.zoo.targets import MOST_BOUND

FILE = "pyproject.toml"

#: The distribution with the zoo of this project, as ``--models`` names it.
ZOO = "executorch-goldens-zoo"
#: Variable with the folder of its file, for this process and those that it starts.
TAKEN = "EXECUTORCH_GOLDENS_ZOO"
#: Variable with folders above which git looks for no checkout.
CEILINGS = "GIT_CEILING_DIRECTORIES"


class ConfigError(UsageError):
    """A table ``[tool.goldens]`` that cannot be used; the message names the file, the key and the way out."""


@dataclass(frozen=True)
class Config:
    """Settings of a repository for its goldens; an unset one is empty or None.

    Attributes
    ----------
    root
        Directory of the file, or the working directory where there is none.
    models
        Zoos: modules that register cases.
    import_from
        Directories that zoos are imported from beside that of the file.
    goldens
        Root of the goldens: a directory per release.
    targets
        The targets of every case; a case may have further ones of its own.
    releases
        ExecuTorch versions that the repository supports.
    toolchains
        Toolchains, by name (`executorch_goldens.toolchains.naming`); a command takes the first by default.
    requirements
        Requirements of ``[tool.goldens.environment]``: what the zoo needs beside a release, as pip reads it.
    variations
        Variations as ``--variations`` names them.
    patches
        Default of ``--patches`` (`executorch_goldens.patches.select`): ExecuTorch is exported with as it was
        published, unless the file says otherwise.
    jobs
        Exports at a time.
    export_timeout
        Seconds that one export may take.
    export_memory
        Bytes of data that an exporting process may have.
    sweeps
        Where results go: a directory per release.
    cache_dir
        Directory of the cache of exports.
    tolerances
        Target to how far outputs may be from eager there, as a fraction of the largest absolute value, in place of the
        target's own bound.
    allow
        Allowed differences of artifacts from their goldens: ``renames``, or nothing.
    """

    root: Path
    goldens: Path
    sweeps: Path
    models: tuple[str, ...] = ()
    import_from: tuple[Path, ...] = ()
    targets: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    toolchains: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    variations: str | None = None
    patches: str = "none"
    jobs: int | None = None
    export_timeout: float | None = None
    export_memory: int | None = None
    tolerances: Mapping[str, float] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    cache_dir: Path | None = None

    def zoos(self, named: Sequence[str] | None) -> tuple[str, ...]:
        """Return the zoos that the command line names, or else the file; raise `ConfigError` where neither does."""
        if not named and not self.models:
            raise ConfigError(
                f"{self.root / FILE}: no zoo is named: pass --models MODULE, or write a table [tool.goldens] with "
                'models = ["MODULE"], where MODULE registers cases with @executorch_goldens.case',
            )
        of_plugins = plugins.zoos()
        return tuple(of_plugins.get(each, each) for each in named or self.models)

    def import_paths(self) -> tuple[Path, ...]:
        """Return the directories that zoos are imported from before any other: the repository's, the working one."""
        return tuple(dict.fromkeys((self.root, *self.import_from, Path.cwd())))


def load(start: Path | None = None) -> Config:
    """Read the nearest table from `start`, by default the working directory, upwards; raise `ConfigError`.

    Where the installed zoo was taken, its table counts.
    """
    start = (start or Path.cwd()).resolve()
    return _nearest(Path(os.environ.get(TAKEN, start))) or _parse(start / FILE, {})


def take_zoo(models: Sequence[str] | None) -> Sequence[str] | None:
    """Take the installed zoo if the command line names it, or if neither that nor a table names any.

    Returns
    -------
    Sequence[str] | None
        The modules that the command line names.

    Raises
    ------
    ConfigError
        If it is not installed, or named beside modules: those of both may have the same names.
    """
    named = ZOO in (models or ())
    if named and models != [ZOO]:
        raise ConfigError(f"--models {ZOO}: compare it alone, and other zoos by another command")
    if not named and (models or _nearest(Path.cwd()) is not None):
        return models
    if TAKEN not in os.environ:
        package = importlib.util.find_spec(ZOO.replace("-", "_"))
        if package is None or package.origin is None:
            way_out = 'pip install "executorch-goldens[zoo]", or pass --models MODULE for a zoo of your own'
            raise ConfigError(f"no zoo to compare: {way_out}")
        root = Path(package.origin).with_name("repository")
        # No checkout that the environment may be in is the zoo's.
        ceilings = (os.environ.get(CEILINGS, ""), str(root.parent))
        os.environ.update({TAKEN: str(root), CEILINGS: os.pathsep.join(filter(None, ceilings))})
    return None


def _nearest(start: Path) -> Config | None:
    for folder in (start, *start.parents):
        file = folder / FILE
        if file.is_file() and (table := _table(file)) is not None:
            return _parse(file, table)
    return None


def _table(file: Path) -> dict[str, Any] | None:
    try:
        whole = untrusted.toml(file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    tool = whole.get("tool", {})
    table = tool.get("goldens") if isinstance(tool, dict) else tool
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: [tool.goldens] must be a table, found {table!r}")
    return table


def _parse(file: Path, table: Mapping[str, Any]) -> Config:
    try:
        read = tables.as_declared(table, _Table, _custom)
    except tables.TableError as error:
        raise ConfigError(f"{file}: [tool.goldens] {error}; the keys are {', '.join(KEYS)}") from error
    for target, bound in read.tolerances.items():
        if bound > MOST_BOUND:
            raise ConfigError(
                f"{file}: [tool.goldens] tolerances: {bound:g} of {target} is more than {MOST_BOUND:g} of the largest "
                "value, and would check nothing: set a smaller one; if a single case is meant, @case(imprecise=...) "
                "accepts how far rounding moves it"
            )
    values = msgspec.structs.asdict(read)
    for key, value in values.items():
        if isinstance(value, Path):
            values[key] = file.parent / value
    values["import_from"] = tuple(file.parent / folder for folder in read.import_from)
    values["requirements"] = values.pop("environment").requirements
    values["patches"] = read.patches if isinstance(read.patches, str) else ",".join(read.patches)
    values["variations"] = None if read.variations is None else str(read.variations)
    # Messages between processes hold plain numbers.
    values["export_memory"] = None if read.export_memory is None else int(read.export_memory)
    return Config(root=file.parent, **values)


def _custom(kind: type, value: object) -> object:
    """Read types that TOML lacks: a path, or a number of bytes with its unit."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected a text, found {value!r}")
    return _Bytes(amount(value)) if kind is _Bytes else Path(value)


class _Bytes(int):
    """A number of bytes, written as ``"4GiB"``."""


_Text = Annotated[str, Meta(min_length=1)]
_Texts = Annotated[tuple[_Text, ...], Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=1)]
_MOST = sys.float_info.max
_Positive = Annotated[float, Meta(gt=0, le=_MOST)]


class _Environment(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of ``[tool.goldens.environment]``."""

    requirements: _Texts = ()


class _Table(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    """The keys of ``[tool.goldens]``, as a person writes them; see `Config`."""

    models: _Texts = ()
    import_from: _Texts = ()
    goldens: Path = Path("goldens")
    targets: _Texts = ()
    releases: _Texts = ()
    toolchains: _Texts = ()
    environment: _Environment = msgspec.field(default_factory=_Environment)
    variations: _Text | _Count | None = None
    patches: _Text | _Texts = "none"
    jobs: _Count | None = None
    export_timeout: _Positive | None = None
    export_memory: _Bytes | None = None
    sweeps: Path = Path("build/sweeps")
    cache_dir: Path | None = None
    tolerances: Mapping[str, _Positive] = msgspec.field(default_factory=dict)
    allow: tuple[Literal["renames"], ...] = ()


#: The keys that there are.
KEYS = tuple(field.encode_name for field in msgspec.structs.fields(_Table))
