"""Runs programs in a release's environment, several at a time: `field.running` does it for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from executorch_goldens_plugins.field.format import EXECUTORCH, REFERENCE_MODEL
from executorch_goldens_plugins.field.running import ProgramLimits, Ran, Runtime
from lab.fielded import corpus
from lab.fielded.corpus import Shipped

#: The seconds are many times what the slowest program of the zoo takes on a busy machine.
LIMITS = ProgramLimits(seconds=120.0)


def run(interpreter: Path, files: Sequence[Path], jobs: int) -> Iterator[tuple[Shipped, list[Ran]]]:
    """Run shipped programs in the release of `interpreter`; yield each with its results.

    Raises
    ------
    executorch_goldens_plugins.field.running.RunningError
        If the environment cannot run programs.
    lab.fielded.corpus.CorpusError
        For a file that cannot be read.
    """
    idle: SimpleQueue[Runtime] = SimpleQueue()

    def one(file: Path) -> tuple[Shipped, list[Ran]]:
        shipped = corpus.read(file)
        runtime = idle.get()
        try:
            return shipped, [runtime.run(program) for program in shipped.programs]
        finally:
            idle.put(runtime)

    with ThreadPoolExecutor(jobs) as pool, ExitStack() as started:
        runtimes = [
            Runtime(interpreter, (EXECUTORCH, REFERENCE_MODEL), LIMITS) for _ in range(min(jobs, len(files)))
        ]
        for runtime in pool.map(started.enter_context, runtimes):
            idle.put(runtime)
        yield from pool.map(one, files)
