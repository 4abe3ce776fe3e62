"""Origin of a folder of results: ``run.json``, which decides whether results of several runs belong together."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files import git, plain, untrusted
from executorch_goldens.settings.exports import Settings, cores
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.shards import Shard
from executorch_goldens.zoo.variations import Variation

FILE = "run.json"

#: Version of the file, and of what is beside it.
FORMAT = 2

GIBIBYTE = 2**30


@dataclass(frozen=True)
class Provenance:
    """Origin of a run: machine, settings and cells.

    Attributes
    ----------
    release
        Version of ExecuTorch.
    stack
        Distribution name to version: what a golden names.
    models
        Modules of the zoo.
    commit
        Commit of the repository of the zoo; None outside of a git checkout.
    changes
        Digest of what differs from that commit, goldens aside; empty where nothing does.
    settings
        Whatever else could change an artifact or a verdict.
    variations
        Names of the variations that cells are exported under.
    shard
        ``2/5``; None for a run without shards.
    selected, cells
        The cells that were asked for, in the zoo's order, and those of them that are the shard's.
    whole
        Whether these are all cells of the zoo and the release.
    machines
        The exporting packages, a line for each kind.
    """

    release: str
    stack: Mapping[str, str]
    models: tuple[str, ...]
    commit: str | None
    changes: str
    settings: Mapping[str, Any]
    variations: tuple[str, ...]
    shard: str | None
    selected: tuple[str, ...]
    whole: bool
    cells: tuple[str, ...]
    machines: tuple[str, ...]

    @classmethod
    def here(
        cls,
        release: Release,
        settings: Settings,
        variations: Iterable[Variation],
        repository: Path,
        written: Path,
        **cells: Any,
    ) -> Self:
        """Return the origin of what this machine exports now.

        Parameters
        ----------
        written
            The folder of `repository` that a run itself writes, whose differences do not count.
        cells
            The fields about shards and cells.
        """
        return cls(
            release=release.version,
            stack=release.stack(),
            models=settings.models,
            commit=commit(repository),
            changes=changes(repository, written),
            settings=facts(settings),
            variations=tuple(variation.name for variation in variations),
            machines=(machine(),),
            **cells,
        )

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the content of the file in `folder`; raise UsageError."""
        path = folder / FILE
        try:
            came = plain.read(path, cls, FORMAT)
            untrusted.require_name(came.release)
            msgspec.convert(came.settings.get("patches", []), list[str])
            for cell in map(Cell.named, (*came.selected, *came.cells)):
                untrusted.require_name(cell.target)
                untrusted.require_name(cell.case)
            if came.shard is not None:
                Shard.named(came.shard)
            return came
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be used: {error}; run its cells again") from error

    def write(self, folder: Path) -> None:
        plain.write(folder / FILE, self, FORMAT)

    def selection(self) -> list[Cell]:
        """Return the cells that were asked for, in the zoo's order."""
        return [Cell.named(name) for name in self.selected]


def facts(settings: Settings) -> dict[str, Any]:
    """Return the `settings` that could change an artifact or a verdict, and are the same on every machine."""
    return {
        "patches": list(settings.patches),
        "shortcuts": list(settings.shortcuts),
        "export-timeout": settings.limit,
        "export-memory": settings.memory,
        "isolation": settings.isolation,
        "tolerances": dict(settings.tolerances),
        "environment": settings.machine.variables(),
        "onednn": settings.machine.onednn,
    }


def commit(repository: Path) -> str | None:
    """Return the commit that is checked out in `repository`; None outside of a git checkout."""
    return git.text(repository, "rev-parse", "HEAD") or None


def changes(repository: Path, goldens: Path, since: str = "HEAD") -> str:
    """Return a digest of the differences of `repository` from a commit, `goldens` aside; empty for none."""
    aside = _all_but(repository, goldens)
    changed = git.output(repository, "diff", since, "--binary", "--no-ext-diff", "--", *aside)
    added = git.names(repository, "ls-files", "-z", "--others", "--exclude-standard", "--", *aside)
    digest = hashlib.sha256(changed)
    for name in added:
        path = repository / name
        digest.update(name.encode(errors="surrogateescape"))
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest() if changed or added else ""


def uncommitted(repository: Path, goldens: Path) -> list[str]:
    """Return the uncommitted files, `goldens` aside."""
    aside = _all_but(repository, goldens)
    changed = git.names(repository, "diff", "HEAD", "--name-only", "-z", "--no-ext-diff", "--", *aside)
    return changed + git.names(repository, "ls-files", "-z", "--others", "--exclude-standard", "--", *aside)


def _all_but(repository: Path, goldens: Path) -> list[str]:
    inside = goldens.is_relative_to(repository)
    return [".", f":(exclude){goldens.relative_to(repository)}"] if inside else ["."]


def has(repository: Path, commit: str) -> bool:
    """Return whether a commit is in the checkout `repository`."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    return bool(git.output(repository, *asked))


def machine() -> str:
    """Return a description of this machine: processor, usable cores, memory."""
    memory = ""
    if "SC_PHYS_PAGES" in os.sysconf_names:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f", {pages / GIBIBYTE:.0f} GiB"
    count = cores()
    return f"{processor()}, {count} core{'s' if count > 1 else ''}{memory}"


def processor(file: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor (man 5 proc, cpuinfo), or its architecture where the system tells no name."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return " ".join((names or [platform.processor() or platform.machine()])[0].split())
