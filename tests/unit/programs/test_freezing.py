"""Content of a frozen program."""

from __future__ import annotations

import numpy as np

from executorch_goldens.artifact import Delegate, Lowered
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.files import untrusted
from executorch_goldens.programs import comparing, freezing
from executorch_goldens.programs.record import Record
from executorch_goldens.programs.recorder import Recorder
from executorch_goldens.programs.running import Runtime
from tests import DATA


def test_a_payload_that_leaves_sizes_open_is_frozen_at_the_sizes_of_its_samples(runtime: Runtime) -> None:
    """The reference model cannot run it with open sizes."""
    payload = (DATA / "decode/1.5.1/tosa-shape-0.tosa").read_bytes()
    recorder = Recorder()
    for number, (height, width) in enumerate([(8, 9), (5, 12), (8, 9)]):
        image = np.arange(3 * height * width, dtype=np.float32).reshape(1, 3, height, width) % 8
        recorder.runs(f"sample {number}", b"")
        recorder.called(payload, [image], numerics.run_model(payload, [image]))
    calls = {name: tuple(made) for name, made in recorder.of_delegates.items()}
    delegates = (Delegate("lowered_module_0", "TOSABackend", payload),)
    lowered = Lowered(graph="", delegates=delegates, pte=b"", samples=(), bound=1e-5, schemas=())
    frozen = list(freezing._delegates(lowered, Record({}, calls)))
    assert [(each.name, len(each.samples)) for each in frozen] == [
        ("delegate_0-sizes-0", 2),
        ("delegate_0-sizes-1", 1),
    ]
    for each in frozen:
        # A corpus that is read may have no other.
        untrusted.require_name(each.name)
        again = freezing._run_again(each, runtime)
        assert comparing.compare(again, runtime.run(again)).word == comparing.SAME
