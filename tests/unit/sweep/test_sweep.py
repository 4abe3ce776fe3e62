"""Which templates a sweep ends before it is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
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
