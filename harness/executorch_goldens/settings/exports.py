"""Settings of a sweep, and the environment of its exporting processes."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from executorch_goldens import extensions, plugins
from executorch_goldens.zoo.variations import Omission

#: Directory that ``executorch_goldens`` is imported from: a checkout, or an environment's site-packages.
ROOT = Path(__file__).resolve().parent.parent.parent

#: Seconds of processor time that one export may take. The slowest of the zoo takes 15 s on a busy machine of two cores.
EXPORT_TIMEOUT = 180.0

#: Variables that keep the logs of exports readable.
QUIET_ENVIRONMENT = {"PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false"}

#: Variables that would change what a child does or how fast it starts.
DROPPED_ENVIRONMENT = (
    *("PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "FLATC_EXECUTABLE", "PYTHONSTARTUP"),
    "ATEN_CPU_CAPABILITY",
)


@dataclass(frozen=True)
class Machine:
    """The machine as exporting processes see it.

    The default pins the kernels: the same ones compute the same bits on every machine (design, trap "CPU
    capability"). `lab.portable.command` shows that goldens do not depend on it.

    Attributes
    ----------
    capability
        ``ATEN_CPU_CAPABILITY``: ``default``, ``avx2``, ``avx512``; empty for whatever the CPU has.
    threads
        Threads of torch, OpenMP and BLAS.
    onednn
        Whether oneDNN may replace torch's own kernels.
    environment
        Further variables: locale, time zone, home.
    root
        Directory that ``executorch_goldens`` is imported from.
    paths
        Directories that zoos are imported from before anywhere else; none is those of the repository of the run.
    """

    capability: str = "default"
    threads: int = 1
    onednn: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    root: Path = ROOT
    paths: tuple[Path, ...] = ()

    def variables(self) -> dict[str, str]:
        """Return the environment variables that say all of it but the directories."""
        threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        capability = {"ATEN_CPU_CAPABILITY": self.capability} if self.capability else {}
        return {**capability, **dict.fromkeys(threads, str(self.threads)), **self.environment}


@dataclass(frozen=True)
class Instrumentation:
    """What sees the sources that exports run.

    Attributes
    ----------
    by
        ``module:name`` of the `exporting.observing.Instrument` that exporting processes make of this.
    reach
        Files and folders below site-packages whose lines are recorded as they run: `Artifact.reach`.
    probes
        Of files below site-packages, that of the base, and the functions that are compared with its own as they run:
        `Artifact.probes`.
    """

    by: str
    reach: tuple[str, ...] = ()
    probes: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """Settings of exports.

    Attributes
    ----------
    interpreter
        Python of the environment that exports.
    models
        Modules that register the cases.
    patches
        Names of the patches to install in exporting children.
    jobs
        Exports at a time.
    limit
        Seconds that one export may take.
    isolation
        ``fork`` from a warm template, or ``fresh`` interpreter per export.
    capture
        See `executorch_goldens.exporting.trace.Watch`.
    execute
        Whether programs are executed on their samples.
    machine
        The machine as exporting processes see it.
    shortcuts
        ``module:name`` of the shortcuts to install in exporting processes, by name.
    tolerances
        Target to the bound of cases that have none of their own, in place of the target's.
    modules
        The module of each case of `models`, by the case's name; None for those that this process has imported.
    pickled
        Directory of pickled modules with their inputs, by name of the case, which are exported in place of `models`.
    omission
        The omission from exports; None leaves nothing out.
    observer
        ``module:name`` of the `exporting.observing.Observer` of each export; nothing that is reused has one.
    twins
        Processes with the same memory at their beginning that make each export; 0 makes it in one, without a second.
    instrument
        What sees the sources that exports run; None for nothing.
    changing
        ``module:name`` of the function that makes a case of another one and of the names of what is changed of it
        (`zoo.registry.CHANGED`); None where no case is changed.
    memory
        Bytes of data that an exporting process may have (`sweep.worker.limit_memory`); None is no limit.
    checkout
        The folder whose sources replace those of the environment; None for none.
    """

    interpreter: Path
    models: tuple[str, ...]
    patches: tuple[str, ...]
    jobs: int
    limit: float
    isolation: str = "fork"
    capture: int = 0
    execute: bool = True
    machine: Machine = Machine()
    shortcuts: Mapping[str, str] = field(default_factory=plugins.shortcuts)
    tolerances: Mapping[str, float] = field(default_factory=dict)
    modules: Mapping[str, str] | None = None
    pickled: Path | None = None
    omission: Omission | None = None
    observer: str | None = None
    twins: int = 0
    instrument: Instrumentation | None = None
    changing: str | None = None
    memory: int | None = None
    checkout: Path | None = None


def in_checkout(text: str, interpreter: Path, checkout: Path | None) -> str:
    """Return an error's text with files of the checkout in place of those that an environment has of them."""

    def own(found: re.Match[str]) -> str:
        assert checkout is not None
        return next(
            (str(file) for file in (checkout / found[2], checkout / found[1]) if file.is_file()), found[0]
        )

    folder = re.escape(str(absolute(interpreter).parent.parent))
    installed = rf"{folder}/lib/python[\d.]+/site-packages/(executorch/([\w./-]+))"
    return re.sub(installed, own, text) if checkout is not None else text


def worker_environment(
    interpreter: Path,
    hash_seed: int,
    machine: Machine = Machine(),
    surroundings: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the environment of a template: `machine`'s, the environment's own ``flatc`` first on the PATH.

    Parameters
    ----------
    surroundings
        Variables that a variation changes; those of `machine` go over them.
    """
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED_ENVIRONMENT}
    environment.update(QUIET_ENVIRONMENT | extensions.handed_on())
    environment.update(surroundings)
    environment.update(machine.variables())
    environment["PYTHONHASHSEED"] = str(hash_seed)
    # Not resolved: an environment's python is a link to the base interpreter, whose bin has no flatc.
    environment["PATH"] = os.pathsep.join(
        [str(absolute(interpreter).parent), environment.get("PATH", os.defpath)]
    )
    # Absolute: exports change directory.
    given = [
        str(Path(path).absolute()) for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path
    ]
    environment["PYTHONPATH"] = os.pathsep.join(given)
    return environment


def absolute(interpreter: Path) -> Path:
    """Return where `interpreter` is, a name without a folder looked up on the PATH; links are kept."""
    found = None if interpreter.exists() else shutil.which(interpreter)
    return Path(found or interpreter).absolute()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def default_interpreter() -> Path:
    """Return the Python that pytest runs in, as its environment names it."""
    scripts = Path(sysconfig.get_path("scripts"))
    name = Path(sys.executable).name
    return scripts / name if (scripts / name).exists() else Path(sys.executable)
