"""Tells the format of a payload from its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.decode.decoded import Decoded
from harness.decode.errors import DecodeError
from harness.decode.pte import decode_pte
from harness.decode.schemas import Schemas
from harness.decode.tosa import decode_tosa
from harness.decode.xnnpack import decode_xnnpack

#: Where all three formats have their identifier: behind a FlatBuffer's root offset, or a header's four zeros.
IDENTIFIER = slice(4, 8)
TOSA = b"TOSA"
XNNPACK = b"XH00"
PTE = b"ET12"
KNOWN = (TOSA, XNNPACK, PTE)


def decode_any(
    payload: memoryview, schemas: Schemas, named_data: Mapping[str, bytes | memoryview]
) -> Decoded:
    """Decode a payload of any known format."""
    identifier = bytes(payload[IDENTIFIER])
    if identifier == TOSA:
        return decode_tosa(payload, schemas.load("tosa"))
    if identifier == XNNPACK:
        return decode_xnnpack(payload, schemas.load("xnnpack"), named_data)
    if identifier == PTE:
        return decode_pte(payload, schemas.load("program"), partial(_decode_delegate, schemas))
    expected = ", ".join(repr(known) for known in KNOWN)
    raise DecodeError("payload", IDENTIFIER.start, f"one of {expected} expected, {identifier!r} found")


def _decode_delegate(
    schemas: Schemas, payload: memoryview, named_data: Mapping[str, bytes | memoryview]
) -> Decoded | None:
    """Decode a delegate's payload; None if it is of a backend whose format is not known here."""
    if bytes(payload[IDENTIFIER]) not in (TOSA, XNNPACK):
        return None
    return decode_any(payload, schemas, named_data)
