"""Reads ``[tool.goldens]`` of the repository that a run is started in.

The nearest ``pyproject.toml`` with such a table counts, from the working directory upwards. What the command line says
goes over it, and what neither says has a default. Paths in it are relative to the file; zoos are imported from its
directory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executorch_goldens.errors import HarnessError
from executorch_goldens.files import untrusted
from executorch_goldens.settings.arguments import amount

FILE = "pyproject.toml"

#: What of a program is measured, and better if it is less: by the key that a budget names it by, in words; in the order
#: in which it is told.
QUANTITIES: Mapping[str, str] = {
    "outside": "operators outside delegates",
    "memory": "bytes of planned memory",
    "constants": "bytes of constants",
    "duplicated": "bytes of constants that are stored more than once",
    "program": "bytes of the program",
    "operators": "operators, in delegates and outside",
    "delegates": "delegates",
}
#: The key of what is better if it is more: the ratio of signal to quantization noise of a program's worst output.
SQNR = "sqnr"


class ConfigError(HarnessError, ValueError):
    """A table ``[tool.goldens]`` that cannot be used.

    Attributes
    ----------
    file
        The ``pyproject.toml``.
    key
        The key in question; empty for the file as a whole.
    what
        What is wrong with it, and the way out.
    """

    def __init__(self, file: Path, key: str, what: str) -> None:
        super().__init__(file, key, what)
        self.file = file
        self.key = key
        self.what = what

    def __str__(self) -> str:
        if not self.key:
            return f"{self.file}: {self.what}"
        return f"{self.file}: [tool.goldens] {self.key}: {self.what}; the keys are {', '.join(READERS)}"


@dataclass(frozen=True)
class Config:
    """What a repository sets for its goldens; empty or None is what it does not set.

    Attributes
    ----------
    root
        Directory of the file, or the working directory where there is none.
    models
        Zoos: modules that register cases.
    goldens
        Root of the goldens: a directory per release.
    targets
        What every case is exported for; a case may have further ones of its own.
    releases
        ExecuTorch versions that the repository supports.
    variations
        As ``--variations`` names them.
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
    budgets
        Pattern of cells to the most that there may be of some quantities, and to the least SQNR: see
        `executorch_goldens.goldens.quantities`.
    known_defects
        File that states cells that are known to be wrong, as the matrix does for this project's zoo.
    """

    root: Path
    goldens: Path
    sweeps: Path
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    variations: str | None = None
    jobs: int | None = None
    export_timeout: float | None = None
    export_memory: int | None = None
    tolerances: Mapping[str, float] = field(default_factory=dict)
    budgets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    known_defects: Path | None = None
    cache_dir: Path | None = None

    def zoos(self, named: Sequence[str] | None) -> tuple[str, ...]:
        """Return the zoos that the command line names, or else the file; raise `ConfigError` where neither does."""
        if not named and not self.models:
            raise ConfigError(
                self.root / FILE,
                "",
                "no zoo is named: say --models MODULE, or write a table [tool.goldens] with "
                'models = ["MODULE"], where MODULE registers cases with @executorch_goldens.case',
            )
        return tuple(named or self.models)

    def import_paths(self) -> tuple[Path, ...]:
        """Return the directories that zoos are imported from before any other: the repository's, the working one."""
        return tuple(dict.fromkeys((self.root, Path.cwd())))


def load(start: Path | None = None) -> Config:
    """Read the nearest table from `start`, by default the working directory, upwards; raise `ConfigError`."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        file = folder / FILE
        if file.is_file() and (table := _table(file)) is not None:
            return _read(file, table)
    return Config(root=start, goldens=start / "goldens", sweeps=start / "build" / "sweeps")


def _table(file: Path) -> dict[str, Any] | None:
    try:
        tables = untrusted.toml(file)
    except (OSError, ValueError) as error:
        raise ConfigError(file, "", f"cannot be read: {error}") from error
    tool = tables.get("tool", {})
    table = tool.get("goldens") if isinstance(tool, dict) else tool
    if table is not None and not isinstance(table, dict):
        raise ConfigError(file, "", f"[tool.goldens] must be a table, found {table!r}")
    return table


def _read(file: Path, table: Mapping[str, Any]) -> Config:
    values: dict[str, Any] = {"goldens": "goldens", "sweeps": "build/sweeps"}
    for key, value in table.items():
        if key not in READERS:
            raise ConfigError(file, key, "is unknown")
        expected, read = READERS[key]
        try:
            values[key.replace("-", "_")] = read(value)
        except ValueError as error:
            raise ConfigError(file, key, f"expected {expected}, found {value!r}") from error
    for key in ("goldens", "sweeps", "known_defects", "cache_dir"):
        if key in values:
            values[key] = file.parent / values[key]
    return Config(root=file.parent, **values)


def _string(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError
    return tuple(_string(item) for item in value)


def _count(value: object) -> int:
    # To Python, true is 1.
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 < value < math.inf:
        raise ValueError
    return float(value)


def _variations(value: object) -> str:
    return _string(value) if isinstance(value, str) else str(_count(value))


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError
    return {name: _number(number) for name, number in value.items()}


def _budgets(value: object) -> dict[str, dict[str, float]]:
    if not isinstance(value, dict) or not all(isinstance(limits, dict) for limits in value.values()):
        raise ValueError
    for limits in value.values():
        for key, limit in limits.items():
            _require_limit(key, limit)
    return value


def _require_limit(key: str, limit: object) -> None:
    # To Python, true is 1.
    if not isinstance(limit, int | float) or isinstance(limit, bool) or not math.isfinite(limit):
        raise ValueError
    if key != SQNR and (key not in QUANTITIES or not isinstance(limit, int) or limit < 0):
        raise ValueError


#: Each key to what it expects, and the function that reads it or raises ValueError.
READERS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "models": ("a list of modules", _strings),
    "goldens": ("a directory", _string),
    "targets": ("a list of targets", _strings),
    "releases": ("a list of ExecuTorch versions", _strings),
    "variations": ('"quick", "full", a number of at least 1 or hash seeds such as "0,3,7"', _variations),
    "jobs": ("a number of at least 1", _count),
    "export-timeout": ("a number of seconds above 0", _number),
    "export-memory": ('a number of bytes above 0, such as "4GiB"', lambda value: amount(_string(value))),
    "sweeps": ("a directory", _string),
    "cache-dir": ("a directory", _string),
    "tolerances": ("a table of target = number above 0", _numbers),
    "budgets": (f'a table of "TARGET/CASE" = {{ {" or ".join((*QUANTITIES, SQNR))} = number }}', _budgets),
    "known-defects": ("a file", _string),
}
