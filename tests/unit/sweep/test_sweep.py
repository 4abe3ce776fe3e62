"""Which templates a sweep ends before it is over, and how much work it has."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.sweep import TEMPLATE, Sweep
from executorch_goldens.zoo.variations import variations

CELL = Cell("xnnpack-fp32", "linear")
VARIED = tuple(variations((0, 1)))


@pytest.mark.parametrize("beside", [(), (CELL,)])
def test_a_template_ends_when_nothing_waits_for_it_unless_its_variation_may_be_asked_for_again(
    beside: tuple[Cell, ...],
) -> None:
    sweep = Sweep((CELL,), VARIED, Settings(default_interpreter(), ("models",), (), 2, 60.0), beside=beside)
    ended: list[str] = []
    try:
        sweep.schedule.empty()
        for variation in VARIED:
            template: Any = SimpleNamespace(
                ready=True, running={}, finish=lambda name=variation.name: ended.append(name)
            )
            sweep.templates[variation] = template
        sweep._end_idle()
    finally:
        sweep.stop()
    assert ended == ([] if beside else [each.name for each in VARIED])


def test_the_work_of_a_sweep_is_what_was_asked_for_and_what_of_it_runs() -> None:
    other = Cell("xnnpack-fp32", "lstm")
    expected = {CELL: 0.02, other: 100.0}.__getitem__
    settings = Settings(default_interpreter(), ("models",), (), 2, 60.0)
    sweep = Sweep((CELL, other), VARIED, settings, beside=(other,))

    def seconds() -> tuple[float, float, float]:
        """Return the seconds of all work, those that it has taken, and those of what is begun or awaited."""
        work = [*sweep.work(expected)]
        return (
            sum(each[0] for each in work),
            sum(each[1] for each in work),
            sum(e for e, _, begun in work if begun),
        )

    try:
        # Two exports of one cell, one of the other, and a template for each variation.
        assert seconds() == (pytest.approx(2 * 0.02 + 100.0 + 2 * TEMPLATE), 0.0, 2 * TEMPLATE)
        sweep.add(CELL, VARIED[:1], awaited=True)
        assert seconds()[2] == pytest.approx(0.02 + 2 * TEMPLATE)
        job = sweep.schedule.take([VARIED[1]])
        assert job is not None
        running = SimpleNamespace(job=job, process=os.getpid())
        template: Any = SimpleNamespace(variation=VARIED[1], ready=True, running={job.number: running})
        sweep.templates[VARIED[1]] = template
        sweep.started, sweep.ended = 1, [other]
        every, taken, begun = seconds()
        assert every == pytest.approx(3 * 0.02 + 2 * 100.0 + 2 * TEMPLATE)
        # This process has computed for some time.
        assert taken > 100.0 + TEMPLATE + 0.9 * time.process_time()
        assert begun == pytest.approx(2 * 0.02 + 100.0 + 2 * TEMPLATE)
        sweep.templates.clear()
    finally:
        sweep.stop()


def test_what_is_looked_for_in_the_store_is_work_until_it_was_found() -> None:
    settings = Settings(default_interpreter(), ("models",), (), 2, 60.0)
    noted: list[float] = []

    def take(_: Settings, wanted: list[Any]) -> Iterator[str | None]:
        for number, _ in enumerate(wanted):
            noted.append(sum(seconds for seconds, *_ in sweep.work(lambda cell: 100.0)))
            yield "stored" if number == 0 else None

    sweep = Sweep((CELL,), VARIED, settings, reuse=cast(Reuse, SimpleNamespace(take=take)))
    try:
        sweep._take_stored()
        assert noted == [200.0 + 2 * TEMPLATE, 100.0 + TEMPLATE]
        assert (list(sweep.results[CELL]), [job.variation for job in sweep.schedule.waiting()]) == (
            [VARIED[0]],
            [VARIED[1]],
        )
        assert sum(seconds for seconds, *_ in sweep.work(lambda cell: 100.0)) == 100.0 + TEMPLATE
    finally:
        sweep.stop()


def test_a_cell_that_is_held_waits_for_nobody_until_it_is_let_go() -> None:
    other = Cell("xnnpack-fp32", "lstm")
    settings = Settings(default_interpreter(), ("models",), (), 2, 60.0)
    sweep = Sweep((CELL, other), VARIED[:1], settings, held=(CELL, other))
    try:
        # Let go before the store was looked into, and after.
        sweep.unhold(other)
        sweep._take_stored()
        assert [job.cell for job in sweep.schedule.waiting()] == [other]
        for _ in range(2):
            sweep.unhold(CELL)
        assert [job.cell for job in sweep.schedule.waiting()] == [other, CELL]
    finally:
        sweep.stop()
