"""A folder to make a fault in: with its own goldens, results, store and temporary files, and runs in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import GoldenError
from lab import REPOSITORY
from lab.faults.zoo import FOLDER, GO, WAITING
from lab.variables import DROPPED

#: Seconds that anything may take: several times what it takes on a busy machine.
PATIENCE = 900.0

TARGET = "xnnpack-fp32"
#: The cases that are not at fault, whatever happens to them.
SOUND = ("sound", "sound-as-well", "waits")

ZOO = ("--models", "lab.faults.zoo")
#: Options that turn off whatever is unrelated to faults.
PLAIN = ("--explain", "off", "--jobs", "2")


class LostError(AssertionError):
    """A fault lost something that it should not; the message names it."""


def demand(held: object, lost: str) -> None:
    """Raise `LostError` unless something holds."""
    if not held:
        raise LostError(lost)


@dataclass(frozen=True)
class Ended:
    """A command that has come to its end.

    Attributes
    ----------
    code
        Its exit status; the negative of a signal's number where it died of one.
    output
        Its output, standard error included.
    rows
        The lines of results.jsonl that can be read, by case.
    """

    code: int
    output: str
    rows: Mapping[str, dict[str, Any]]

    def verdicts(self) -> dict[str, str]:
        return {case: row["verdict"] for case, row in self.rows.items()}

    def is_one_error(self, *facts: str) -> None:
        """Demand one message that states `facts`, and no traceback."""
        demand(self.code != 0, f"the run is green:\n{self.output}")
        for fact in facts:
            demand(fact in self.output, f"{fact!r} is not said:\n{self.output}")
        for trace in ("Traceback (most recent", "INTERNALERROR"):
            demand(trace not in self.output, f"a traceback:\n{self.output}")


@dataclass
class Place:
    """A folder for one fault, which begins with the goldens and the store of a sound run.

    Attributes
    ----------
    variables
        Of its commands, beside those that are inherited.
    old
        Digests of goldens that are to be replaced, by cell.
    """

    folder: Path
    release: str = field(default_factory=lambda: metadata.version("executorch").partition("+")[0])
    variables: dict[str, str] = field(default_factory=dict)
    old: dict[str, str] = field(default_factory=dict)

    @property
    def goldens(self) -> Path:
        return self.folder / "goldens"

    @property
    def sweeps(self) -> Path:
        return self.folder / "sweeps"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def signals(self) -> Path:
        """The folder in which ``waits`` reports that it waits."""
        return self.folder / "signals"

    @property
    def results(self) -> Path:
        return self.sweeps / self.release / "results.jsonl"

    def make(self) -> Place:
        for path in (self.temporary, self.signals, self.goldens, self.sweeps):
            path.mkdir(parents=True, exist_ok=True)
        return self

    def like(self, other: Place) -> Place:
        """Begin with the goldens and the store of `other`."""
        self.make()
        for name in ("goldens", "store"):
            if (other.folder / name).is_dir():
                shutil.copytree(other.folder / name, self.folder / name, dirs_exist_ok=True, symlinks=True)
        return self

    # Commands

    def environment(self) -> dict[str, str]:
        """Return the variables of commands; by `FOLDER` and this place, its processes are known."""
        inherited = {name: value for name, value in os.environ.items() if name not in DROPPED}
        paths = [str(REPOSITORY), *inherited.get("PYTHONPATH", "").split(os.pathsep)]
        inherited["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
        return inherited | {"TMPDIR": str(self.temporary), FOLDER: str(self.signals)} | self.variables

    def run_command(self, *words: str, cells: tuple[str, ...] = SOUND) -> list[str]:
        """Return the command of a run over cases of the zoo."""
        chosen = [word for case in cells for word in ("--cell", f"{TARGET}/{case}")]
        folders = (f"--goldens={self.goldens}", f"--sweeps={self.sweeps}")
        keeping = () if any(word.startswith("--cache=") for word in words) else ("--cache=off",)
        return [
            sys.executable,
            "-m",
            "executorch_goldens",
            "run",
            *ZOO,
            *PLAIN,
            *keeping,
            *folders,
            *chosen,
            *words,
        ]

    def reusing(self) -> tuple[str, ...]:
        return (f"--cache={self.store}",)

    def limit(self, seconds: int, memory: str = "") -> None:
        """Limit the exports of runs here."""
        lines = [
            "[tool.goldens]",
            f"export-timeout = {seconds}",
            f'export-memory = "{memory}"' if memory else "",
        ]
        (self.folder / "pyproject.toml").write_text("\n".join(lines))

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        """Start a command in a session of its own; no settings are read but those of this place (`limit`)."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(),
            text=True,
            start_new_session=True,
            preexec_fn=heed_signals,
            **options,
        )

    def finish(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for the end of a command."""
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            raise LostError(f"it did not end within {PATIENCE:g} s:\n{output}") from None
        return Ended(process.returncode, output or "", self.rows())

    def run(self, *words: str, cells: tuple[str, ...] = SOUND, **options: Any) -> Ended:
        """Run over cases of the zoo."""
        self.results.unlink(missing_ok=True)
        return self.finish(self.start(self.run_command(*words, cells=cells), **options))

    def command(self, *words: str) -> Ended:
        """Run another command of the harness."""
        return self.finish(self.start([sys.executable, "-m", "executorch_goldens", *words]))

    def rows(self) -> dict[str, dict[str, Any]]:
        found = {}
        lines = self.results.read_text(errors="replace").splitlines() if self.results.exists() else []
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                row = json.loads(line)
                found[row["case"]] = row
        return found

    # In the middle of a run

    def await_export(self) -> int:
        """Wait until the export of ``waits`` goes on; return its process."""
        found: list[Path] = []

        def is_waiting() -> bool:
            found[:] = self.signals.glob(f"{WAITING}-*")
            return bool(found)

        until(is_waiting, "the export did not begin")
        return int(found[0].name.partition("-")[2])

    def go_on(self) -> None:
        """Let ``waits`` go on, in this run and in later ones."""
        (self.signals / GO).touch()

    # Leftovers

    def processes(self) -> dict[int, str]:
        """Return the living processes that commands in this place have started, with their state (man 5 proc)."""
        mark = f"{FOLDER}={self.signals}\0".encode()
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ended = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
                if not ended and mark in (process / "environ").read_bytes() + b"\0":
                    words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(process.name)] = words
        return found

    def templates(self) -> list[int]:
        """Return the processes that fork exports: those that lead a session and answer on a pipe."""
        return [
            process
            for process, words in self.processes().items()
            if "sweep.worker" in words and os.getsid(process) == process
        ]

    def temporary_files(self) -> list[str]:
        """Return the leftovers in the directory for temporary files.

        Whoever imports ``torch._dynamo`` makes torch's own cache there, one for each person; it is empty.
        """
        return sorted(
            path.name
            for path in self.temporary.iterdir()
            if not path.name.startswith("torchinductor_") or any(path.iterdir())
        )

    def goldens_by_digest(self) -> dict[str, str]:
        """Return the digest of each golden; raise `LostError` for one that is not whole."""
        found = {}
        root = self.goldens / self.release
        try:
            for cell in golden.recorded(root):
                record = golden.read(golden.file_of(root, cell))
                if record is not None:
                    found[str(cell)] = record.digest
        except GoldenError as error:
            raise LostError(f"a golden is not whole: {error}") from error
        return found

    def unfinished(self) -> list[str]:
        """Return the leftovers of interrupted writers."""
        return sorted(str(path.relative_to(self.folder)) for path in self.goldens.rglob("*~"))


def heed_signals() -> None:
    """Undo the settings that background jobs and nohup inherit: ignored SIGINT and SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def status(process: int | str, what: str) -> str:
    """Return the kernel's status of a process (man 5 proc, status)."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    words: str = re.findall(rf"^{what}:\s+(.+)", lines, re.MULTILINE)[0]
    return words


def until(held: Callable[[], object], otherwise: str, patience: float = PATIENCE) -> None:
    """Wait until something holds; raise `LostError`."""
    end = time.monotonic() + patience
    while not held():
        demand(time.monotonic() < end, f"{otherwise} within {patience:g} s")
        time.sleep(0.02)


@contextlib.contextmanager
def tiny_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a file system of so many bytes (``64k``) over a folder that may have content; raise `LostError`.

    Who is not root may mount in a user namespace: ``unshare --user --map-root-user --mount python -m lab faults``.
    """
    held = folder.with_name(folder.name + ".below")
    shutil.copytree(folder, held, symlinks=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True, text=True
    )
    demand(mounted.returncode == 0, f"no file system can be mounted: {mounted.stderr.strip()}")
    try:
        shutil.copytree(held, folder, dirs_exist_ok=True, symlinks=True)
        yield
    finally:
        after = folder.with_name(folder.name + ".after")
        shutil.copytree(folder, after, symlinks=True)
        subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder)
        shutil.rmtree(held)
        after.rename(folder)


def kill(process: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
