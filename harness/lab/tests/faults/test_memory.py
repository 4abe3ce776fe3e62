"""``export-memory``: the kernel gives an exporting process no more, and the verdict says so."""

from __future__ import annotations

import sys

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import MACHINE, Artifact, Cell, Failure, Outcome, OutOfMemory
from executorch_goldens.exporting.entry import first_cause
from executorch_goldens.files import shortage
from executorch_goldens.judging import verdict
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from tests.support.screens import of_verdict

#: Bytes: of a template's data a fork of it has about a fifth of this already.
LIMIT = 3 << 30
CELL = Cell("xnnpack-fp32", "any")

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")


def swept(cases: list[str], memory: int | None, isolation: str = "fork") -> dict[str, Outcome]:
    settings = Settings(default_interpreter(), ("lab.faults.zoo",), (), 2, 120.0, isolation, memory=memory)
    cells = [Cell("xnnpack-fp32", case) for case in cases]
    with Sweep(cells, variations((0,)), settings) as sweep:
        return {cell.case: sweep.outcomes(cell)[0] for cell in cells}


@needs_linux
def test_an_export_that_needs_more_memory_than_it_may_have_is_out_of_memory_and_no_other_is() -> None:
    cases = ["much-in-torch", "much-in-python", "much-in-cpp", "much-behind-another-error"]
    found = swept([*cases, "sound"], LIMIT)
    for case in cases:
        result = found[case].result
        assert isinstance(result, OutOfMemory), (case, result)
        assert (result.limit, bool(result.tail)) == (LIMIT, True)
    assert isinstance(found["sound"].result, Artifact)


@needs_linux
@pytest.mark.slow
def test_a_fresh_interpreter_is_limited_as_a_fork_is() -> None:
    result = swept(["much-in-python"], LIMIT, "fresh")["much-in-python"].result
    assert isinstance(result, OutOfMemory)


def test_a_chain_of_exceptions_that_comes_round_has_an_end() -> None:
    # As of a pass that fails: what it raised, and what the pass manager raised from that.
    one, other = RuntimeError("one"), KeyError("other")
    one.__context__, other.__context__ = other, one
    assert not shortage.of_memory(one)
    one.__cause__, other.__cause__ = other, one
    assert {first_cause(one), first_cause(other)} <= {one, other}
    other.__context__ = MemoryError()
    other.__cause__ = None
    assert shortage.of_memory(one)


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("OSError", "[Errno 28] No space left on device: 'model.json'"),
        (
            "RuntimeError",
            "[enforce fail at alloc_cpu.cpp:121] can't allocate memory: you tried to allocate 8 bytes",
        ),
        ("OSError", "[Errno 24] Too many open files"),
    ],
)
@pytest.mark.parametrize("stage", ["model", "lower", "run"])
def test_what_fails_for_want_of_something_is_never_recorded(
    type: str, message: str, stage: str, snapshot: SnapshotAssertion
) -> None:
    assert shortage.explains(type, message)
    failure = Failure(stage, type, message, None, None, "Traceback\n", fault=MACHINE)
    judged = verdict.objection(CELL, [Outcome(CELL, "seed0-heap0", Artifact(failure, ()), 1.0, 1.0)])
    assert judged is not None
    assert (judged.name, judged.recordable) == ("failed", False)
    assert of_verdict(judged) == snapshot
