"""Results of a frozen program against the recorded ones."""

from __future__ import annotations

import dataclasses

import numpy as np

from executorch_goldens_plugins.field import comparing, running
from executorch_goldens_plugins.field.format import FrozenProgram, FrozenSample, FrozenTensor
from executorch_goldens_plugins.field.running import Ran


def given(frozen: FrozenProgram, *, nudge: float) -> Ran:
    """Return a run with the frozen outputs, the first value of the first sample off by `nudge`."""
    first, *others = [sample.outputs for sample in frozen.samples]
    array = first[0].tensor().array().copy()
    array.flat[0] += nudge
    off = dataclasses.replace(first[0], data=array.tobytes())
    return Ran(((off, *first[1:]), *others), "", "", 0.1)


def test_what_is_within_the_tolerance_is_within_rounding_and_beyond_it_wrong(xnnpack: FrozenProgram) -> None:
    sample = xnnpack.samples[0]
    tolerance = sample.tolerances[0]
    wide = tolerance if isinstance(tolerance, float) else float(tolerance.tensor().array().flat[0])
    assert wide > 0.0
    assert comparing.compare(xnnpack, given(xnnpack, nudge=0.0)).word == comparing.SAME
    near = comparing.compare(xnnpack, given(xnnpack, nudge=wide / 2))
    assert (near.word, near.is_right) == (comparing.ROUNDING, True)
    assert near.samples[0] == ("example", comparing.ROUNDING)
    assert near.samples[1][1] == comparing.SAME
    far = comparing.compare(xnnpack, given(xnnpack, nudge=4 * wide))
    assert (far.word, far.is_right) == (comparing.WRONG, False)
    assert "sample example: output 0" in far.reason
    assert "1 of" in far.reason


def test_a_float_that_becomes_none_is_wrong(xnnpack: FrozenProgram) -> None:
    assert comparing.compare(xnnpack, given(xnnpack, nudge=np.nan)).word == comparing.WRONG


def test_integer_codes_may_not_be_off(tosa: FrozenProgram) -> None:
    assert tosa.samples[0].outputs[0].dtype == "int8"
    assert comparing.compare(tosa, given(tosa, nudge=1)).word == comparing.WRONG


def test_another_dtype_shape_or_number_of_outputs_is_wrong(xnnpack: FrozenProgram) -> None:
    (value,) = xnnpack.samples[0].outputs
    for outputs in (
        (),
        (value, value),
        (dataclasses.replace(value, dtype="int32"),),
        (dataclasses.replace(value, shape=(*value.shape, 1)),),
    ):
        word, reason = comparing.of_sample(xnnpack.samples[0], outputs)
        assert word == comparing.WRONG
        assert "frozen" in reason


def test_bfloat16_is_compared_by_its_numbers() -> None:
    frozen = FrozenTensor("bfloat16", (1,), bytes.fromhex("803f"))
    expected = FrozenTensor("float32", (1,), np.float32(1.0).tobytes())
    sample = FrozenSample("example", ((),), (frozen,), (expected,), (0.01,))
    near, far = (
        FrozenTensor("bfloat16", (1,), bytes.fromhex("813f")),
        FrozenTensor("bfloat16", (1,), bytes.fromhex("8a3f")),
    )
    assert comparing.of_sample(sample, (near,))[0] == comparing.ROUNDING
    assert comparing.of_sample(sample, (far,))[0] == comparing.WRONG


def test_what_was_run_before_a_program_stopped_is_said(xnnpack: FrozenProgram) -> None:
    ran = Ran((xnnpack.samples[0].outputs,), running.CRASHED, "SIGSEGV", 0.1)
    result = comparing.compare(xnnpack, ran)
    assert (result.word, result.samples) == (running.CRASHED, (("example", comparing.SAME),))
    assert f"SIGSEGV after 1 of {len(xnnpack.samples)} samples" == result.reason
