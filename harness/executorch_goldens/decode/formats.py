"""The table of payload formats, and which of them a payload has.

Installed distributions add formats of their own: an entry point of group ``executorch_goldens.decoders`` that gives a
`Format`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from executorch_goldens import extensions
from executorch_goldens.decode.decoded import KIND, Decoded
from executorch_goldens.decode.errors import DecodeError
from executorch_goldens.decode.layout import layout
from executorch_goldens.decode.ptd import decode_ptd
from executorch_goldens.decode.pte import decode_pte
from executorch_goldens.decode.schemas import Schemas
from executorch_goldens.decode.tosa import decode_tosa
from executorch_goldens.decode.xnnpack import decode_xnnpack

#: Offset of every format's identifier: after a FlatBuffer's root offset, or a header's four zeros.
START = 4

NamedData: TypeAlias = Mapping[str, bytes | memoryview]


@dataclass(frozen=True)
class Format:
    """A format of payloads.

    Attributes
    ----------
    kind
        Its name, `decode.decoded.KIND`: what decoded payloads say they are, and a part of the names of files.
    identifier
        The bytes at offset 4 that no other format begins with there.
    owner
        The distribution that writes it.
    decode
        Function from a payload, the release's schemas and what the payload refers to by key to its decoded form; raises
        `DecodeError` for bytes that are not of the format.
    is_program
        Whether it is a whole program's, or a data file's: then a delegate's payload is never taken for one.
    layout
        Function from a payload and the release's schemas to a digest of its bytes, the same on every architecture; None
        where the bytes themselves are.
    """

    kind: str
    identifier: bytes
    owner: str
    decode: Callable[[memoryview, Schemas, NamedData], Decoded]
    is_program: bool = False
    layout: Callable[[memoryview, Schemas], bytes] | None = None

    def __post_init__(self) -> None:
        if not KIND.fullmatch(self.kind):
            raise ValueError(f"format {self.kind!r}: its kind is not of the form 'lower-case-words'")
        if len(self.identifier) < 4:
            raise ValueError(f"format {self.kind!r}: its identifier is shorter than 4 bytes")

    def fits(self, payload: memoryview) -> bool:
        """Return whether `payload` has the identifier."""
        return bytes(payload[START : START + len(self.identifier)]) == self.identifier


def _decode_tosa(payload: memoryview, schemas: Schemas, named_data: NamedData) -> Decoded:
    return decode_tosa(payload, schemas.load("tosa"))


def _layout_of_tosa(payload: memoryview, schemas: Schemas) -> bytes:
    return layout(schemas.load("tosa"), payload)


def _decode_xnnpack(payload: memoryview, schemas: Schemas, named_data: NamedData) -> Decoded:
    return decode_xnnpack(payload, schemas.load("xnnpack"), named_data)


def _decode_program(payload: memoryview, schemas: Schemas, named_data: NamedData) -> Decoded:
    return decode_pte(payload, schemas.load("program"), partial(decode_delegate, schemas))


def _decode_ptd(payload: memoryview, schemas: Schemas, named_data: NamedData) -> Decoded:
    return decode_ptd(payload, schemas.load("flat-tensor"))


#: The harness's own formats.
FORMATS: tuple[Format, ...] = (
    Format("tosa", b"TOSA", "tosa-tools", _decode_tosa, layout=_layout_of_tosa),
    Format("xnnpack", b"XH00", "executorch", _decode_xnnpack),
    Format("pte", b"ET12", "executorch", _decode_program, is_program=True),
    Format("ptd", b"FT01", "executorch", _decode_ptd, is_program=True),
)


@functools.cache
def installed() -> tuple[Format, ...]:
    """Return the formats of installed distributions; raise `executorch_goldens.extensions.ExtensionError`."""
    own = [known.kind for known in FORMATS]
    found = extensions.load(extensions.DECODERS, Format, lambda given: given.kind, own)
    for point in extensions.points(extensions.DECODERS):
        given = found[point.name]
        for other in (*FORMATS, *found.values()):
            if other is not given and overlap(given.identifier, other.identifier):
                taken = f"{other.kind} of {other.owner} has {other.identifier!r}"
                raise extensions.refusal(point, f"has the identifier {given.identifier!r}; {taken}")
    return tuple(found.values())


def overlap(one: bytes, other: bytes) -> bool:
    """Return whether a payload can have both identifiers."""
    return one.startswith(other) or other.startswith(one)


def decode_any(payload: memoryview, schemas: Schemas, named_data: NamedData) -> Decoded:
    """Decode a payload of any known format."""
    found = _find(payload)
    if found is None:
        expected = ", ".join(f"{known.identifier!r} ({known.kind})" for known in (*FORMATS, *installed()))
        identifier = bytes(payload[START : START + 4])
        way_out = f"a distribution can add a format (entry points of group {extensions.DECODERS})"
        raise DecodeError("payload", START, f"one of {expected} expected, {identifier!r} found; {way_out}")
    return found.decode(payload, schemas, named_data)


def layout_digest(payload: memoryview, schemas: Schemas) -> bytes:
    """Return a digest of a payload that decodes, the same on every architecture."""
    found = _find(payload)
    if found is None or found.layout is None:
        return hashlib.sha256(payload).digest()
    return found.layout(payload, schemas)


def decode_delegate(schemas: Schemas, payload: memoryview, named_data: NamedData) -> Decoded | None:
    """Decode a delegate's payload; None if it is of a backend whose format is not known here."""
    found = _find(payload)
    return None if found is None or found.is_program else found.decode(payload, schemas, named_data)


def _find(payload: memoryview) -> Format | None:
    """Return the format of a payload, None if it is not known; entry points are read if it is not the harness's."""

    def first(formats: Iterable[Format]) -> Format | None:
        return next((format_ for format_ in formats if format_.fits(payload)), None)

    return first(FORMATS) or first(installed())
