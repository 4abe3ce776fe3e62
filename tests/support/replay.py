"""A pytest plugin that puts recorded artifacts in the place of the sweep: a run without torch and without an export.

The file named by `VARIABLE` holds a pickled mapping from a cell (``tosa-fp/alpha``), a case (``alpha``) or ``*`` to
what its exports made: one artifact, or one per variation, or the exception that `Sweep.outcomes` raises. Under
``declared`` it may hold whether the installed packages are taken for the release's own; under ``again`` a mapping like
itself, of what further sweeps of the run make; under ``without`` one of what exports without a pass make.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import executorch_goldens.running.explaining
import executorch_goldens.running.factors
import executorch_goldens.running.plan
import executorch_goldens.running.run
from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.settings.exports import Settings
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens.zoo.variations import Variation

VARIABLE = "EXECUTORCH_GOLDENS_REPLAY"


class Replay:
    """The part of `sweep.sweep.Sweep` that runs and suites use; the first of a run has all of its variations.

    Under further variations, what was recorded follows the hash seed alone.
    """

    all_variations: tuple[Variation, ...] = ()

    def __init__(
        self,
        cells: Sequence[Cell],
        variations: Sequence[Variation],
        settings: Settings,
        lasting: bool = False,
        targets: Sequence[str] | None = None,
        beside: Collection[Cell] = (),
        reuse: object = None,
    ) -> None:
        self.variations = tuple(variations)
        self.wanted = dict.fromkeys(beside, self.variations[-1:])
        self.answers = recorded()
        if Replay.all_variations:
            self.answers |= self.answers.get("again", {})
        self.settings = settings
        Replay.all_variations = Replay.all_variations or self.variations

    def start(self) -> None:
        """Do nothing: the exports have been made."""

    def stop(self) -> None:
        """Do nothing: no process was started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def ready(self, cell: Cell, seconds: float) -> bool:
        return True

    def doing(self) -> str:
        return "running: none yet"

    def work(self, expected: object) -> tuple[()]:
        return ()

    def outcomes(
        self, cell: Cell, variations: Sequence[Variation] | None = None, tick: object = None
    ) -> tuple[Outcome, ...]:
        answers = self.answers | (self.answers.get("without", {}) if self.settings.omission else {})
        answer = next(answers[key] for key in (str(cell), cell.case, "*") if key in answers)
        if isinstance(answer, Exception):
            raise answer
        results = answer if isinstance(answer, tuple) else (answer,) * len(self.all_variations)
        seeds = [variation.hash_seed for variation in self.all_variations]
        by_seed = dict(zip(seeds, results, strict=True))
        return tuple(
            Outcome(cell, variation.name, by_seed[variation.hash_seed], seconds=0.5, peak_mb=300.0)
            for variation in (self.wanted.get(cell, self.variations) if variations is None else variations)
        )

    def again(
        self,
        cell: Cell,
        variations: Sequence[Variation],
        settings: Settings | None = None,
        tick: object = None,
    ) -> tuple[Outcome, ...]:
        self.settings = settings or self.settings
        return self.outcomes(cell, variations)

    def add(self, cell: Cell, variations: Sequence[Variation]) -> None:
        """Do nothing: the exports have been made."""

    def widen(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            del self.wanted[cell]


def recorded() -> dict[str, Any]:
    answers: dict[str, Any] = pickle.loads(Path(os.environ[VARIABLE]).read_bytes())
    return answers


def pytest_configure() -> None:
    """Replace the sweep of this process."""
    executorch_goldens.running.run.Sweep = executorch_goldens.running.explaining.Sweep = Replay
    executorch_goldens.running.factors.Sweep = Replay
    chosen = executorch_goldens.running.plan.chosen_toolchain

    def declared(word: str | None) -> Toolchain:
        toolchain = chosen(word)
        return replace(toolchain, is_declared=recorded().get("declared", toolchain.is_declared))

    executorch_goldens.running.plan.chosen_toolchain = declared
