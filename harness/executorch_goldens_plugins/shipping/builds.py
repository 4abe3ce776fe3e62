"""Exports a cell again under each setting that a build may have, until one of them makes given bytes."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executorch_goldens.artifact import Artifact, Cell, Lowered, Outcome
from executorch_goldens.settings.exports import Machine, Settings, worker_environment
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.words import casualties
from executorch_goldens.zoo.variations import Variation

#: Values of ``ATEN_CPU_CAPABILITY``, the least first (``compute_cpu_capability`` of ``DispatchStub.cpp``). torch does
#: not check that the CPU has it: a process with a higher one dies of an illegal instruction.
CAPABILITIES = ("default", "avx2", "avx512")
#: Prints what torch takes by itself.
NATIVE = "import torch; print(torch.backends.cpu.get_cpu_capability().lower())"


@dataclass(frozen=True)
class BuildSettings:
    """The settings of a build that its ``.pte`` does not record.

    Attributes
    ----------
    patches
        Names of those that are installed; empty for ExecuTorch as it was published.
    """

    capability: str
    onednn: bool
    threads: int
    patches: tuple[str, ...]

    @classmethod
    def pinned(cls, patches: tuple[str, ...]) -> BuildSettings:
        """Return the build that goldens are recorded with."""
        machine = Machine()
        return cls(machine.capability, machine.onednn, machine.threads, patches)

    def __str__(self) -> str:
        return (
            f"CPU capability {self.capability or 'native'}, oneDNN {'on' if self.onednn else 'off'}, "
            f"{self.threads} thread{'s' if self.threads > 1 else ''}, "
            f"{'patches ' + ' '.join(self.patches) if self.patches else 'no patches'}"
        )


def capabilities(python: Path) -> tuple[str, ...]:
    """Return the capabilities that torch may be given in an environment: empty for the CPU's own, then lower ones."""
    environment = worker_environment(python, 0, Machine(capability=""))
    printed = subprocess.run(
        [python, "-P", "-c", NATIVE], env=environment, capture_output=True, text=True, check=False
    ).stdout.strip()
    # An unknown capability is of another architecture.
    highest = CAPABILITIES.index(printed) if printed in CAPABILITIES else 1
    return ("", *CAPABILITIES[:highest])


def builds(capabilities: Sequence[str], cores: int, *patches: tuple[str, ...]) -> list[BuildSettings]:
    """Return every build that there may be, the likely ones first: one without settings, and a pinned one.

    Builds that differ in patches alone follow each other.

    Parameters
    ----------
    capabilities
        Capabilities that there may be, the CPU's own first.
    cores
        Threads that torch takes by itself.
    patches
        Sets of patches that a build may have beside none: of the repository, of the release.
    """
    threads = dict.fromkeys((cores, 1))
    machines = list(itertools.product(capabilities, (True, False), threads))
    pinned = Machine()
    likely = (machines[0], (pinned.capability, pinned.onednn, pinned.threads))
    ordered = dict.fromkeys((*likely, *machines))
    return [
        BuildSettings(capability, onednn, count, each)
        for capability, onednn, count in ordered
        for each in dict.fromkeys(((), *patches))
    ]


def made(
    cell: Cell, settings: Settings, tried: Sequence[BuildSettings]
) -> Iterator[tuple[BuildSettings, bytes | str]]:
    """Export `cell` by each build, in order; yield the program, or why there is none.

    Raises
    ------
    executorch_goldens.sweep.sweep.SweepError
        Where an environment cannot export at all.
    """
    variation = Variation(0, 0)
    for (capability, onednn, threads), same in itertools.groupby(tried, _kernels):
        machine = replace(settings.machine, capability=capability, onednn=onednn, threads=threads)
        further: dict[Cell, Sequence[str]] = {}
        of_machine = replace(settings, patches=(), execute=False, machine=machine)
        # One template serves both: patches are installed in what it forks.
        with Sweep([cell], (), of_machine, lasting=True, further_patches=further) as sweep:
            for build in same:
                further[cell] = build.patches
                (outcome,) = sweep.again(cell, (variation,))
                yield build, _program(outcome)


def _kernels(build: BuildSettings) -> tuple[str, bool, int]:
    return build.capability, build.onednn, build.threads


def _program(outcome: Outcome) -> bytes | str:
    """Return the program of an export, or in words why there is none."""
    result = outcome.result
    if not isinstance(result, Artifact):
        return "\n".join((f"{result.verdict}: {casualties.reason(result)}", *result.tail))
    if not isinstance(result.result, Lowered):
        return f"lowering fails: {result.result.type}: {result.result.message.partition(chr(10))[0]}"
    return result.result.pte
