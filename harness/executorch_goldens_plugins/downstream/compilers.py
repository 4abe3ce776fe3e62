"""Runs a compiler on payloads, under one variation at a time, in an environment of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from executorch_goldens import extensions
from executorch_goldens.artifact import died
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import untrusted
from executorch_goldens.settings.exports import DROPPED_ENVIRONMENT
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.words import casualties
from executorch_goldens.zoo.variations import Variation
from executorch_goldens_plugins.downstream.driver import PAYLOAD, CompileRequest
from executorch_goldens_plugins.downstream.targets import CONVERTER, LIBRARY, VELA

#: Bytes that a compiled payload may have: Vela takes none beyond 2 GiB, and no delegate of a zoo comes near this.
LARGEST = 1 << 30
#: Code that runs in a compiler's environment.
MAIN = "from executorch_goldens_plugins.downstream import driver, {0}; driver.serve({0}.load)"
#: Exit statuses of a child that its limit of processor time, or `signal.alarm`, has ended.
TIMED_OUT = (str(-signal.SIGXCPU), str(-signal.SIGALRM))
#: Lines of a log that are shown.
LOG_LINES = 5


class CompilerError(HarnessError):
    """A compiler that cannot be run at all; the message says why, and the way out."""


@dataclass(frozen=True)
class Kind:
    """A kind of compiler: how it is called, and where it is found.

    Attributes
    ----------
    title
        Its name in messages.
    driver
        Module that runs in its environment.
    option
        Names the Python of its environment on the command line.
    variable
        Names it for a session of nox.
    needs
        Distributions that must be there: the compiler first.
    """

    title: str
    driver: str
    option: str
    variable: str
    needs: tuple[str, ...]


KINDS: Mapping[str, Kind] = {
    VELA: Kind("Vela", "vela_driver", "--vela", "EXECUTORCH_GOLDENS_VELA_PYTHON", (VELA,)),
    CONVERTER: Kind(
        "the model converter", "vgf_driver", "--vgf", "EXECUTORCH_GOLDENS_VGF_PYTHON", (CONVERTER, LIBRARY)
    ),
}


@dataclass(frozen=True)
class CompileJob:
    """A payload, and the compiler's arguments."""

    payload: bytes
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """A compiled payload, and the messages of the compiler and of its libraries."""

    made: bytes
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """Why a compiler made nothing of a payload: the exception that it raised."""

    type: str
    message: str


@dataclass(frozen=True)
class Died:
    """A compiling process that ended without a result; `verdict` is ``crashed`` or ``timed-out``."""

    verdict: str
    reason: str


Result = Compiled | Refused | Died


@dataclass(frozen=True)
class Compiler:
    """An installed compiler.

    Attributes
    ----------
    name
        Its distribution, a key of `KINDS`.
    python
        Python of its environment.
    version
        Version of the distribution there.
    """

    name: str
    python: Path
    version: str

    @classmethod
    def find(
        cls, name: str, python: Path | None, pins: Mapping[str, str], release: str, option: str = ""
    ) -> Compiler:
        """Return the compiler of an environment, by default of the one that nox has made; raise `CompilerError`.

        Parameters
        ----------
        pins
            The versions that the release names, for the way out.
        option
            Its name on the command line, if it is not the compiler's own.
        """
        kind = KINDS[name]
        option = option or kind.option
        wanted = " ".join(f"{each}=={pins[each]}" if each in pins else each for each in kind.needs)
        named = os.environ.get(kind.variable)
        if python is None and not named:
            raise CompilerError(
                f"no {kind.needs[0]}: name the Python of an environment with {wanted} by {option}, or run "
                f'nox -s "compile({release})", which makes one'
            )
        python = python or Path(str(named))
        code = f"from importlib.metadata import version; print(*map(version, {kind.needs!r}))"
        try:
            done = subprocess.run([python, "-P", "-c", code], capture_output=True, text=True, check=True)
        except OSError as error:
            raise CompilerError(f"{option} {python} cannot be run: {error.strerror}") from error
        except subprocess.CalledProcessError as error:
            needs = " or no ".join(kind.needs)
            raise CompilerError(f"{option} {python} has no {needs}: pip install {wanted} there") from error
        return cls(name, python, done.stdout.split()[0])

    def compile(self, jobs: Sequence[CompileJob], variation: Variation, limit: int) -> list[Result]:
        """Compile each of `jobs` in a process of its own; raise `CompilerError` where none could be started.

        Parameters
        ----------
        limit
            Seconds for each.
        """
        with tempfile.TemporaryDirectory(prefix="goldens-compile-") as name:
            root = Path(name)
            folders = [root / str(index) for index in range(len(jobs))]
            for folder, job in zip(folders, jobs, strict=True):
                folder.mkdir()
                (folder / PAYLOAD).write_bytes(job.payload)
            request = CompileRequest(
                folders=[str(folder) for folder in folders],
                arguments=[list(job.arguments) for job in jobs],
                directory=f"in-{variation.name}",
                heap_seed=variation.heap_seed,
                listings_seed=variation.listings,
                history_seed=variation.history,
                limit=limit,
            )
            done = subprocess.run(
                with_harness(self.python, MAIN.format(KINDS[self.name].driver)),
                input=json.dumps(asdict(request)),
                capture_output=True,
                text=True,
                env=environment(variation),
                check=False,
            )
            if done.returncode:
                last = (done.stderr.strip() or "it printed nothing").splitlines()[-1]
                raise CompilerError(
                    f"{self.name} {self.version} of {self.python} could not be started: {last}"
                )
            return [_result(folder) for folder in folders]


def environment(variation: Variation) -> dict[str, str]:
    """Return the environment variables of a compiling process.

    Each heap seed fills allocations of the process with other bytes (``MALLOC_PERTURB_``, mallopt(3)).
    """
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED_ENVIRONMENT}
    filled = {"MALLOC_PERTURB_": str(variation.heap_seed % 255)} if variation.heap_seed else {}
    return {**kept, **filled, **extensions.handed_on(), "PYTHONHASHSEED": str(variation.hash_seed)}


def _result(folder: Path) -> Result:
    """Return the result that a child wrote."""
    try:
        if (folder / "refused.json").exists():
            refused = untrusted.json_of(untrusted.text(folder / "refused.json"))
            return Refused(refused["type"], refused["message"])
        if (folder / "made").exists():
            made = untrusted.contents(folder / "made", LARGEST)
            return Compiled(made, untrusted.json_of(untrusted.text(folder / "said.json")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Died("crashed", f"its result cannot be read: {error}")
    status = (folder / "status").read_text()
    lines = (folder / "log").read_text(errors="replace").splitlines()[-LOG_LINES:]
    if status in TIMED_OUT:
        return Died("timed-out", "no end within the limit (--export-timeout)")
    return Died("crashed", "; ".join([casualties.reason(died(int(status))), *lines]))
