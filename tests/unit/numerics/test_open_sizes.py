"""The sizes that payloads with symbolic dimensions leave open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.numerics import open_sizes
from tests import DATA

#: A convolution with symbolic height and width, whose padding follows the sizes; see the README beside it.
PAYLOAD = DATA / "decode" / "1.5.1" / "tosa-shape-0.tosa"


@pytest.fixture
def payload() -> bytes:
    return PAYLOAD.read_bytes()


def image(height: int, width: int) -> np.ndarray[Any, Any]:
    return np.arange(3 * height * width, dtype=np.float32).reshape(1, 3, height, width) % 8


@pytest.mark.parametrize(("height", "width"), [(8, 9), (4, 4), (16, 12), (5, 12)])
def test_a_payload_runs_at_every_size_that_it_is_given(payload: bytes, height: int, width: int) -> None:
    (output,) = numerics.run_model(payload, [image(height, width)])
    assert output.shape == (1, 2, (height + 1) // 2, (width + 1) // 2)


def test_a_payload_with_its_sizes_stays_as_it_is(payload: bytes) -> None:
    assert open_sizes.leaves_open(payload)
    assert open_sizes.lacking(payload) == ""
    written = open_sizes.with_sizes(payload, [(1, 3, 8, 9)])
    assert not open_sizes.leaves_open(written)
    assert open_sizes.with_sizes(written, [(1, 3, 8, 9)]) is written


def test_inputs_that_contradict_what_the_payload_states_are_refused(payload: bytes) -> None:
    with pytest.raises(
        RuntimeError, match=r"input_1 is \[1, 3, -1, -1\] where infer_shapes gives \[1, 4, 8, 9\]"
    ):
        numerics.run_model(payload, [image(8, 9).repeat(4, axis=1)[:, :4]])
    with pytest.raises(RuntimeError, match=r"infer_shapes gives no sizes for inputs of \[\(1, 3, 8\)\]: "):
        numerics.run_model(payload, [image(8, 1)[..., 0]])


def test_a_payload_of_a_version_without_open_sizes_is_not_run(
    payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_sizes, "FIRST", (1, 2))
    assert "takes no dimension" in open_sizes.lacking(payload)


def test_a_tosa_tools_without_the_tool_is_named(
    payload: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(open_sizes, "_tool", lambda: tmp_path / "infer_shapes")
    assert "has no infer_shapes, which gives the sizes left open" in open_sizes.lacking(payload)
