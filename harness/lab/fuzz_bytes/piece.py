"""One piece of the fuzzing of one reader, in a process of its own: ``python -m lab.fuzz_bytes.piece``.

Each mutation may take `SECONDS` of processor time, by a timer of the kernel's (`signal.ITIMER_PROF`), and `MEGABYTES`
of address space beyond what the process has when it begins, by ``RLIMIT_AS``: what asks for more gets a MemoryError,
which no reader declares. A mutation that hangs without computing ends the process (`signal.ITIMER_REAL`).
"""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import FrameType

from hypothesis import HealthCheck, Phase, given, seed, settings

from lab.fuzz_bytes.mutations import Edit, mutants, mutated
from lab.fuzz_bytes.reader import Reader
from lab.fuzz_bytes.readers import READERS

#: Processor seconds, and address space in 2**20 bytes, that reading one file may take.
SECONDS = 1.0
MEGABYTES = 256
#: Seconds after which a reader that waits for something is ended.
PATIENCE = 60.0

#: The mutation that is being read: what a process that was killed leaves.
CURRENT = "current"
#: Paths that mark the origin of an error.
OWN = ("/harness/", "/harness/lab/fuzz_bytes/readers.py")


class TooSlowError(BaseException):
    """Reading took more than `SECONDS`; no reader catches it."""


def _too_slow(signal_number: int, frame: FrameType | None) -> None:
    raise TooSlowError(f"more than {SECONDS:g} s")


class Bounds:
    """Holds one reading to its bounds."""

    def __enter__(self) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        taken = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (MEGABYTES << 20), resource.RLIM_INFINITY))
        signal.signal(signal.SIGPROF, _too_slow)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def attempt(reader: Reader, data: bytes, folder: Path) -> str:
    """Read `data`; return the defect, empty where it was read or refused as declared."""
    try:
        with Bounds():
            reader.read(data, folder)
    except reader.declared as error:
        return "" if str(error).strip() else f"{type(error).__name__} without a message"
    except (Exception, TooSlowError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if any(part in frame.filename for part in OWN)]
        where = own[-1] if own else frames[-1]
        return f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno} ({str(error)[:100]!r})"
    return ""


def run(reader: Reader, count: int, number: int, aside: Path) -> dict[str, object]:
    """Read `count` mutations, and return the results.

    Parameters
    ----------
    number
        The seed: the same number makes the same mutations.
    aside
        Where mutations are kept that found something, and `CURRENT`.
    """
    aside.mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = {}
    digest = hashlib.sha256()
    slowest, tried, refused = 0.0, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        seeds = reader.seeds()
        for data in seeds:
            if wrong := attempt(reader, data, folder):
                raise AssertionError(f"{reader.name}: a real file is not read: {wrong}")

        @seed(number)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(mutants(len(seeds)))
        def read(drawn: tuple[int, list[Edit]]) -> None:
            nonlocal slowest, tried, refused
            at, edits = drawn
            data = mutated(seeds[at], edits, seeds, reader.is_text)
            digest.update(hashlib.sha256(data).digest())
            (aside / CURRENT).write_bytes(data)
            started = time.process_time()
            wrong = attempt(reader, data, folder)
            slowest = max(slowest, time.process_time() - started)
            tried += 1
            if wrong and wrong.partition(" (")[0] not in {each.partition(" (")[0] for each in found.values()}:
                name = hashlib.sha256(data).hexdigest()[:12]
                (aside / name).write_bytes(data)
                found[name] = wrong

        read()
    (aside / CURRENT).unlink(missing_ok=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "tried": tried,
        "slowest": round(slowest, 3),
        "peak_mb": round(peak),
        "digest": digest.hexdigest(),
        "found": found,
    }


def main() -> None:
    """Entry point: the reader's name, the number of mutations, the seed, and the folder for findings."""
    name, count, number, aside = sys.argv[1:]
    print(json.dumps(run(READERS[name], int(count), int(number), Path(aside))))


if __name__ == "__main__":
    main()
