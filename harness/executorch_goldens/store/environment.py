"""The exporting environment: its Python, platform and folders. Nothing is imported from it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens.decode.schemas import PACKAGES as SCHEMA_PACKAGES
from executorch_goldens.errors import UsageError
from executorch_goldens.settings.exports import ROOT

#: Environment variables that the release's libraries or the loader may read, which no record shows.
VARIABLES = (
    *("TORCH", "PYTORCH", "ATEN_", "EXECUTORCH", "ET_", "XNN", "TOSA", "FLATC"),
    *("OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "LD_", "DYLD_", "MALLOC_", "GLIBC_", "CUDA_"),
    *("PYTHON", "LANG", "LC_", "TZ"),
)
#: Of these what is at the places counts, or they are the harness's own.
OTHER_VARIABLES = ("PYTHONPATH", "PYTHONHASHSEED", "EXECUTORCH_GOLDENS_")

#: The script for the exporting interpreter.
PROBE = """
import importlib.util, json, platform, sys, sysconfig
found = {}
for name in sys.argv[1].split():
    spec = importlib.util.find_spec(name)
    if spec is not None:
        found[name] = list(spec.submodule_search_locations or ()) or [spec.origin]
print(json.dumps({
    "python": sys.version, "implementation": sys.implementation.cache_tag,
    "platform": sysconfig.get_platform(), "libc": " ".join(platform.libc_ver()),
    "environment": sys.prefix, "base": sys.base_prefix, "found": found,
}))
"""


#: Named values: what an artifact depends on.
Ingredients = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Environment:
    """The facts of the exporting environment that no file of it holds.

    Attributes
    ----------
    ingredients
        Interpreter, platform, processor, the variables that libraries may read.
    roots
        Directories that differ between machines, by name; see `executorch_goldens.store.facts.Places`.
    schemas
        See `executorch_goldens.artifact.Lowered`.
    """

    ingredients: Ingredients
    roots: Mapping[str, Path]
    schemas: tuple[str, ...]

    @classmethod
    def of(cls, interpreter: Path, variables: Mapping[str, str]) -> Environment:
        """Ask `interpreter` to describe itself.

        Parameters
        ----------
        variables
            The environment variables of exporting processes.

        Raises
        ------
        UsageError
            When it cannot be run.
        """
        try:
            printed = subprocess.run(
                [interpreter, "-P", "-c", PROBE, " ".join(dict.fromkeys(SCHEMA_PACKAGES.values()))],
                capture_output=True,
                text=True,
                check=True,
                env=dict(variables),
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"{interpreter} does not describe itself: {error}") from error
        facts: dict[str, Any] = json.loads(printed)
        ingredients = {
            **{name: facts[name] for name in ("python", "implementation", "platform", "libc")},
            "processor": processor(),
            **{f"variable {name}": value for name, value in sorted(variables.items()) if is_read(name)},
            "path": _searched(variables.get("PYTHONPATH", "")),
        }
        schemas = [Path(place).parent for places in facts["found"].values() for place in places]
        roots = {"environment": Path(facts["environment"]), "python": Path(facts["base"])}
        return cls(tuple(sorted(ingredients.items())), roots, tuple(dict.fromkeys(map(str, schemas))))


def _searched(path: str) -> str:
    """Return the directories that modules are looked for in before the environment's own, the harness's aside.

    An export may now find a directory that was missing, and in it files that none looked for.
    """
    places = (place for place in path.split(os.pathsep) if place and Path(place) != ROOT)
    return os.pathsep.join(places)


def is_read(variable: str) -> bool:
    """Return whether an export may depend on an environment variable that no Python code reads."""
    return variable.startswith(VARIABLES) and not variable.startswith(OTHER_VARIABLES)


def processor() -> str:
    """Return the processor's name and features, which decide the kernels."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    facts = dict(line.partition(":")[::2] for line in reversed(lines))
    wanted = ("model name", "flags", "Features")
    known = {name.strip(): value.strip() for name, value in facts.items()}
    return " ".join([platform.machine(), *(known[name] for name in wanted if name in known)])
