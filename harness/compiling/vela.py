"""Runs Vela on payloads, under one variation at a time, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import untrusted
from harness.compiling.stream import StreamError, decode
from harness.compiling.targets import VELA
from harness.compiling.vela_driver import Request
from harness.errors import HarnessError
from harness.exporting.worker import with_harness
from harness.sweeping.settings import DROPPED_ENVIRONMENT
from harness.sweeping.sweep import exit_reason
from harness.variations import Variation

#: Where a session of nox says which Python has Vela.
VARIABLE = "EXECUTORCH_GOLDENS_VELA_PYTHON"
DRIVER = "from harness.compiling.vela_driver import main; main()"
#: Bytes that a stream may have: Vela takes no payload beyond 2 GiB, and no delegate of a zoo comes near this.
LARGEST_STREAM = 1 << 30
#: Exit status of a child that `signal.alarm` has ended.
TIMED_OUT = "-14"
#: Lines of a log that are shown.
LOG_LINES = 5


class VelaError(HarnessError):
    """Vela cannot be run at all; the message says why, and the way out."""


@dataclass(frozen=True)
class Job:
    """A payload, and what Vela is called with."""

    payload: bytes
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """What Vela made of a payload: the packed stream, and its estimates (`harness.compiling.vela_driver.summary`)."""

    stream: bytes
    summary: Mapping[str, int]


@dataclass(frozen=True)
class Refused:
    """Why Vela made nothing of a payload: the exception that it raised."""

    type: str
    message: str


@dataclass(frozen=True)
class Died:
    """How a process with Vela ended that left nothing; `verdict` is ``crashed`` or ``timed-out``."""

    verdict: str
    reason: str


Result = Compiled | Refused | Died


@dataclass(frozen=True)
class Vela:
    """An installed Vela.

    Attributes
    ----------
    python
        Of its environment.
    version
        Of ethos-u-vela there.
    """

    python: Path
    version: str

    @classmethod
    def find(cls, python: Path | None, wanted: str, release: str) -> Vela:
        """Return the Vela of an environment, by default of the one that nox has made; raise `VelaError`.

        Parameters
        ----------
        wanted
            The version that the release names, for the way out.
        """
        named = os.environ.get(VARIABLE)
        if python is None and not named:
            raise VelaError(
                f"no Vela: name the Python of an environment with {VELA}=={wanted} by --vela, or run "
                f'nox -s "compile({release})", which makes one'
            )
        python = python or Path(str(named))
        code = f"from importlib.metadata import version; print(version({VELA!r}))"
        try:
            done = subprocess.run([python, "-P", "-c", code], capture_output=True, text=True, check=True)
        except OSError as error:
            raise VelaError(f"--vela {python} cannot be run: {error.strerror}") from error
        except subprocess.CalledProcessError as error:
            raise VelaError(f"--vela {python} has no {VELA}: pip install {VELA}=={wanted} there") from error
        return cls(python, done.stdout.strip())

    def compile(self, jobs: Sequence[Job], variation: Variation, limit: int) -> list[Result]:
        """Compile each of `jobs` in a process of its own; raise `VelaError` where none could be started.

        Parameters
        ----------
        limit
            Seconds for each.
        """
        with tempfile.TemporaryDirectory(prefix="goldens-vela-") as name:
            root = Path(name)
            folders = [root / str(index) for index in range(len(jobs))]
            for folder, job in zip(folders, jobs, strict=True):
                folder.mkdir()
                (folder / "payload").write_bytes(job.payload)
            request = Request(
                payloads=[str(folder / "payload") for folder in folders],
                folders=[str(folder) for folder in folders],
                arguments=[list(job.arguments) for job in jobs],
                directories=[str(folder / f"in-{variation.name}") for folder in folders],
                heap_seed=variation.heap_seed,
                listings_seed=variation.listings,
                history_seed=variation.history,
                limit=limit,
            )
            done = subprocess.run(
                with_harness(self.python, DRIVER),
                input=json.dumps(asdict(request)),
                capture_output=True,
                text=True,
                env=environment(variation),
                check=False,
            )
            if done.returncode:
                last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
                raise VelaError(f"Vela {self.version} of {self.python} could not be started: {last}")
            return [_result(folder) for folder in folders]


def environment(variation: Variation) -> dict[str, str]:
    """Return the environment variables of a process with Vela."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED_ENVIRONMENT}
    return {**kept, "PYTHONHASHSEED": str(variation.hash_seed)}


def _result(folder: Path) -> Result:
    """Return what a child left."""
    try:
        if (folder / "refused.json").exists():
            said = untrusted.json_of(untrusted.text(folder / "refused.json"))
            return Refused(said["type"], said["message"])
        if (folder / "stream").exists():
            stream = untrusted.contents(folder / "stream", LARGEST_STREAM)
            decode(stream).operations()
            return Compiled(stream, untrusted.json_of(untrusted.text(folder / "summary.json")))
    except StreamError as error:
        return Died("crashed", f"what Vela made cannot be read: {error}")
    except (OSError, ValueError, KeyError):
        pass
    status = (folder / "status").read_text()
    lines = (folder / "log").read_text(errors="replace").splitlines()[-LOG_LINES:]
    if status == TIMED_OUT:
        return Died("timed-out", "no end within the limit (--export-timeout)")
    return Died("crashed", "; ".join([exit_reason(int(status)), *lines]))
