"""Content of a frozen program."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from executorch_goldens.artifact import Cell, Delegate, Lowered
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.files import untrusted
from executorch_goldens_plugins.field import comparing, freezing
from executorch_goldens_plugins.field.freezing import Exported, RefusedError
from executorch_goldens_plugins.field.record import RecordedInputs
from executorch_goldens_plugins.field.recorder import InputRecorder
from executorch_goldens_plugins.field.running import Runtime
from tests import DATA
from tests.exports.test_nested_inputs import CASE
from tests.support.making import outcome


def test_a_payload_that_leaves_sizes_open_is_frozen_at_the_sizes_of_its_samples(runtime: Runtime) -> None:
    """The reference model cannot run it with open sizes."""
    payload = (DATA / "decode/1.5.1/tosa-shape-0.tosa").read_bytes()
    recorder = InputRecorder()
    for number, (height, width) in enumerate([(8, 9), (5, 12), (8, 9)]):
        image = np.arange(3 * height * width, dtype=np.float32).reshape(1, 3, height, width) % 8
        recorder.runs(f"sample {number}", b"")
        recorder.called(payload, [image], numerics.run_model(payload, [image]))
    calls = {name: tuple(made) for name, made in recorder.of_delegates.items()}
    delegates = (Delegate("lowered_module_0", "TOSABackend", payload),)
    lowered = Lowered(graph="", delegates=delegates, pte=b"", samples=(), bound=1e-5, schemas=())
    frozen = list(freezing._delegates(lowered, RecordedInputs({}, calls)))
    assert [(each.name, len(each.samples)) for each in frozen] == [
        ("delegate_0-sizes-0", 2),
        ("delegate_0-sizes-1", 1),
    ]
    for each in frozen:
        # A corpus that is read may have no other.
        untrusted.require_name(each.name)
        again = freezing._run_again(each, runtime)
        assert comparing.compare(again, runtime.run(again)).word == comparing.SAME


@pytest.mark.usefixtures("own_flatc")
def test_a_corpus_refuses_inputs_that_are_no_tensors() -> None:
    record = RecordedInputs({}, {}, constants="3, None")
    made = export(CASE, "xnnpack-fp32")
    cell = Cell("xnnpack-fp32", "nested")
    outcomes = tuple(outcome(made, cell, name) for name in ("seed0-heap0", "seed1-heap1"))
    with pytest.raises(RefusedError, match=r"inputs that are no tensors .3, None."):
        freezing.programs(cell, Exported(outcomes, record), cast("Any", None))
