"""Payloads of a cell are decoded once while it is judged, and nothing of them is kept."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest

from executorch_goldens.artifact import Lowered
from executorch_goldens.decode import Decoded, formats
from executorch_goldens.goldens import rendering
from executorch_goldens.goldens.rendering import decode_delegates, decode_program, decoding_once
from executorch_goldens.judging.rightness import wrongs
from tests.conftest import Artifacts
from tests.support.making import golden_of, lowered_by

pytestmark = pytest.mark.usefixtures("own_flatc")


@pytest.fixture
def variations(artifacts: Artifacts) -> list[Lowered]:
    """A real program that two variations made, each with bytes of its own."""
    made = lowered_by(artifacts["steady"][0])
    copies = tuple(replace(each, payload=bytes(bytearray(each.payload))) for each in made.delegates)
    return [made, replace(made, delegates=copies, pte=bytes(bytearray(made.pte)))]


def test_the_payloads_of_a_cell_are_decoded_once(
    variations: list[Lowered], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []
    one, other = formats.decode_xnnpack, rendering.decode_pte

    def xnnpack(payload: memoryview, *given: object) -> Decoded:
        decoded.append(bytes(payload))
        return one(payload, *given)

    def program(payload: memoryview, *given: object) -> Decoded:
        decoded.append(bytes(payload))
        return other(payload, *given)

    monkeypatch.setattr(formats, "decode_xnnpack", xnnpack)
    monkeypatch.setattr(rendering, "decode_pte", program)
    with decoding_once():
        for made in variations:
            assert not list(wrongs(made))
            golden_of(made)
    assert sorted(decoded) == sorted([variations[0].pte, *(each.payload for each in variations[0].delegates)])


def test_what_is_decoded_is_the_same_and_goes_with_the_cell(variations: list[Lowered]) -> None:
    alone = golden_of(variations[0])
    with decoding_once():
        assert golden_of(variations[1]).texts() == alone.texts()
        with decoding_once():
            (payload,) = decode_delegates(variations[0])
        assert payload is decode_delegates(variations[1])[0]
        assert decode_program(variations[1]).delegates[0].decoded is payload
        kept = weakref.ref(payload)
        del payload
        assert kept() is not None
    gc.collect()
    assert kept() is None
    assert decode_delegates(variations[0])[0] is not decode_delegates(variations[0])[0]
