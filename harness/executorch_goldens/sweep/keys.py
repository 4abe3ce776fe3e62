"""What an export is asked for, as named ingredients: the part of its key that no record holds (`sweep.facts`).

Left out on purpose is what should not affect the output (`variations`): the place of the environment and of the
repository, the exports that a template has made before, which cells run beside it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.settings.exports import ROOT, Settings, absolute, worker_environment
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.variations import Variation

#: Goes up with every change of what is asked for, of what is recorded, or of how an export is stored.
FORMAT = 7
#: Begins of environment variables that C and C++ code of a release or the loader may read, which no record shows.
VARIABLES = (
    *(
        "TORCH",
        "PYTORCH",
        "ATEN_",
        "EXECUTORCH",
        "ET_",
        "XNN",
        "TOSA",
        "FLATC",
        "OMP_",
        "MKL_",
        "OPENBLAS_",
        "KMP_",
    ),
    *("GOMP_", "LD_", "DYLD_", "MALLOC_", "GLIBC_", "CUDA_", "PYTHON", "LANG", "LC_", "TZ"),
)
#: Variables of these whose value does not count: the files at the paths do, or they are the harness's own.
NO_VARIABLES = ("PYTHONPATH", "PYTHONHASHSEED", "EXECUTORCH_GOLDENS_")
#: Settings that are asked for as they are.
SETTINGS = (
    "models",
    "shortcuts",
    "isolation",
    "capture",
    "execute",
    "omission",
    "observer",
    "twins",
    "instrument",
)

#: Named values.
Ingredients = tuple[tuple[str, str], ...]
#: One export: its cell, its variation, the patches that it gets beside those of the settings.
Wanted = tuple[Cell, Variation, tuple[str, ...]]


def request(settings: Settings, wanted: Wanted) -> Ingredients:
    """Return the request for an export."""
    (cell, variation, further_patches), machine = wanted, settings.machine
    variables = variables_of(settings)
    searched = [each for each in variables["PYTHONPATH"].split(os.pathsep) if each and Path(each) != ROOT]
    packages = absolute(settings.interpreter).parent.parent.glob(
        "lib/python*/site-packages/executorch-*.dist-info"
    )
    found = {
        "format": str(FORMAT),
        "release": " ".join(sorted(path.name for path in packages)),
        "system": " ".join((platform.system(), *platform.libc_ver(), platform.mac_ver()[0], processor())),
        # An export may now find a directory that was missing, and in it files that none looked for.
        "path": os.pathsep.join(searched),
        "case": cell.case,
        # A function of a distribution is in its file.
        "target": json.dumps(asdict(targets.find(cell.target)), sort_keys=True, default=repr),
        "patches": " ".join((*settings.patches, *further_patches)),
        "variation": variation.name,
        "tolerance": repr(settings.tolerances.get(cell.target)),
        "machine": json.dumps([machine.variables(), machine.threads, machine.onednn], sort_keys=True),
        **{name: repr(getattr(settings, name)) for name in SETTINGS},
    }
    read = [name for name in variables if name.startswith(VARIABLES) and not name.startswith(NO_VARIABLES)]
    return tuple(sorted({**found, **{f"variable {name}": variables[name] for name in read}}.items()))


def variables_of(settings: Settings) -> dict[str, str]:
    """Return the environment variables of exporting processes."""
    return worker_environment(absolute(settings.interpreter), 0, settings.machine)


@functools.cache
def processor() -> str:
    """Return the processor's architecture, name and features, which decide the kernels."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = {line for line in lines if line.startswith(("model name", "flags", "Features"))}
    return " ".join((platform.machine(), platform.processor(), *sorted(named)))


def digest(ingredients: Ingredients) -> str:
    """Return the SHA-256 of a listing: of its pairs, sorted, as JSON."""
    return hashlib.sha256(json.dumps(sorted(ingredients)).encode()).hexdigest()
