"""The layout of a payload: every byte, but for the order that the serializer leaves open."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from executorch_goldens.decode import Decoded, DecodeError, decode
from executorch_goldens.decode.formats import layout_digest
from executorch_goldens.decode.layout import layout
from tests.support.decoding.other_order import other_order
from tests.support.decoding.payloads import FIXTURES, SCHEMAS, identify

CONVOLUTION = next((FIXTURES / "conformance").glob("depthwise*.tosa"))
#: Those whose attributes have several vectors or strings.
SEVERAL = [CONVOLUTION, *(FIXTURES / "conformance").glob("cond_if*.tosa")]

#: Bytes of a payload that a test changes, one at a time.
FLIPPED = 150


def _layout(payload: bytes) -> bytes:
    return layout(SCHEMAS.load("tosa"), memoryview(payload))


@pytest.mark.parametrize("path", SEVERAL, ids=identify)
def test_the_order_of_an_attributes_vectors_is_no_layout(path: Path) -> None:
    payload = path.read_bytes()
    other = other_order(SCHEMAS.load("tosa"), payload)
    assert other != payload
    assert len(other) == len(payload)
    assert decode(other, schemas=SCHEMAS).text() == decode(payload, schemas=SCHEMAS).text()
    assert _layout(other) == _layout(payload)
    assert not decode(other, schemas=SCHEMAS).unread


@pytest.mark.parametrize("path", [*SEVERAL, FIXTURES / "1.5.1/tosa-int-0.tosa"], ids=identify)
def test_every_byte_is_in_the_layout_or_in_the_text(path: Path) -> None:
    payload = path.read_bytes()
    chooser = random.Random(7)
    places = chooser.sample(range(len(payload)), FLIPPED)
    decoded, expected = decode(payload, schemas=SCHEMAS), _layout(payload)
    for at in places:
        mutated = bytearray(payload)
        mutated[at] ^= 1 << chooser.randrange(8)
        assert _is_seen(bytes(mutated), decoded, expected), f"byte {at}"


def _is_seen(mutated: bytes, decoded: Decoded, expected: bytes) -> bool:
    try:
        other = decode(mutated, schemas=SCHEMAS)
    except DecodeError:
        return True
    return _layout(mutated) != expected or other.unread != decoded.unread


def test_the_order_of_anything_else_is_layout() -> None:
    payload = CONVOLUTION.read_bytes()
    other = other_order(SCHEMAS.load("tosa"), payload, of="TosaTensor")
    assert decode(other, schemas=SCHEMAS).text() == decode(payload, schemas=SCHEMAS).text()
    assert _layout(other) != _layout(payload)


def test_a_format_that_leaves_no_order_open_is_its_bytes() -> None:
    payload = bytearray((FIXTURES / "1.5.1/xnnpack-int8-0.xnnpack").read_bytes())
    before = layout_digest(memoryview(bytes(payload)), SCHEMAS)
    payload[-1] ^= 1
    assert layout_digest(memoryview(bytes(payload)), SCHEMAS) != before
