"""Real payloads decode completely, to text that is stable and reviewed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executorch_goldens.decode import Constant, Decoded, DecodeError, decode
from executorch_goldens.decode.flatbuffer import Node, Table
from tests.support.decoding.payloads import FIXTURES, SCHEMAS, identify, load

GOLDENS = sorted(FIXTURES.rglob("*.txt"))


@pytest.mark.parametrize("golden", GOLDENS, ids=identify)
def test_text_is_the_reviewed_one(golden: Path) -> None:
    assert load(str(golden.with_suffix("").relative_to(FIXTURES))).text() == golden.read_text()


def test_every_byte_of_a_sound_payload_is_read_and_written_as_whole_lines(payload: bytes) -> None:
    decoded = decode(payload, schemas=SCHEMAS)
    assert decoded.unread == ()
    assert all(delegate.decoded is None or not delegate.decoded.unread for delegate in decoded.delegates)
    text = decoded.text()
    assert text == decode(payload, schemas=SCHEMAS).text()
    assert text.endswith("\n")
    for line in decoded.lines():
        assert line == line.rstrip()
        assert len(line.splitlines()) == 1


def test_constants_are_views_of_the_payload() -> None:
    payload = (FIXTURES / "1.5.1/tosa-int-0.tosa").read_bytes()
    for constant in decode(payload, schemas=SCHEMAS).constants().values():
        assert isinstance(constant.data, memoryview)
        assert constant.data.obj is payload


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_flipped_byte_changes_the_text_unless_it_changes_no_field(small: bytes, every: int) -> None:
    """Flip bytes all over the payload: equal text must mean equal fields and bytes."""
    decoded = decode(small, schemas=SCHEMAS)
    text, fields = decoded.text(), _content(decoded)
    chooser = random.Random(3)
    changed = 0
    for at in range(0, len(small), every):
        mutated = bytearray(small)
        mutated[at] ^= 1 << chooser.randrange(8)
        try:
            other = decode(bytes(mutated), schemas=SCHEMAS)
        except DecodeError:
            continue
        if other.text() != text:
            changed += 1
        else:
            assert _content(other) == fields, f"byte {at} changes a field and not the text"
    assert changed > len(small) / every / 10


def test_a_flipped_byte_of_a_constant_changes_the_text_and_that_constant_only() -> None:
    payload = (FIXTURES / "1.5.1/tosa-fp-0.tosa").read_bytes()
    before = decode(payload, schemas=SCHEMAS).constants()
    for name, constant in before.items():
        place = payload.index(bytes(constant.data))
        if payload.count(bytes(constant.data)) > 1:
            continue
        mutated = bytearray(payload)
        mutated[place + len(constant.data) // 2] ^= 0x10
        after = decode(bytes(mutated), schemas=SCHEMAS).constants()
        assert [key for key in before if before[key] != after[key]] == [name]
        assert before[name].sha256() != after[name].sha256()


def test_missing_named_data_are_named_with_key_and_size() -> None:
    text = load("1.5.1/xnnpack-fp32-0.xnnpack").text()
    assert "constant_data[1].size = 432\n" in text
    assert "constant_data.missing = " in text


def test_named_data_given_become_constants() -> None:
    program = load("1.5.1/xnnpack-int8.pte")
    named = {name.removeprefix("named_data "): blob.data for name, blob in program.blobs.items()}
    (delegate,) = program.delegates
    alone = decode(delegate.payload, schemas=SCHEMAS, named_data=named)
    assert alone.text() == delegate.decoded.text()
    assert alone.constants()["%3"].dtype == "qcint8"
    assert alone.constants()["%3"].array().dtype == np.int8


def test_zero_points_beyond_the_shape_are_shown() -> None:
    """Arm's convolutions store a weight zero point for every output channel in a tensor of one number."""
    value = load("1.5.1/tosa-int-0.tosa").graphs[0].values["tosa_conv2d_default_weight_zp"]
    assert value.shape == (1,)
    assert value.attributes == {"data_beyond_shape": bytes(3)}


def test_clamp_bounds_are_numbers_of_the_input_type() -> None:
    (graph,) = load("1.5.1/tosa-fp-0.tosa").graphs
    (clamp,) = [operator for operator in graph.operators if operator.type == "CLAMP"]
    assert clamp.attributes["max_val"] == _float32(6.0, clamp.attributes["max_val"])


def test_initial_state_of_a_buffer_is_a_constant() -> None:
    constants = load("1.5.1/portable.pte").constants()
    assert any(constant.array().tolist() == [1.5, -0.0, 3.25] for constant in constants.values())


def _float32(number: float, like: Any) -> Constant:
    return Constant("FP32", (), np.float32(number).tobytes(), like.codec)


def _content(decoded: Decoded) -> Any:
    """Return everything the payload holds, without places; nothing, zero and empty are the same."""
    return (
        _plain(decoded.tree),
        [(name, bytes(blob.data)) for name, blob in decoded.blobs.items()],
        [bytes(constant.data) for constant in decoded.constants().values()],
        [_content(delegate.decoded) for delegate in decoded.delegates if delegate.decoded],
        decoded.unread,
    )


def _plain(node: Node) -> Any:
    if isinstance(node, Table):
        return {name: _plain(value) for name, value in node.fields.items()}
    if isinstance(node, tuple):
        return [_plain(item) for item in node] or None
    if isinstance(node, memoryview):
        return bytes(node) or None
    return node or None
